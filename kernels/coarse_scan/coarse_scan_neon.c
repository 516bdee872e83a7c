// SPDX-License-Identifier: Apache-2.0
// coarse_scan on NEON: four bytes of a row and of a query in one dot product. Bytes of centroids
// are at most 127, so that they are signed ones too.
#include "kernels/lanes.h"

#include "kernels/coarse_scan/coarse_rows.h"

#define BLOCK_QUERIES 4 // that rows are loaded for once
#define HALF_ROWS     16

// Sums of 16 rows and `num` queries, which are `dims` components apart.
INLINE void multiply_half(const uint8_t *bytes, size_t dims, const int8_t *components,
                          int32x4_t sums[BLOCK_QUERIES][4], const size_t num)
{
    for (size_t j = 0; j < num; j++)
        for (size_t k = 0; k < 4; k++) sums[j][k] = vdupq_n_s32(0);
    for (size_t d = 0; d < dims; d += 4, bytes += 64) {
        int8x16_t rows[4];
        for (size_t k = 0; k < 4; k++) rows[k] = vreinterpretq_s8_u8(vld1q_u8(bytes + 16 * k));
        for (size_t j = 0; j < num; j++) {
            int32_t four;
            memcpy(&four, components + j * dims + d, sizeof four);
            int8x16_t query = vreinterpretq_s8_s32(vdupq_n_s32(four));
            for (size_t k = 0; k < 4; k++) sums[j][k] = vdotq_s32(sums[j][k], rows[k], query);
        }
    }
}

// Keys of four rows from their sums: coarse_key.
INLINE float32x4_t keys_of(int32x4_t sums, int32_t constant, float scale, float32x4_t scales,
                           float32x4_t biases)
{
    int32x4_t dots = vsubq_s32(vdupq_n_s32(constant), vaddq_s32(sums, sums));
    float32x4_t scaled = vmulq_f32(scales, vcvtq_f32_s32(dots));
    return vaddq_f32(vfmaq_f32(biases, vdupq_n_f32(scale), scaled), vdupq_n_f32(0));
}

// Keys of all rows for num queries from number q on.
INLINE void put_keys(const struct bsw_matrix_tile *tile, const struct bsw_matrix_queries *queries,
                     size_t q, float *keys, size_t stride, const size_t num)
{
    size_t dims = tile->padded_dims, rows = tile->num_bundles * BSW_BUNDLE_ROWS;
    for (size_t row = 0; row < rows; row += HALF_ROWS) {
        int32x4_t sums[BLOCK_QUERIES][4];
        multiply_half(tile->bytes + row * dims, dims, queries->components + q * dims, sums, num);
        for (size_t k = 0; k < 4; k++) {
            size_t at = row + 4 * k;
            float32x4_t scales = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(tile->scales + at))),
                        biases = vld1q_f32(tile->biases + at);
            for (size_t j = 0; j < num; j++)
                vst1q_f32(keys + (q + j) * stride + at,
                          keys_of(sums[j][k], queries->constants[q + j], queries->scales[q + j],
                                  scales, biases));
        }
    }
}

static void neon_keys(const struct bsw_matrix_tile *tile, const struct bsw_matrix_queries *queries,
                      uint64_t most_square, float *keys, size_t stride)
{
    (void)most_square; // 32 bits hold every dot
    size_t num = queries->num_queries, whole = num / BLOCK_QUERIES * BLOCK_QUERIES;
    for (size_t q = 0; q < whole; q += BLOCK_QUERIES)
        put_keys(tile, queries, q, keys, stride, BLOCK_QUERIES);
    for (size_t q = whole; q < num; q++) put_keys(tile, queries, q, keys, stride, 1);
}

const struct bsw_coarse_scan_table bsw_coarse_scan_neon = {.level = "neon",
                                                           .keys = neon_keys,
                                                           .maxima = coarse_maxima,
                                                           .pick = coarse_pick,
                                                           .products = coarse_products};
