// matrix_scan on 256-bit registers: all but how products are added. A level that includes this
// defines BLOCK_QUERIES, the queries of a block, before it, and narrow_dims and add_products, which
// are declared here, behind it.
//
// Integers of a block go to a small array in the first cache, which the filters of select read:
// with 16 registers the epilogue would have to spill them anyway.
#ifndef BITSWEEP_KERNELS_MATRIX_SCAN_256_H
#define BITSWEEP_KERNELS_MATRIX_SCAN_256_H

#include <immintrin.h>
#include <string.h>

#include "common/codes/result_order.h"
#include "kernels/matrix_scan/matrix_scan.h"
#include "kernels/select/select.h"
#include "kernels/select/select_quick.h"

#if defined(BLOCK_QUERIES) // nothing without it

#define INLINE        static inline __attribute__((always_inline))

#define BLOCK_BUNDLES 8 // integers of a query between scan and filter
#define HALF_ROWS     16

// ---- planes to bytes ----

// One word of 8 documents: 8 groups of 4 dimensions, 64 bytes apart. Byte k of a word is copied to
// the four dimensions of groups 2k and 2k + 1, each of which then tests its own bit.
INLINE void unpack_word(const uint32_t *word, size_t plane_stride, unsigned bits, uint8_t *bytes)
{
    const __m256i places = _mm256_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c, 0, 0x04040404,
                                             0x08080808, 0x0c0c0c0c);
    const __m256i low_bits = _mm256_set1_epi32(0x08040201);
    const __m256i high_bits = _mm256_set1_epi32((int)0x80402010u);
    __m256i u[8];
    for (int g = 0; g < 8; g++) u[g] = _mm256_setzero_si256();
    for (unsigned p = 0; p < bits; p++) {
        __m256i x = _mm256_load_si256((const __m256i *)(const void *)(word + p * plane_stride));
        for (int k = 0; k < 4; k++) {
            __m256i place = _mm256_add_epi8(places, _mm256_set1_epi8((char)k));
            __m256i byte = _mm256_shuffle_epi8(x, place);
            __m256i low = _mm256_cmpeq_epi8(_mm256_and_si256(byte, low_bits), low_bits);
            __m256i high = _mm256_cmpeq_epi8(_mm256_and_si256(byte, high_bits), high_bits);
            u[2 * k] = _mm256_sub_epi8(_mm256_add_epi8(u[2 * k], u[2 * k]), low);
            u[2 * k + 1] = _mm256_sub_epi8(_mm256_add_epi8(u[2 * k + 1], u[2 * k + 1]), high);
        }
    }
    for (int g = 0; g < 8; g++) _mm256_store_si256((__m256i *)(void *)(bytes + 64 * g), u[g]);
}

// The part of a bundle's bytes that one segment fills.
static void unpack_bundle(const struct bsw_segment *segment, const uint32_t *bundle,
                          size_t padded_dims, uint8_t *bytes)
{
    size_t plane_stride = (size_t)segment->words * BSW_BUNDLE_ROWS;
    for (size_t w = 0; w < segment->words; w++, bundle += BSW_BUNDLE_ROWS, bytes += 512) {
        for (size_t part = 0; part < 4; part++) { // 8 rows each, two parts a half bundle
            uint8_t *out = bytes + part / 2 * HALF_ROWS * padded_dims + part % 2 * 32;
            unpack_word(bundle + 8 * part, plane_stride, segment->bits, out);
        }
    }
}

static void unpack(const struct bsw_code_layout *layout, const uint32_t *const *planes,
                   size_t num_bundles, uint8_t *bytes)
{
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        uint8_t *out = bytes + HALF_ROWS * (size_t)segment->padded_dim;
        for (size_t b = 0; b < num_bundles; b++) {
            unpack_bundle(segment, planes[s] + b * bsw_segment_bundle_words(segment),
                          layout->padded_dims, out);
            out += BSW_BUNDLE_ROWS * (size_t)layout->padded_dims;
        }
    }
}

// 32 bits as bytes of 0 or -1.
INLINE __m256i spread_bits(uint32_t word)
{
    const __m256i byte = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2,
                                          2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201u);
    __m256i x = _mm256_shuffle_epi8(_mm256_set1_epi32((int)word), byte);
    return _mm256_cmpeq_epi8(_mm256_and_si256(x, bit), bit);
}

