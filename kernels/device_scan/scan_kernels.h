// SPDX-License-Identifier: Apache-2.0
// The kernels that scan a whole shard on a GPU: one table, of which device_tuning.txt says which
// are taken (`plane_scans`, `matrix_scans`). Each gives the same candidates where it fits.
//
// A new one is a file with X_fits and scan_X (scan_arguments.cuh), a row here and a word in
// device_tuning.txt: tests/emulation compares every row with the reference, and `bench device
// --case 'kernels-*'` times them all.
#ifndef BITSWEEP_KERNELS_SCAN_KERNELS_H
#define BITSWEEP_KERNELS_SCAN_KERNELS_H

#include "kernels/device_scan/device_scan.h"

BSW_C_BEGIN

enum bsw_scan_family { BSW_PLANE_SCANS, BSW_MATRIX_SCANS };

// For any device of 8.0 and later; for 9.0 alone (sm_90a). ROW(X, name, family, segments, bits,
// dims, queries, block queries): the most that it takes, 0 where all, dims padded; of how many
// queries its blocks are, where a rest may be left to another kernel. X is for its functions.
#define BSW_COMMON_SCANS(ROW)                       \
    ROW(popcount, "popcount", PLANE, 0, 0, 0, 0, 0) \
    ROW(bit, "bits", PLANE, 0, 7, 0, 0, 0)          \
    ROW(mma, "mma", MATRIX, 0, 0, 0, 0, 0)          \
    ROW(few, "few", MATRIX, 1, 4, 0, 32, 0)         \
    ROW(few_any, "few-any", MATRIX, 0, 0, 0, 32, 0)
#define BSW_HOPPER_SCANS(ROW)                                    \
    ROW(hopper_1x64, "hopper-1x64", MATRIX, 0, 0, 256, 0, 64)    \
    ROW(hopper_2x128, "hopper-2x128", MATRIX, 0, 0, 256, 0, 256) \
    ROW(hopper_4x64, "hopper-4x64", MATRIX, 0, 0, 256, 0, 256)   \
    ROW(hopper_3x128, "hopper-3x128", MATRIX, 0, 0, 256, 0, 384) \
    ROW(hopper_slices, "hopper-slices", MATRIX, 0, 0, 0, 0, 0)

// Numbers of kernels.
#define BSW_SCAN_NUMBER(x, ...) BSW_SCAN_BY_##x,
enum bsw_scan_number {
    BSW_COMMON_SCANS(BSW_SCAN_NUMBER) BSW_HOPPER_SCANS(BSW_SCAN_NUMBER) BSW_NUM_SCANS
};

struct bsw_scan_row {
    const char *name;
    enum bsw_scan_family family;
    int is_hopper;
    uint32_t most_segments, most_bits, most_dims, most_queries, block_queries;
};
extern const struct bsw_scan_row bsw_scan_rows[BSW_NUM_SCANS]; // scan_kernels.c

// Whether the current device has the kernel, and it takes such codes and so many queries.
BSW_DEVICE_CALL int bsw_device_scan_fits(uint32_t number, const struct bsw_code_layout *layout,
                                         uint32_t query_bits, uint32_t num_queries);
// That scan, whatever the tuning takes; cudaErrorInvalidValue where it does not fit, and of Hopper
// kernels where codes are not aligned to 16 bytes.
BSW_DEVICE_CALL int bsw_device_scan_by(uint32_t number, const struct bsw_device_codes *codes,
                                       const struct bsw_device_part *part,
                                       const struct bsw_device_queries *queries,
                                       const struct bsw_device_lists *lists, bsw_stream stream);

BSW_C_END
#endif
