// SPDX-License-Identifier: Apache-2.0
// gpu_bytes: rows of bytes (codec raw) against a batch of queries on a GPU, selection in the
// epilogue: the whole keys of kernels/matrix_scan, to the lists of device_scan.h.
#ifndef BITSWEEP_KERNELS_GPU_BYTES_H
#define BITSWEEP_KERNELS_GPU_BYTES_H

#include "kernels/device_scan/device_list_scan.h"

BSW_C_BEGIN

// What the kernel loads of so many queries: whole tiles of 16.
#define BSW_DEVICE_BYTE_TILE 16
static inline size_t bsw_device_byte_operand_bytes(uint32_t num_queries, uint32_t padded_dims)
{
    return ((size_t)num_queries + BSW_DEVICE_BYTE_TILE - 1) / BSW_DEVICE_BYTE_TILE *
           BSW_DEVICE_BYTE_TILE * padded_dims;
}

// Queries to operands. bytes: int8 [num_queries][padded_dims], 4-byte aligned, padding 0; operands:
// bsw_device_byte_operand_bytes, 16-byte aligned. padded_dims: a multiple of 32, 32 at least.
BSW_DEVICE_CALL int bsw_device_byte_queries(uint32_t num_queries, uint32_t padded_dims,
                                            const int8_t *bytes, int8_t *operands,
                                            bsw_stream stream);

// As bsw_device_matrix_scan, of codes that have one segment of 8 bits, whose planes are bytes in
// the order of common/codes/code_layout.h, and offsets. queries: components are what
// bsw_device_byte_queries made, constants are there; query_bits, words and scales are not looked
// at. factor: 1 or 2. A row's key is factor * sum + offset + constant, sum that of its bytes times
// a query's; neither it nor a sum of parts of it leaves int32 (kernels/encode/raw_codes.h).
BSW_DEVICE_CALL int bsw_device_byte_scan(const struct bsw_device_codes *codes,
                                         const struct bsw_device_part *part,
                                         const struct bsw_device_queries *queries, int factor,
                                         const struct bsw_device_lists *lists, bsw_stream stream);

// As bsw_device_list_scan, of such codes and queries, whose keys nothing is added to.
BSW_DEVICE_CALL int bsw_device_byte_list_scan(const struct bsw_device_codes *codes,
                                              const struct bsw_device_list_work *work,
                                              uint32_t tile,
                                              const struct bsw_device_queries *queries, int factor,
                                              const struct bsw_device_lists *lists,
                                              bsw_stream stream);

BSW_C_END
#endif