// Sum of 32 signed bytes.
INLINE int32_t sum_bytes(__m256i x)
{
    __m256i turned = _mm256_xor_si256(x, _mm256_set1_epi8(INT8_MIN)); // x + 128
    __m256i four = _mm256_sad_epu8(turned, _mm256_setzero_si256());
    __m128i two = _mm_add_epi64(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
    return (int32_t)(_mm_cvtsi128_si64(two) + _mm_extract_epi64(two, 1)) - 32 * 128;
}

static void unpack_query(const struct bsw_code_layout *layout, const uint32_t *words,
                         unsigned query_bits, int8_t *components, int32_t *constant)
{
    const __m256i full = _mm256_set1_epi8((char)((1 << query_bits) - 1));
    *constant = 0;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        int8_t *out = components + segment->padded_dim;
        for (size_t w = 0; w < segment->words; w++) {
            size_t rest = segment->dims - 32 * w;
            uint32_t valid = rest < 32 ? (1u << rest) - 1 : UINT32_MAX;
            __m256i u = _mm256_setzero_si256();
            for (unsigned p = 0; p < query_bits; p++)
                u = _mm256_sub_epi8(_mm256_add_epi8(u, u),
                                    spread_bits(words[p * segment->words + w]));
            __m256i q = _mm256_sub_epi8(full, _mm256_add_epi8(u, u));
            q = _mm256_and_si256(q, spread_bits(valid));
            _mm256_store_si256((__m256i *)(void *)(out + 32 * w), q);
            *constant += ((1 << segment->bits) - 1) * sum_bytes(q);
        }
        words += (size_t)query_bits * segment->words;
    }
}

// ---- sums of a block ----

// 16 rows' sums with a block of queries.
typedef __m256i block_sums[BLOCK_QUERIES][2];

INLINE __m256i broadcast_four(const int8_t *components)
{
    int32_t four;
    memcpy(&four, components, sizeof four);
    return _mm256_set1_epi32(four);
}

INLINE __m256i load(const void *from)
{
    return _mm256_load_si256((const __m256i *)from);
}

// What a block multiplies.
struct factors {
    const uint8_t *rows;      // 16, from their first dimension on
    const int8_t *components; // of the first query
    size_t stride;            // dimensions between queries
    size_t dims;              // to multiply
    size_t step;              // dimensions whose products fit 16 bits, 0 for none
    int weight;               // what is stored: constant + weight * sum
};

// The level's: the most dimensions whose products its add_products takes in one go, a power of two,
// or 0; and the sums, which start at 0, of `dims` dimensions of 16 rows with num queries.
static size_t narrow_dims(const struct bsw_matrix_tile *tile);
INLINE void add_products(const struct factors *factors, block_sums sums, const size_t num);

// Integers of 16 rows with num queries; those of a query are BLOCK_BUNDLES bundles apart.
INLINE void multiply(const struct factors *factors, const int32_t *constants, int32_t *dots,
                     const size_t num)
{
    const __m256i weight = _mm256_set1_epi32(factors->weight);
    block_sums sums;
    for (size_t j = 0; j < num; j++) sums[j][0] = sums[j][1] = _mm256_setzero_si256();
    add_products(factors, sums, num);
    for (size_t j = 0; j < num; j++) {
        __m256i constant = _mm256_set1_epi32(constants[j]);
        __m256i *out = (__m256i *)(void *)(dots + j * BLOCK_BUNDLES * BSW_BUNDLE_ROWS);
        for (size_t h = 0; h < 2; h++) {
            __m256i product = _mm256_mullo_epi32(sums[j][h], weight);
            _mm256_store_si256(out + h, _mm256_add_epi32(constant, product));
        }
    }
}

typedef void multiply_fn(const struct factors *factors, const int32_t *constants, int32_t *dots);

#define MULTIPLY(num)                                                                   \
    static void multiply_##num(const struct factors *factors, const int32_t *constants, \
                               int32_t *dots)                                           \
    {                                                                                   \
        multiply(factors, constants, dots, num);                                        \
    }
