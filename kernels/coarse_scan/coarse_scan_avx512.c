// SPDX-License-Identifier: Apache-2.0
// coarse_scan on AVX-512 VNNI, by the blocks of matrix_scan.
#include <immintrin.h>

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

static void avx512_maxima(const float *keys, size_t n, float out[BSW_COARSE_LANES])
{
    __m512 most[4];
    for (size_t k = 0; k < 4; k++) most[k] = _mm512_set1_ps(-INFINITY);
    for (size_t i = 0; i < n; i += BSW_COARSE_LANES) {
        for (size_t k = 0; k < 4 && i + 16 * k < n; k++) {
            size_t left = n - i - 16 * k;
            __mmask16 there = left < 16 ? (__mmask16)((1u << left) - 1) : (__mmask16)0xffff;
            most[k] = _mm512_mask_max_ps(most[k], there, most[k],
                                         _mm512_maskz_load_ps(there, keys + i + 16 * k));
        }
    }
    for (size_t k = 0; k < 4; k++) _mm512_storeu_ps(out + 16 * k, most[k]);
}

// What passes, of 16 keys at a time, to the front of two vectors that are stored whole: no branch
// hangs on it.
static size_t avx512_pick(const float *keys, size_t n, float limit, uint64_t *items)
{
    const __m512i sign = _mm512_set1_epi32(INT32_MIN);
    const __m512i low_half =
                      _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
                  high_half = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14,
                                                30, 15, 31);
    __m512i rows = _mm512_setr_epi32(-1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11, -12, -13, -14,
                                     -15, -16); // complemented
    __m512 least = _mm512_set1_ps(limit);
    size_t count = 0;
    for (size_t i = 0; i < n; i += 16, rows = _mm512_sub_epi32(rows, _mm512_set1_epi32(16))) {
        __mmask16 there = n - i < 16 ? (__mmask16)((1u << (n - i)) - 1) : (__mmask16)0xffff;
        __m512 some = _mm512_maskz_load_ps(there, keys + i);
        __mmask16 pass = _mm512_mask_cmp_ps_mask(there, some, least, _CMP_GE_OQ);
        __m512i bits = _mm512_castps_si512(some);
        __m512i scores = _mm512_xor_si512(bits, _mm512_or_si512(_mm512_srai_epi32(bits, 31), sign));
        uint32_t found = (uint32_t)__builtin_popcount(pass);
        __m512i low = _mm512_maskz_compress_epi32(pass, rows),
                high = _mm512_maskz_compress_epi32(pass, scores);
        _mm512_mask_storeu_epi64(items + count, (__mmask8)(found < 8 ? (1u << found) - 1 : 0xff),
                                 _mm512_permutex2var_epi32(low, low_half, high));
        if (found > 8)
            _mm512_mask_storeu_epi64(items + count + 8, (__mmask8)((1u << (found - 8)) - 1),
                                     _mm512_permutex2var_epi32(low, high_half, high));
        count += found;
    }
    return count;
}

const struct bsw_coarse_scan_table bsw_coarse_scan_avx512 = {.level = "avx512",
                                                             .keys = avx512_keys,
                                                             .maxima = avx512_maxima,
                                                             .pick = avx512_pick,
                                                             .products = coarse_products};
