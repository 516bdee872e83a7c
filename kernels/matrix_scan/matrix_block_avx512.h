// SPDX-License-Identifier: Apache-2.0
// A block of matrix_scan_avx512.c: up to 12 queries against a bundle.
//
// 24 accumulators in registers, and for 4 dimensions 14 loads (two of documents, a broadcast a
// query) to 24 dot products, so that nothing but the units that multiply is busy. What is asked of
// the sums is computed while they are in their registers: which rows reach their query's limit.
#ifndef BITSWEEP_KERNELS_MATRIX_BLOCK_AVX512_H
#define BITSWEEP_KERNELS_MATRIX_BLOCK_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/codes/code_layout.h"
#include "kernels/matrix_scan/matrix_scan.h"

#if defined(__AVX512VNNI__) // nothing without it

#define INLINE        static inline __attribute__((always_inline))

#define BLOCK_QUERIES 12
#define HALF_ROWS     16
#define QUERY_LANES   16 // of a block, as a vector

typedef int32_t bundle_sums[BSW_BUNDLE_ROWS];
typedef __mmask16 bundle_marks[2]; // of a bundle's halves

// What becomes of a block's sums: they are stored, or rows are marked by keys of a kind. Short
// rows have at most 256 dimensions and even constants. Their sums start at the bits of 1.5 * 2^23
// less half the constant. As a float such a sum is 1.5 * 2^23 - dot / 2, without a conversion, and
// fma(-2 * scale, sum, 3 * 2^23 * scale) is scale * dot, rounded once: a half has 11 bits and 3 has
// 2, so the addend is exact. Bounds are keys of a first stage and what is beyond it at most.
enum block_end {
    STORE_SUMS,
    MARK_INTEGERS,
    MARK_WHOLE,
    MARK_SHORT_FLOATS,
    MARK_FLOATS,
    MARK_SHORT_BOUNDS,
    MARK_BOUNDS,
    NUM_ENDS
};

#define MAX_SHORT_DIMS 256        // 256 * 255 * 127 < 2^23
#define SHORT_START    0x4b400000 // bits of 1.5 * 2^23

// The queries of a block; lanes beyond num are 0.
struct panel {
    _Alignas(64) int32_t constants[QUERY_LANES]; // dot = constant - 2 * sum
    int32_t most[QUERY_LANES];                   // integer keys: the largest sum that passes
    int32_t least[QUERY_LANES]; // whole keys: what passes, less its constant, is not below this
    float scales[QUERY_LANES], limits[QUERY_LANES];
    // What is marked: keys of all dimensions, or bounds.
    int32_t starts[QUERY_LANES], mark_constants[QUERY_LANES];
    float reaches[QUERY_LANES], mark_limits[QUERY_LANES];
    size_t mark_dims;
    int is_staged;
    const int8_t *components;
    struct bsw_matrix_output *outputs;
    size_t num;
    int factor; // whole keys: 1 or 2
};

// Half a bundle: what sums turn into keys with.
struct half_rows {
    __m512 scales, shifts, biases, tails;
    __m512i offsets;
};

// Keeps a loaded value in its register: gcc would load it again for every use.
#define PIN(value) __asm__("" : "+v"(value))

// Queries are reached from four pointers, three each; hiding how they are related keeps compilers
// from making twelve, more than there are registers for.
#define EACH_QUERY(DO) \
    DO(0, q0, 0)       \
    DO(1, q0, 1)       \
    DO(2, q0, 2)       \
    DO(3, q3, 0)       \
    DO(4, q3, 1)       \
    DO(5, q3, 2)       \
    DO(6, q6, 0)       \
    DO(7, q6, 1)       \
    DO(8, q6, 2)       \
    DO(9, q9, 0)       \
    DO(10, q9, 1)      \
    DO(11, q9, 2)

#define START_QUERY(j, base, offset)                           \
    __m512i low##j = _mm512_setzero_si512(), high##j = low##j; \
    if (j < num && is_short(end)) low##j = high##j = _mm512_set1_epi32(panel->starts[j]);

#define STEP_QUERY(j, base, offset)                                   \
    if (j < num || (is_split && j >= 6 && j - 6 < num)) {             \
        __m512i q = broadcast_four(base + (size_t)offset * stride);   \
        low##j = _mm512_dpbusd_epi32(low##j, rows[j >= 6].low, q);    \
        high##j = _mm512_dpbusd_epi32(high##j, rows[j >= 6].high, q); \
    }

#define ADD_SPLIT(j, k)                               \
    if (is_split && j < num) {                        \
        low##j = _mm512_add_epi32(low##j, low##k);    \
        high##j = _mm512_add_epi32(high##j, high##k); \
    }

