// SPDX-License-Identifier: Apache-2.0
// The best rows of one query while blocks of rows stream by.
#ifndef BITSWEEP_SHARD_RUNNING_BEST_H
#define BITSWEEP_SHARD_RUNNING_BEST_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/select/select.h"

struct bsw_running_best {
    uint64_t *items; // candidates packed as in common/codes/result_order.h; borrowed
    size_t count, capacity, keep;
    uint32_t limit; // inclusive score
    int is_full;    // nothing can pass any more
};

// Room for twice what is kept and one block more, so that the list is cut rarely.
static inline size_t bsw_running_best_capacity(size_t keep, size_t block_rows)
{
    return 2 * keep + block_rows;
}

void bsw_running_best_init(struct bsw_running_best *list, uint64_t *items, size_t capacity,
                           size_t keep);

// Cuts the list to its best `keep`; the limit rises to one above the worst of them, because later
// rows lose ties.
void bsw_running_best_cut(struct bsw_running_best *list, const struct bsw_select_table *select,
                          uint64_t *scratch);

// Adds candidates, rows ascending and above all rows before, leaving out those below the limit;
// capacity is above keep. scratch: capacity.
void bsw_running_best_add(struct bsw_running_best *list, const struct bsw_select_table *select,
                          const uint64_t *candidates, size_t count, uint64_t *scratch);

#endif
