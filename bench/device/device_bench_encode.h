// SPDX-License-Identifier: Apache-2.0
// Rows that are coded on the device: for device_bench_encode.c, and its check.
#ifndef BITSWEEP_BENCH_DEVICE_BENCH_ENCODE_H
#define BITSWEEP_BENCH_DEVICE_BENCH_ENCODE_H

#include "bench/device/device_bench.h"
#include "kernels/device_encode/device_encode.h"

#define DEVICE_BENCH_XFBQ_SCALE 4.0f

struct encoding {
    struct device_bench *bench;
    struct bsw_saq_frame frame;
    struct bsw_device_raw_rows rows;
    struct bsw_device_saq_codes codes; // xfbq: planes alone
    struct bsw_device_buffer memory;
    float *numbers, *centered, *projected, *mean, *rotation, *mean_dots;
    uint8_t *faults;
};

// The first bundle has the bits that the reference gives it.
enum bsw_status device_bench_encode_check(struct encoding *encoding, int is_saq,
                                          struct bsw_error *err);

#endif
