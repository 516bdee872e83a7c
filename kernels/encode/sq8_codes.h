// SPDX-License-Identifier: Apache-2.0
// Rows of sq8 (shard/codecs/codec_sq8.c) on their way to planes: float32, sums in lanes and tree of
// kernel_sums.h. Nothing here can fail or allocate. Thread-safe.
#ifndef BITSWEEP_KERNELS_SQ8_CODES_H
#define BITSWEEP_KERNELS_SQ8_CODES_H

#include <stddef.h>

#include "common/base/c_linkage.h"

BSW_C_BEGIN

#define BSW_SQ8_MOST_FACTOR  32752.0f // a row's factor, so that twice that is a half
#define BSW_SQ8_LEAST_FACTOR 0x1p-14f

// Middle and half step of each dimension, [dims].
struct bsw_sq8_steps {
    const float *middles, *half_steps;
    size_t dims;
};

// y = (row * factor - middle) / (256 half steps), -1 to 1 within the ends, divided by the row's
// factor, a half by which no number is clipped; returns that. *mean_dot: <m, row * factor - m>.
float bsw_sq8_center(const struct bsw_sq8_steps *steps, const float *row, float factor, float *y,
                     float *mean_dot);

// |f*h*c|^2 as y is coded: c = 2 floor(128 y) + 1, clipped. y becomes f*h*c.
float bsw_sq8_squared_norm(const struct bsw_sq8_steps *steps, float factor, float *y);

BSW_C_END
#endif
