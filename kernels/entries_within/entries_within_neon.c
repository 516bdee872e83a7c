// SPDX-License-Identifier: Apache-2.0
// entries_within on Advanced SIMD: 4 entries at a time. What hits is moved to the front of its
// register by a byte shuffle that a table has for each of 16 masks, and stored whole.
#include <arm_neon.h>
#include <string.h>

#include "kernels/entries_within/entry_value.h"

#define INLINE static inline __attribute__((always_inline))
#define LANES  4

// places[mask]: the numbers of its bits, ascending, a byte each; 0 behind them.
static const uint32_t places[16] = {0x0, 0x0,   0x1,   0x100,   0x2,   0x200,   0x201,   0x20100,
                                    0x3, 0x300, 0x301, 0x30100, 0x302, 0x30200, 0x30201, 0x3020100};

// Stores what hits of entries first to first + 3; returns how many.
INLINE size_t keep(float32x4_t value, uint32x4_t is_hit, size_t first, uint8_t *entries,
                   float *values)
{
    const uint32x4_t bits = {1, 2, 4, 8};
    uint32_t mask = vaddvq_u32(vandq_u32(is_hit, bits));
    uint32_t order = places[mask], numbers = order + (uint32_t)first * 0x01010101u;
    // Bytes 4 p to 4 p + 3 of place p.
    uint8x8_t lanes = vreinterpret_u8_u32(vdup_n_u32(order));
    uint8x16_t each = vqtbl1q_u8(vcombine_u8(lanes, lanes),
                                 (uint8x16_t){0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3});
    each =
        vaddq_u8(vshlq_n_u8(each, 2), (uint8x16_t){0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3});
    vst1q_f32(values, vreinterpretq_f32_u8(vqtbl1q_u8(vreinterpretq_u8_f32(value), each)));
    memcpy(entries, &numbers, sizeof numbers);
    return (size_t)__builtin_popcount(mask);
}

static size_t neon_l2(const float *x, const float *y, size_t num, const struct bsw_entry_ray *ray,
                      uint8_t *entries, float *values)
{
    const float32x4_t ray_x = vdupq_n_f32(ray->x), ray_y = vdupq_n_f32(ray->y),
                      limit = vdupq_n_f32(ray->limit);
    size_t count = 0;
    for (size_t e = 0; e < num; e += LANES) {
        float32x4_t dx = vsubq_f32(ray_x, vld1q_f32(x + e)),
                    dy = vsubq_f32(ray_y, vld1q_f32(y + e)),
                    value = vfmaq_f32(vmulq_f32(dx, dx), dy, dy);
        count += keep(value, vcleq_f32(value, limit), e, entries + count, values + count);
    }
    return count;
}

static size_t neon_ip(const float *x, const float *y, size_t num, const struct bsw_entry_ray *ray,
                      uint8_t *entries, float *values)
{
    const float32x4_t ray_x = vdupq_n_f32(ray->x), ray_y = vdupq_n_f32(ray->y),
                      least = vdupq_n_f32(bsw_entry_least(ray)), zero = vdupq_n_f32(0.0f);
    size_t count = 0;
    for (size_t e = 0; e < num; e += LANES) {
        float32x4_t first = vfmaq_f32(zero, ray_x, vld1q_f32(x + e)),
                    value = vfmaq_f32(first, ray_y, vld1q_f32(y + e));
        count += keep(value, vcgeq_f32(value, least), e, entries + count, values + count);
    }
    return count;
}

const struct bsw_entries_within_table bsw_entries_within_neon = {
    .level = "neon", .within = {[BSW_ENTRY_L2] = neon_l2, [BSW_ENTRY_IP] = neon_ip}};
