// SPDX-License-Identifier: Apache-2.0
#include "shard/host/running_best.h"

#include "common/codes/result_order.h"

void bsw_running_best_init(struct bsw_running_best *list, uint64_t *items, size_t capacity,
                           size_t keep)
{
    *list = (struct bsw_running_best){.items = items, .capacity = capacity, .keep = keep};
}

void bsw_running_best_cut(struct bsw_running_best *list, const struct bsw_select_table *select,
                          uint64_t *scratch)
{
    list->count = select->keep_best(list->items, list->count, list->keep, scratch);
    if (list->count < list->keep) return;
    uint64_t worst = UINT64_MAX;
    for (size_t i = 0; i < list->count; i++)
        worst = list->items[i] < worst ? list->items[i] : worst;
    if (bsw_candidate_score(worst) == UINT32_MAX)
        list->is_full = 1;
    else
        list->limit = bsw_candidate_score(worst) + 1;
}

void bsw_running_best_add(struct bsw_running_best *list, const struct bsw_select_table *select,
                          const uint64_t *candidates, size_t count, uint64_t *scratch)
{
    for (size_t i = 0; i < count; i++) {
        if (list->count == list->capacity) bsw_running_best_cut(list, select, scratch);
        if (list->is_full) return;
        if (bsw_candidate_score(candidates[i]) < list->limit) continue;
        list->items[list->count++] = candidates[i];
    }
}
