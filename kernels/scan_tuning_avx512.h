// Tuning of the avx512 scans, measured on "Intel(R) Xeon(R) Processor" by
// bitsweep bench tune --level avx512 --seconds 0.1
#ifndef BITSWEEP_KERNELS_SCAN_TUNING_AVX512_H
#define BITSWEEP_KERNELS_SCAN_TUNING_AVX512_H

#include "kernels/scan_tuning.h"

// clang-format off
static const uint32_t bsw_scan_tuning_avx512_bits[] = {1, 2, 3, 4, 8};
// dims, tile_kib, stage_overhead, finish_factor, matrix_from_queries of each of these bits
static const struct bsw_scan_tuning_row bsw_scan_tuning_avx512[] = {
    {32, 16, 0.0f, 1.00f, {3, 3, 3, 3, 3}},
    {96, 16, 7.4f, 5.99f, {8, 6, 4, 3, 3}},
    {128, 16, 5.1f, 7.19f, {8, 6, 4, 3, 3}},
    {256, 16, 7.7f, 6.94f, {24, 6, 4, 3, 3}},
    {512, 16, 18.6f, 6.14f, {UINT32_MAX, 6, 4, 4, 3}},
    {1024, 16, 18.6f, 6.13f, {UINT32_MAX, 6, 4, 4, 3}},
};
// clang-format on

#endif
