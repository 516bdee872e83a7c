// Tuning of the avx2 scans, measured on "Intel(R) Xeon(R) Processor" by
// bitsweep bench tune --level avx2 --seconds 0.1
#ifndef BITSWEEP_KERNELS_SCAN_TUNING_AVX2_H
#define BITSWEEP_KERNELS_SCAN_TUNING_AVX2_H

#include "kernels/scan_tuning.h"

// clang-format off
static const uint32_t bsw_scan_tuning_avx2_bits[] = {1, 2, 3, 4, 8};
// dims, tile_kib, stage_overhead, finish_factor, matrix_from_queries of each of these bits
static const struct bsw_scan_tuning_row bsw_scan_tuning_avx2[] = {
    {32, 16, 0.0f, 1.00f, {UINT32_MAX, 8, 6, 3, 3}},
    {96, 16, 7.1f, 5.33f, {UINT32_MAX, 8, 6, 4, 6}},
    {128, 16, 8.3f, 5.20f, {UINT32_MAX, 12, 6, 4, 6}},
    {256, 32, 8.7f, 3.50f, {UINT32_MAX, 32, 8, 6, 6}},
    {512, 16, 27.3f, 2.38f, {UINT32_MAX, 32, 8, 6, 6}},
    {1024, 16, 25.7f, 1.92f, {UINT32_MAX, 12, 6, 6, 6}},
};
// clang-format on

#endif
