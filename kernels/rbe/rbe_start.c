// SPDX-License-Identifier: Apache-2.0
#include "kernels/rbe/rbe_start.h"

#include <math.h>
#include <string.h>

#include "common/base/arithmetic.h"

// Nearly Gaussian: the sum of 12 uniform numbers, so that directions are even.
static float random_number(uint64_t seed, uint64_t index)
{
    int64_t sum = 0;
    for (uint64_t i = 0; i < 6; i++) {
        uint64_t bits = bsw_hash2(seed, 6 * index + i);
        sum += (int64_t)(bits >> 32) + (int64_t)(bits & 0xffffffffu);
    }
    return (float)(sum - 6 * 0xffffffffll) * 0x1p-32f;
}

static double dot(const float *a, const float *b, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

// Gram and Schmidt, twice, against the rows before of the same set. A random row lies among them
// with probability 0; a norm of 0 would give zeros, not NaN.
static void orthonormalize(float *rows, uint32_t row, uint32_t dims)
{
    float *out = rows + (size_t)row * dims;
    uint32_t first = row / dims * dims;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t r = first; r < row; r++) {
            const float *other = rows + (size_t)r * dims;
            float along = (float)dot(out, other, dims);
            for (uint32_t i = 0; i < dims; i++) out[i] -= along * other[i];
        }
        double norm = sqrt(dot(out, out, dims));
        float scale = norm > 0 ? (float)(1 / norm) : 0;
        for (uint32_t i = 0; i < dims; i++) out[i] *= scale;
    }
}

void bsw_rbe_initialize_quantizer(const struct bsw_rbe_shape *shape, uint64_t seed,
                                  double half_step, float *parameters)
{
    uint32_t m = shape->dims, n = shape->code_dims;
    size_t weights = (size_t)n * m;
    // Overlapping rows add up on the way back.
    double back = ldexp(half_step, (int)shape->steps) * (n > m ? (double)m / n : 1);
    memset(parameters, 0, bsw_rbe_num_parameters(shape) * sizeof *parameters);
    for (uint32_t row = 0; row < n; row++) {
        for (uint32_t i = 0; i < m; i++)
            parameters[(size_t)row * m + i] = random_number(seed, (uint64_t)row * m + i);
        orthonormalize(parameters, row, m);
    }
    for (uint32_t step = 0; step < shape->steps; step++) {
        float *to = parameters + bsw_rbe_layer_offset(shape, BSW_RBE_RECONSTRUCTION, step);
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t j = 0; j < m; j++)
                to[(size_t)j * n + i] = (float)(back * (double)parameters[(size_t)i * m + j]);
        }
        memcpy(parameters + bsw_rbe_layer_offset(shape, BSW_RBE_RESIDUAL, step), parameters,
               weights * sizeof *parameters);
    }
}
