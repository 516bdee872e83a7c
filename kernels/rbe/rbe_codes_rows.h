// SPDX-License-Identifier: Apache-2.0
// One row through the model, written so that compilers vectorise over outputs; compiled once for
// each level above the reference.
#ifndef BITSWEEP_KERNELS_RBE_CODES_ROWS_H
#define BITSWEEP_KERNELS_RBE_CODES_ROWS_H

#include "kernels/rbe/rbe_coder_layers.h"
#include "kernels/rbe/rbe_codes.h"
#include "kernels/rbe_tanh.h"

#define BSW_RBE_OUTPUTS 16 // of a block: one AVX-512 register, two of AVX2

// out[i] = bias[i] + sum of weights[j][i] * in[j]; num_out a multiple of 16.
static inline void bsw_rbe_multiply(const struct bsw_rbe_coder_layer *layer, const float *in,
                                    float *out)
{
    for (uint32_t i = 0; i < layer->padded_out; i += BSW_RBE_OUTPUTS) {
        const float *weights = layer->weights + i;
        float sums[BSW_RBE_OUTPUTS];
        for (int k = 0; k < BSW_RBE_OUTPUTS; k++) sums[k] = layer->bias[i + (uint32_t)k];
        for (uint32_t j = 0; j < layer->num_in; j++, weights += layer->padded_out) {
            for (int k = 0; k < BSW_RBE_OUTPUTS; k++) sums[k] = fmaf(weights[k], in[j], sums[k]);
        }
        for (int k = 0; k < BSW_RBE_OUTPUTS; k++) out[i + (uint32_t)k] = sums[k];
    }
}

static inline void bsw_rbe_project_row(const struct bsw_rbe_coder *coder, const float *row,
                                       float factor, float *f, float *out)
{
    struct bsw_rbe_coder_layer layer = bsw_rbe_coder_layer_of(coder, BSW_RBE_BASE, 0);
    for (uint32_t j = 0; j < coder->shape.dims; j++)
        f[j] = (row[j] * factor - coder->mean[j]) * coder->scale;
    bsw_rbe_multiply(&layer, f, out);
}

static inline void bsw_rbe_encode_row(const struct bsw_rbe_coder *coder, const float *row,
                                      float factor, float *scratch, int16_t *components)
{
    uint32_t m = coder->padded_dims, n = coder->padded_code_dims;
    float *f = scratch, *difference = f + m, *reconstructed = difference + m;
    float *b = reconstructed + m, *product = b + n, *sums = product + n;
    struct bsw_rbe_coder_layer layer;
    bsw_rbe_project_row(coder, row, factor, f, product);
    for (uint32_t i = 0; i < n; i++) b[i] = product[i] <= 0.0f ? -1.0f : 1.0f;
    for (uint32_t step = 0; step < coder->shape.steps; step++) {
        float weight = bsw_rbe_power_of_two(-(int32_t)(step + 1));
        layer = bsw_rbe_coder_layer_of(coder, BSW_RBE_RECONSTRUCTION, step);
        bsw_rbe_multiply(&layer, b, reconstructed);
        for (uint32_t j = 0; j < m; j++) reconstructed[j] = bsw_rbe_tanh(reconstructed[j]);
        for (uint32_t j = 0; j < coder->shape.dims; j++) difference[j] = f[j] - reconstructed[j];
        layer = bsw_rbe_coder_layer_of(coder, BSW_RBE_RESIDUAL, step);
        bsw_rbe_multiply(&layer, difference, sums);
        for (uint32_t i = 0; i < n; i++) b[i] += sums[i] <= 0.0f ? -weight : weight;
    }
    float unit = bsw_rbe_power_of_two((int32_t)coder->shape.steps);
    for (uint32_t i = 0; i < coder->shape.code_dims; i++) components[i] = (int16_t)(b[i] * unit);
}

#endif
