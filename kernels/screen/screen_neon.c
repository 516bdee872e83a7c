// SPDX-License-Identifier: Apache-2.0
// Rows as bytes go over dot products, which have four times the products of float32.
#include "kernels/screen/screen_lanes.h"

static void pack(const float *rows, const float *scales, size_t num_rows, size_t dims, float *out)
{
    for (size_t r = 0; r < BSW_BUNDLE_ROWS; r++) {
        for (size_t d = 0; d < dims; d++)
            out[d * BSW_BUNDLE_ROWS + r] = r < num_rows ? rows[r * dims + d] * scales[r] : 0.0f;
    }
}

const struct bsw_screen_table bsw_screen_neon = {
    .level = "neon",
    .pack = pack,
    .pack_codes = pack_codes,
    .scan = scan,
};