#define PIN_QUERY(j, base, offset) \
    PIN(low##j);                   \
    PIN(high##j);

#define STORE_QUERY(j, base, offset)               \
    if (j < num) {                                 \
        _mm512_store_si512(sums[j], low##j);       \
        _mm512_store_si512(sums[j] + 16, high##j); \
    }

#define MARK_LOW(j, base, offset) \
    if (j < num) _store_mask16(&marks[j][0], reaching(end, low##j, half, panel, j));
#define MARK_HIGH(j, base, offset) \
    if (j < num) _store_mask16(&marks[j][1], reaching(end, high##j, half, panel, j));

INLINE int is_short(enum block_end end)
{
    return end == MARK_SHORT_FLOATS || end == MARK_SHORT_BOUNDS;
}

INLINE int is_bound(enum block_end end)
{
    return end == MARK_SHORT_BOUNDS || end == MARK_BOUNDS;
}

INLINE __m512 load_halves(const uint16_t *from)
{
    return _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)(const void *)from));
}

// PIN: they are used for every query of a block.
INLINE struct half_rows load_half(enum block_end end, const struct bsw_matrix_tile *tile,
                                  size_t row)
{
    const __m512 zero = _mm512_setzero_ps();
    struct half_rows rows = {zero, zero, zero, zero, _mm512_setzero_si512()};
    if (end == MARK_INTEGERS) return rows;
    if (end == MARK_WHOLE) {
        rows.offsets = _mm512_load_si512(tile->offsets + row);
        return rows;
    }
    rows.scales = load_halves(tile->scales + row);
    rows.biases = _mm512_load_ps(tile->biases + row);
    PIN(rows.biases);
    if (is_bound(end)) {
        rows.tails = load_halves(tile->tails + row);
        PIN(rows.tails);
    }
    if (is_short(end)) {
        rows.shifts = _mm512_mul_ps(rows.scales, _mm512_set1_ps(3 * 0x1p23f));
        rows.scales = _mm512_mul_ps(rows.scales, _mm512_set1_ps(-2.0f));
        PIN(rows.shifts);
    }
    PIN(rows.scales);
    return rows;
}

INLINE __m512i dots_of(__m512i sums, int32_t constant)
{
    return _mm512_sub_epi32(_mm512_set1_epi32(constant), _mm512_add_epi32(sums, sums));
}

// Whole keys but for the query's constant.
INLINE __m512i parts_of(__m512i sums, struct half_rows rows, const struct panel *panel)
{
    __m512i doubled = _mm512_sllv_epi32(sums, _mm512_set1_epi32(panel->factor - 1));
    return _mm512_add_epi32(doubled, rows.offsets);
}

// Which of 16 rows reach the limit; of whole keys that would have to overflow for it some do not.
INLINE __mmask16 reaching(enum block_end end, __m512i sums, struct half_rows rows,
                          const struct panel *panel, size_t j)
{
    if (end == MARK_INTEGERS)
        return _mm512_cmple_epi32_mask(sums, _mm512_set1_epi32(panel->most[j]));
    if (end == MARK_WHOLE)
        return _mm512_cmpge_epi32_mask(parts_of(sums, rows, panel),
                                       _mm512_set1_epi32(panel->least[j]));
    __m512 scaled, most = rows.biases;
    if (is_short(end))
        scaled = _mm512_fmadd_ps(rows.scales, _mm512_castsi512_ps(sums), rows.shifts);
    else
        scaled =
            _mm512_mul_ps(rows.scales, _mm512_cvtepi32_ps(dots_of(sums, panel->mark_constants[j])));
    if (is_bound(end)) most = _mm512_fmadd_ps(_mm512_set1_ps(panel->reaches[j]), rows.tails, most);
    __m512 keys = _mm512_fmadd_ps(_mm512_set1_ps(panel->scales[j]), scaled, most);
    return _mm512_cmp_ps_mask(keys, _mm512_set1_ps(panel->mark_limits[j]), _CMP_GE_OQ);
}

INLINE __m512i broadcast_four(const int8_t *components)
{
    int32_t four;
    memcpy(&four, components, sizeof four);
    return _mm512_set1_epi32(four);
}

// Four dimensions of a bundle.
struct four_dims {
    __m512i low, high;
};

INLINE struct four_dims load_rows(const uint8_t *bundle, size_t stride)
{
    struct four_dims rows = {_mm512_load_si512(bundle), _mm512_load_si512(bundle + 16 * stride)};
    PIN(rows.low);
    PIN(rows.high);
    return rows;
}

// The sums over the first panel->mark_dims dimensions of u * q, of a bundle and the panel's
// queries, num of them: all dimensions where they are stored. Up to 5 queries are too few to hide
// how long a dot product takes: then accumulators 6 to 10 are theirs too, for every other group of
// dimensions.
INLINE void multiply(enum block_end end, const struct bsw_matrix_tile *tile, size_t row,
                     const struct panel *panel, bundle_sums *sums, bundle_marks *marks,
                     const int num)
{
    const int is_split = num <= 5;
    const size_t step = is_split ? 8 : 4, stride = tile->padded_dims;
    const size_t dims = end == STORE_SUMS ? stride : panel->mark_dims;
    const uint8_t *bundle = tile->bytes + row * stride;
    const int8_t *q0 = panel->components, *q3 = q0 + (num > 3 ? 3 * stride : 0);
    const int8_t *q6 = q0 + (is_split ? 4 : num > 6 ? 6 * stride : 0);
    const int8_t *q9 = q3 + (is_split ? 4 : num > 9 ? 6 * stride : 0);
    __asm__("" : "+r"(q0), "+r"(q3), "+r"(q6), "+r"(q9));
    EACH_QUERY(START_QUERY)
    for (size_t i = 0; i < dims; i += step, bundle += 16 * step) {
        const struct four_dims first = load_rows(bundle, stride);
        const struct four_dims rows[2] = {first, is_split ? load_rows(bundle + 64, stride) : first};
        EACH_QUERY(STEP_QUERY)
        q0 += step;
        q3 += step;
        q6 += step;
        q9 += step;
    }
    ADD_SPLIT(0, 6)
    ADD_SPLIT(1, 7)
    ADD_SPLIT(2, 8)
    ADD_SPLIT(3, 9)
    ADD_SPLIT(4, 10)
    EACH_QUERY(PIN_QUERY) // else gcc 12 keeps copies of them in memory
    if (end == STORE_SUMS) {
        EACH_QUERY(STORE_QUERY)
        return;
    }
    {
        const struct half_rows half = load_half(end, tile, row);
        EACH_QUERY(MARK_LOW)
    }
    {
        const struct half_rows half = load_half(end, tile, row + HALF_ROWS);
        EACH_QUERY(MARK_HIGH)
    }
}

// By the number of queries and what becomes of the sums.
typedef void multiply_fn(const struct bsw_matrix_tile *tile, size_t row, const struct panel *panel,
                         bundle_sums *sums, bundle_marks *marks);

#define MULTIPLY(end, num)                                                             \
    static void multiply_##end##_##num(const struct bsw_matrix_tile *tile, size_t row, \
                                       const struct panel *panel, bundle_sums *sums,   \
                                       bundle_marks *marks)                            \
    {                                                                                  \
        multiply(end, tile, row, panel, sums, marks, num);                             \
    }
#define ENTRY(end, num) multiply_##end##_##num,
#define EACH_NUM(DO, end) \
    DO(end, 1)            \
    DO(end, 2)            \
    DO(end, 3)            \
    DO(end, 4)            \
    DO(end, 5)            \
    DO(end, 6)            \
    DO(end, 7)            \
    DO(end, 8)            \
    DO(end, 9)            \
    DO(end, 10)           \
    DO(end, 11)           \
    DO(end, 12)
EACH_NUM(MULTIPLY, STORE_SUMS)
EACH_NUM(MULTIPLY, MARK_INTEGERS)
EACH_NUM(MULTIPLY, MARK_WHOLE)
EACH_NUM(MULTIPLY, MARK_SHORT_FLOATS)
EACH_NUM(MULTIPLY, MARK_FLOATS)
EACH_NUM(MULTIPLY, MARK_SHORT_BOUNDS)
EACH_NUM(MULTIPLY, MARK_BOUNDS)

static multiply_fn *const multiply_table[NUM_ENDS][BLOCK_QUERIES + 1] = {
    [STORE_SUMS] = {NULL, EACH_NUM(ENTRY, STORE_SUMS)},
    [MARK_INTEGERS] = {NULL, EACH_NUM(ENTRY, MARK_INTEGERS)},
    [MARK_WHOLE] = {NULL, EACH_NUM(ENTRY, MARK_WHOLE)},
    [MARK_SHORT_FLOATS] = {NULL, EACH_NUM(ENTRY, MARK_SHORT_FLOATS)},
    [MARK_FLOATS] = {NULL, EACH_NUM(ENTRY, MARK_FLOATS)},
    [MARK_SHORT_BOUNDS] = {NULL, EACH_NUM(ENTRY, MARK_SHORT_BOUNDS)},
    [MARK_BOUNDS] = {NULL, EACH_NUM(ENTRY, MARK_BOUNDS)},
};

// Sums of 16 rows and a query over `dims` dimensions, a multiple of 16.
INLINE __m512i multiply_half(const uint8_t *rows, const int8_t *components, size_t dims)
{
    __m512i sum[4];
    for (size_t k = 0; k < 4; k++) sum[k] = _mm512_setzero_si512();
    for (size_t i = 0; i < dims; i += 16) {
        for (size_t k = 0; k < 4; k++) {
            __m512i u = _mm512_load_si512(rows + HALF_ROWS * (i + 4 * k));
            sum[k] = _mm512_dpbusd_epi32(sum[k], u, broadcast_four(components + i + 4 * k));
        }
    }
    return _mm512_add_epi32(_mm512_add_epi32(sum[0], sum[1]), _mm512_add_epi32(sum[2], sum[3]));
}

#endif
#endif
