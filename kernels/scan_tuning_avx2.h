// Tuning of the avx2 scans, measured on "Intel(R) Xeon(R) Processor" by
// bitsweep bench tune --level avx2 --seconds 0.1
#ifndef BITSWEEP_KERNELS_SCAN_TUNING_AVX2_H
#define BITSWEEP_KERNELS_SCAN_TUNING_AVX2_H

#include "kernels/scan_tuning.h"

// dims, bits, matrix_from_queries, tile_kib, stage_overhead, finish_factor
// clang-format off
static const struct bsw_scan_tuning bsw_scan_tuning_avx2[] = {
    {32, 1, UINT32_MAX, 16, 0.0f, 1.00f},
    {32, 2, 8, 16, 0.0f, 1.00f},
    {32, 3, 6, 16, 0.0f, 1.00f},
    {32, 4, 3, 16, 0.0f, 1.00f},
    {32, 8, 3, 16, 0.0f, 1.00f},
    {96, 1, UINT32_MAX, 16, 7.1f, 5.33f},
    {96, 2, 8, 16, 7.1f, 5.33f},
    {96, 3, 6, 16, 7.1f, 5.33f},
    {96, 4, 4, 16, 7.1f, 5.33f},
    {96, 8, 6, 16, 7.1f, 5.33f},
    {128, 1, UINT32_MAX, 16, 8.3f, 5.20f},
    {128, 2, 12, 16, 8.3f, 5.20f},
    {128, 3, 6, 16, 8.3f, 5.20f},
    {128, 4, 4, 16, 8.3f, 5.20f},
    {128, 8, 6, 16, 8.3f, 5.20f},
    {256, 1, UINT32_MAX, 32, 8.7f, 3.50f},
    {256, 2, 32, 32, 8.7f, 3.50f},
    {256, 3, 8, 32, 8.7f, 3.50f},
    {256, 4, 6, 32, 8.7f, 3.50f},
    {256, 8, 6, 32, 8.7f, 3.50f},
    {512, 1, UINT32_MAX, 16, 27.3f, 2.38f},
    {512, 2, 32, 16, 27.3f, 2.38f},
    {512, 3, 8, 16, 27.3f, 2.38f},
    {512, 4, 6, 16, 27.3f, 2.38f},
    {512, 8, 6, 16, 27.3f, 2.38f},
    {1024, 1, UINT32_MAX, 16, 25.7f, 1.92f},
    {1024, 2, 12, 16, 25.7f, 1.92f},
    {1024, 3, 6, 16, 25.7f, 1.92f},
    {1024, 4, 6, 16, 25.7f, 1.92f},
    {1024, 8, 6, 16, 25.7f, 1.92f},
};
// clang-format on

#endif
