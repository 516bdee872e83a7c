// SPDX-License-Identifier: Apache-2.0
// Which lists queries look at that may find some rows alone.
#include "shard/lists/coarse_search_parts.h"
#include "shard/lists/row_filter.h"

void bsw_coarse_search_filter(struct bsw_coarse_search *search, const struct bsw_row_filter *filter,
                              size_t first_query)
{
    search->filter = filter;
    search->filter_first = first_query;
}

// Lists of num items with rows of `allowed`, in their order, until these are `wanted` or more;
// *seen: how many.
static size_t take_allowed(uint64_t *items, size_t num, const uint32_t *allowed, uint64_t wanted,
                           uint64_t *seen)
{
    size_t count = 0;
    *seen = 0;
    for (size_t i = 0; i < num && *seen < wanted; i++) {
        uint32_t rows = allowed[bsw_candidate_row(items[i])];
        items[count] = items[i];
        count += rows > 0;
        *seen += rows;
    }
    return count;
}

// How many rows that it may find a query is to see, which would look at `rows` without a filter, of
// which it may find `seen`.
static uint64_t wanted_rows(const struct bsw_coarse_search *search, const uint32_t *allowed,
                            uint64_t rows, uint64_t seen)
{
    uint64_t all = 0, all_allowed = 0;
    for (size_t l = 0; l < search->num_lists; l++) {
        all += search->filter->list_rows[l];
        all_allowed += allowed[l];
    }
    int is_far = (double)seen * (double)all * 4 < (double)all_allowed * (double)rows * 3;
    uint64_t wanted = rows * (is_far ? BSW_FILTERED_FAR_PERCENT : BSW_FILTERED_PERCENT) / 100;
    return wanted > 0 ? wanted : 1;
}

size_t bsw_coarse_widen(struct bsw_coarse_block *block, size_t at, const float *keys, size_t count)
{
    const struct bsw_coarse_search *search = block->search;
    const struct bsw_row_filter *filter = search->filter;
    uint32_t group = bsw_row_filter_group(filter, search->filter_first + at);
    const uint32_t *allowed = filter->allowed_rows + (size_t)group * search->num_lists;
    uint64_t rows = 0, seen;
    for (size_t i = 0; i < count; i++)
        rows += filter->list_rows[bsw_candidate_row(block->items[i])];
    size_t left = take_allowed(block->items, count, allowed, UINT64_MAX, &seen);
    uint64_t wanted = wanted_rows(search, allowed, rows, seen);
    for (size_t tried = count; seen < wanted && tried == count && count < search->num_lists;) {
        // By what was seen so far and half as much, at least twice and at most 16 times as many.
        uint64_t factor = seen * 16 > wanted ? wanted * 3 / (seen * 2) + 1 : 16;
        tried = (count + (count == 0)) * (size_t)(factor < 2 ? 2 : factor > 16 ? 16 : factor);
        if (tried > search->num_lists) tried = search->num_lists;
        count = bsw_coarse_nearest(block, keys, search->num_lists, BSW_COARSE_LEAST_KEY, tried);
        left = take_allowed(block->items, count, allowed, wanted, &seen);
    }
    return left;
}
