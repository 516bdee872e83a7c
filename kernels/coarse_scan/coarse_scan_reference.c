// SPDX-License-Identifier: Apache-2.0
// The oracle: coarse_scan.h's definitions number by number.
#include "kernels/coarse_scan/coarse_rows.h"

static void reference_keys(const struct bsw_matrix_tile *tile,
                           const struct bsw_matrix_queries *queries, uint64_t most_square,
                           float *keys, size_t stride)
{
    (void)most_square;
    for (size_t q = 0; q < queries->num_queries; q++) {
        const int8_t *components = queries->components + q * tile->padded_dims;
        for (size_t row = 0; row < tile->num_bundles * BSW_BUNDLE_ROWS; row++) {
            const uint8_t *bytes = tile->bytes + row / 16 * 16 * tile->padded_dims + row % 16 * 4;
            int32_t sum = 0;
            for (uint32_t d = 0; d < tile->padded_dims; d++)
                sum += bytes[d / 4 * 64 + d % 4] * components[d];
            keys[q * stride + row] = coarse_key(tile, row, sum, queries, q);
        }
    }
}

const struct bsw_coarse_scan_table bsw_coarse_scan_reference = {.level = "reference",
                                                                .keys = reference_keys,
                                                                .maxima = coarse_maxima,
                                                                .pick = coarse_pick,
                                                                .products = coarse_products};

BSW_KERNEL_TABLE_GET(coarse_scan, BSW_KERNEL_AVX2(coarse_scan) BSW_KERNEL_AVX512(coarse_scan)
                                      BSW_KERNEL_NEON(coarse_scan))
