// SPDX-License-Identifier: Apache-2.0
// What a scan finds.
#ifndef BITSWEEP_SHARD_CANDIDATE_LISTS_H
#define BITSWEEP_SHARD_CANDIDATE_LISTS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/memory.h"

BSW_C_BEGIN

// Candidates of some queries in one shard, or in a span of shards (shard_span.h): query q has items
// [q * keep, q * keep + counts[q]), descending in the total order (common/codes/result_order.h).
struct bsw_candidate_lists {
    size_t num_queries, keep;
    struct bsw_buffer items;  // uint64_t [num_queries][keep]
    struct bsw_buffer counts; // size_t [num_queries]
};
void bsw_candidate_lists_deinit(struct bsw_candidate_lists *lists);
// Room for `keep` candidates of each query; what the lists held is lost.
enum bsw_status bsw_candidate_lists_reserve(struct bsw_candidate_lists *lists, size_t num_queries,
                                            size_t keep, struct bsw_error *err);
static inline uint64_t *bsw_candidate_list(const struct bsw_candidate_lists *lists, size_t query,
                                           size_t *count)
{
    *count = ((const size_t *)(const void *)lists->counts.data)[query];
    return (uint64_t *)(void *)lists->items.data + query * lists->keep;
}

// Takes from every list the rows [first_row, first_row + num_rows), counted from first_row on, in
// the order of the list.
enum bsw_status bsw_candidate_lists_pick(const struct bsw_candidate_lists *lists,
                                         uint32_t first_row, uint64_t num_rows,
                                         struct bsw_candidate_lists *out, struct bsw_error *err);

BSW_C_END
#endif
