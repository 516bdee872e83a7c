// SPDX-License-Identifier: Apache-2.0
// device_encode: rows to bit-plane codes on a GPU.
//
// The same numbers as kernels/encode and prepare_rows give, bit for bit: sums in the lanes and the
// tree of kernel_sums.h, the product one fma chain an output, every rounding written. Rows of any
// source type are converted exactly. A row with a fault counts as zeros with factor 0, as
// bsw_prepare_rows has it; the caller decides what becomes of it.
//
// A launcher checks what it is given, queues its kernel on the stream and returns at once; it does
// not allocate, and fails (CUDA's error code, 0 is success) only where a launch was refused:
// cudaErrorInvalidValue for numbers out of range. All pointers in these structs are device
// pointers. No rows: nothing is done.
//
// Compiled by nvcc, or as C++ for the emulator of tests/emulation; C linkage.
#ifndef BITSWEEP_KERNELS_DEVICE_ENCODE_H
#define BITSWEEP_KERNELS_DEVICE_ENCODE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/codes/code_layout.h"
#include "common/codes/metric.h"
#include "common/rows/vectors.h"
#include "kernels/encode/encode.h"
#include "kernels/table_scan/table_scan.h"

BSW_C_BEGIN

// Rows of a run of bundles from lane 0 on; the last bundle may be partial.
struct bsw_device_raw_rows {
    enum bsw_vector_type type; // not INT32
    uint32_t dims;             // 1 .. BSW_MAX_DIMS
    uint32_t num_rows;         // below 2^31
    const void *numbers;       // [num_rows][dims], dense
};

// Prepares and codes in one pass. planes: [bundles][bits][words][32], wholly overwritten, padding
// and lanes without a row 0. faults: [num_rows], values of enum bsw_row_fault under cosine. scale
// and bits as in bsw_encode_table.xfbq.
BSW_DEVICE_CALL int bsw_device_encode_xfbq(const struct bsw_device_raw_rows *rows, float scale,
                                           uint32_t bits, uint32_t *planes, uint8_t *faults,
                                           bsw_stream stream);

// Arrays of a frame are in device memory.
//
// Prepares rows and moves them to the frame's middle: centered [num_rows][row dims],
// mean_dots [num_rows], faults [num_rows].
BSW_DEVICE_CALL int bsw_device_saq_center(const struct bsw_saq_frame *frame,
                                          const struct bsw_device_raw_rows *rows, float *centered,
                                          float *mean_dots, uint8_t *faults, bsw_stream stream);

// projected [num_rows][padded_dims]: each number one fma chain, ascending in the input dimension.
BSW_DEVICE_CALL int bsw_device_saq_project(const struct bsw_saq_frame *frame, const float *centered,
                                           uint32_t num_rows, float *projected, bsw_stream stream);

// XFBQ of projected rows, as bsw_encode_table.xfbq codes them with factors of 1: the frame's one
// segment. planes: [bundles][bits][words][32], wholly overwritten, padding and lanes without a row
// 0.
BSW_DEVICE_CALL int bsw_device_encode_xfbq_rotated(const struct bsw_saq_frame *frame,
                                                   const float *projected, uint32_t num_rows,
                                                   float scale, uint32_t *planes,
                                                   bsw_stream stream);

// Codes of projected rows. planes[s]: [bundles][bits][words][32] of segment s, wholly overwritten,
// padding and lanes without a row 0; norms, scales, tails: [num_rows], as saq_quantize has them.
struct bsw_device_saq_codes {
    uint32_t *planes[BSW_MAX_SEGMENTS];
    float *norms, *scales;
    uint32_t *tails;
};
BSW_DEVICE_CALL int bsw_device_saq_quantize(const struct bsw_saq_frame *frame,
                                            const float *projected, uint32_t num_rows,
                                            const struct bsw_device_saq_codes *codes,
                                            bsw_stream stream);

// ---- residuals: rows less the centroids of their lists ----

// centroids [num][dims] less mean [dims], in place.
BSW_DEVICE_CALL int bsw_device_center_lists(const float *mean, uint32_t dims, uint32_t num,
                                            float *centroids, bsw_stream stream);

// centered [num_rows][dims], rows less the mean, less the centroids, which are so too, of lists
// [num_rows]. norms: [num_rows], those of bsw_encode_table.squared_norms of the rows as they came,
// rounded to float32; NULL: nobody needs them.
BSW_DEVICE_CALL int bsw_device_subtract_lists(const float *centroids, const uint32_t *lists,
                                              uint32_t dims, uint32_t num_rows, float *centered,
                                              float *norms, bsw_stream stream);

// Products of a row's centroid, projected to the frame, with the projected row (exact) and with
// steps * its code (coded): float32 products added up in lanes and tree of kernel_sums.h over the
// dims of all segments, without fma; 0 where the row's norm, of saq_quantize, counts as 0.
struct bsw_device_list_products {
    const uint32_t *lists;          // [num_rows]
    const float *centroids, *norms; // [lists][padded_dims], [num_rows]
    float *exact, *coded;           // [num_rows]
};
BSW_DEVICE_CALL int bsw_device_saq_list_products(const struct bsw_saq_frame *frame,
                                                 const float *projected, uint32_t num_rows,
                                                 const struct bsw_device_list_products *products,
                                                 bsw_stream stream);

// ---- product codes ----

// Codes of bsw_table_scan_table.nearest. book: arrays on the device, 16-byte aligned. projected:
// [num_rows][dims]; what parts have beyond is 0.
// codes: [bundles][bundle_bytes][32] as kernels/table_scan has them, wholly overwritten, padding
// and lanes without a row 0. bundle_bytes: of a row, bsw_product_code_bytes at least.
BSW_DEVICE_CALL int bsw_device_product_codes(const struct bsw_product_book *book,
                                             const float *projected, uint32_t dims,
                                             uint32_t num_rows, uint32_t bundle_bytes,
                                             uint8_t *codes, bsw_stream stream);

// ---- sq8 ----

// Codes of kernels/encode/sq8_codes.h: a row's factor, the planes of its numbers, and under l2 the
// squared norm of what they stand for, else the product of middles and row less the middles. All
// on the device; planes wholly overwritten, padding and lanes without a row 0.
struct bsw_device_sq8_codes {
    const float *middles, *half_steps; // [dims]
    uint32_t *planes;                  // [bundles][8][words][32]
    uint8_t *faults;                   // [num_rows]
    float *factors, *sums;             // [num_rows]
};
BSW_DEVICE_CALL int bsw_device_encode_sq8(const struct bsw_device_raw_rows *rows,
                                          enum bsw_metric metric,
                                          const struct bsw_device_sq8_codes *codes,
                                          bsw_stream stream);

BSW_C_END
#endif
