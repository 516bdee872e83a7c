// SPDX-License-Identifier: Apache-2.0
// entry_bounds on AVX-512: an entry for 16 queries in a register, four entries' bytes a store.
#include <immintrin.h>
#include <string.h>

#include "kernels/entry_bounds/entry_bounds.h"

#define INLINE static inline __attribute__((always_inline))

// ---- bytes ----

// Of 16 queries, a lane each.
struct part_rays {
    __m512 x, y, limit, inner, inverse;
};

// Numbers of an entry as 32 bits each; adds hits to `within`.
INLINE __m512i entry_numbers(enum bsw_entry_number number, const struct part_rays *rays,
                             const float *x, __m512i *within)
{
    const __m512i one = _mm512_set1_epi32(1);
    __m512 dx = _mm512_sub_ps(rays->x, _mm512_set1_ps(x[0])),
           dy = _mm512_sub_ps(rays->y, _mm512_set1_ps(x[256])),
           value = _mm512_fmadd_ps(dy, dy, _mm512_mul_ps(dx, dx));
    __mmask16 is_hit = _mm512_cmp_ps_mask(value, rays->limit, _CMP_LE_OQ);
    *within = _mm512_mask_add_epi32(*within, is_hit, *within, one);
    if (number == BSW_ENTRY_SUM)
        return _mm512_cvttps_epi32(_mm512_mul_ps(_mm512_min_ps(value, rays->limit), rays->inverse));
    __m512i numbers = _mm512_maskz_mov_epi32(is_hit, one);
    if (number == BSW_ENTRY_COUNT) return numbers;
    __mmask16 is_inner = _mm512_cmp_ps_mask(value, rays->inner, _CMP_LE_OQ);
    return _mm512_mask_add_epi32(numbers, is_inner, numbers, one);
}

// Bytes of a part, [256][16].
INLINE void part_bytes(enum bsw_entry_number number, const struct bsw_entry_bound_rays *all,
                       const float *points, uint32_t p, uint8_t *out, __m512i *within)
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

// The way of AVX2: a row's code reads 16 queries at once.
INLINE void add_parts(const uint8_t *bytes, const uint8_t *codes, uint32_t parts, int is_first,
                      __m256i *sums)
{
    for (size_t i = 0; i < BSW_BUNDLE_ROWS; i++) {
        __m256i sum = is_first ? _mm256_setzero_si256() : _mm256_load_si256(sums + i);
        for (uint32_t p = 0; p < parts; p++) {
            const uint8_t *at = bytes + ((size_t)p * 256 + codes[p * BSW_BUNDLE_ROWS + i]) *
                                            BSW_ENTRY_BOUND_QUERIES;
            sum = _mm256_add_epi16(
                sum, _mm256_cvtepu8_epi16(_mm_load_si128((const __m128i *)(const void *)at)));
        }
        _mm256_store_si256(sums + i, sum);
    }
}

// Bits of rows from bits of queries: few pass.
INLINE void find_passing(enum bsw_entry_number number, const struct bsw_entry_bound_rows *rows,
                         const struct bsw_entry_bound_rays *rays, const __m256i *sums,
                         uint32_t *masks)
{
    const __m256i ends = _mm256_loadu_si256((const __m256i *)(const void *)rays->ends);
    memset(masks, 0, BSW_ENTRY_BOUND_QUERIES * rows->num_bundles * sizeof *masks);
    for (size_t i = 0; i < rows->num_bundles * BSW_BUNDLE_ROWS; i++) {
        size_t bundle = i / BSW_BUNDLE_ROWS;
        __m256i sum = _mm256_load_si256(sums + i);
        uint32_t found = number == BSW_ENTRY_SUM ? _mm256_cmple_epu16_mask(sum, ends)
                                                 : _mm256_cmple_epu16_mask(ends, sum),
                 bit = 1u << i % BSW_BUNDLE_ROWS & rows->masks[bundle];
        for (found &= rays->wanted; found; found &= found - 1)
            masks[(size_t)__builtin_ctz(found) * rows->num_bundles + bundle] |= bit;
    }
}

INLINE void pass(enum bsw_entry_number number, const struct bsw_entry_bound_rows *rows,
                 const struct bsw_entry_bound_rays *rays, void *room, uint32_t *masks,
                 uint32_t *within)
{
    __m256i *sums = room;
    __m512i counts = _mm512_loadu_si512(within);
    uint8_t *bytes = (uint8_t *)room + bsw_entry_bound_sums_bytes(rows->num_bundles);
    for (uint32_t p = 0; p < rows->parts; p += BSW_ENTRY_BOUND_PARTS) {
        uint32_t left = rows->parts - p,
                 parts = left < BSW_ENTRY_BOUND_PARTS ? left : BSW_ENTRY_BOUND_PARTS;
        for (uint32_t i = 0; i < parts; i++)
            part_bytes(number, rays, rows->points, p + i,
                       bytes + (size_t)i * 256 * BSW_ENTRY_BOUND_QUERIES, &counts);
        for (size_t b = 0; b < rows->num_bundles; b++) {
            const uint8_t *codes = rows->codes + b * rows->bundle_bytes + p * BSW_BUNDLE_ROWS;
            if (parts == BSW_ENTRY_BOUND_PARTS)
                add_parts(bytes, codes, BSW_ENTRY_BOUND_PARTS, p == 0, sums + b * BSW_BUNDLE_ROWS);
            else
                add_parts(bytes, codes, parts, p == 0, sums + b * BSW_BUNDLE_ROWS);
        }
    }
    find_passing(number, rows, rays, sums, masks);
    _mm512_storeu_si512(within, counts);
}

#define PASS(name, number)                                                                 \
    static void name(const struct bsw_entry_bound_rows *rows,                              \
                     const struct bsw_entry_bound_rays *rays, void *room, uint32_t *masks, \
                     uint32_t *within)                                                     \
    {                                                                                      \
        pass(number, rows, rays, room, masks, within);                                     \
    }
PASS(pass_sum, BSW_ENTRY_SUM)
PASS(pass_ring, BSW_ENTRY_RING)
PASS(pass_count, BSW_ENTRY_COUNT)

// ---- rows that passed ----

// Few rows, bound by loads.
static void row_sums(const struct bsw_entry_bound_terms *terms, const uint8_t *codes,
                     size_t bundle_bytes, const uint32_t *places, size_t num_places, float *sums)
{
    bsw_entry_bounds_avx2.sums(terms, codes, bundle_bytes, places, num_places, sums);
}

const struct bsw_entry_bounds_table bsw_entry_bounds_avx512 = {
    .level = "avx512", .pass = {pass_sum, pass_ring, pass_count}, .sums = row_sums};
