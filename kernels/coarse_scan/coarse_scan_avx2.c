// SPDX-License-Identifier: Apache-2.0
// coarse_scan on AVX2: vpmaddubsw adds products of two dimensions in 16 bits, and codes and
// components are so small that those of four fit.
#include "kernels/lanes.h"

#include "kernels/coarse_scan/coarse_rows.h"
#include "kernels/matrix_scan/narrow_block_avx2.h"

#define BLOCK_QUERIES 4     // that rows are loaded for once
#define RUN_BYTES     16384 // centroids that all queries go over before the next ones

_Static_assert(4 * BSW_COARSE_MOST_CODE * BSW_COARSE_MOST_QUERY <= INT16_MAX, "four products fit");

// Queries that are multiplied together, each as `stride` components.
struct query_block {
    const int8_t *components;
    size_t stride;
};

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
        __m256i low = narrow_load(bytes), high = narrow_load(bytes + 32),
                next_low = narrow_load(bytes + 64), next_high = narrow_load(bytes + 96);
        for (size_t j = 0; j < num; j++) {
            const int8_t *components = block->components + j * block->stride + d;
            __m256i first = narrow_broadcast(components), second = narrow_broadcast(components + 4);
            sums[j][0] = _mm256_add_epi32(sums[j][0], multiply_eight(low, first, next_low, second));
            sums[j][1] =
                _mm256_add_epi32(sums[j][1], multiply_eight(high, first, next_high, second));
        }
    }
}

// Keys of 8 rows from their dots: coarse_key.
static inline __m256 keys_of(__m256i dots, float scale, __m256 scales, __m256 biases)
{
    __m256 scaled = _mm256_mul_ps(scales, _mm256_cvtepi32_ps(dots));
    return _mm256_add_ps(_mm256_fmadd_ps(_mm256_set1_ps(scale), scaled, biases),
                         _mm256_setzero_ps());
}

static inline __m256 load_halves(const uint16_t *halves)
{
    return _mm256_cvtph_ps(_mm_load_si128((const __m128i *)(const void *)halves));
}

static inline __m256i wide_dots(__m256i sums, int32_t constant)
{
    return _mm256_sub_epi32(_mm256_set1_epi32(constant), _mm256_add_epi32(sums, sums));
}

// Rows [first, last), halves of bundles, for num queries from number q on.
static inline __attribute__((always_inline)) void
put_wide(const struct bsw_matrix_tile *tile, const struct bsw_matrix_queries *queries, size_t q,
         size_t first, size_t last, float *keys, size_t stride, const size_t num)
{
    size_t dims = tile->padded_dims;
    const struct query_block block = {queries->components + q * dims, dims};
    for (size_t row = first; row < last; row += NARROW_ROWS) {
        __m256i sums[BLOCK_QUERIES][2];
        multiply_half(tile->bytes + row * dims, dims, &block, sums, num);
        for (size_t h = 0; h < 2; h++) {
            size_t at = row + 8 * h;
            __m256 scales = load_halves(tile->scales + at),
                   biases = _mm256_load_ps(tile->biases + at);
            for (size_t j = 0; j < num; j++)
                _mm256_store_ps(keys + (q + j) * stride + at,
                                keys_of(wide_dots(sums[j][h], queries->constants[q + j]),
                                        queries->scales[q + j], scales, biases));
        }
    }
}

static void wide_keys(const struct bsw_matrix_tile *tile, const struct bsw_matrix_queries *queries,
                      size_t first, size_t last, float *keys, size_t stride)
{
    size_t num = queries->num_queries, whole = num / BLOCK_QUERIES * BLOCK_QUERIES;
    for (size_t q = 0; q < whole; q += BLOCK_QUERIES)
        put_wide(tile, queries, q, first, last, keys, stride, BLOCK_QUERIES);
    for (size_t q = whole; q < num; q++) put_wide(tile, queries, q, first, last, keys, stride, 1);
}

