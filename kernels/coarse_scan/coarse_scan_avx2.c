// SPDX-License-Identifier: Apache-2.0
// coarse_scan on AVX2: vpmaddubsw adds products of two dimensions in 16 bits, and codes and
// components are so small that those of four fit.
#include <immintrin.h>
#include <string.h>

#include "kernels/coarse_scan/coarse_rows.h"

#define BLOCK_QUERIES 4     // that rows are loaded for once
#define HALF_ROWS     16    // that lie side by side
#define RUN_BYTES     32768 // centroids that all queries go over before the next ones

_Static_assert(4 * BSW_COARSE_MOST_CODE * BSW_COARSE_MOST_QUERY <= INT16_MAX, "four products fit");

// Queries that are multiplied together, each as `stride` components.
struct query_block {
    const int8_t *components;
    size_t stride;
};

static inline __m256i load(const uint8_t *bytes)
{
    return _mm256_load_si256((const __m256i *)(const void *)bytes);
}

static inline __m256i broadcast_four(const int8_t *components)
{
    int32_t four;
    memcpy(&four, components, sizeof four);
    return _mm256_set1_epi32(four);
}

// Eight dimensions of eight rows with one query.
static inline __m256i multiply_eight(__m256i first_rows, __m256i first, __m256i second_rows,
                                     __m256i second)
{
    __m256i pairs = _mm256_add_epi16(_mm256_maddubs_epi16(first_rows, first),
                                     _mm256_maddubs_epi16(second_rows, second));
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

// Sums of 16 rows and `num` queries.
static inline __attribute__((always_inline)) void multiply_half(const uint8_t *bytes, size_t dims,
                                                                const struct query_block *block,
                                                                __m256i sums[BLOCK_QUERIES][2],
                                                                const size_t num)
{
    for (size_t j = 0; j < num; j++) sums[j][0] = sums[j][1] = _mm256_setzero_si256();
    for (size_t d = 0; d < dims; d += 8, bytes += 128) {
        __m256i low = load(bytes), high = load(bytes + 32), next_low = load(bytes + 64),
                next_high = load(bytes + 96);
        for (size_t j = 0; j < num; j++) {
            const int8_t *components = block->components + j * block->stride + d;
            __m256i first = broadcast_four(components), second = broadcast_four(components + 4);
            sums[j][0] = _mm256_add_epi32(sums[j][0], multiply_eight(low, first, next_low, second));
            sums[j][1] =
                _mm256_add_epi32(sums[j][1], multiply_eight(high, first, next_high, second));
        }
    }
}

// Keys of 8 rows from their sums: coarse_key.
static inline __m256 keys_of(__m256i sums, int32_t constant, float scale, __m256 scales,
                             __m256 biases)
{
    __m256i dots = _mm256_sub_epi32(_mm256_set1_epi32(constant), _mm256_add_epi32(sums, sums));
    __m256 scaled = _mm256_mul_ps(scales, _mm256_cvtepi32_ps(dots));
    return _mm256_add_ps(_mm256_fmadd_ps(_mm256_set1_ps(scale), scaled, biases),
                         _mm256_setzero_ps());
}

// Rows [first, last), halves of bundles, for num queries from number q on.
static inline __attribute__((always_inline)) void
put_keys(const struct bsw_matrix_tile *tile, const struct bsw_matrix_queries *queries, size_t q,
         size_t first, size_t last, float *keys, size_t stride, const size_t num)
{
    size_t dims = tile->padded_dims;
    const struct query_block block = {queries->components + q * dims, dims};
    for (size_t row = first; row < last; row += HALF_ROWS) {
        __m256i sums[BLOCK_QUERIES][2];
        multiply_half(tile->bytes + row * dims, dims, &block, sums, num);
        for (size_t h = 0; h < 2; h++) {
            size_t at = row + 8 * h;
            __m256 scales = _mm256_cvtph_ps(
                       _mm_load_si128((const __m128i *)(const void *)(tile->scales + at))),
                   biases = _mm256_load_ps(tile->biases + at);
            for (size_t j = 0; j < num; j++)
                _mm256_store_ps(keys + (q + j) * stride + at,
                                keys_of(sums[j][h], queries->constants[q + j],
                                        queries->scales[q + j], scales, biases));
        }
    }
}

static void avx2_keys(const struct bsw_matrix_tile *tile, const struct bsw_matrix_queries *queries,
                      float *keys, size_t stride)
{
    size_t rows = tile->num_bundles * BSW_BUNDLE_ROWS,
           step = RUN_BYTES / (BSW_BUNDLE_ROWS * (size_t)tile->padded_dims) * BSW_BUNDLE_ROWS,
           num = queries->num_queries, whole = num / BLOCK_QUERIES * BLOCK_QUERIES;
    if (step == 0) step = BSW_BUNDLE_ROWS;
    for (size_t first = 0; first < rows; first += step) {
        size_t last = first + step < rows ? first + step : rows;
        for (size_t q = 0; q < whole; q += BLOCK_QUERIES)
            put_keys(tile, queries, q, first, last, keys, stride, BLOCK_QUERIES);
        for (size_t q = whole; q < num; q++)
            put_keys(tile, queries, q, first, last, keys, stride, 1);
    }
}

static size_t avx2_pick(const float *keys, size_t n, float limit, uint64_t *items)
{
    const __m256 least = _mm256_set1_ps(limit);
    size_t count = 0, whole = n / 8 * 8;
    for (size_t i = 0; i < whole; i += 8) {
        __m256 reach = _mm256_cmp_ps(_mm256_load_ps(keys + i), least, _CMP_GE_OQ);
        for (unsigned pass = (unsigned)_mm256_movemask_ps(reach); pass; pass &= pass - 1) {
            size_t at = i + (size_t)__builtin_ctz(pass);
            items[count++] = bsw_candidate_pack(bsw_score_from_float(keys[at]), (uint32_t)at);
        }
    }
    return coarse_pick_from(keys, whole, n, limit, items, count);
}

const struct bsw_coarse_scan_table bsw_coarse_scan_avx2 = {.level = "avx2",
                                                           .keys = avx2_keys,
                                                           .maxima = coarse_maxima,
                                                           .pick = avx2_pick,
                                                           .products = coarse_products};
