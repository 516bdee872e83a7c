// Stopping by signal. SIGTERM and SIGINT end the process within a second with exit code 75: what is
// finished is saved, temporary files go, STATUS.json says so. SIGUSR1 asks a command that can to
// finish the piece of work it is at and end by itself, with BSW_ERROR_STOPPED; any other command
// takes it as SIGTERM.
//
// A thread of its own waits for the signals; no handler runs in the middle of anything. What it
// does it does with a lock held that bsw_stop_hold takes, too.
#ifndef BITSWEEP_COMMON_STOP_SIGNAL_H
#define BITSWEEP_COMMON_STOP_SIGNAL_H

#include "common/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Of main, before any thread and before MPI: all threads to come leave the signals to this one.
enum bsw_status bsw_stop_watch(struct bsw_error *err);
// Rank 0 is the one that says why on stderr and writes STATUS.json.
void bsw_stop_set_rank(int rank);
// By what the launcher says before bsw_stop_set_rank; alone, it is.
int bsw_stop_is_rank0(void);

// From here on this rank can be drained, and a stop first calls save(context) from another thread,
// and waits for it up to 0.7 s. save may be NULL: a rank that has nothing of its own to save.
void bsw_stop_begin(void (*save)(void *context), void *context);
// On return save does not run and will not, unless the process is about to end.
void bsw_stop_end(void);

// SIGUSR1 has come: begin nothing new. From any thread.
int bsw_stop_is_asked(void);
// BSW_ERROR_STOPPED.
enum bsw_status bsw_stop_fail(struct bsw_error *err);

// Between the two a stop waits: for what must be done whole, such as giving an output its name.
void bsw_stop_hold(void);
void bsw_stop_release(void);

// The run has its outcome: a stop no longer changes it, only ends the process with this exit code
// if it is not gone by itself within a second.
void bsw_stop_conclude(int exit_code);

#ifdef __cplusplus
}
#endif
#endif
