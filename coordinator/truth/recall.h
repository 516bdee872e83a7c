// SPDX-License-Identifier: Apache-2.0
// Recall, always named in full. K-recall@R: of the K true nearest neighbours of a query, the share
// found among the first R that were returned, on average over the queries.
//
// Every share is counted by ids, and once more with ties: a returned id that is not among the true
// K then counts too if its value equals that of the K-th true one, since which of equal neighbours
// a search returns is no fault of it. Equal means equal, never within a tolerance, and never do
// more than K count.
#ifndef BITSWEEP_COORDINATOR_RECALL_H
#define BITSWEEP_COORDINATOR_RECALL_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

// num_true-recall@num_columns, summed over the queries so far.
struct bsw_recall_figure {
    size_t num_true, num_columns;
    uint64_t found; // by ids
    uint64_t tied;  // what counts besides with ties
};

// All figures of a result of `width` columns against the first k of the truth: k-recall@k and
// 1-recall@k where the result is that wide, k-recall@width and 1-recall@width where it is not k
// wide; the second of each only for k > 1.
struct bsw_recall {
    size_t k, width, num_figures;
    uint64_t num_queries;
    struct bsw_recall_figure figures[4];
    // What no truth has: places of its first k without a neighbour, ids that a query has again, and
    // returned rows that are nearer than the last true one without being any of them, with the
    // queries that have such rows.
    uint64_t num_empty, num_repeated, num_nearer, num_nearer_queries;
    int64_t *true_ids;             // scratch [k]
    struct bsw_returned *returned; // scratch [width]
};

// One query. Ids below 0 are places without a neighbour; an id that is returned twice counts once.
struct bsw_recall_query {
    const int64_t *true_ids; // [k], best first
    const int64_t *ids;      // [width], best first
    const double *values;    // [width] of ids; NULL: ties do not count
    double first_value;      // of true_ids[0]; with values only, as the next
    double last_value;       // of true_ids[k - 1]
    int has_keys;            // larger values are better (bsw_metric_key): nearer rows are counted
};

// k, width >= 1. *recall is to be deinited, also after an error.
enum bsw_status bsw_recall_init(struct bsw_recall *recall, size_t k, size_t width,
                                struct bsw_error *err);
// O(width log width + k log k).
void bsw_recall_add(struct bsw_recall *recall, const struct bsw_recall_query *query);
void bsw_recall_deinit(struct bsw_recall *recall);

// The figure of the first k of the truth against all columns.
const struct bsw_recall_figure *bsw_recall_widest(const struct bsw_recall *recall);
// 0 .. 1, after one query or more.
double bsw_recall_by_ids(const struct bsw_recall *recall, const struct bsw_recall_figure *figure);
double bsw_recall_with_ties(const struct bsw_recall *recall,
                            const struct bsw_recall_figure *figure);

#endif
