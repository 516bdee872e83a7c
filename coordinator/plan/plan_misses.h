// SPDX-License-Identifier: Apache-2.0
// What queue selection (rbeGIR's) will miss of the best rows of a planned index.
#ifndef BITSWEEP_COORDINATOR_PLAN_MISSES_H
#define BITSWEEP_COORDINATOR_PLAN_MISSES_H

#include <stddef.h>
#include <stdint.h>

#include "coordinator/plan/plan_index.h"
#include "shard/host/shard_queue.h"

struct bsw_plan_misses {
    uint64_t num_best;      // N
    uint64_t threads, kept; // of all shards; rows that their queues hold at most
    double expected;        // exact
    int is_simulated;
    double *at_most;        // [num_terms]: P(L <= l); owned
    size_t num_terms;       // 0: there are too many misses to tell them apart
    uint64_t largest_items; // power of two that reaches the target, 0: none
};

// Misses among the index's L best. target: percent of them to keep, for which largest_items is
// sought.
enum bsw_status bsw_plan_misses_find(const struct bsw_plan_index *index,
                                     const struct bsw_queue_options *queue, double target,
                                     struct bsw_plan_misses *out, struct bsw_error *err);
void bsw_plan_misses_deinit(struct bsw_plan_misses *misses);

#endif
