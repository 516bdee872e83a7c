#include "shard/running_best.h"

#include "common/result_order.h"

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
                          const float *keys, const uint32_t *places, size_t num_rows,
                          uint32_t local_row, uint64_t *scratch)
{
    if (list->count + num_rows > list->capacity) bsw_running_best_cut(list, select, scratch);
    if (list->is_full) return;
    uint64_t *added = list->items + list->count;
    size_t count = select->filter_keys(keys, num_rows, 0, list->limit, added);
    for (size_t i = 0; i < count; i++) { // places in the block to rows
        uint32_t row = local_row + places[bsw_candidate_row(added[i])];
        added[i] = bsw_candidate_pack(bsw_candidate_score(added[i]), row);
    }
    list->count += count;
}

size_t bsw_running_best_finish(struct bsw_running_best *list, const struct bsw_select_table *select,
                               const struct bsw_merge_table *merge, uint64_t *scratch)
{
    list->count = select->keep_best(list->items, list->count, list->keep, scratch);
    merge->sort_candidates(list->items, list->count, scratch);
    return list->count;
}
