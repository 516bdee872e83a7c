// SPDX-License-Identifier: Apache-2.0
#include "kernels/device_scan/scan_kernels.h"

#define ROW(hopper, name, family, segments, bits, dims, queries, block) \
    {name, BSW_##family##_SCANS, hopper, segments, bits, dims, queries, block},
#define COMMON(x, ...) ROW(0, __VA_ARGS__)
#define HOPPER(x, ...) ROW(1, __VA_ARGS__)

const struct bsw_scan_row bsw_scan_rows[BSW_NUM_SCANS] = {BSW_COMMON_SCANS(COMMON)
                                                              BSW_HOPPER_SCANS(HOPPER)};
