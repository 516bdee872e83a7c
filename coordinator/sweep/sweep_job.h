// SPDX-License-Identifier: Apache-2.0
// sweep: a grid of codes and searches over one corpus, every point measured on all ranks of a
// transport through encode_index.h, truth.h and search.h, in a folder that another run can go on
// with.
#ifndef BITSWEEP_COORDINATOR_SWEEP_JOB_H
#define BITSWEEP_COORDINATOR_SWEEP_JOB_H

#include "coordinator/sweep/sweep_step.h"

// What rank 0 measured; bsw_sweep_outcome_deinit frees.
struct bsw_sweep_outcome {
    struct bsw_sweep_points points;
    uint64_t num_resumed;          // points of this grid that the journal had
    uint64_t num_nearer;           // of the ground truth that was given: sweep_judge.h
    uint64_t num_queries, num_own; // num_own: those that are rows of the base: sweep_point.h
    int has_plots;                 // 0: gnuplot is missing
    json_t *report;                // what sweep.json has
};
void bsw_sweep_outcome_deinit(struct bsw_sweep_outcome *outcome);

// All ranks, which agree on a failure. A stop ends it with BSW_ERROR_STOPPED: what was measured is
// in the folder.
enum bsw_status bsw_sweep_job_run(const struct bsw_sweep_settings *settings,
                                  struct bsw_transport *transport,
                                  struct bsw_sweep_outcome *outcome, struct bsw_error *err);

#endif
