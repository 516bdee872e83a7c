// Tuning of the reference scans, measured on "Intel(R) Xeon(R) Processor" by
// bitsweep bench tune --level reference --seconds 0.05
//     --dims 128 --bits 1,2,3,4,8
#ifndef BITSWEEP_KERNELS_SCAN_TUNING_REFERENCE_H
#define BITSWEEP_KERNELS_SCAN_TUNING_REFERENCE_H

#include "kernels/scan_tuning.h"

// dims, bits, matrix_from_queries, tile_kib, stage_overhead, finish_factor
// clang-format off
static const struct bsw_scan_tuning bsw_scan_tuning_reference[] = {
    {128, 1, UINT32_MAX, 16, 0.9f, 0.15f},
    {128, 2, UINT32_MAX, 16, 0.9f, 0.15f},
    {128, 3, 16, 16, 0.9f, 0.15f},
    {128, 4, 6, 16, 0.9f, 0.15f},
    {128, 8, 3, 16, 0.9f, 0.15f},
};
// clang-format on

#endif
