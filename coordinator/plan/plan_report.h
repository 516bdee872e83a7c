// SPDX-License-Identifier: Apache-2.0
// What `plan` tells.
#ifndef BITSWEEP_COORDINATOR_PLAN_REPORT_H
#define BITSWEEP_COORDINATOR_PLAN_REPORT_H

#include <stddef.h>
#include <stdint.h>

#include "coordinator/job/facts.h"
#include "coordinator/plan/plan_index.h"
#include "coordinator/plan/plan_times.h"
#include "shard/host/shard_queue.h"

// ---- misses -------------------------------------------------------------------------------------

// What queue selection (rbeGIR's) will miss of the best rows of a planned index.

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

// ---- facts --------------------------------------------------------------------------------------

// The index and its batches; num_ranks: 0 for several numbers of them, of which nothing is told.
void bsw_plan_index_facts(struct bsw_facts *facts, const struct bsw_plan_settings *settings,
                          const struct bsw_plan_index *index, uint64_t num_ranks);

// Memory and disk, for one number of ranks.
void bsw_plan_bytes_facts(struct bsw_facts *facts, const struct bsw_plan_index *index);

// target: percent of the best rows to keep.
void bsw_plan_misses_facts(struct bsw_facts *facts, const struct bsw_queue_options *queue,
                           double target, const struct bsw_plan_misses *misses);

// A line for each number of ranks, what the rates are, and what is not counted.
void bsw_plan_times_facts(struct bsw_facts *facts, const struct bsw_plan_times *times);

// ---- tables on devices --------------------------------------------------------------------------

// What tables of product codes take on a GPU, by arithmetic on the shape that the kernel chooses.

// A line for each of some kinds of GPUs; nothing where codes have no tables.
void bsw_plan_device_tables_facts(struct bsw_facts *facts, const struct bsw_plan_index *index);

#endif
