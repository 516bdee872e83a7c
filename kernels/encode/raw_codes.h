// SPDX-License-Identifier: Apache-2.0
// uint8 and int8 rows as matrix_scan takes them, for exact totals.
//
// x a row's number, y a query's: u = x and q = y - 128 for uint8, u = x + 128 and q = y for int8,
// so that u is a byte and q an int8. With sum = sum over dimensions of u*q:
//   x.y   = sum + 128 * sum(x) (uint8), sum - 128 * sum(q) (int8)
//   total = x.y (ip), 2 * x.y - |x|^2 - |y|^2 = -(squared distance) (l2)
//         = factor * sum + offset of the row + constant of the query
// Up to BSW_RAW_MAX_DIMS no part of it, and no sum of parts, leaves int32. The key is the total
// rounded once to float32, and so is the exact value of groundtruth: both give one order.
//
// Nothing here can fail or allocate. Thread-safe.
#ifndef BITSWEEP_KERNELS_RAW_CODES_H
#define BITSWEEP_KERNELS_RAW_CODES_H

#include <stddef.h>
#include <stdint.h>

#include "common/codes/metric.h"
#include "common/rows/vectors.h"

// Bits of a query's component: a coded query is padded_dims int8, and bsw_layout_query_words of so
// many bits is their size in words.
#define BSW_RAW_QUERY_BITS 8

// Totals are int32, and so must be every sum on the way to one; the largest that a dimension adds
// is 81,409 (int8, l2: 2 * 255 * 128 + 127^2).
#define BSW_RAW_MAX_DIMS (INT32_MAX / 81409)

static inline int bsw_raw_factor(enum bsw_metric metric)
{
    return bsw_has_row_norms(metric) ? 2 : 1;
}

// One bundle. numbers: [num_rows][dims] dense uint8 or int8, num_rows 1 .. 32. bytes: 32 *
// padded_dims (dims up to a multiple of 32) in the order of common/codes/code_layout.h; padding
// dimensions and rows are not written and should hold 0. offsets: [num_rows]. metric: ip or l2.
void bsw_raw_pack_bundle(enum bsw_vector_type type, enum bsw_metric metric, const void *numbers,
                         size_t num_rows, size_t dims, unsigned char *bytes, int32_t *offsets);

// The first dimension whose number is not whole or not in the type's range, or dims.
size_t bsw_raw_first_misfit(enum bsw_vector_type type, const float *row, size_t dims);

// One query without a misfit. row: [dims]; components: [padded_dims], wholly written, padding 0.
void bsw_raw_query_encode(enum bsw_vector_type type, enum bsw_metric metric, const float *row,
                          size_t dims, size_t padded_dims, int8_t *components, int32_t *constant);

#endif
