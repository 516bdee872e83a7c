// SPDX-License-Identifier: Apache-2.0
// entry_bounds on AVX-512: an entry for 16 queries in a register, four entries' bytes a store.
#include <immintrin.h>

#include "kernels/entry_bounds/entry_bounds.h"

#define INLINE static inline __attribute__((always_inline))

// ---- bytes ----

// Rays of 16 queries, a lane each.
struct part_rays {
    __m512 x, y, limit, inner, inverse;
};

struct hits {
    __m512i v;
};

// Numbers of an entry as 32 bits each; adds hits to `within`.
INLINE __m512i entry_numbers(enum bsw_entry_number number, const struct part_rays *rays,
                             const float *x, struct hits *within)
{
    const __m512i one = _mm512_set1_epi32(1);
    __m512 dx = _mm512_sub_ps(rays->x, _mm512_set1_ps(x[0])),
           dy = _mm512_sub_ps(rays->y, _mm512_set1_ps(x[256])),
           value = _mm512_fmadd_ps(dy, dy, _mm512_mul_ps(dx, dx));
    __mmask16 is_hit = _mm512_cmp_ps_mask(value, rays->limit, _CMP_LE_OQ);
    within->v = _mm512_mask_add_epi32(within->v, is_hit, within->v, one);
    if (number == BSW_ENTRY_SUM)
        return _mm512_cvttps_epi32(_mm512_mul_ps(_mm512_min_ps(value, rays->limit), rays->inverse));
    __m512i numbers = _mm512_maskz_mov_epi32(is_hit, one);
    if (number == BSW_ENTRY_COUNT) return numbers;
    __mmask16 is_inner = _mm512_cmp_ps_mask(value, rays->inner, _CMP_LE_OQ);
    return _mm512_mask_add_epi32(numbers, is_inner, numbers, one);
}

// Bytes of a part, [256][16].
INLINE void part_bytes(enum bsw_entry_number number, const struct bsw_entry_bound_rays *all,
                       const float *points, uint32_t p, uint8_t *out, struct hits *within)
{
    // Packing twice leaves four queries of four entries in each lane.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    size_t at = (size_t)p * BSW_ENTRY_BOUND_QUERIES;
    const float *limit = all->limit + at, *x = points + (size_t)p * 512;
    const struct part_rays rays = {
        _mm512_loadu_ps(all->x + at), _mm512_loadu_ps(all->y + at), _mm512_loadu_ps(limit),
        _mm512_loadu_ps(number == BSW_ENTRY_RING ? all->inner + at : limit),
        _mm512_loadu_ps(number == BSW_ENTRY_SUM ? all->inverse : limit)};
    for (size_t e = 0; e < 256; e += 4) {
        __m512i first = _mm512_packs_epi32(entry_numbers(number, &rays, x + e, within),
                                           entry_numbers(number, &rays, x + e + 1, within)),
                second = _mm512_packs_epi32(entry_numbers(number, &rays, x + e + 2, within),
                                            entry_numbers(number, &rays, x + e + 3, within));
        _mm512_storeu_si512(out + e * BSW_ENTRY_BOUND_QUERIES,
                            _mm512_permutexvar_epi32(order, _mm512_packus_epi16(first, second)));
    }
}

// ---- sums of bytes ----

INLINE uint32_t queries_pass(enum bsw_entry_number number, const uint16_t *at,
                             const uint16_t *limits)
{
    __m256i sum = _mm256_load_si256((const __m256i *)(const void *)at),
            ends = _mm256_loadu_si256((const __m256i *)(const void *)limits);
    return number == BSW_ENTRY_SUM ? _mm256_cmple_epu16_mask(sum, ends)
                                   : _mm256_cmple_epu16_mask(ends, sum);
}

INLINE void add_within(const struct hits *hits, uint32_t *within)
{
    _mm512_storeu_si512(within, _mm512_add_epi32(_mm512_loadu_si512(within), hits->v));
}

#define QUERIES_PASS
#include "kernels/entry_bounds/entry_bounds_pass.h"

// ---- rows that passed ----

// Few rows, bound by loads.
static void row_sums(const struct bsw_entry_bound_terms *terms, const uint8_t *codes,
                     size_t bundle_bytes, const uint32_t *places, size_t num_places, float *sums)
{
    bsw_entry_bounds_avx2.sums(terms, codes, bundle_bytes, places, num_places, sums);
}

const struct bsw_entry_bounds_table bsw_entry_bounds_avx512 = {
    .level = "avx512", .pass = {pass_sum, pass_ring, pass_count}, .sums = row_sums};
