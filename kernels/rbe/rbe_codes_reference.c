// SPDX-License-Identifier: Apache-2.0
// The plain oracle: one output after another, as the equations have it.
#include "kernels/rbe/rbe_coder_layers.h"
#include "kernels/rbe_tanh.h"

static float output(const struct bsw_rbe_coder_layer *layer, const float *in, uint32_t i)
{
    float sum = layer->bias[i];
    for (uint32_t j = 0; j < layer->num_in; j++)
        sum = fmaf(layer->weights[(size_t)j * layer->padded_out + i], in[j], sum);
    return sum;
}

static float sign(float x)
{
    return x <= 0.0f ? -1.0f : 1.0f;
}

static void fill_input(const struct bsw_rbe_coder *coder, const float *row, float factor, float *f)
{
    for (uint32_t j = 0; j < coder->shape.dims; j++)
        f[j] = (row[j] * factor - coder->mean[j]) * coder->scale;
}

static void project(const struct bsw_rbe_coder *coder, const float *row, float factor,
                    float *scratch, float *out)
{
    struct bsw_rbe_coder_layer base = bsw_rbe_coder_layer_of(coder, BSW_RBE_BASE, 0);
    fill_input(coder, row, factor, scratch);
    for (uint32_t i = 0; i < base.padded_out; i++) out[i] = output(&base, scratch, i);
}

static void encode(const struct bsw_rbe_coder *coder, const float *row, float factor,
                   float *scratch, int16_t *components)
{
    const struct bsw_rbe_shape *shape = &coder->shape;
    float *f = scratch, *difference = f + shape->dims, *b = difference + shape->dims;
    fill_input(coder, row, factor, f);
    struct bsw_rbe_coder_layer base = bsw_rbe_coder_layer_of(coder, BSW_RBE_BASE, 0);
    for (uint32_t i = 0; i < shape->code_dims; i++) b[i] = sign(output(&base, f, i));
    for (uint32_t step = 0; step < shape->steps; step++) {
        struct bsw_rbe_coder_layer back =
            bsw_rbe_coder_layer_of(coder, BSW_RBE_RECONSTRUCTION, step);
        struct bsw_rbe_coder_layer residual = bsw_rbe_coder_layer_of(coder, BSW_RBE_RESIDUAL, step);
        for (uint32_t j = 0; j < shape->dims; j++)
            difference[j] = f[j] - bsw_rbe_tanh(output(&back, b, j));
        for (uint32_t i = 0; i < shape->code_dims; i++)
            b[i] +=
                bsw_rbe_power_of_two(-(int32_t)(step + 1)) * sign(output(&residual, difference, i));
    }
    for (uint32_t i = 0; i < shape->code_dims; i++)
        components[i] = (int16_t)(b[i] * bsw_rbe_power_of_two((int32_t)shape->steps));
}

const struct bsw_rbe_codes_table bsw_rbe_codes_reference = {
    .level = "reference", .encode = encode, .project = project};
