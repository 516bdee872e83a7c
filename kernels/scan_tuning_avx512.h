// Tuning of the avx512 scans, measured on "Intel(R) Xeon(R) Processor" by
// bitsweep bench tune --level avx512 --seconds 0.1
#ifndef BITSWEEP_KERNELS_SCAN_TUNING_AVX512_H
#define BITSWEEP_KERNELS_SCAN_TUNING_AVX512_H

#include "kernels/scan_tuning.h"

// dims, bits, matrix_from_queries, tile_kib, stage_overhead, finish_factor
// clang-format off
static const struct bsw_scan_tuning bsw_scan_tuning_avx512[] = {
    {32, 1, 3, 16, 0.0f, 1.00f},
    {32, 2, 3, 16, 0.0f, 1.00f},
    {32, 3, 3, 16, 0.0f, 1.00f},
    {32, 4, 3, 16, 0.0f, 1.00f},
    {32, 8, 3, 16, 0.0f, 1.00f},
    {96, 1, 8, 16, 7.4f, 5.99f},
    {96, 2, 6, 16, 7.4f, 5.99f},
    {96, 3, 4, 16, 7.4f, 5.99f},
    {96, 4, 3, 16, 7.4f, 5.99f},
    {96, 8, 3, 16, 7.4f, 5.99f},
    {128, 1, 8, 16, 5.1f, 7.19f},
    {128, 2, 6, 16, 5.1f, 7.19f},
    {128, 3, 4, 16, 5.1f, 7.19f},
    {128, 4, 3, 16, 5.1f, 7.19f},
    {128, 8, 3, 16, 5.1f, 7.19f},
    {256, 1, 24, 16, 7.7f, 6.94f},
    {256, 2, 6, 16, 7.7f, 6.94f},
    {256, 3, 4, 16, 7.7f, 6.94f},
    {256, 4, 3, 16, 7.7f, 6.94f},
    {256, 8, 3, 16, 7.7f, 6.94f},
    {512, 1, UINT32_MAX, 16, 18.6f, 6.14f},
    {512, 2, 6, 16, 18.6f, 6.14f},
    {512, 3, 4, 16, 18.6f, 6.14f},
    {512, 4, 4, 16, 18.6f, 6.14f},
    {512, 8, 3, 16, 18.6f, 6.14f},
    {1024, 1, UINT32_MAX, 16, 18.6f, 6.13f},
    {1024, 2, 6, 16, 18.6f, 6.13f},
    {1024, 3, 4, 16, 18.6f, 6.13f},
    {1024, 4, 4, 16, 18.6f, 6.13f},
    {1024, 8, 3, 16, 18.6f, 6.13f},
};
// clang-format on

#endif
