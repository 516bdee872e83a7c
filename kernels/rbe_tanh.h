// SPDX-License-Identifier: Apache-2.0
// tanh in float32 from + - * / and fma alone: the same bits on every machine, as libm's are not.
//
// |x| < 0.3125: x + x^3 * p(x^2), a fit to tanh. Elsewhere 1 - 2 / (exp(2|x|) + 1), exp by
// splitting off a power of two and a fit on [-ln 2 / 2, ln 2 / 2]. Within 2.5 units in the last
// place of the true value (tests/unit/test_rbe_tanh.c tries all floats' exponents); NaN stays NaN.
#ifndef BITSWEEP_KERNELS_RBE_TANH_H
#define BITSWEEP_KERNELS_RBE_TANH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float bsw_rbe_power_of_two(int32_t exponent) // -126 .. 127
{
    uint32_t bits = (uint32_t)(exponent + 127) << 23;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// exp(x) for 0 <= x <= 20.
static inline float bsw_rbe_exp(float x)
{
    // 1.5 * 2^23: added and taken away again it rounds to a whole number.
    const float rounder = 12582912.0f;
    float k = fmaf(x, 1.44269504f, rounder) - rounder;
    float r = fmaf(k, -0.693359375f, x); // ln 2 in two parts; the first product is exact
    r = fmaf(k, 2.12194440e-4f, r);
    float p = 1.98412698e-4f; // 1/7!
    p = fmaf(p, r, 1.38888889e-3f);
    p = fmaf(p, r, 8.33333333e-3f);
    p = fmaf(p, r, 4.16666667e-2f);
    p = fmaf(p, r, 1.66666667e-1f);
    p = fmaf(p, r, 0.5f);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    return p * bsw_rbe_power_of_two((int32_t)k);
}

static inline float bsw_rbe_tanh(float x)
{
    float size = fabsf(x), square = x * x;
    // Taylor's series of tanh(x)/x - 1 over x^2; its next term is below 2^-26 at 0.3125.
    float p = -8.8632355e-3f;
    p = fmaf(p, square, 2.1869489e-2f);
    p = fmaf(p, square, -5.3968254e-2f);
    p = fmaf(p, square, 1.3333333e-1f);
    p = fmaf(p, square, -3.3333333e-1f);
    float small = fmaf(x * square, p, x);
    float clipped = size < 10.0f ? size : 10.0f; // tanh rounds to 1 from 9.02 on; NaN goes to 10
    float large = 1.0f - 2.0f / (bsw_rbe_exp(2.0f * clipped) + 1.0f);
    large = x < 0.0f ? -large : large;
    float value = size < 0.3125f ? small : large;
    return x == x ? value : x;
}

#endif
