// The 32 lanes are sixteen registers of 2 doubles; type and metric are constants of each copy of
// the loop. The end of a row is copied to a block of zeros: fma(0, 0, s) leaves s as it is, because
// no lane is ever -0 (refine_avx512.c has the reason).
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

INLINE size_t number_bytes(enum bsw_vector_type type)
{
    return type == BSW_VECTOR_FLOAT32 ? 4 : type == BSW_VECTOR_FLOAT16 ? 2 : 1;
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

static void neon_to_double(enum bsw_vector_type type, const void *numbers, size_t n, double *out)
{
    char rest[8] = {0};
    size_t i = 0;
    for (; i + 2 <= n; i += 2) vst1q_f64(out + i, load_group(type, numbers, i));
    if (i == n) return;
    memcpy(rest, (const char *)numbers + i * number_bytes(type), number_bytes(type));
    out[i] = vgetq_lane_f64(load_group(type, rest, 0), 0);
}

INLINE void add_group(enum bsw_metric metric, float64x2_t x, float64x2_t q, float64x2_t *sum,
                      float64x2_t *norm)
{
    if (metric == BSW_METRIC_L2) {
        float64x2_t difference = vsubq_f64(x, q);
        *sum = vfmaq_f64(*sum, difference, difference);
    } else {
        *sum = vfmaq_f64(*sum, x, q);
    }
    if (metric == BSW_METRIC_COSINE) *norm = vfmaq_f64(*norm, x, x);
}

// The numbers from i on, fewer than 32; none: nothing.
INLINE void add_rest(enum bsw_metric metric, enum bsw_vector_type type, const void *row,
                     const double *query, size_t i, size_t dims, float64x2_t sums[16],
                     float64x2_t norms[16])
{
    char row_rest[128] = {0};
    double query_rest[32] = {0};
    size_t bytes = number_bytes(type);
    if (i == dims) return;
    memcpy(row_rest, (const char *)row + i * bytes, (dims - i) * bytes);
    memcpy(query_rest, query + i, (dims - i) * sizeof *query);
    for (size_t g = 0; g < 16; g++)
        add_group(metric, load_group(type, row_rest, 2 * g), vld1q_f64(query_rest + 2 * g),
                  &sums[g], &norms[g]);
}

INLINE void add_squares(const double *numbers, float64x2_t s[16])
{
    for (size_t g = 0; g < 16; g++) {
        float64x2_t x = vld1q_f64(numbers + 2 * g);
        s[g] = vfmaq_f64(s[g], x, x);
    }
}

static double neon_squared_norm(const double *numbers, size_t dims)
{
    float64x2_t s[16];
    for (size_t g = 0; g < 16; g++) s[g] = vdupq_n_f64(0.0);
    size_t i = 0;
    for (; i + 32 <= dims; i += 32) add_squares(numbers + i, s);
    double rest[32] = {0};
    memcpy(rest, numbers + i, (dims - i) * sizeof *rest);
    add_squares(rest, s);
    return tree_sum(s);
}

#include "kernels/refine/refine_rows.h"

const struct bsw_refine_table bsw_refine_neon = {
    .level = "neon",
    .to_double = neon_to_double,
    .squared_norm = neon_squared_norm,
    .value = value,
};
