// SPDX-License-Identifier: Apache-2.0
// What `plan` tells.
#ifndef BITSWEEP_COORDINATOR_PLAN_REPORT_H
#define BITSWEEP_COORDINATOR_PLAN_REPORT_H

#include "coordinator/job/facts.h"
#include "coordinator/plan/plan_index.h"
#include "coordinator/plan/plan_misses.h"
#include "coordinator/plan/plan_times.h"

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

#endif
