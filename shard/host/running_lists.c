// SPDX-License-Identifier: Apache-2.0
#include "shard/host/running_lists.h"

#include <string.h>

#include "common/codes/metric.h"

enum bsw_status bsw_running_lists_begin(struct bsw_running_lists *lists, size_t num_queries,
                                        const uint32_t *limits, struct bsw_buffer *list_memory,
                                        struct bsw_buffer *item_memory, struct bsw_error *err)
{
    size_t bytes;
    lists->capacity = bsw_running_capacity(lists->keep);
    if (!bsw_multiply_size(num_queries * sizeof(uint64_t), lists->capacity, &bytes))
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "%zu candidates a query are too many",
                        lists->keep);
    BSW_TRY(bsw_buffer_reserve(item_memory, bytes + 1, err));
    BSW_TRY(bsw_buffer_reserve(list_memory, num_queries * sizeof *lists->lists + 1, err));
    lists->items = (uint64_t *)(void *)item_memory->data;
    lists->lists = (struct bsw_running_list *)(void *)list_memory->data;
    for (size_t q = 0; q < num_queries; q++)
        lists->lists[q] = (struct bsw_running_list){.limit = limits ? limits[q] : 0};
    return BSW_OK;
}

static void lock(struct bsw_running_list *list)
{
    while (__atomic_test_and_set(&list->is_locked, __ATOMIC_ACQUIRE)) continue;
}

static void unlock(struct bsw_running_list *list)
{
    __atomic_clear(&list->is_locked, __ATOMIC_RELEASE);
}

static void set_count(struct bsw_running_list *list, size_t count)
{
    __atomic_store_n(&list->count, (uint32_t)count, __ATOMIC_RELAXED);
}

// The best `keep` of num items, to the query's list. What comes later may have the smaller row, so
// the limit is the worst score itself.
static void cut(const struct bsw_running_lists *lists, size_t query, uint64_t *items, size_t num,
                uint64_t *scratch)
{
    struct bsw_running_list *list = &lists->lists[query];
    uint64_t *to = lists->items + query * lists->capacity, worst = UINT64_MAX;
    num = lists->select->keep_best(items, num, lists->keep, scratch);
    for (size_t i = 0; i < num; i++) {
        to[i] = items[i];
        worst = items[i] < worst ? items[i] : worst;
    }
    set_count(list, num);
    if (num < lists->keep || bsw_candidate_score(worst) <= list->limit) return;
    __atomic_store_n(&list->limit, bsw_candidate_score(worst), __ATOMIC_RELAXED);
}

void bsw_running_lists_add(const struct bsw_running_lists *lists, size_t query,
                           const uint64_t *found, size_t num, struct bsw_running_room room)
{
    struct bsw_running_list *list = &lists->lists[query];
    if (lists->is_shared) lock(list);
    uint64_t *items = lists->items + query * lists->capacity, *to = items + list->count;
    int is_full = list->count + num > lists->capacity;
    if (is_full) {
        memcpy(room.merged, items, list->count * sizeof *items);
        to = room.merged + list->count;
    }
    for (size_t i = 0; i < num; i++) to[i] = found[i];
    for (size_t i = 0; i < num && lists->rows; i++)
        to[i] =
            bsw_candidate_pack(bsw_candidate_score(to[i]), lists->rows[bsw_candidate_row(to[i])]);
    if (is_full)
        cut(lists, query, room.merged, list->count + num, room.scratch);
    else
        set_count(list, list->count + num);
    if (lists->is_shared) unlock(list);
}

void bsw_running_lists_raise(const struct bsw_running_lists *lists, size_t query,
                             struct bsw_running_room room)
{
    size_t count = lists->lists[query].count;
    if (count < lists->keep) return;
    memcpy(room.merged, lists->items + query * lists->capacity, count * sizeof *room.merged);
    cut(lists, query, room.merged, count, room.scratch);
}

size_t bsw_running_lists_finish(const struct bsw_running_lists *lists, size_t query, uint64_t *out,
                                struct bsw_running_room room)
{
    uint64_t *items = lists->items + query * lists->capacity;
    size_t count =
        lists->select->keep_best(items, lists->lists[query].count, lists->keep, room.scratch);
    lists->merge->sort_candidates(items, count, room.scratch);
    memcpy(out, items, count * sizeof *out);
    return count;
}
