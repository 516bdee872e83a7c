// SPDX-License-Identifier: Apache-2.0
// The one order of floating-point sums: lane i mod 32 ascending, then a fixed tree. Sources of
// every level keep to it, so that all levels give the same bits.
#ifndef BITSWEEP_KERNELS_KERNEL_SUMS_H
#define BITSWEEP_KERNELS_KERNEL_SUMS_H

#include <math.h>
#include <stddef.h>

#define BSW_SUM_LANES 32

// s[j] += s[j + h] for h = 16, 8, 4, 2, 1; the result is s[0].
static inline double bsw_tree_sum_double(double s[BSW_SUM_LANES])
{
    for (int h = BSW_SUM_LANES / 2; h > 0; h /= 2) {
        for (int j = 0; j < h; j++) s[j] += s[j + h];
    }
    return s[0];
}

static inline float bsw_tree_sum_float(float s[BSW_SUM_LANES])
{
    for (int h = BSW_SUM_LANES / 2; h > 0; h /= 2) {
        for (int j = 0; j < h; j++) s[j] += s[j + h];
    }
    return s[0];
}

// Sum of a[i]*b[i]: lane i mod 32, from +0.0, s = fma(a, b, s).
static inline float bsw_lane_dot_float(const float *a, const float *b, size_t n)
{
    float s[BSW_SUM_LANES] = {0};
    for (size_t i = 0; i < n; i++) s[i % BSW_SUM_LANES] = fmaf(a[i], b[i], s[i % BSW_SUM_LANES]);
    return bsw_tree_sum_float(s);
}

#endif
