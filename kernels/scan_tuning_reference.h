// Tuning of the reference scans, measured on "Intel(R) Xeon(R) Processor" by
// bitsweep bench tune --level reference --seconds 0.05
//     --dims 128 --bits 1,2,3,4,8
#ifndef BITSWEEP_KERNELS_SCAN_TUNING_REFERENCE_H
#define BITSWEEP_KERNELS_SCAN_TUNING_REFERENCE_H

#include "kernels/scan_tuning.h"

// clang-format off
static const uint32_t bsw_scan_tuning_reference_bits[] = {1, 2, 3, 4, 8};
// dims, tile_kib, stage_overhead, finish_factor, matrix_from_queries of each of these bits
static const struct bsw_scan_tuning_row bsw_scan_tuning_reference[] = {
    {128, 16, 0.9f, 0.15f, {UINT32_MAX, UINT32_MAX, 16, 6, 3}},
};
// clang-format on

#endif