// ---- dots of 17 bits ----
//
// A dot is a constant less two sums, so a sum modulo 2^16 tells it where it is below
// BSW_COARSE_NARROW in size, as most are: then products are added in 16 bits over all dimensions,
// whatever overflows on the way.

static int are_narrow(const struct bsw_matrix_queries *queries, size_t dims, uint64_t most_square)
{
    for (size_t q = 0; q < queries->num_queries; q++) {
        uint64_t square = 0;
        const int8_t *components = queries->components + q * dims;
        for (size_t d = 0; d < dims; d++) square += (uint64_t)(components[d] * components[d]);
        if (square > 0 && most_square >= BSW_COARSE_NARROW * (uint64_t)BSW_COARSE_NARROW / square)
            return 0;
    }
    return 1;
}

// From sums in pairs.
static inline __m256i narrow_dots(__m256i sums, int32_t constant)
{
    __m256i dots = _mm256_add_epi32(_mm256_set1_epi32(constant),
                                    _mm256_madd_epi16(sums, _mm256_set1_epi16(-2)));
    return _mm256_srai_epi32(_mm256_slli_epi32(dots, 15), 15);
}

#define PUT_HALF(sums, j, h)                                                         \
    _mm256_store_ps(keys + (q + (j)) * stride + row + 8 * (h),                       \
                    keys_of(narrow_dots(sums, queries->constants[q + (j)]),          \
                            queries->scales[q + (j)], load_halves(scales + 8 * (h)), \
                            _mm256_load_ps(biases + 8 * (h))));
#define PUT_QUERY(j)             \
    if (j < num) {               \
        PUT_HALF(low##j, j, 0u)  \
        PUT_HALF(high##j, j, 1u) \
    }

static inline __attribute__((always_inline)) void
put_narrow(const struct bsw_matrix_tile *tile, const struct bsw_matrix_queries *queries, size_t q,
           size_t first, size_t last, float *keys, size_t stride, const size_t num)
{
    const size_t dims = tile->padded_dims;
    const int8_t *components = queries->components + q * dims;
    for (size_t row = first; row < last; row += NARROW_ROWS) {
        const uint8_t *bytes = tile->bytes + row * dims;
        const uint16_t *scales = tile->scales + row;
        const float *biases = tile->biases + row;
        NARROW_SUMS
        NARROW_EACH(PUT_QUERY)
    }
}

static void narrow_keys(const struct bsw_matrix_tile *tile,
                        const struct bsw_matrix_queries *queries, size_t first, size_t last,
                        float *keys, size_t stride)
{
    size_t num = queries->num_queries, whole = num / NARROW_QUERIES * NARROW_QUERIES;
    for (size_t q = 0; q < whole; q += NARROW_QUERIES)
        put_narrow(tile, queries, q, first, last, keys, stride, NARROW_QUERIES);
    for (size_t q = whole; q < num; q++) put_narrow(tile, queries, q, first, last, keys, stride, 1);
}

static void avx2_keys(const struct bsw_matrix_tile *tile, const struct bsw_matrix_queries *queries,
                      uint64_t most_square, float *keys, size_t stride)
{
    size_t rows = tile->num_bundles * BSW_BUNDLE_ROWS,
           step = RUN_BYTES / (BSW_BUNDLE_ROWS * (size_t)tile->padded_dims) * BSW_BUNDLE_ROWS;
    int is_narrow = are_narrow(queries, tile->padded_dims, most_square);
    if (step == 0) step = BSW_BUNDLE_ROWS;
    for (size_t first = 0; first < rows; first += step) {
        size_t last = first + step < rows ? first + step : rows;
        if (is_narrow)
            narrow_keys(tile, queries, first, last, keys, stride);
        else
            wide_keys(tile, queries, first, last, keys, stride);
    }
}

const struct bsw_coarse_scan_table bsw_coarse_scan_avx2 = {.level = "avx2",
                                                           .keys = avx2_keys,
                                                           .maxima = coarse_maxima,
                                                           .pick = coarse_pick,
                                                           .products = coarse_products};
