// SPDX-License-Identifier: Apache-2.0
#include "shard/scan/candidate_lists.h"

#include "common/codes/result_order.h"

void bsw_candidate_lists_deinit(struct bsw_candidate_lists *lists)
{
    bsw_buffer_deinit(&lists->items);
    bsw_buffer_deinit(&lists->counts);
}

enum bsw_status bsw_candidate_lists_reserve(struct bsw_candidate_lists *lists, size_t num_queries,
                                            size_t keep, struct bsw_error *err)
{
    size_t bytes;
    if (!bsw_multiply_size(num_queries * sizeof(uint64_t), keep, &bytes))
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "%zu candidates a query are too many", keep);
    lists->num_queries = num_queries;
    lists->keep = keep;
    BSW_TRY(bsw_buffer_reserve(&lists->items, bytes, err));
    return bsw_buffer_reserve(&lists->counts, num_queries * sizeof(size_t), err);
}

// How many of a list's rows are in the range; those go to `to`, unless that is NULL.
static size_t pick(const uint64_t *list, size_t count, uint32_t first_row, uint64_t num_rows,
                   uint64_t *to)
{
    size_t num = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t row = bsw_candidate_row(list[i]);
        if (row < first_row || row - first_row >= num_rows) continue;
        if (to) to[num] = bsw_candidate_pack(bsw_candidate_score(list[i]), row - first_row);
        num++;
    }
    return num;
}

enum bsw_status bsw_candidate_lists_pick(const struct bsw_candidate_lists *lists,
                                         uint32_t first_row, uint64_t num_rows,
                                         struct bsw_candidate_lists *out, struct bsw_error *err)
{
    size_t most = 0, count;
    for (size_t q = 0; q < lists->num_queries; q++) {
        const uint64_t *list = bsw_candidate_list(lists, q, &count);
        size_t num = pick(list, count, first_row, num_rows, NULL);
        most = num > most ? num : most;
    }
    BSW_TRY(bsw_candidate_lists_reserve(out, lists->num_queries, most, err));
    size_t *counts = (size_t *)(void *)out->counts.data;
    for (size_t q = 0; q < lists->num_queries; q++) {
        const uint64_t *list = bsw_candidate_list(lists, q, &count);
        counts[q] =
            pick(list, count, first_row, num_rows, (uint64_t *)(void *)out->items.data + q * most);
    }
    return BSW_OK;
}
