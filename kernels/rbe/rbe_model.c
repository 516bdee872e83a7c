// SPDX-License-Identifier: Apache-2.0
#include "kernels/rbe/rbe_model.h"

#include <math.h>
#include <string.h>

#include "common/base/arithmetic.h"

static size_t layer_size(uint32_t num_out, uint32_t num_in)
{
    return (size_t)num_out * num_in + num_out;
}

static uint32_t num_pairs(const struct bsw_rbe_shape *shape)
{
    return shape->is_shared && shape->steps > 0 ? 1 : shape->steps;
}

size_t bsw_rbe_num_parameters(const struct bsw_rbe_shape *shape)
{
    uint32_t m = shape->dims, n = shape->code_dims;
    return layer_size(n, m) + num_pairs(shape) * (layer_size(m, n) + layer_size(n, m));
}

size_t bsw_rbe_layer_offset(const struct bsw_rbe_shape *shape, enum bsw_rbe_layer_kind kind,
                            uint32_t step)
{
    uint32_t m = shape->dims, n = shape->code_dims;
    if (kind == BSW_RBE_BASE) return 0;
    if (shape->is_shared) step = 0;
    size_t offset = layer_size(n, m) + step * (layer_size(m, n) + layer_size(n, m));
    return kind == BSW_RBE_RECONSTRUCTION ? offset : offset + layer_size(m, n);
}

struct bsw_rbe_layer bsw_rbe_layer_of(const struct bsw_rbe_shape *shape, const float *parameters,
                                      enum bsw_rbe_layer_kind kind, uint32_t step)
{
    int is_reconstruction = kind == BSW_RBE_RECONSTRUCTION;
    struct bsw_rbe_layer layer = {.weights = parameters + bsw_rbe_layer_offset(shape, kind, step),
                                  .num_out = is_reconstruction ? shape->dims : shape->code_dims,
                                  .num_in = is_reconstruction ? shape->code_dims : shape->dims};
    layer.bias = layer.weights + (size_t)layer.num_out * layer.num_in;
    return layer;
}

float bsw_rbe_residual_weight(const struct bsw_rbe_shape *shape, uint32_t step)
{
    return shape->has_residual_weights ? ldexpf(1.0f, -(int)(step + 1)) : 1.0f;
}

static void initialize_layer(uint32_t num_out, uint32_t num_in, uint64_t seed, float *out)
{
    size_t count = (size_t)num_out * num_in;
    double range = sqrt(6.0 / ((double)num_in + num_out));
    for (size_t i = 0; i < count; i++) {
        // 53 bits to [-1, 1).
        double unit = (double)(bsw_hash2(seed, i) >> 11) * 0x1p-52 - 1.0;
        out[i] = (float)(range * unit);
    }
    memset(out + count, 0, num_out * sizeof *out);
}

void bsw_rbe_initialize(const struct bsw_rbe_shape *shape, uint64_t seed, float *parameters)
{
    uint32_t m = shape->dims, n = shape->code_dims;
    initialize_layer(n, m, bsw_hash2(seed, 0), parameters);
    for (uint32_t pair = 0; pair < num_pairs(shape); pair++) {
        initialize_layer(m, n, bsw_hash2(seed, 2 * pair + 1),
                         parameters + bsw_rbe_layer_offset(shape, BSW_RBE_RECONSTRUCTION, pair));
        initialize_layer(n, m, bsw_hash2(seed, 2 * pair + 2),
                         parameters + bsw_rbe_layer_offset(shape, BSW_RBE_RESIDUAL, pair));
    }
}