MULTIPLY(1)
MULTIPLY(2)
MULTIPLY(3)
MULTIPLY(4)
#if BLOCK_QUERIES > 4
MULTIPLY(5)
MULTIPLY(6)
#endif
#undef MULTIPLY

static multiply_fn *const multiply_table[BLOCK_QUERIES + 1] = {
    NULL,       multiply_1, multiply_2, multiply_3, multiply_4,
#if BLOCK_QUERIES > 4
    multiply_5, multiply_6,
#endif
};

// ---- the tile ----

// Whole keys of a bundle's rows that reach the limit.
static void filter_whole(const struct bsw_matrix_tile *tile, size_t bundle, const int32_t *dots,
                         struct bsw_matrix_output *output)
{
    _Alignas(64) uint32_t scores[BSW_BUNDLE_ROWS];
    const __m256i sign = _mm256_set1_epi32(INT32_MIN);
    const __m256i limit = _mm256_set1_epi32((int)output->limit);
    size_t row = bundle * BSW_BUNDLE_ROWS;
    uint32_t pass = 0;
    for (size_t r = 0; r < BSW_BUNDLE_ROWS; r += 8) {
        __m256i totals = _mm256_add_epi32(load(dots + r), load(tile->offsets + row + r));
        __m256i found = _mm256_xor_si256(totals, sign);
        __m256i reach = _mm256_cmpeq_epi32(_mm256_max_epu32(found, limit), found);
        _mm256_store_si256((__m256i *)(scores + r), found);
        pass |= (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(reach)) << r;
    }
    for (pass &= tile->masks[bundle]; pass; pass &= pass - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(pass);
        output->items[output->count++] =
            bsw_candidate_pack(scores[lane], tile->first_row + (uint32_t)row + lane);
    }
}

static void filter(const struct bsw_matrix_tile *tile, size_t bundle, size_t num_bundles,
                   const int32_t *dots, float scale, struct bsw_matrix_output *output)
{
    size_t row = bundle * BSW_BUNDLE_ROWS;
    uint32_t first_row = tile->first_row + (uint32_t)row;
    uint64_t *items = output->items + output->count;
    if (tile->offsets) {
        for (size_t b = 0; b < num_bundles; b++)
            filter_whole(tile, bundle + b, dots + b * BSW_BUNDLE_ROWS, output);
    } else if (!tile->scales) {
        output->count += bsw_select_avx2.filter_integer(dots, tile->masks + bundle, num_bundles,
                                                        first_row, output->limit, items);
    } else {
        output->count += bsw_select_avx2.filter_affine(dots, tile->scales + row, tile->biases + row,
                                                       scale, tile->masks + bundle, num_bundles,
                                                       first_row, output->limit, items);
    }
}

// A run of bundles and a block of queries, and their integers.
struct block {
    _Alignas(64) int32_t dots[BLOCK_QUERIES][BLOCK_BUNDLES * BSW_BUNDLE_ROWS];
    size_t bundle, num_bundles, query, num_queries;
};

// The integers of the block that starts at block->bundle and block->query.
static void multiply_block(const struct bsw_matrix_tile *tile,
                           const struct bsw_matrix_queries *queries, const int32_t *constants,
                           struct factors factors, struct block *block)
{
    size_t dims = tile->padded_dims;
    size_t bundles = tile->num_bundles - block->bundle, rest = queries->num_queries - block->query;
    block->num_bundles = bundles < BLOCK_BUNDLES ? bundles : BLOCK_BUNDLES;
    block->num_queries = rest < BLOCK_QUERIES ? rest : BLOCK_QUERIES;
    factors.stride = dims;
    factors.components = queries->components + block->query * dims;
    factors.rows = tile->bytes + block->bundle * BSW_BUNDLE_ROWS * dims;
    for (size_t h = 0; h < 2 * block->num_bundles; h++, factors.rows += HALF_ROWS * dims)
        multiply_table[block->num_queries](&factors, constants + block->query,
                                           block->dots[0] + h * HALF_ROWS);
}

