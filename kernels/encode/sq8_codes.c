// SPDX-License-Identifier: Apache-2.0
#include "kernels/encode/sq8_codes.h"

#include <math.h>

#include "common/codes/half.h"
#include "kernels/kernel_sums.h"

float bsw_sq8_center(const struct bsw_sq8_steps *steps, const float *row, float factor, float *y,
                     float *mean_dot)
{
    size_t dims = steps->dims;
    float most = BSW_SQ8_LEAST_FACTOR;
    for (size_t i = 0; i < dims; i++) y[i] = row[i] * factor - steps->middles[i];
    *mean_dot = bsw_lane_dot_float(steps->middles, y, dims);
    for (size_t i = 0; i < dims; i++) {
        y[i] /= steps->half_steps[i] * 0x1p8f;
        most = fabsf(y[i]) > most ? fabsf(y[i]) : most;
    }
    most = most < BSW_SQ8_MOST_FACTOR ? bsw_half_to_float(bsw_half_up((double)most))
                                      : BSW_SQ8_MOST_FACTOR;
    for (size_t i = 0; i < dims; i++) y[i] /= most;
    return most;
}

float bsw_sq8_squared_norm(const struct bsw_sq8_steps *steps, float factor, float *y)
{
    for (size_t i = 0; i < steps->dims; i++) {
        float f = floorf(y[i] * 128.0f);
        f = f < -128.0f ? -128.0f : f > 127.0f ? 127.0f : f;
        y[i] = (2.0f * f + 1.0f) * steps->half_steps[i] * factor;
    }
    return bsw_lane_dot_float(y, y, steps->dims);
}
