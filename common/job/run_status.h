// SPDX-License-Identifier: Apache-2.0
// How a run ended, whatever its launcher says. Rank 0 writes it last of all, in two places: where
// the environment variable BITSWEEP_STATUS says, and as "run" in OUTPUT.json, the file beside the
// output that also has the facts of a result (coordinator/job/sidecar.h). It takes what an earlier
// run said away first. None: still at work, ended by force, or, beside the output, failed and left
// neither an output nor anything to resume.
//
//   {"status": "complete" | "partial" | "stopped" | "failed", "exit_code": 0, "message": "",
//   "done": 20,
//    "total": 20, "unit": "queries", "command": "search"}
// stopped is exit code 75, of a signal or a lost rank: --resume goes on. partial is 76: all is
// done, of the rows that were there. done and total are 0 for a command that does not count. Older
// versions wrote OUTPUT.STATUS.json instead: that goes when the output is made anew.
#ifndef BITSWEEP_COMMON_RUN_STATUS_H
#define BITSWEEP_COMMON_RUN_STATUS_H

#include <stdint.h>

#include "common/base/status.h"

// Rank 0, once the arguments are known. command is borrowed.
void bsw_run_status_begin(const char *command);
// Rank 0, once this run owns the output: a file, or a folder with or without '/' at its end. unit
// is borrowed. The facts of an older result stay, as it does until the new one is whole. NULL: no
// output after all, which cannot fail.
enum bsw_status bsw_run_status_set_output(const char *path, const char *unit,
                                          struct bsw_error *err);
// What of the work is done; any thread. Ranks other than 0 may call it, too: it is not written.
void bsw_run_status_count(uint64_t done, uint64_t total);
// Rank 0, once all ranks are connected: makes the empty file that BITSWEEP_STARTED names, if it
// names one, for a launcher that waits no longer than so long for it.
enum bsw_status bsw_run_status_started(struct bsw_error *err);
// Where the environment asks for a second one, both are tried. The first failure to write is
// returned, a run without its STATUS has failed.
enum bsw_status bsw_run_status_write(enum bsw_status status, const char *message,
                                     struct bsw_error *err);
// Whether the run that made an output (a file, or a folder without '/' at its end) says that it is
// complete; older versions', too.
int bsw_run_status_is_complete(const char *output);

#endif
