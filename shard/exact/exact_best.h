// SPDX-License-Identifier: Apache-2.0
// The best rows of one query by exact value (common/codes/metric.h), while blocks of rows
// stream by. Rows are added in ascending order and stay in it, so that of equal values the earlier
// row is the better one; the list is sorted once all are seen.
#ifndef BITSWEEP_SHARD_EXACT_BEST_H
#define BITSWEEP_SHARD_EXACT_BEST_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/merge/merge.h"
#include "kernels/select/select.h"

struct bsw_exact_best {
    uint64_t *scores; // [capacity], borrowed
    uint32_t *rows;   // [capacity], borrowed
    size_t count, capacity, keep;
    uint64_t limit; // inclusive score
};

// Bytes of scratch for the functions below.
static inline size_t bsw_exact_best_scratch_bytes(size_t capacity)
{
    return 2 * capacity * sizeof(struct bsw_ranked);
}

// capacity is above keep >= 1.
void bsw_exact_best_init(struct bsw_exact_best *list, uint64_t *scores, uint32_t *rows,
                         size_t capacity, size_t keep);

// Cuts the list to its best `keep`; the limit rises to one above the worst of them, because later
// rows lose ties.
void bsw_exact_best_cut(struct bsw_exact_best *list, const struct bsw_select_table *select,
                        void *scratch);

// Adds a row above all rows before, unless it falls short of the limit.
static inline void bsw_exact_best_add(struct bsw_exact_best *list,
                                      const struct bsw_select_table *select, uint64_t score,
                                      uint32_t row, void *scratch)
{
    if (score < list->limit) return;
    if (list->count == list->capacity) {
        bsw_exact_best_cut(list, select, scratch);
        if (score < list->limit) return;
    }
    list->scores[list->count] = score;
    list->rows[list->count++] = row;
}

// Brings rows that came in any order (from a device) into ascending order.
void bsw_exact_best_order_rows(struct bsw_exact_best *list, const struct bsw_merge_table *merge,
                               void *scratch);

// Cuts the list and sorts it: larger scores first, then smaller rows. A list that is sorted may be
// sorted again; nothing can be added to it.
void bsw_exact_best_sort(struct bsw_exact_best *list, const struct bsw_select_table *select,
                         const struct bsw_merge_table *merge, void *scratch);

#endif
