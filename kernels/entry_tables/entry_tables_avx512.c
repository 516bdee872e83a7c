// SPDX-License-Identifier: Apache-2.0
// entry_tables on AVX-512: 16 entries at a time, whose hits are a mask.
#include <immintrin.h>

#include "kernels/entries_within/entry_value.h"
#include "kernels/entry_tables/entry_tables.h"

#define INLINE static inline __attribute__((always_inline))
#define LANES  16

// What a part has in all lanes.
struct lanes {
    __m512 x, y, most, inner, miss, base; // most, inner: limits; for IP what a product must reach
};

INLINE float limit_of(enum bsw_entry_value kind, const struct bsw_entry_part *part, float limit)
{
    struct bsw_entry_ray ray = part->ray;
    ray.limit = limit;
    return kind == BSW_ENTRY_L2 ? limit : bsw_entry_least(&ray);
}

INLINE __m512 value_of(enum bsw_entry_value kind, const struct lanes *all, const float *x,
                       const float *y)
{
    __m512 at_x = _mm512_loadu_ps(x), at_y = _mm512_loadu_ps(y);
    if (kind == BSW_ENTRY_IP)
        return _mm512_fmadd_ps(all->y, at_y, _mm512_fmadd_ps(all->x, at_x, _mm512_setzero_ps()));
    __m512 dx = _mm512_sub_ps(all->x, at_x), dy = _mm512_sub_ps(all->y, at_y);
    return _mm512_fmadd_ps(dy, dy, _mm512_mul_ps(dx, dx));
}

INLINE __mmask16 within(enum bsw_entry_value kind, __m512 value, __m512 most)
{
    return kind == BSW_ENTRY_L2 ? _mm512_cmp_ps_mask(value, most, _CMP_LE_OQ)
                                : _mm512_cmp_ps_mask(value, most, _CMP_GE_OQ);
}

// The number of an entry that is hit.
INLINE __m512 number_of(enum bsw_entry_value kind, enum bsw_entry_number number,
                        const struct bsw_entry_part *part, const struct lanes *all, size_t e,
                        __m512 value)
{
    const __m512 one = _mm512_set1_ps(1.0f);
    if (number == BSW_ENTRY_COUNT) return one;
    if (number == BSW_ENTRY_RING) return _mm512_maskz_mov_ps(within(kind, value, all->inner), one);
    __m512 query = _mm512_loadu_ps(part->query + e);
    if (kind == BSW_ENTRY_IP) return query;
    __m512 sum = _mm512_add_ps(_mm512_add_ps(_mm512_loadu_ps(part->list + e), query), all->base);
    return _mm512_max_ps(sum, _mm512_setzero_ps()); // the second where the first is not above it
}

INLINE size_t make(enum bsw_entry_value kind, enum bsw_entry_number number,
                   const struct bsw_entry_part *part, size_t num, float *out, uint32_t *hits)
{
    float miss = number == BSW_ENTRY_SUM ? part->miss : number == BSW_ENTRY_RING ? -1.0f : 0.0f;
    const struct lanes all = {_mm512_set1_ps(part->ray.x),
                              _mm512_set1_ps(part->ray.y),
                              _mm512_set1_ps(limit_of(kind, part, part->ray.limit)),
                              _mm512_set1_ps(limit_of(kind, part, part->inner)),
                              _mm512_set1_ps(miss),
                              _mm512_set1_ps(part->base)};
    size_t count = 0, step = num < 32 ? num : 32;
    for (size_t first = 0; first < num; first += step) {
        uint32_t word = 0;
        for (size_t e = first; e < first + step; e += LANES) {
            __m512 value = value_of(kind, &all, part->x + e, part->y + e);
            __mmask16 is_hit = within(kind, value, all.most);
            __m512 found = number_of(kind, number, part, &all, e, value);
            _mm512_storeu_ps(out + e, _mm512_mask_mov_ps(all.miss, is_hit, found));
            word |= (uint32_t)is_hit << (e - first);
        }
        hits[first / 32] = word;
        count += (size_t)_mm_popcnt_u32(word);
    }
    return count;
}

#define MAKE(name, kind, number)                                                                  \
    static size_t name(const struct bsw_entry_part *part, size_t num, float *out, uint32_t *hits) \
    {                                                                                             \
        return num == 256 ? make(kind, number, part, 256, out, hits)                              \
                          : make(kind, number, part, 16, out, hits);                              \
    }
MAKE(sum_l2, BSW_ENTRY_L2, BSW_ENTRY_SUM)
MAKE(ring_l2, BSW_ENTRY_L2, BSW_ENTRY_RING)
MAKE(count_l2, BSW_ENTRY_L2, BSW_ENTRY_COUNT)
MAKE(sum_ip, BSW_ENTRY_IP, BSW_ENTRY_SUM)
MAKE(ring_ip, BSW_ENTRY_IP, BSW_ENTRY_RING)
MAKE(count_ip, BSW_ENTRY_IP, BSW_ENTRY_COUNT)

const struct bsw_entry_tables_table bsw_entry_tables_avx512 = {
    .level = "avx512",
    .make = {[BSW_ENTRY_L2] = {sum_l2, ring_l2, count_l2},
             [BSW_ENTRY_IP] = {sum_ip, ring_ip, count_ip}}};
