// Another program, run to its end: no shell between.
#ifndef BITSWEEP_COORDINATOR_CHILD_PROCESS_H
#define BITSWEEP_COORDINATOR_CHILD_PROCESS_H

#include "common/base/memory.h"
#include "common/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bsw_child {
    const char *const *arguments; // NULL at the end; [0] is the program, looked for in PATH
    const char *folder;           // to run in; NULL: here
    const char *out, *err;        // files that get its stdout and stderr, replaced; absolute paths
};

// Waits. *exit_code: the child's; 128 + N if signal N ended it, 127 if there is no such program.
// The child gets no input, and it is killed when the calling thread ends, however that comes about.
enum bsw_status bsw_child_run(const struct bsw_child *child, int *exit_code, struct bsw_error *err);

#ifdef __cplusplus
}
#endif
#endif