static void scan(const struct bsw_matrix_tile *tile, const struct bsw_matrix_queries *queries,
                 struct bsw_matrix_output *outputs)
{
    struct factors factors = {.dims = tile->padded_dims,
                              .step = narrow_dims(tile),
                              .weight = tile->offsets ? queries->factor : -2};
    struct block block;
    for (block.bundle = 0; block.bundle < tile->num_bundles; block.bundle += BLOCK_BUNDLES) {
        for (block.query = 0; block.query < queries->num_queries; block.query += BLOCK_QUERIES) {
            multiply_block(tile, queries, queries->constants, factors, &block);
            for (size_t j = 0, q = block.query; j < block.num_queries; j++, q++)
                filter(tile, block.bundle, block.num_bundles, block.dots[j],
                       tile->scales ? queries->scales[q] : 0.0f, &outputs[q]);
        }
    }
}

// ---- stages ----

// A query's dots of a run of bundles, from those of the stage, in the halves that hold some of the
// places; returns how many halves.
static size_t finish_dots(const struct bsw_matrix_tile *tile, size_t bundle,
                          const struct factors *rest, int32_t constant, const uint32_t *places,
                          size_t num_places, int32_t *dots)
{
    _Alignas(64) int32_t added[HALF_ROWS];
    size_t num_halves = 0, done = SIZE_MAX;
    for (size_t i = 0; i < num_places; i++) {
        size_t half = places[i] / HALF_ROWS;
        if (half == done) continue;
        struct factors factors = *rest;
        factors.rows += (2 * bundle + half) * HALF_ROWS * tile->padded_dims;
        multiply_1(&factors, &constant, added);
        for (size_t r = 0; r < HALF_ROWS; r++) dots[half * HALF_ROWS + r] += added[r];
        num_halves++;
        done = half;
    }
    return num_halves;
}

// One query of a block, from the stage's dots on.
static void finish_query(const struct bsw_matrix_tile *tile, const struct bsw_matrix_stage *stage,
                         const struct bsw_matrix_queries *queries, size_t step, struct block *block,
                         size_t j, struct bsw_matrix_output *output,
                         struct bsw_stage_counts *counts)
{
    uint32_t places[BLOCK_BUNDLES * BSW_BUNDLE_ROWS];
    size_t q = block->query + j, row = block->bundle * BSW_BUNDLE_ROWS;
    size_t num_places = bsw_select_avx2.filter_reach(
        block->dots[j], tile->scales + row, tile->biases + row, tile->tails + row,
        queries->scales[q], stage->reaches[q], tile->masks + block->bundle, block->num_bundles,
        bsw_float_limit(output->limit) - stage->slacks[q], places);
    const struct factors rest = {.rows = tile->bytes + HALF_ROWS * (size_t)stage->dims,
                                 .components =
                                     queries->components + q * tile->padded_dims + stage->dims,
                                 .dims = tile->padded_dims - stage->dims,
                                 .step = step,
                                 .weight = -2};
    counts->rows += num_places;
    counts->halves +=
        finish_dots(tile, block->bundle, &rest, queries->constants[q] - stage->constants[q], places,
                    num_places, block->dots[j]);
    output->count += bsw_select_avx2.filter_places(
        block->dots[j], tile->scales + row, tile->biases + row, queries->scales[q], places,
        num_places, tile->first_row + (uint32_t)row, output->limit, output->items + output->count);
}

static void scan_staged(const struct bsw_matrix_tile *tile, const struct bsw_matrix_stage *stage,
                        const struct bsw_matrix_queries *queries, struct bsw_matrix_output *outputs,
                        struct bsw_stage_counts *counts)
{
    size_t step = narrow_dims(tile);
    struct factors factors = {.dims = stage->dims, .step = step, .weight = -2};
    struct block block;
    for (block.bundle = 0; block.bundle < tile->num_bundles; block.bundle += BLOCK_BUNDLES) {
        for (block.query = 0; block.query < queries->num_queries; block.query += BLOCK_QUERIES) {
            multiply_block(tile, queries, stage->constants, factors, &block);
            for (size_t j = 0; j < block.num_queries; j++)
                finish_query(tile, stage, queries, step, &block, j, &outputs[block.query + j],
                             counts);
        }
    }
}

#endif
#endif
