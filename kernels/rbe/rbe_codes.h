// SPDX-License-Identifier: Apache-2.0
// rbe codes of rows: the model's binary vectors as bit planes, the same bits on every machine.
//
// Plane 0 is b^0, plane t + 1 is d^t; bit 1 stands for -1 (common/codes/code_layout.h), so that the
// odd integer of a component is 2^steps * b. Products are one fma chain an output, from its bias,
// ascending in the input; tanh is rbe_tanh.h's. Only for shapes with residual weights.
//
// Nothing here can fail or allocate. Thread-safe. Inputs are finite.
#ifndef BITSWEEP_KERNELS_RBE_CODES_H
#define BITSWEEP_KERNELS_RBE_CODES_H

#include "kernels/kernel_table.h"
#include "kernels/rbe/rbe_model.h"

// A side as encoding wants it. Weights transposed: [num_in][padded], padded = num_out up to a
// multiple of 16, padding 0.
struct bsw_rbe_coder {
    struct bsw_rbe_shape shape;
    const float *mean; // [dims], borrowed
    float scale;
    uint32_t padded_dims, padded_code_dims; // up to multiples of 16
    float *weights;                         // all layers; owned by the caller's memory
};

// Floats that a coder's weights take.
size_t bsw_rbe_coder_floats(const struct bsw_rbe_shape *shape);
// memory: 64-byte aligned, kept; parameters are not needed afterwards.
void bsw_rbe_coder_init(const struct bsw_rbe_shape *shape, const float *parameters,
                        const float *mean, float scale, float *memory, struct bsw_rbe_coder *out);

// Floats of scratch for one row.
static inline size_t bsw_rbe_scratch_floats(const struct bsw_rbe_coder *coder)
{
    return 3 * (size_t)coder->padded_dims + 3 * (size_t)coder->padded_code_dims;
}

struct bsw_rbe_codes_table {
    const char *level;

    // One row x [dims] with its factor: components [code_dims], the odd integers c = 2^steps * b,
    // in
    // -(2^(steps+1) - 1) .. 2^(steps+1) - 1. scratch: bsw_rbe_scratch_floats, 64-byte aligned.
    void (*encode)(const struct bsw_rbe_coder *coder, const float *row, float factor,
                   float *scratch, int16_t *components);
    // W f + bias of it, [padded_code_dims], before rho.
    void (*project)(const struct bsw_rbe_coder *coder, const float *row, float factor,
                    float *scratch, float *out);
};

BSW_KERNEL_LEVELS(rbe_codes);

#endif
