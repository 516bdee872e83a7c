// SPDX-License-Identifier: Apache-2.0
// Which rows of an index the queries of a batch may find, as every rank has it: groups of queries
// that follow each other, each with a mask of all rows.
#ifndef BITSWEEP_SHARD_ROW_FILTER_H
#define BITSWEEP_SHARD_ROW_FILTER_H

#include <stddef.h>
#include <stdint.h>

// All is borrowed.
struct bsw_row_filter {
    uint32_t num_groups; // 1 or more
    // Queries [first[g], first[g + 1]) of the batch; NULL: there is one group, all queries.
    const uint32_t *first;
    size_t num_words;
    const uint32_t *bits;  // [num_groups][num_words]: rows of the index from its first on
    uint64_t first_row;    // the id of that row
    uint64_t first_number; // of group 0; no other content in this process has these numbers
    // Where queries look at some lists: rows of each list, of all shards, and those of them that
    // each group may find. Else NULL.
    uint32_t num_lists;
    const uint32_t *list_rows;    // [num_lists]
    const uint32_t *allowed_rows; // [num_groups][num_lists]
};

static inline const uint32_t *bsw_row_filter_bits(const struct bsw_row_filter *filter,
                                                  uint32_t group)
{
    return filter->bits + group * filter->num_words;
}

// The group of a query of the batch.
static inline uint32_t bsw_row_filter_group(const struct bsw_row_filter *filter, size_t query)
{
    uint32_t low = 0, high = filter->num_groups;
    while (filter->first && high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (filter->first[middle] <= query)
            low = middle;
        else
            high = middle;
    }
    return low;
}

// Where the group of a query ends, at `end` at the latest.
static inline size_t bsw_row_filter_end(const struct bsw_row_filter *filter, size_t query,
                                        size_t end)
{
    if (!filter || !filter->first) return end;
    size_t own = filter->first[bsw_row_filter_group(filter, query) + 1];
    return own < end ? own : end;
}

#endif
