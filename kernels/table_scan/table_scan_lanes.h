// SPDX-License-Identifier: Apache-2.0
// table_scan of all levels with vectors, but for how look-ups of many rows are made.
#ifndef BITSWEEP_KERNELS_TABLE_SCAN_LANES_H
#define BITSWEEP_KERNELS_TABLE_SCAN_LANES_H

#include <math.h>

#include "kernels/lanes.h"

#include "common/codes/result_order.h"
#include "kernels/select/select_quick.h"
#include "kernels/table_scan/table_scan.h"

#if defined(LANES) // nothing without it

#define CHAINS (LANES == 16 ? 16 : 8) // registers of entries under way

// ---- making tables ----

// Chains of num registers of entries of a part, from `start` on, or 0.
INLINE void chain(const float *entries, size_t stride, uint32_t part_dims, const float *x,
                  float factor, const float *start, size_t num, floats *sums)
{
    for (size_t k = 0; k < num; k++) sums[k] = start ? load(start + k * LANES) : every(0.0f);
    for (uint32_t d = 0; d < part_dims; d++) {
        floats v = every(factor * x[d]);
        for (size_t k = 0; k < num; k++)
            sums[k] = multiply_add(v, load(entries + d * stride + k * LANES), sums[k]);
    }
}

INLINE void part_products(const float *entries, size_t num, uint32_t part_dims, const float *x,
                          const float *start, float *out)
{
    const size_t block = num < CHAINS * LANES ? num / LANES : CHAINS;
    for (size_t j = 0; j < num; j += block * LANES) {
        floats sums[CHAINS];
        chain(entries + j, num, part_dims, x, 1.0f, start ? start + j : NULL, block, sums);
        for (size_t k = 0; k < block; k++) store(out + j + k * LANES, sums[k]);
    }
}

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

// The number of the least of all lanes, of equal ones the first.
INLINE uint8_t first_least(floats least, lane_bits numbers)
{
    float values[LANES];
    uint32_t places[LANES], first = UINT32_MAX;
    store(values, least);
    memcpy(places, &numbers, sizeof places);
    for (int i = 1; i < LANES; i++) values[0] = values[i] < values[0] ? values[i] : values[0];
    for (uint32_t some = bits_of(at_most(least, every(values[0]))); some; some &= some - 1) {
        uint32_t place = places[__builtin_ctz(some)];
        first = place < first ? place : first;
    }
    return (uint8_t)first;
}

