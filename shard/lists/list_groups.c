// SPDX-License-Identifier: Apache-2.0
#include "shard/lists/list_groups.h"

#include <string.h>

static size_t end_of(const struct bsw_list_choice *choice, size_t q, size_t to)
{
    return choice->counts[q] < to ? choice->counts[q] : to;
}

enum bsw_status bsw_list_groups_make(const struct bsw_list_choice *choice, uint32_t num_lists,
                                     size_t from, size_t to, struct bsw_list_groups *groups,
                                     struct bsw_error *err)
{
    size_t total = 0, table = num_lists + (size_t)2;
    for (size_t q = 0; q < choice->num_queries; q++) {
        size_t end = end_of(choice, q, to);
        total += end > from ? end - from : 0;
    }
    BSW_TRY(bsw_buffer_reserve(&groups->memory, (table + num_lists + 2 * total) * sizeof(uint32_t),
                               err));
    // One place further, so that after they were counted up starts are where ends have to be.
    uint32_t *first = (uint32_t *)(void *)groups->memory.data, *next = first + 1,
             *used = first + table, *queries = used + num_lists;
    memset(first, 0, table * sizeof *first);
    for (size_t q = 0; q < choice->num_queries; q++) {
        for (size_t i = from; i < end_of(choice, q, to); i++)
            next[choice->lists[q * choice->most + i] + 1]++;
    }
    groups->is_same = 0;
    groups->most = groups->num_used = 0;
    for (uint32_t l = 0; l < num_lists; l++) {
        if (next[l + 1] > groups->most) groups->most = next[l + 1];
        if (next[l + 1] > 0) used[groups->num_used++] = l;
        next[l + 1] += next[l];
    }
    float *additions = (float *)(void *)(queries + total);
    for (size_t q = 0; q < choice->num_queries; q++) {
        for (size_t i = from; i < end_of(choice, q, to); i++) {
            size_t at = q * choice->most + i, place = next[choice->lists[at]]++;
            queries[place] = (uint32_t)q;
            if (choice->additions) additions[place] = choice->additions[at];
        }
    }
    groups->additions = choice->additions ? additions : NULL;
    groups->num_lists = num_lists;
    groups->first = first;
    groups->used = used;
    groups->queries = queries;
    return BSW_OK;
}

enum bsw_status bsw_list_groups_make_same(size_t num_queries, uint32_t num_lists,
                                          struct bsw_list_groups *groups, struct bsw_error *err)
{
    BSW_TRY(bsw_buffer_reserve(&groups->memory, (num_queries + 2) * sizeof(uint32_t), err));
    uint32_t *first = (uint32_t *)(void *)groups->memory.data, *queries = first + 2;
    first[0] = 0;
    first[1] = (uint32_t)num_queries;
    for (size_t q = 0; q < num_queries; q++) queries[q] = (uint32_t)q;
    *groups = (struct bsw_list_groups){.num_lists = num_lists,
                                       .is_same = 1,
                                       .most = num_queries,
                                       .first = first,
                                       .queries = queries,
                                       .memory = groups->memory};
    return BSW_OK;
}

void bsw_list_groups_deinit(struct bsw_list_groups *groups)
{
    bsw_buffer_deinit(&groups->memory);
}
