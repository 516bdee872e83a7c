// SPDX-License-Identifier: Apache-2.0
// entry_tables on Advanced SIMD: 4 entries at a time, hit or miss by a select.
#include <arm_neon.h>

#include "kernels/entries_within/entry_value.h"
#include "kernels/entry_tables/entry_tables.h"

#define INLINE static inline __attribute__((always_inline))
#define LANES  4

INLINE float limit_of(enum bsw_entry_value kind, const struct bsw_entry_part *part, float limit)
{
    struct bsw_entry_ray ray = part->ray;
    ray.limit = limit;
    return kind == BSW_ENTRY_L2 ? limit : bsw_entry_least(&ray);
}

INLINE float32x4_t value_of(enum bsw_entry_value kind, const struct bsw_entry_part *part, size_t e)
{
    float32x4_t x = vdupq_n_f32(part->ray.x), y = vdupq_n_f32(part->ray.y),
                at_x = vld1q_f32(part->x + e), at_y = vld1q_f32(part->y + e);
    if (kind == BSW_ENTRY_IP) return vfmaq_f32(vfmaq_f32(vdupq_n_f32(0.0f), x, at_x), y, at_y);
    float32x4_t dx = vsubq_f32(x, at_x), dy = vsubq_f32(y, at_y);
    return vfmaq_f32(vmulq_f32(dx, dx), dy, dy);
}

INLINE uint32x4_t within(enum bsw_entry_value kind, float32x4_t value, float most)
{
    return kind == BSW_ENTRY_L2 ? vcleq_f32(value, vdupq_n_f32(most))
                                : vcgeq_f32(value, vdupq_n_f32(most));
}

INLINE float32x4_t number_of(enum bsw_entry_value kind, enum bsw_entry_number number,
                             const struct bsw_entry_part *part, float inner, size_t e,
                             float32x4_t value)
{
    const float32x4_t one = vdupq_n_f32(1.0f), zero = vdupq_n_f32(0.0f);
    if (number == BSW_ENTRY_COUNT) return one;
    if (number == BSW_ENTRY_RING) return vbslq_f32(within(kind, value, inner), one, zero);
    float32x4_t query = vld1q_f32(part->query + e);
    if (kind == BSW_ENTRY_IP) return query;
    float32x4_t sum =
        vaddq_f32(vaddq_f32(vld1q_f32(part->list + e), query), vdupq_n_f32(part->base));
    return vbslq_f32(vcgtq_f32(sum, zero), sum, zero);
}

INLINE size_t make(enum bsw_entry_value kind, enum bsw_entry_number number,
                   const struct bsw_entry_part *part, size_t num, float *out, uint32_t *hits)
{
    const uint32x4_t bits = {1, 2, 4, 8};
    float miss = number == BSW_ENTRY_SUM    ? part->miss
                 : number == BSW_ENTRY_RING ? -1.0f
                                            : 0.0f,
          most = limit_of(kind, part, part->ray.limit), inner = limit_of(kind, part, part->inner);
    size_t count = 0, step = num < 32 ? num : 32;
    for (size_t first = 0; first < num; first += step) {
        uint32_t word = 0;
        for (size_t e = first; e < first + step; e += LANES) {
            float32x4_t value = value_of(kind, part, e),
                        found = number_of(kind, number, part, inner, e, value);
            uint32x4_t is_hit = within(kind, value, most);
            vst1q_f32(out + e, vbslq_f32(is_hit, found, vdupq_n_f32(miss)));
            word |= vaddvq_u32(vandq_u32(is_hit, bits)) << (e - first);
        }
        hits[first / 32] = word;
        count += (size_t)__builtin_popcount(word);
    }
    return count;
}

#define MAKE(name, kind, number)                                                                  \
    static size_t name(const struct bsw_entry_part *part, size_t num, float *out, uint32_t *hits) \
    {                                                                                             \
        return make(kind, number, part, num, out, hits);                                          \
    }
MAKE(sum_l2, BSW_ENTRY_L2, BSW_ENTRY_SUM)
MAKE(ring_l2, BSW_ENTRY_L2, BSW_ENTRY_RING)
MAKE(count_l2, BSW_ENTRY_L2, BSW_ENTRY_COUNT)
MAKE(sum_ip, BSW_ENTRY_IP, BSW_ENTRY_SUM)
MAKE(ring_ip, BSW_ENTRY_IP, BSW_ENTRY_RING)
MAKE(count_ip, BSW_ENTRY_IP, BSW_ENTRY_COUNT)

const struct bsw_entry_tables_table bsw_entry_tables_neon = {
    .level = "neon",
    .make = {[BSW_ENTRY_L2] = {sum_l2, ring_l2, count_l2},
             [BSW_ENTRY_IP] = {sum_ip, ring_ip, count_ip}}};
