// SPDX-License-Identifier: Apache-2.0
// From every rank's lists of exact neighbours to the answers in the result file, a group of queries
// at a time.
#ifndef BITSWEEP_COORDINATOR_TRUTH_MERGE_H
#define BITSWEEP_COORDINATOR_TRUTH_MERGE_H

#include <stddef.h>
#include <stdint.h>

#include "common/codes/metric.h"
#include "common/files/result_file.h"
#include "common/net/transport.h"
#include "coordinator/job/job_events.h"
#include "kernels/merge/merge.h"
#include "shard/exact/exact_best.h"

// Borrows all it points to.
struct bsw_truth_merge {
    struct bsw_transport *transport;
    const struct bsw_merge_table *merge;
    bsw_result_writer *writer;   // rank 0, may be NULL
    struct bsw_answer_sink sink; // the same
    enum bsw_metric metric;
    size_t k;
    uint64_t first_row; // id of this rank's row 0 in the lists
    // Query q is row first_query_row + q; with exclude_self that row is left out of its answer, and
    // lists hold the k + 1 best.
    uint64_t first_query_row;
    int exclude_self;
    uint64_t num_groups; // done; starts at 0
    struct bsw_buffer message;
};

// Queries [first_query, + num_queries): lists [num_queries] of this rank, sorted. Called
// by all ranks for the same groups, in order; ends with an agreement.
enum bsw_status bsw_truth_merge_group(struct bsw_truth_merge *merge, uint64_t first_query,
                                      size_t num_queries, const struct bsw_exact_best *lists,
                                      struct bsw_error *err);
void bsw_truth_merge_deinit(struct bsw_truth_merge *merge);

#endif
