// SPDX-License-Identifier: Apache-2.0
// NumPy's .npz with the arrays of a result, ids and values: a ZIP archive of two .npy files that
// are not packed, as numpy.savez writes it and numpy.load reads it.
#ifndef BITSWEEP_COMMON_NPZ_FILE_H
#define BITSWEEP_COMMON_NPZ_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/files/result_layout.h"

// What a result writer puts around the arrays, of any size: the heads of both members with those of
// their .npy files, and the archive's directory. Sizes are in the form of 64 bits. Begun, sums are
// those of the .npy heads; the caller goes on with them by bsw_npz_sum over the arrays as they lie
// in the file, and ends the frame.
#define BSW_NPZ_HEAD_BYTES 192
#define BSW_NPZ_TAIL_BYTES 263
struct bsw_npz_frame {
    const struct bsw_result_layout *layout;
    uint32_t sums[2]; // of ids and of values
    unsigned char before[BSW_NPZ_HEAD_BYTES], between[BSW_NPZ_HEAD_BYTES],
        behind[BSW_NPZ_TAIL_BYTES]; // out
};
void bsw_npz_frame_begin(struct bsw_npz_frame *frame);
void bsw_npz_frame_end(struct bsw_npz_frame *frame);
// CRC-32 of bytes behind others, of which it was `sum`; of none it is 0.
uint32_t bsw_npz_sum(uint32_t sum, const void *data, size_t bytes);

// Where the arrays lie in an archive, in any order and among others: ids of int32 or int64, values
// of float32, both [num_queries][k], C order.
struct bsw_npz_arrays {
    uint64_t num_queries, k;
    const unsigned char *ids, *values; // into data
    uint64_t id_bytes;                 // 4 or 8
};
// Every size is checked. BSW_ERROR_BAD_DATA, naming `name`: no archive, a packed one, no such
// arrays, or of different shapes. Checksums are not compared.
enum bsw_status bsw_npz_parse(const char *name, const unsigned char *data, size_t bytes,
                              struct bsw_npz_arrays *out, struct bsw_error *err);
// The same of the first bytes of a file alone: whether it may be one.
enum bsw_status bsw_npz_check(const char *name, const unsigned char *head, size_t bytes,
                              struct bsw_error *err);

#endif
