// SPDX-License-Identifier: Apache-2.0
// 24 running sums, for 12 queries: two loads and 12 broadcasts feed 24 fused multiply-adds. A
// bundle's numbers stay in the first cache while all queries go over it.
#include "kernels/screen/screen_lanes.h"

// Shuffles of 256 bits are as fast.
static void pack(const float *rows, const float *scales, size_t num_rows, size_t dims, float *out)
{
    bsw_screen_avx2.pack(rows, scales, num_rows, dims, out);
}

const struct bsw_screen_table bsw_screen_avx512 = {
    .level = "avx512",
    .pack = pack,
    .pack_codes = pack_codes,
    .scan = scan,
};
