// SPDX-License-Identifier: Apache-2.0
// What a job (encode_index.h, truth.h) tells whoever runs it: so it prints nothing itself, and does
// not decide how the process ends. A command writes it down (run_status.h); others may leave it
// out.
#ifndef BITSWEEP_COORDINATOR_JOB_EVENTS_H
#define BITSWEEP_COORDINATOR_JOB_EVENTS_H

#include <stdint.h>

#include "common/base/status.h"

// Any function may be NULL. One tenant: commands; without it, as in the library, nothing is told.
struct bsw_job_events {
    // Rank 0: the output at path is this job's from here on, which counts its work in `unit`. NULL
    // and "": the job failed and left nothing there, which cannot fail.
    enum bsw_status (*output)(const char *path, const char *unit, struct bsw_error *err);
    // Any rank and thread.
    void (*count)(uint64_t done, uint64_t total);
    // Rank 0, while a stop waits (bsw_stop_hold): the output is whole and has its name; what an
    // unfinished run would be resumed from goes next. An error fails the job.
    enum bsw_status (*complete)(struct bsw_error *err);
};

// The events of a command: how the run ended, then the outcome of the process
// (common/job/run_status.h, stop_signal.h).
extern const struct bsw_job_events bsw_command_events;

// events may be NULL.
enum bsw_status bsw_events_output(const struct bsw_job_events *events, const char *path,
                                  const char *unit, struct bsw_error *err);
void bsw_events_count(const struct bsw_job_events *events, uint64_t done, uint64_t total);
enum bsw_status bsw_events_complete(const struct bsw_job_events *events, struct bsw_error *err);

#endif
