// SPDX-License-Identifier: Apache-2.0
// What table_scan's levels with vectors do alike. Each includes this behind its own LANES,
// part_products, part_nearest, convert_float8, convert_halves, expand_to and sums_of, all inlined.
#ifndef BITSWEEP_KERNELS_TABLE_SCAN_LANES_H
#define BITSWEEP_KERNELS_TABLE_SCAN_LANES_H

#include "common/codes/metric.h"
#include "kernels/select/select_quick.h"
#include "kernels/table_scan/table_scan.h"
#include "kernels/table_scan/table_sums_at.h"

#if defined(LANES) // nothing without it

static void products(const struct bsw_product_book *book, const float *x, const float *start,
                     float *out)
{
    size_t num = bsw_product_entries(book), part = num * book->part_dims;
    for (uint32_t p = 0; p < book->parts; p++) {
        const float *from = start ? start + p * num : NULL, *at = x + p * book->part_dims;
        if (num == 256)
            part_products(book->entries + p * part, 256, book->part_dims, at, from, out + p * num);
        else
            part_products(book->entries + p * part, 16, book->part_dims, at, from, out + p * num);
    }
}

static void nearest(const struct bsw_product_book *book, const float *x, size_t stride,
                    size_t num_rows, uint8_t *codes)
{
    size_t num = bsw_product_entries(book), part = num * book->part_dims;
    for (uint32_t p = 0; p < book->parts; p++) {
        const float *entries = book->entries + p * part, *norms = book->norms + p * num,
                    *at = x + p * book->part_dims;
        for (size_t r = 0; r < num_rows; r++)
            codes[r * book->parts + p] =
                num == 256 ? part_nearest(entries, norms, 256, book->part_dims, at + r * stride)
                           : part_nearest(entries, norms, 16, book->part_dims, at + r * stride);
    }
}

BSW_SUMS_INLINE void convert_to(enum bsw_table_type type, int is_signed, float power,
                                const float *in, size_t n, void *out)
{
    float *floats = (float *)out;
    if (type == BSW_TABLE_FLOAT16)
        convert_halves(power, in, n, (uint16_t *)out);
    else if (type == BSW_TABLE_FLOAT32)
        for (size_t i = 0; i < n; i++) floats[i] = in[i] * power;
    else
        convert_float8(bsw_float8_exponent_bits(type), is_signed, power, in, n, (uint8_t *)out);
}

static void convert(enum bsw_table_type type, int is_signed, int exponent, const float *in,
                    size_t n, void *out)
{
    const float power = bsw_table_power(exponent);
    BSW_SUMS_BY_TYPE(type, is_signed, convert_to, power, in, n, out);
}

static void expand(enum bsw_table_type type, int is_signed, const void *in, size_t n, float *out)
{
    BSW_SUMS_BY_TYPE(type, is_signed, expand_to, in, n, out);
}

static void sums(const struct bsw_code_table *table, const uint8_t *codes, size_t bundle_bytes,
                 size_t num_bundles, float *out)
{
    sums_of(table, codes, bundle_bytes, num_bundles, out);
}

static void sums_at(const struct bsw_code_table *table, const uint8_t *codes, size_t bundle_bytes,
                    const uint32_t *places, size_t num_places, float *out)
{
    bsw_sums_at(table, codes, bundle_bytes, places, num_places, out);
}

// Appends those rows from first_row on whose bit in `found` is 1 and whose score is at least limit.
BSW_SUMS_INLINE size_t append_keys(const float *keys, uint32_t found, uint32_t first_row,
                                   uint32_t limit, uint64_t *items)
{
    size_t count = 0;
    for (; found; found &= found - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(found), score = bsw_score_from_float(keys[lane]);
        if (score < limit) continue;
        items[count++] = bsw_candidate_pack(score, first_row + lane);
    }
    return count;
}

#endif
#endif
