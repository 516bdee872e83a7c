// SPDX-License-Identifier: Apache-2.0
// Multiply-adds of bytes are dot products of 4 in each of 4 lanes.
#define VECTOR_BYTES 16
#include "kernels/limits/limits_loops.h"

#include <arm_neon.h>

#define START_INT(i)         vdupq_n_s32(0)
#define START_WORD(i)        vdupq_n_u32(0)
#define START_FLOAT(i)       vdupq_n_f32(i)
#define START_DOUBLE(i)      vdupq_n_f64(i)
#define STEP_INT(s, a, b)    vdotq_s32(s, vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b))
#define STEP_FLOAT(s, a, b)  vfmaq_f32(b, s, a)
#define STEP_DOUBLE(s, a, b) vfmaq_f64(b, s, a)

static inline uint32x4_t step_popcount(uint32x4_t s, uint32x4_t a, uint32x4_t b)
{
    (void)b;
    return vpadalq_u16(s, vpaddlq_u8(vcntq_u8(vreinterpretq_u8_u32(a))));
}

LIMITS_PEAK(int8, int32x4_t, START_INT, STEP_INT, vreinterpretq_s32_s8(vdupq_n_s8(LIMITS_U)),
            vreinterpretq_s32_s8(vdupq_n_s8(LIMITS_Q)), uint32_t,
            (uint32_t)(steps * 4 * LIMITS_U * LIMITS_Q), 16)
LIMITS_PEAK(float32, float32x4_t, START_FLOAT, STEP_FLOAT, vdupq_n_f32(0.5f), vdupq_n_f32(0.5f),
            float, 1.0f, 4)
LIMITS_PEAK(float64, float64x2_t, START_DOUBLE, STEP_DOUBLE, vdupq_n_f64(0.5), vdupq_n_f64(0.5),
            double, 1.0, 2)
LIMITS_PEAK(popcount, uint32x4_t, START_WORD, step_popcount, vdupq_n_u32(LIMITS_WORD),
            vdupq_n_u32(0), uint32_t, (uint32_t)(steps *LIMITS_BITS), 4)

LIMITS_TABLE(bsw_limits_neon, "neon")
