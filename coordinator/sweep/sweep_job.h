// SPDX-License-Identifier: Apache-2.0
// sweep: a grid of codes and searches over one corpus, every point measured on all ranks of a
// transport through encode_index.h, truth.h and search.h, in a folder that another run can go on
// with.
#ifndef BITSWEEP_COORDINATOR_SWEEP_JOB_H
#define BITSWEEP_COORDINATOR_SWEEP_JOB_H

#include <stddef.h>

#include "common/job/progress.h"
#include "coordinator/sweep/sweep_step.h"

// What rank 0 measured; bsw_sweep_outcome_deinit frees.
struct bsw_sweep_outcome {
    struct bsw_sweep_points points;
    uint64_t num_resumed;          // points of this grid that the journal had
    uint64_t num_nearer;           // of the ground truth that was given: sweep_point.h
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

// ---- how far it is ------------------------------------------------------------------------------

// How far a sweep is, for whoever waits for it: "point 12 of 45, index saq-2, about 6 min left".
// What is left is told by how long points and indexes of this run took on average.

enum { BSW_SWEEP_PACE_BYTES = 320 };

struct bsw_sweep_pace {
    struct bsw_progress *progress; // borrowed; NULL: nothing is shown
    size_t num_points;             // of the grid
    double last_shown;
    // What this run has done, and how long all of it took.
    size_t num_measured, num_indexes;
    double point_seconds, index_seconds;
};

// Where a sweep is: at a point from 1 on, whose index is there or is made now.
struct bsw_sweep_place {
    size_t point;
    const char *index;
    int is_made;                      // the index is
    size_t points_left, indexes_left; // to be measured and made, this one too
};

void bsw_sweep_pace_begin(struct bsw_sweep_pace *pace, struct bsw_progress *progress,
                          size_t num_points);
// text: one line. Without a measured point, or an index where some are left, it has no time.
void bsw_sweep_pace_text(const struct bsw_sweep_pace *pace, const struct bsw_sweep_place *place,
                         char text[BSW_SWEEP_PACE_BYTES]);
// Whether something would be shown now: to find a place looks at all points.
int bsw_sweep_pace_is_due(const struct bsw_sweep_pace *pace);
// On a terminal at once, in the place of what stood there; elsewhere a line every ten seconds.
void bsw_sweep_pace_show(struct bsw_sweep_pace *pace, const struct bsw_sweep_place *place);

#endif