INLINE uint8_t part_nearest(const float *entries, const float *norms, size_t num,
                            uint32_t part_dims, const float *x)
{
    static const uint32_t first[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const size_t block = num < CHAINS * LANES ? num / LANES : CHAINS;
    floats least = every(INFINITY);
    lane_bits best = {0}, number;
    memcpy(&number, first, sizeof number);
    for (size_t j = 0; j < num; j += block * LANES) {
        floats sums[CHAINS];
        chain(entries + j, num, part_dims, x, -2.0f, norms + j, block, sums);
        for (size_t k = 0; k < block; k++) {
            lane_marks is_less = below(sums[k], least);
            least = choose(is_less, sums[k], least);
            best = choose_bits(is_less, number, best);
            number = number + LANES;
        }
    }
    return first_least(least, best);
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

static float distances(const struct bsw_product_book *book, const float *list, const float *query,
                       const float *bases, float *out)
{
    size_t num = bsw_product_entries(book);
    floats largest = every(0.0f);
    for (uint32_t p = 0; p < book->parts; p++) {
        floats base = every(bases[p]);
        for (size_t i = p * num; i < (p + 1) * num; i += LANES) {
            floats sum = larger((load(list + i) + load(query + i)) + base, every(0.0f));
            largest = larger(sum, largest);
            store(out + i, sum);
        }
    }
    float lanes[LANES], most = 0.0f;
    store(lanes, largest);
    for (int i = 0; i < LANES; i++) most = lanes[i] > most ? lanes[i] : most;
    return most;
}

// ---- formats ----

// What encode and decode of table_formats.h do one after the other.
INLINE floats round_float8(uint32_t exponent_bits, int is_signed, floats v)
{
    const uint32_t shift = 15 + exponent_bits,
                   first = 0x3f800000u - (((1u << (exponent_bits - 1)) - 1) << 23),
                   base = is_signed ? bsw_float8_signed_base(exponent_bits)
                                    : bsw_float8_base(exponent_bits);
    const lane_bits zero = {0}, begin = zero + first, end = begin + (255u << shift),
                    minus = zero + (1u << 31);
    floats size = (floats)((lane_bits)v & ~minus); // bits of positive floats are in order
    lane_bits cell =
        ((lane_bits)smaller(larger(size, (floats)begin), (floats)end) - begin) >> shift;
    if (!is_signed) return (floats)(base + (cell << shift));
    lane_bits sign = (lane_bits)only(below(v, every(0.0f)), (floats)minus);
    return (floats)((base + ((cell & 254u) << shift)) | sign);
}

INLINE void round_to(enum bsw_table_type type, int is_signed, float power, const float *in,
                     size_t n, float *out)
{
    const floats most = every(BSW_HALF_MAX), zero = every(0.0f);
    for (size_t i = 0; i < n; i += LANES) {
        floats v = load(in + i) * every(power);
        if (type == BSW_TABLE_FLOAT16) // -0 is 0, as in the reference
            v = nearest_halves(larger(smaller(v, most), zero - most) + zero);
        else
            v = round_float8(bsw_float8_exponent_bits(type), is_signed, v);
        store(out + i, v);
    }
}

static void round_numbers(enum bsw_table_type type, int is_signed, int exponent, const float *in,
                          size_t n, float *out)
{
    const float power = bsw_table_power(exponent);
    if (type == BSW_TABLE_FLOAT16)
        round_to(BSW_TABLE_FLOAT16, 0, power, in, n, out);
    else if (type == BSW_TABLE_E5M3)
        round_to(BSW_TABLE_E5M3, is_signed, power, in, n, out);
    else
        round_to(BSW_TABLE_E4M4, is_signed, power, in, n, out);
}

// ---- sums ----

#define SUMS_TOGETHER 8 // chains of additions side by side, as one waits for itself

// at: of each row its first byte of codes.
INLINE void sums_of_eight(uint32_t bits, const struct bsw_code_table *table,
                          const uint8_t *const *at, float *sums)
{
    const float *numbers = table->numbers;
    float s[SUMS_TOGETHER] = {0};
    for (size_t p = 0, from = 0; p < table->parts; p++) {
        for (int i = 0; i < SUMS_TOGETHER; i++) {
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
static void sums_at(const struct bsw_code_table *table, const uint8_t *codes, size_t bundle_bytes,
                    const uint32_t *places, size_t num, float *sums)
{
    for (size_t first = 0; first < num; first += SUMS_TOGETHER) {
        const uint8_t *at[SUMS_TOGETHER];
        float eight[SUMS_TOGETHER];
        size_t count = num - first < SUMS_TOGETHER ? num - first : SUMS_TOGETHER;
        for (size_t i = 0; i < SUMS_TOGETHER; i++) {
            uint32_t place = places[first + (i < count ? i : count - 1)];
            at[i] = codes + place / BSW_BUNDLE_ROWS * bundle_bytes + place % BSW_BUNDLE_ROWS;
        }
        if (table->bits == 4)
            sums_of_eight(4, table, at, eight);
        else
            sums_of_eight(8, table, at, eight);
        memcpy(sums + first, eight, count * sizeof *sums);
    }
}

// 8-bit codes. A load and an addition a row were faster than gathers, 0.30 ns against 0.42 on Zen
// 3. The tables of so many parts stay in the first cache while all bundles go over them.
#define PART_BLOCK 16

INLINE void add_loaded(const float *numbers, const uint8_t *codes, uint32_t parts, float *sums)
{
    float s[SUMS_TOGETHER];
    memcpy(s, sums, sizeof s);
    for (uint32_t p = 0; p < parts; p++) {
        for (int i = 0; i < SUMS_TOGETHER; i++) s[i] += numbers[codes[i]];
        numbers += 256;
        codes += BSW_BUNDLE_ROWS;
    }
    memcpy(sums, s, sizeof s);
}

static inline void sums_by_loads(const struct bsw_code_table *table, const uint8_t *codes,
                                 size_t bundle_bytes, size_t num_bundles, float *sums)
{
    memset(sums, 0, num_bundles * BSW_BUNDLE_ROWS * sizeof *sums);
    for (uint32_t p = 0; p < table->parts; p += PART_BLOCK) {
        const float *numbers = table->numbers + (size_t)p * 256;
        uint32_t left = table->parts - p, parts = left < PART_BLOCK ? left : PART_BLOCK;
        for (size_t b = 0; b < num_bundles; b++)
            for (size_t r = 0; r < BSW_BUNDLE_ROWS; r += SUMS_TOGETHER)
                add_loaded(numbers, codes + b * bundle_bytes + p * BSW_BUNDLE_ROWS + r, parts,
                           sums + b * BSW_BUNDLE_ROWS + r);
    }
}

// ---- what passes ----

static size_t filter(const float *sums, float multiplier, float addition, const uint32_t *masks,
                     size_t num_bundles, uint32_t first_row, uint32_t limit, uint64_t *items)
{
    const floats factor = every(multiplier), more = every(addition), zero = every(0.0f),
                 least = every(bsw_float_limit(limit));
    size_t count = 0;
    for (size_t b = 0; b < num_bundles; b++, sums += BSW_BUNDLE_ROWS) {
        float keys[BSW_BUNDLE_ROWS];
        lane_marks reached[WORD];
        for (size_t k = 0; k < WORD; k++) {
            floats key = ((load(sums + k * LANES) * factor + zero) + more) + zero;
            reached[k] = at_most(least, key);
            store(keys + k * LANES, key);
        }
        for (uint32_t found = word_of(reached) & masks[b]; found; found &= found - 1) {
            uint32_t lane = (uint32_t)__builtin_ctz(found),
                     score = bsw_score_from_float(keys[lane]),
                     row = first_row + (uint32_t)(b * BSW_BUNDLE_ROWS) + lane;
            if (score >= limit) items[count++] = bsw_candidate_pack(score, row);
        }
    }
    return count;
}

#endif
#endif
