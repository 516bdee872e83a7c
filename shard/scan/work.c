// SPDX-License-Identifier: Apache-2.0
#include "shard/scan/work.h"

#include <string.h>

void bsw_work_deinit(struct bsw_work *work)
{
    bsw_buffer_deinit(&work->memory);
}

static size_t num_chunks(size_t num_slots, size_t most_slots)
{
    return (num_slots + most_slots - 1) / most_slots;
}

// Room for runs and for the queries of slots behind them; both may be empty.
static enum bsw_status reserve(struct bsw_work *work, size_t num_runs, size_t num_slots,
                               struct bsw_run **runs, uint32_t **queries, struct bsw_error *err)
{
    BSW_TRY(bsw_buffer_reserve(&work->memory,
                               num_runs * sizeof **runs + num_slots * sizeof **queries + 1, err));
    *runs = (struct bsw_run *)(void *)work->memory.data;
    *queries = (uint32_t *)(void *)(*runs + num_runs);
    work->runs = *runs;
    work->queries = *queries;
    work->num_runs = work->most_slots = 0;
    work->additions = NULL;
    work->is_in_order = work->is_scattered = 0;
    return BSW_OK;
}

// Some bundles for slots [first, first + num), a chunk of them after another.
static void add_runs(struct bsw_work *work, struct bsw_run *runs, size_t bundle, size_t num_bundles,
                     size_t first, size_t num, size_t most_slots)
{
    for (size_t i = 0; i < num && num_bundles > 0; i += most_slots) {
        size_t count = num - i < most_slots ? num - i : most_slots;
        runs[work->num_runs++] = (struct bsw_run){(uint32_t)bundle, (uint32_t)num_bundles,
                                                  (uint32_t)(first + i), (uint32_t)count};
        if (count > work->most_slots) work->most_slots = count;
    }
}

enum bsw_status bsw_work_make_whole(size_t num_bundles, struct bsw_work_pieces pieces,
                                    const uint32_t *queries, size_t num_queries, size_t most_slots,
                                    struct bsw_work *work, struct bsw_error *err)
{
    struct bsw_run *runs;
    uint32_t *slots;
    size_t num_pieces = (num_bundles + pieces.advance - 1) / pieces.advance;
    BSW_TRY(reserve(work, num_pieces * num_chunks(num_queries, most_slots), num_queries, &runs,
                    &slots, err));
    for (size_t q = 0; q < num_queries; q++) slots[q] = queries ? queries[q] : (uint32_t)q;
    work->is_in_order = !queries;
    for (size_t b = 0; b < num_bundles; b += pieces.advance) {
        size_t left = num_bundles - b;
        add_runs(work, runs, b, left < pieces.bundles ? left : pieces.bundles, 0, num_queries,
                 most_slots);
    }
    return BSW_OK;
}

// Lists that some query looks at.
static size_t num_used(const struct bsw_list_groups *groups)
{
    return groups->used ? groups->num_used : groups->num_lists;
}

static uint32_t used_at(const struct bsw_list_groups *groups, size_t i)
{
    return groups->used ? groups->used[i] : (uint32_t)i;
}

enum bsw_status bsw_work_make_lists(const struct bsw_list_order *order,
                                    const struct bsw_list_groups *groups, size_t most_slots,
                                    struct bsw_work *work, struct bsw_error *err)
{
    struct bsw_run *runs;
    uint32_t *none;
    size_t num_runs = 0;
    for (size_t u = 0; u < num_used(groups); u++)
        num_runs += num_chunks(bsw_list_group_slots(groups, used_at(groups, u)).num, most_slots);
    BSW_TRY(reserve(work, num_runs, 0, &runs, &none, err));
    work->queries = groups->queries;
    work->additions = groups->additions;
    work->is_in_order = groups->is_same;
    work->is_scattered = 1;
    for (size_t u = 0; u < num_used(groups); u++) {
        uint32_t list = used_at(groups, u);
        const struct bsw_list_slots slots = bsw_list_group_slots(groups, list);
        const uint32_t *bundles = order->first_bundles + list;
        add_runs(work, runs, bundles[0], bundles[1] - bundles[0], slots.first, slots.num,
                 most_slots);
    }
    return BSW_OK;
}

// ---- list by list ----

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
