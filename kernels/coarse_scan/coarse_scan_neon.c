// coarse_scan on NEON: four bytes of a row and of a query in one dot product. Products of an
// unsigned and a signed byte are made of signed ones: u * q = (u - 128) * q + 128 * q.
#include <arm_neon.h>
#include <string.h>

#include "kernels/coarse_scan/coarse_rows.h"

static void neon_keys(const struct bsw_matrix_tile *tile, const struct bsw_matrix_queries *queries,
                      float *keys, size_t stride)
{
    size_t dims = tile->padded_dims, rows = tile->num_bundles * BSW_BUNDLE_ROWS;
    for (size_t q = 0; q < queries->num_queries; q++) {
        const int8_t *components = queries->components + q * dims;
        int32_t total = 0;
        for (size_t d = 0; d < dims; d++) total += components[d];
        for (size_t row = 0; row < rows; row += 16) {
            const uint8_t *bytes = tile->bytes + row * dims;
            int32_t sums[16];
            int32x4_t dots[4] = {vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)};
            for (size_t d = 0; d < dims; d += 4, bytes += 64) {
                int32_t four;
                memcpy(&four, components + d, sizeof four);
                int8x16_t query = vreinterpretq_s8_s32(vdupq_n_s32(four));
                for (size_t k = 0; k < 4; k++) {
                    uint8x16_t u = veorq_u8(vld1q_u8(bytes + 16 * k), vdupq_n_u8(0x80));
                    dots[k] = vdotq_s32(dots[k], vreinterpretq_s8_u8(u), query);
                }
            }
            for (size_t k = 0; k < 4; k++) vst1q_s32(sums + 4 * k, dots[k]);
            for (size_t r = 0; r < 16; r++)
                keys[q * stride + row + r] =
                    coarse_key(tile, row + r, sums[r] + 128 * total, queries, q);
        }
    }
}

const struct bsw_coarse_scan_table bsw_coarse_scan_neon = {.level = "neon",
                                                           .keys = neon_keys,
                                                           .maxima = coarse_maxima,
                                                           .pick = coarse_pick,
                                                           .products = coarse_products};
