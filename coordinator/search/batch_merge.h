// SPDX-License-Identifier: Apache-2.0
// Rank 0's side of the search protocol: from the payloads of all ranks to limits, cuts and ranked
// answers.
//
// Payload formats are in shard/shard_service.h. A payload that does not parse is BSW_ERROR_PEER.
#ifndef BITSWEEP_COORDINATOR_BATCH_MERGE_H
#define BITSWEEP_COORDINATOR_BATCH_MERGE_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/merge/merge.h"
#include "shard/shard_service.h"

// One query's part of one shard's payload.
struct bsw_part {
    const void *items;
    size_t count;
};

struct bsw_value_terms; // shard/codecs/codec.h

// Answers of a range search of a batch; {0} is empty, the owner deinits.
struct bsw_range_answers {
    struct bsw_buffer lims; // uint64_t [num_queries + 1]: query q has places [lims[q], lims[q + 1])
    struct bsw_buffer ids;  // int64_t
    struct bsw_buffer values; // float
};
void bsw_range_answers_deinit(struct bsw_range_answers *answers);

struct bsw_batch_merge {
    const struct bsw_manifest *manifest;
    struct bsw_search_settings settings;
    const struct bsw_assignment *assignment; // borrowed
    const struct bsw_merge_table *merge;
    size_t num_queries;
    struct bsw_buffer parts; // struct bsw_part [num_queries][num_shards]
    struct bsw_buffer scratch;
    struct bsw_buffer counts; // of a range search: rows within, a query
    uint64_t first_query_row; // with exclude_self: row id of the batch's first query
    const uint32_t *order;    // of the batch's queries: which each is of its answers; NULL: as told
    uint64_t num_survivors;   // of all queries so far: traffic, for the closing table
    uint64_t num_empty;       // places of answers so far without a row
    float within;             // of a range search: what values are compared with
    const int64_t *row_ids; // [rows of the index]: what answers have for rows; NULL: their numbers
};

void bsw_batch_merge_init(struct bsw_batch_merge *merge, const struct bsw_manifest *manifest,
                          const struct bsw_search_settings *settings,
                          const struct bsw_assignment *assignment);
void bsw_batch_merge_deinit(struct bsw_batch_merge *merge);

// payloads [num_ranks], of the batch's num_queries queries.

// Candidates of all shards to cuts: gather: the keep-th best of all; ladder: the first listed row,
// in the total order, up to which the listed places count to keep.
enum bsw_status bsw_merge_candidates(struct bsw_batch_merge *merge,
                                     const struct bsw_buffer *payloads, size_t num_queries,
                                     const struct bsw_scan_round *round, struct bsw_cut *cuts,
                                     struct bsw_error *err);

// Cuts of the first of two rounds to limits of the second: the score of distance D_K + extra, D_K
// that of the last row within the cut (XFBQ, Algorithm 1, line 16). No distance is larger than that
// of the least limit.
void bsw_limits_of_cuts(const struct bsw_batch_merge *merge, const struct bsw_cut *cuts,
                        size_t num_queries, uint32_t *limits);

// Survivors of all shards to the answer: the best keep by key (with exclude_self the best keep - 1
// but for the query's own row), of those the best k by exact value (or key), unfilled places -1 and
// the worst value. terms [num_queries] (bsw_value_of_score). ids, values [num_queries][k].
enum bsw_status bsw_merge_survivors(struct bsw_batch_merge *merge,
                                    const struct bsw_buffer *payloads, size_t num_queries,
                                    const struct bsw_value_terms *terms, int64_t *ids,
                                    float *values, struct bsw_error *err);

// For a range search: the cuts of queries with these terms, one after the other, which every row
// has passed whose estimate is within `reach`. By bisection of bsw_value_of_score, so that a value
// without refinement is compared as it is written.
void bsw_range_cuts(const struct bsw_batch_merge *merge, const struct bsw_value_terms *terms,
                    size_t num_queries, float reach, struct bsw_cut *cuts);

// Survivors of all shards to the answer of a range search: all whose value is within merge->within,
// in the order of answers. A query with more than `most` candidates is BSW_ERROR_TOO_LARGE.
enum bsw_status bsw_merge_range(struct bsw_batch_merge *merge, const struct bsw_buffer *payloads,
                                size_t num_queries, const struct bsw_value_terms *terms,
                                uint64_t most, uint64_t first_query, struct bsw_range_answers *out,
                                struct bsw_error *err);

#endif
