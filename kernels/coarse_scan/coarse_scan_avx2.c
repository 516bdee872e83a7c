// coarse_scan on AVX2: bytes as 16-bit numbers, whose products of pairs cannot overflow.
#include <immintrin.h>
#include <string.h>

#include "kernels/coarse_scan/coarse_rows.h"

#define BLOCK 4 // queries that rows are loaded for once

// Sums of 16 rows and BLOCK queries.
static inline void multiply_half(const uint8_t *bytes, const int8_t *const components[BLOCK],
                                 uint32_t dims, int32_t sums[BLOCK][16])
{
    __m256i pairs[BLOCK][4]; // of rows 4k to 4k + 3, two each
    for (size_t j = 0; j < BLOCK; j++)
        for (size_t k = 0; k < 4; k++) pairs[j][k] = _mm256_setzero_si256();
    for (uint32_t d = 0; d < dims; d += 4, bytes += 64) {
        __m256i rows[4];
        for (size_t k = 0; k < 4; k++)
            rows[k] = _mm256_cvtepu8_epi16(
                _mm_load_si128((const __m128i *)(const void *)(bytes + 16 * k)));
        for (size_t j = 0; j < BLOCK; j++) {
            int32_t four;
            memcpy(&four, components[j] + d, sizeof four);
            __m256i query = _mm256_cvtepi8_epi16(_mm_set1_epi32(four));
            for (size_t k = 0; k < 4; k++)
                pairs[j][k] = _mm256_add_epi32(pairs[j][k], _mm256_madd_epi16(rows[k], query));
        }
    }
    for (size_t j = 0; j < BLOCK; j++) {
        for (size_t k = 0; k < 4; k++) {
            int32_t numbers[8];
            memcpy(numbers, &pairs[j][k], sizeof numbers);
            for (size_t r = 0; r < 4; r++) sums[j][4 * k + r] = numbers[2 * r] + numbers[2 * r + 1];
        }
    }
}

static void avx2_keys(const struct bsw_matrix_tile *tile, const struct bsw_matrix_queries *queries,
                      float *keys, size_t stride)
{
    size_t dims = tile->padded_dims, rows = tile->num_bundles * BSW_BUNDLE_ROWS;
    for (size_t q = 0; q < queries->num_queries; q += BLOCK) {
        const int8_t *components[BLOCK];
        size_t left = queries->num_queries - q, count = left < BLOCK ? left : BLOCK;
        for (size_t j = 0; j < BLOCK; j++)
            components[j] = queries->components + (q + (j < count ? j : 0)) * dims;
        for (size_t row = 0; row < rows; row += 16) {
            int32_t sums[BLOCK][16];
            multiply_half(tile->bytes + row * dims, components, tile->padded_dims, sums);
            for (size_t j = 0; j < count; j++)
                for (size_t r = 0; r < 16; r++)
                    keys[(q + j) * stride + row + r] =
                        coarse_key(tile, row + r, sums[j][r], queries, q + j);
        }
    }
}

const struct bsw_coarse_scan_table bsw_coarse_scan_avx2 = {.level = "avx2",
                                                           .keys = avx2_keys,
                                                           .maxima = coarse_maxima,
                                                           .pick = coarse_pick,
                                                           .products = coarse_products};
