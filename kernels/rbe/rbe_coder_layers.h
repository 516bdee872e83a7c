// SPDX-License-Identifier: Apache-2.0
// Where a coder's layers lie: each [num_in][padded_out] weights, then [padded_out] bias, in the
// order of rbe_model.h.
#ifndef BITSWEEP_KERNELS_RBE_CODER_LAYERS_H
#define BITSWEEP_KERNELS_RBE_CODER_LAYERS_H

#include "kernels/rbe/rbe_codes.h"

struct bsw_rbe_coder_layer {
    const float *weights, *bias; // 64-byte aligned
    uint32_t num_in, padded_out;
};

static inline size_t bsw_rbe_coder_layer_floats(uint32_t num_in, uint32_t padded_out)
{
    return ((size_t)num_in + 1) * padded_out;
}

static inline struct bsw_rbe_coder_layer bsw_rbe_coder_layer_of(const struct bsw_rbe_coder *coder,
                                                                enum bsw_rbe_layer_kind kind,
                                                                uint32_t step)
{
    const struct bsw_rbe_shape *shape = &coder->shape;
    size_t to_code = bsw_rbe_coder_layer_floats(shape->dims, coder->padded_code_dims);
    size_t back = bsw_rbe_coder_layer_floats(shape->code_dims, coder->padded_dims);
    size_t pair = shape->is_shared ? 0 : step;
    struct bsw_rbe_coder_layer layer = {.weights = coder->weights,
                                        .bias = NULL,
                                        .num_in = shape->dims,
                                        .padded_out = coder->padded_code_dims};
    if (kind != BSW_RBE_BASE) layer.weights += to_code + pair * (to_code + back);
    if (kind == BSW_RBE_RESIDUAL) layer.weights += back;
    if (kind == BSW_RBE_RECONSTRUCTION) {
        layer.num_in = shape->code_dims;
        layer.padded_out = coder->padded_dims;
    }
    layer.bias = layer.weights + (size_t)layer.num_in * layer.padded_out;
    return layer;
}

#endif
