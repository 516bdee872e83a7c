// SPDX-License-Identifier: Apache-2.0
// Spans: runs of consecutive shards of one rank that a device scans as if they were one shard, with
// one list a query. Rows of a span count from its first row on, so that its candidates are in the
// total order without a look at the shards: of equal scores the smaller row is the better one.
//
// The best `keep` of all rows are among the best `keep` of each span, as of each shard; limits that
// the first shards of a span have raised help the others. Shards are in spans of their own where
// rows count within their shard: rbeGIR's queues (shard_queue.h) give a row to a thread by its
// place; and each shard has lists of its own, if the index has some.
#ifndef BITSWEEP_SHARD_SHARD_SPAN_H
#define BITSWEEP_SHARD_SHARD_SPAN_H

#include "shard/assignment.h"
#include "shard/backend.h"

struct bsw_span {
    uint32_t first_shard, num_shards;
    uint64_t first_row, num_rows;
};

// What spans depend on; the same on all ranks, so all have the same spans.
struct bsw_span_rule {
    const struct bsw_manifest *manifest;
    const struct bsw_assignment *assignment;
    int is_shard; // each shard is a span
};

static inline struct bsw_span_rule bsw_span_rule_of(const struct bsw_manifest *manifest,
                                                    const struct bsw_assignment *assignment,
                                                    const struct bsw_search_settings *settings)
{
    return (struct bsw_span_rule){manifest, assignment,
                                  settings->queue.length > 0 || manifest->lists.count > 0};
}

// The span that begins with the shard: up to where another rank answers for the next shard, in any
// slice, or 32 bits would not count the rows. The next span begins behind its last shard.
struct bsw_span bsw_span_at(const struct bsw_span_rule *rule, uint32_t first_shard);
// Spans of the index; each is scanned once for each slice.
uint32_t bsw_num_spans(const struct bsw_span_rule *rule);
// Lists that a rank has for the queries of a slice, over all slices.
uint32_t bsw_num_rank_spans(const struct bsw_span_rule *rule, uint32_t rank);

#endif
