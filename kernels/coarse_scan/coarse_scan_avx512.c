// SPDX-License-Identifier: Apache-2.0
// coarse_scan on AVX-512 VNNI, by the blocks of matrix_scan.
#include "kernels/lanes.h"

#include "kernels/coarse_scan/coarse_rows.h"
#include "kernels/matrix_scan/matrix_block_avx512.h"

#define RUN_BYTES 32768 // centroids that all queries go over before the next ones

// Keys of a bundle for the panel's queries, the first of which is query `first`.
INLINE void put_keys(const struct bsw_matrix_tile *tile, size_t row, const struct panel *panel,
                     bundle_sums *sums, float *keys, size_t stride)
{
    for (size_t h = 0; h < BSW_BUNDLE_ROWS; h += HALF_ROWS) {
        __m512 scales = load_halves(tile->scales + row + h),
               biases = _mm512_load_ps(tile->biases + row + h);
        for (size_t j = 0; j < panel->num; j++) {
            __m512i half = _mm512_load_si512(sums[j] + h);
            __m512 scaled =
                _mm512_mul_ps(scales, _mm512_cvtepi32_ps(dots_of(half, panel->constants[j])));
            __m512 found = _mm512_fmadd_ps(_mm512_set1_ps(panel->scales[j]), scaled, biases);
            _mm512_store_ps(keys + j * stride + row + h, _mm512_add_ps(found, _mm512_setzero_ps()));
        }
    }
}

static void avx512_keys(const struct bsw_matrix_tile *tile,
                        const struct bsw_matrix_queries *queries, uint64_t most_square, float *keys,
                        size_t stride)
{
    (void)most_square; // 32 bits hold every dot
    size_t dims = tile->padded_dims, step = RUN_BYTES / (BSW_BUNDLE_ROWS * dims);
    size_t num_blocks = (queries->num_queries + BLOCK_QUERIES - 1) / BLOCK_QUERIES;
    _Alignas(64) bundle_sums sums[BLOCK_QUERIES];
    if (step == 0) step = 1;
    for (size_t first = 0; first < tile->num_bundles; first += step) {
        size_t last = first + step < tile->num_bundles ? first + step : tile->num_bundles;
        for (size_t block = 0, q = 0; block < num_blocks; block++) {
            struct panel panel = {.components = queries->components + q * dims,
                                  .num = (queries->num_queries - q) / (num_blocks - block)};
            memcpy(panel.constants, queries->constants + q, panel.num * sizeof(int32_t));
            memcpy(panel.scales, queries->scales + q, panel.num * sizeof(float));
            for (size_t b = first; b < last; b++) {
                multiply_table[STORE_SUMS][panel.num](tile, b * BSW_BUNDLE_ROWS, &panel, sums,
                                                      NULL);
                put_keys(tile, b * BSW_BUNDLE_ROWS, &panel, sums, keys + q * stride, stride);
            }
            q += panel.num;
        }
    }
}

const struct bsw_coarse_scan_table bsw_coarse_scan_avx512 = {.level = "avx512",
                                                             .keys = avx512_keys,
                                                             .maxima = coarse_maxima,
                                                             .pick = coarse_pick,
                                                             .products = coarse_products};
