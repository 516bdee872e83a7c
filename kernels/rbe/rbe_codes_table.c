// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "kernels/rbe/rbe_coder_layers.h"

#define OUTPUT_MULTIPLE 16u

static uint32_t padded(uint32_t count)
{
    return (count + OUTPUT_MULTIPLE - 1) / OUTPUT_MULTIPLE * OUTPUT_MULTIPLE;
}

static uint32_t num_pairs(const struct bsw_rbe_shape *shape)
{
    return shape->is_shared && shape->steps > 0 ? 1 : shape->steps;
}

size_t bsw_rbe_coder_floats(const struct bsw_rbe_shape *shape)
{
    size_t to_code = bsw_rbe_coder_layer_floats(shape->dims, padded(shape->code_dims));
    size_t back = bsw_rbe_coder_layer_floats(shape->code_dims, padded(shape->dims));
    return to_code + num_pairs(shape) * (to_code + back);
}

static void transpose(const struct bsw_rbe_coder *coder, const float *parameters,
                      enum bsw_rbe_layer_kind kind, uint32_t step)
{
    struct bsw_rbe_layer from = bsw_rbe_layer_of(&coder->shape, parameters, kind, step);
    struct bsw_rbe_coder_layer to = bsw_rbe_coder_layer_of(coder, kind, step);
    float *weights = coder->weights + (to.weights - coder->weights);
    memset(weights, 0, bsw_rbe_coder_layer_floats(to.num_in, to.padded_out) * sizeof *weights);
    for (uint32_t i = 0; i < from.num_out; i++) {
        for (uint32_t j = 0; j < from.num_in; j++)
            weights[(size_t)j * to.padded_out + i] = from.weights[(size_t)i * from.num_in + j];
        weights[(size_t)to.num_in * to.padded_out + i] = from.bias[i];
    }
}

void bsw_rbe_coder_init(const struct bsw_rbe_shape *shape, const float *parameters,
                        const float *mean, float scale, float *memory, struct bsw_rbe_coder *out)
{
    *out = (struct bsw_rbe_coder){.shape = *shape,
                                  .mean = mean,
                                  .scale = scale,
                                  .padded_dims = padded(shape->dims),
                                  .padded_code_dims = padded(shape->code_dims),
                                  .weights = memory};
    transpose(out, parameters, BSW_RBE_BASE, 0);
    for (uint32_t step = 0; step < num_pairs(shape); step++) {
        transpose(out, parameters, BSW_RBE_RECONSTRUCTION, step);
        transpose(out, parameters, BSW_RBE_RESIDUAL, step);
    }
}

BSW_KERNEL_TABLE_GET(rbe_codes, BSW_KERNEL_AVX2(rbe_codes) BSW_KERNEL_AVX512(rbe_codes)
                                    BSW_KERNEL_NEON(rbe_codes))
