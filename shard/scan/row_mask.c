// SPDX-License-Identifier: Apache-2.0
#include "shard/scan/row_mask.h"

void bsw_row_mask_deinit(struct bsw_row_mask *mask)
{
    bsw_buffer_deinit(&mask->memory);
    *mask = (struct bsw_row_mask){0};
}

// 32 bits from bit `at` on; beyond `end` there is nothing, in memory either.
static uint32_t bits_at(const uint32_t *bits, uint64_t at, uint64_t end)
{
    uint64_t word = at / 32;
    uint32_t shift = at % 32, out = bits[word] >> shift;
    if (shift > 0 && word + 1 < bsw_row_bit_words(end)) out |= bits[word + 1] << (32 - shift);
    return end - at < 32 ? out & ((1u << (end - at)) - 1) : out;
}

// Places of bundle b, where lists have an order of their own.
static uint32_t listed_bits(const uint32_t *bits, uint64_t first_row,
                            const struct bsw_list_order *order, size_t b)
{
    size_t first = b * BSW_BUNDLE_ROWS;
    uint32_t out = 0;
    for (uint32_t r = 0; r < BSW_BUNDLE_ROWS && first + r < order->num_places; r++) {
        uint32_t row = order->rows[first + r];
        if (row != BSW_NO_ROW) out |= (uint32_t)bsw_row_bit(bits, first_row + row) << r;
    }
    return out;
}

enum bsw_status bsw_row_mask_make(const uint32_t *bits, uint64_t first_row, uint64_t num_rows,
                                  const struct bsw_list_order *order, size_t num_bundles,
                                  struct bsw_row_mask *mask, struct bsw_error *err)
{
    static uint64_t versions;
    uint64_t end = first_row + num_rows, count = 0;
    BSW_TRY(bsw_buffer_reserve(&mask->memory, num_bundles * sizeof(uint32_t) + 1, err));
    uint32_t *bundles = (uint32_t *)(void *)mask->memory.data;
#pragma omp parallel for schedule(static) reduction(+ : count)
    for (size_t b = 0; b < num_bundles; b++) {
        uint64_t at = first_row + b * BSW_BUNDLE_ROWS;
        bundles[b] = order->rows ? listed_bits(bits, first_row, order, b)
                     : at < end  ? bits_at(bits, at, end)
                                 : 0;
        count += (uint64_t)__builtin_popcount(bundles[b]);
    }
    mask->bundles = bundles;
    mask->num_bundles = num_bundles;
    mask->num_rows = count;
    mask->version = __atomic_add_fetch(&versions, 1, __ATOMIC_RELAXED);
    return BSW_OK;
}

uint64_t bsw_row_mask_count(const struct bsw_row_mask *mask, size_t first_bundle,
                            size_t num_bundles)
{
    uint64_t count = 0;
    for (size_t b = first_bundle; b < first_bundle + num_bundles; b++)
        count += (uint64_t)__builtin_popcount(mask->bundles[b]);
    return count;
}
