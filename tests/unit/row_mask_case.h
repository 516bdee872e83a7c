// SPDX-License-Identifier: Apache-2.0
// Masks of rows of several kinds, for tests of scans.
#ifndef BITSWEEP_TESTS_UNIT_ROW_MASK_CASE_H
#define BITSWEEP_TESTS_UNIT_ROW_MASK_CASE_H

#include "common/base/arithmetic.h"
#include "shard/host/resident_shard.h"
#include "unit_test.h"

// No row, one, rows here and there, half of them, a stretch, all but a few.
enum { NUM_MASK_KINDS = 6 };

static inline int is_row_allowed(int kind, uint64_t row, uint64_t num_rows)
{
    return kind == 1   ? row == num_rows / 3
           : kind == 2 ? bsw_hash(row) % 50 == 0
           : kind == 3 ? bsw_hash(row) % 2 == 0
           : kind == 4 ? row > num_rows / 4 && row < num_rows / 2
           : kind == 5 ? row % 33 != 0
                       : 0;
}

// [num_rows] bits behind `first` others; bsw_free frees.
static inline uint32_t *make_mask_bits(int kind, uint64_t first, uint64_t num_rows)
{
    uint32_t *bits =
        (uint32_t *)allocate_or_fail(bsw_row_bit_words(first + num_rows) + 1, sizeof *bits);
    for (uint64_t row = 0; row < first; row += 2) bsw_row_bit_set(bits, row);
    for (uint64_t row = 0; row < num_rows; row++)
        if (is_row_allowed(kind, row, num_rows)) bsw_row_bit_set(bits, first + row);
    return bits;
}

static inline void make_mask(int kind, uint64_t num_rows, const struct bsw_list_order *order,
                             size_t num_bundles, struct bsw_row_mask *mask)
{
    struct bsw_error error;
    uint32_t *bits = make_mask_bits(kind, 0, num_rows);
    assert_ok(bsw_row_mask_make(bits, 0, num_rows, order, num_bundles, mask, &error), &error);
    bsw_free(&bits);
}

// The mask of a shard's scans from now on.
static inline void mask_shard(int kind, struct bsw_resident_shard *shard, struct bsw_row_mask *mask)
{
    make_mask(kind, shard->shape.num_rows, &shard->order, shard->num_bundles, mask);
    shard->mask = mask;
}

// Whether a mask, if there is one, leaves a place out.
static inline int is_masked(const struct bsw_row_mask *mask, size_t place)
{
    return mask && !(mask->bundles[place / 32] >> place % 32 & 1);
}

#endif
