// SPDX-License-Identifier: Apache-2.0
// The 32 lanes are sixteen registers of 2 doubles; type and metric are constants of each copy of
// the loop.
#include <arm_neon.h>
#include <string.h>

#include "kernels/refine/refine.h"

#define INLINE static inline __attribute__((always_inline))

#define LANES  2
typedef float64x2_t lanes;

// Numbers i and i + 1 as float64.
INLINE float64x2_t load_group(enum bsw_vector_type type, const void *numbers, size_t i)
{
    const char *bytes = numbers;
    const uint8_t *unsigned_bytes = numbers;
    const int8_t *signed_bytes = numbers;
    float32x2_t two = vdup_n_f32(0.0f);
    uint32_t halves;
    switch (type) {
    case BSW_VECTOR_FLOAT32:
        memcpy(&two, bytes + 4 * i, sizeof two);
        return vcvt_f64_f32(two);
    case BSW_VECTOR_FLOAT16:
        memcpy(&halves, bytes + 2 * i, sizeof halves);
        return vcvt_f64_f32(vget_low_f32(vcvt_f32_f16(vreinterpret_f16_u32(vdup_n_u32(halves)))));
    case BSW_VECTOR_UINT8:
        return (float64x2_t){unsigned_bytes[i], unsigned_bytes[i + 1]};
    case BSW_VECTOR_INT8:
        return (float64x2_t){signed_bytes[i], signed_bytes[i + 1]};
    default:
        return vdupq_n_f64(0.0);
    }
}

// s[j] += s[j + h] for h = 16, 8, 4, 2, 1.
INLINE double tree_sum(const float64x2_t lanes_of[16])
{
    float64x2_t s[16];
    memcpy(s, lanes_of, sizeof s);
    for (int h = 8; h > 0; h /= 2) {
        for (int g = 0; g < h; g++) s[g] = vaddq_f64(s[g], s[g + h]);
    }
    return vgetq_lane_f64(s[0], 0) + vgetq_lane_f64(s[0], 1);
}

INLINE float64x2_t multiply_add(float64x2_t a, float64x2_t b, float64x2_t sum)
{
    return vfmaq_f64(sum, a, b);
}

#include "kernels/refine/refine_rows.h"

const struct bsw_refine_table bsw_refine_neon = {
    .level = "neon",
    .to_double = to_double,
    .squared_norm = squared_norm,
    .value = value,
};
