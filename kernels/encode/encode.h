// SPDX-License-Identifier: Apache-2.0
// encode: vectors to bit-plane codes, bundles of 32 documents at a time.
//
// Work a document: dims reads, for saq dims * padded_dims fused multiply-adds (the frame), then
// bits compares a dimension. xfbq is bound by memory, saq by the product. Every level gives the
// same bits as the reference: sums keep the order of kernel_sums.h, the product is one fma chain an
// output, ascending in the input dimension.
//
// No function here can fail or allocate; callers check sizes. All are thread-safe. float is
// binary32, round to nearest.
#ifndef BITSWEEP_KERNELS_ENCODE_H
#define BITSWEEP_KERNELS_ENCODE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/codes/code_layout.h"
#include "common/codes/metric.h"
#include "common/rows/vectors.h"
#include "kernels/kernel_table.h"

BSW_C_BEGIN

// What saq codes are a function of, besides the row. Arrays are borrowed for the length of a call.
struct bsw_saq_frame {
    struct bsw_code_layout layout;
    enum bsw_metric metric;
    const float *mean; // [dims], 64-byte aligned
    // Transposed: rotation[j * padded_dims + i] is the weight of input dimension j in output i,
    // [dims][padded_dims]; columns of padding are 0. 64-byte aligned.
    const float *rotation;
    float steps[BSW_MAX_SEGMENTS]; // t_s, relative to the document's rms, > 0
    uint32_t stage_dims;           // dimensions of the first stage, a multiple of 32 or layout.dims
    // Dims of rows, where codes leave some axes out and have fewer; else 0. mean and the inputs of
    // rotation are so many then.
    uint32_t row_dims;
};

static inline uint32_t bsw_saq_row_dims(const struct bsw_saq_frame *frame)
{
    return frame->row_dims > 0 ? frame->row_dims : frame->layout.dims;
}

// Under l2 the norm of a row has what codes leave out.
static inline int bsw_saq_has_norms(const struct bsw_saq_frame *frame)
{
    return frame->row_dims > 0 && bsw_has_row_norms(frame->metric);
}

struct bsw_encode_table {
    const char *level;

    // Numbers of any source type (not INT32) as floats, exactly. n numbers; out may not overlap.
    void (*to_float)(enum bsw_vector_type type, const void *numbers, size_t n, float *out);

    // norms[r] = sum of x^2 in float64, lanes and tree of kernel_sums.h, s = fma(x, x, s). rows
    // [num_rows][dims], dense. NaN or Inf in a row gives NaN or Inf.
    void (*squared_norms)(const float *rows, size_t num_rows, size_t dims, double *norms);

    // XFBQ of one bundle. rows [num_rows][dims] dense, num_rows 1 .. 32 (further lanes get zero
    // planes). y = x * factors[r] in float32; v = (y * scale) * 2^(bits-1); f = floor(v) clipped to
    // [-2^(bits-1), 2^(bits-1)-1], a NaN to the lower end; u = 2^(bits-1) - 1 - f. planes:
    // [bits][words][32], wholly overwritten, padding 0. factors >= 0; 0 is allowed.
    void (*xfbq)(const float *rows, size_t num_rows, size_t dims, const float *factors, float scale,
                 unsigned bits, uint32_t *planes);

    // centered[r][j] = x * factors[r] - mean[j], each operation rounded to float32; mean_dots[r] =
    // sum over j of mean[j] * centered[r][j] in lanes and tree of kernel_sums.h. rows and centered
    // [num_rows][row dims], dense. Where bsw_saq_has_norms, mean_dots[r] = sum of centered[r][j]^2,
    // in the same order, takes its place.
    void (*saq_center)(const struct bsw_saq_frame *frame, const float *rows, size_t num_rows,
                       const float *factors, float *centered, float *mean_dots);

    // projected[r][i] = fma chain over j ascending of centered[r][j] * rotation[j][i], from +0.0.
    // centered [num_rows][row dims]; projected [num_rows][padded_dims], 64-byte aligned. Best for
    // num_rows from 32 to 128.
    void (*saq_project)(const struct bsw_saq_frame *frame, const float *centered, size_t num_rows,
                        float *projected);

    // Codes of one bundle from projected rows o, num_rows 1 .. 32 (further lanes: zero planes,
    // outputs not written). Per segment, lanes and tree of kernel_sums.h over its padded dims (lane
    // = padded dim mod 32):
    //   n_s = sum o*o;  norm = ((n_0 + n_1) + n_2) + ...
    //   if norm < 0x1p-126f all of this row is 0: norm, scale, tail, u
    //   rms = sqrt(norm / (float)dims);  inverse_s = 1 / ((2 * t_s) * rms)
    //   f = floor(o * inverse_s) clipped to [-2^(bits-1), 2^(bits-1)-1], as in xfbq
    //   c = 2f + 1;  u = 2^(bits-1) - 1 - f
    //   e_s = sum o*c;  den = fma(t_s, e_s, den) over segments from +0.0
    //   scale = norm / den, doubled for l2
    //   tail = sum of c^2 over real dimensions whose place (counted without padding, segment after
    //          segment) is at or beyond stage_dims: an exact integer
    // planes[s]: [bits][words][32] of segment s, wholly overwritten; padding bits 0.
    void (*saq_quantize)(const struct bsw_saq_frame *frame, const float *projected, size_t num_rows,
                         uint32_t *const *planes, float *norms, float *scales, uint32_t *tails);
};

BSW_KERNEL_LEVELS(encode);

BSW_C_END
#endif
