// SPDX-License-Identifier: Apache-2.0
// Sums of some rows alone, eight chains of additions side by side, as one waits for itself: what
// table_scan's levels with vectors share. Included by them alone, each for its own CPU.
#ifndef BITSWEEP_KERNELS_TABLE_SUMS_AT_H
#define BITSWEEP_KERNELS_TABLE_SUMS_AT_H

#include <string.h>

#include "kernels/table_scan/table_scan.h"

#define BSW_SUMS_TOGETHER 8
#define BSW_SUMS_INLINE   static inline __attribute__((always_inline))

// at: of each row its first byte of codes.
BSW_SUMS_INLINE void bsw_sums_of_eight(uint32_t bits, const struct bsw_code_table *table,
                                       const uint8_t *const *at, float *sums)
{
    const float *numbers = table->numbers;
    float s[BSW_SUMS_TOGETHER] = {0};
    for (size_t p = 0, from = 0; p < table->parts; p++) {
        for (int i = 0; i < BSW_SUMS_TOGETHER; i++) {
            size_t code = at[i][from];
            if (bits == 4) code = p & 1 ? code >> 4 : code & 15;
            s[i] += numbers[code];
        }
        numbers += (size_t)1 << bits;
        if (bits == 8 || (p & 1)) from += BSW_BUNDLE_ROWS;
    }
    memcpy(sums, s, sizeof s);
}

// Where the last eight lack some, the last row takes their places.
BSW_SUMS_INLINE void bsw_sums_at(const struct bsw_code_table *table, const uint8_t *codes,
                                 size_t bundle_bytes, const uint32_t *places, size_t num,
                                 float *sums)
{
    for (size_t first = 0; first < num; first += BSW_SUMS_TOGETHER) {
        const uint8_t *at[BSW_SUMS_TOGETHER];
        float eight[BSW_SUMS_TOGETHER];
        size_t count = num - first < BSW_SUMS_TOGETHER ? num - first : BSW_SUMS_TOGETHER;
        for (size_t i = 0; i < BSW_SUMS_TOGETHER; i++) {
            uint32_t place = places[first + (i < count ? i : count - 1)];
            at[i] = codes + place / BSW_BUNDLE_ROWS * bundle_bytes + place % BSW_BUNDLE_ROWS;
        }
        if (table->bits == 4)
            bsw_sums_of_eight(4, table, at, eight);
        else
            bsw_sums_of_eight(8, table, at, eight);
        memcpy(sums + first, eight, count * sizeof *sums);
    }
}

// Calls function(type, is_signed, ...) with the first two as constants.
#define BSW_SUMS_BY_TYPE(type, is_signed, function, ...) \
    switch (2 * (unsigned)(type) + ((is_signed) != 0)) { \
    case 2 * BSW_TABLE_FLOAT16:                          \
    case 2 * BSW_TABLE_FLOAT16 + 1:                      \
        function(BSW_TABLE_FLOAT16, 0, __VA_ARGS__);     \
        break;                                           \
    case 2 * BSW_TABLE_E5M3 + 1:                         \
        function(BSW_TABLE_E5M3, 1, __VA_ARGS__);        \
        break;                                           \
    case 2 * BSW_TABLE_E5M3:                             \
        function(BSW_TABLE_E5M3, 0, __VA_ARGS__);        \
        break;                                           \
    case 2 * BSW_TABLE_E4M4 + 1:                         \
        function(BSW_TABLE_E4M4, 1, __VA_ARGS__);        \
        break;                                           \
    case 2 * BSW_TABLE_E4M4:                             \
        function(BSW_TABLE_E4M4, 0, __VA_ARGS__);        \
        break;                                           \
    default:                                             \
        function(BSW_TABLE_FLOAT32, 0, __VA_ARGS__);     \
    }

#endif
