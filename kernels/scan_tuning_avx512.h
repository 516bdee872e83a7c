// Tuning of the avx512 scans, measured on "Intel(R) Xeon(R) Processor" by
// bitsweep bench tune --level avx512 --seconds 0.1
#ifndef BITSWEEP_KERNELS_SCAN_TUNING_AVX512_H
#define BITSWEEP_KERNELS_SCAN_TUNING_AVX512_H

#include "kernels/scan_tuning.h"

// The last two are estimates: this level had no staged scan of its own.
// dims, bits, matrix_from_queries, tile_kib, stage_overhead, finish_factor
// clang-format off
static const struct bsw_scan_tuning bsw_scan_tuning_avx512[] = {
    {32, 1, 3, 16, 0.0f, 1.00f},
    {32, 2, 3, 16, 0.0f, 1.00f},
    {32, 3, 2, 16, 0.0f, 1.00f},
    {32, 4, 3, 16, 0.0f, 1.00f},
    {32, 8, 3, 16, 0.0f, 1.00f},
    {96, 1, 8, 16, 4.0f, 4.00f},
    {96, 2, 4, 16, 4.0f, 4.00f},
    {96, 3, 4, 16, 4.0f, 4.00f},
    {96, 4, 3, 16, 4.0f, 4.00f},
    {96, 8, 3, 16, 4.0f, 4.00f},
    {128, 1, 8, 16, 4.0f, 4.00f},
    {128, 2, 4, 16, 4.0f, 4.00f},
    {128, 3, 4, 16, 4.0f, 4.00f},
    {128, 4, 3, 16, 4.0f, 4.00f},
    {128, 8, 3, 16, 4.0f, 4.00f},
    {256, 1, 24, 16, 4.0f, 4.00f},
    {256, 2, 4, 16, 4.0f, 4.00f},
    {256, 3, 6, 16, 4.0f, 4.00f},
    {256, 4, 3, 16, 4.0f, 4.00f},
    {256, 8, 3, 16, 4.0f, 4.00f},
    {512, 1, UINT32_MAX, 16, 4.0f, 4.00f},
    {512, 2, 4, 16, 4.0f, 4.00f},
    {512, 3, 4, 16, 4.0f, 4.00f},
    {512, 4, 4, 16, 4.0f, 4.00f},
    {512, 8, 6, 16, 4.0f, 4.00f},
    {1024, 1, UINT32_MAX, 16, 4.0f, 4.00f},
    {1024, 2, 8, 16, 4.0f, 4.00f},
    {1024, 3, 4, 16, 4.0f, 4.00f},
    {1024, 4, 4, 16, 4.0f, 4.00f},
    {1024, 8, 3, 16, 4.0f, 4.00f},
};
// clang-format on

#endif
