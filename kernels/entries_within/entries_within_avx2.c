// SPDX-License-Identifier: Apache-2.0
// entries_within on AVX2: 8 entries at a time. What hits is moved to the front of its register by a
// permutation that a table has for each of 256 masks, and stored whole; the next store begins where
// the hits end. No branch depends on what hits: with a quarter of the entries near, a register
// without any is rare.
#include <immintrin.h>
#include <string.h>

#include "kernels/entries_within/entry_value.h"

#define INLINE static inline __attribute__((always_inline))
#define LANES  8

// places[mask]: the numbers of its bits, ascending, a byte each; 0 behind them.
#define PLACE(mask, bit)                        \
    ((uint64_t)((mask) >> (bit)&1u ? (bit) : 0) \
     << (8 * __builtin_popcount((mask) & ((1u << (bit)) - 1))))
#define PLACES1(mask)                                                                         \
    PLACE(mask, 1u) | PLACE(mask, 2u) | PLACE(mask, 3u) | PLACE(mask, 4u) | PLACE(mask, 5u) | \
        PLACE(mask, 6u) | PLACE(mask, 7u)
#define PLACES4(mask)  PLACES1(mask), PLACES1(mask + 1u), PLACES1(mask + 2u), PLACES1(mask + 3u)
#define PLACES16(mask) PLACES4(mask), PLACES4(mask + 4u), PLACES4(mask + 8u), PLACES4(mask + 12u)
#define PLACES64(mask) \
    PLACES16(mask), PLACES16(mask + 16u), PLACES16(mask + 32u), PLACES16(mask + 48u)
static const uint64_t places[256] = {PLACES64(0u), PLACES64(64u), PLACES64(128u), PLACES64(192u)};

// Stores what hits of entries first to first + 7; returns how many.
INLINE size_t keep(__m256 value, __m256 is_hit, size_t first, uint8_t *entries, float *values)
{
    uint32_t mask = (uint32_t)_mm256_movemask_ps(is_hit);
    uint64_t order = places[mask], numbers = order + first * 0x0101010101010101u;
    __m256i lanes = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)order));
    _mm256_storeu_ps(values, _mm256_permutevar8x32_ps(value, lanes));
    memcpy(entries, &numbers, sizeof numbers);
    return (size_t)_mm_popcnt_u32(mask);
}

INLINE size_t all_l2(const float *x, const float *y, size_t num, const struct bsw_entry_ray *ray,
                     uint8_t *entries, float *values)
{
    const __m256 ray_x = _mm256_set1_ps(ray->x), ray_y = _mm256_set1_ps(ray->y),
                 limit = _mm256_set1_ps(ray->limit);
    size_t count = 0;
    for (size_t e = 0; e < num; e += LANES) {
        __m256 dx = _mm256_sub_ps(ray_x, _mm256_load_ps(x + e)),
               dy = _mm256_sub_ps(ray_y, _mm256_load_ps(y + e)),
               value = _mm256_fmadd_ps(dy, dy, _mm256_mul_ps(dx, dx));
        count += keep(value, _mm256_cmp_ps(value, limit, _CMP_LE_OQ), e, entries + count,
                      values + count);
    }
    return count;
}

INLINE size_t all_ip(const float *x, const float *y, size_t num, const struct bsw_entry_ray *ray,
                     uint8_t *entries, float *values)
{
    const __m256 ray_x = _mm256_set1_ps(ray->x), ray_y = _mm256_set1_ps(ray->y),
                 least = _mm256_set1_ps(bsw_entry_least(ray)), zero = _mm256_setzero_ps();
    size_t count = 0;
    for (size_t e = 0; e < num; e += LANES) {
        __m256 first = _mm256_fmadd_ps(ray_x, _mm256_load_ps(x + e), zero),
               value = _mm256_fmadd_ps(ray_y, _mm256_load_ps(y + e), first);
        count += keep(value, _mm256_cmp_ps(value, least, _CMP_GE_OQ), e, entries + count,
                      values + count);
    }
    return count;
}

static size_t avx2_l2(const float *x, const float *y, size_t num, const struct bsw_entry_ray *ray,
                      uint8_t *entries, float *values)
{
    return num == 256 ? all_l2(x, y, 256, ray, entries, values)
                      : all_l2(x, y, num, ray, entries, values);
}

static size_t avx2_ip(const float *x, const float *y, size_t num, const struct bsw_entry_ray *ray,
                      uint8_t *entries, float *values)
{
    return num == 256 ? all_ip(x, y, 256, ray, entries, values)
                      : all_ip(x, y, num, ray, entries, values);
}

const struct bsw_entries_within_table bsw_entries_within_avx2 = {
    .level = "avx2", .within = {[BSW_ENTRY_L2] = avx2_l2, [BSW_ENTRY_IP] = avx2_ip}};
