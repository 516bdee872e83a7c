// SPDX-License-Identifier: Apache-2.0
#include "shard/exact/exact_best.h"

void bsw_exact_best_init(struct bsw_exact_best *list, uint64_t *scores, uint32_t *rows,
                         size_t capacity, size_t keep)
{
    *list =
        (struct bsw_exact_best){.scores = scores, .rows = rows, .capacity = capacity, .keep = keep};
}

void bsw_exact_best_cut(struct bsw_exact_best *list, const struct bsw_select_table *select,
                        void *scratch)
{
    if (list->count < list->keep) return;
    list->limit =
        select->keep_exact(list->scores, list->rows, list->count, list->keep, scratch) + 1;
    list->count = list->keep;
}

void bsw_exact_best_order_rows(struct bsw_exact_best *list, const struct bsw_merge_table *merge,
                               void *scratch)
{
    struct bsw_ranked *entries = scratch;
    for (size_t i = 0; i < list->count; i++)
        entries[i] = (struct bsw_ranked){(uint32_t)~list->rows[i], list->scores[i]};
    merge->best_ranked(entries, list->count, list->count, BSW_RANKED_BY_EXACT,
                       entries + list->count);
    for (size_t i = 0; i < list->count; i++) {
        list->scores[i] = entries[i].row;
        list->rows[i] = ~(uint32_t)entries[i].score;
    }
}

void bsw_exact_best_sort(struct bsw_exact_best *list, const struct bsw_select_table *select,
                         const struct bsw_merge_table *merge, void *scratch)
{
    struct bsw_ranked *entries = scratch;
    bsw_exact_best_cut(list, select, scratch);
    for (size_t i = 0; i < list->count; i++)
        entries[i] = (struct bsw_ranked){list->scores[i], list->rows[i]};
    merge->best_ranked(entries, list->count, list->count, BSW_RANKED_BY_EXACT,
                       entries + list->count);
    for (size_t i = 0; i < list->count; i++) {
        list->scores[i] = entries[i].score;
        list->rows[i] = (uint32_t)entries[i].row;
    }
}
