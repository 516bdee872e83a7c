// SPDX-License-Identifier: Apache-2.0
// entry_bounds on AVX2: an entry for 16 queries in two registers, two entries' bytes a store.
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "kernels/entry_bounds/entry_bounds.h"
#include "kernels/sixteen_sums.h"

#define INLINE static inline __attribute__((always_inline))

// Numbers of 16 queries: [0] has queries 0 to 3 and 8 to 11, [1] the others, so that packing brings
// their bytes into order.
struct sixteen {
    __m256 v[2];
};

INLINE struct sixteen load_sixteen(const float *at)
{
    struct sixteen out;
    for (int i = 0; i < 2; i++)
        out.v[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(at + 4 * i)),
                                        _mm_loadu_ps(at + 4 * i + 8), 1);
    return out;
}

// ---- bytes ----

struct hits {
    __m256i v[2];
};

struct part_rays {
    struct sixteen x, y, limit, inner, inverse;
};

// Numbers of an entry as 16 bits each; adds hits to `within`.
INLINE __m256i entry_numbers(enum bsw_entry_number number, const struct part_rays *rays,
                             const float *x, struct hits *within)
{
    const __m256 at_x = _mm256_broadcast_ss(x), at_y = _mm256_broadcast_ss(x + 256);
    __m256i numbers[2];
    for (int i = 0; i < 2; i++) {
        __m256 dx = _mm256_sub_ps(rays->x.v[i], at_x), dy = _mm256_sub_ps(rays->y.v[i], at_y),
               value = _mm256_fmadd_ps(dy, dy, _mm256_mul_ps(dx, dx));
        __m256i hit = _mm256_castps_si256(_mm256_cmp_ps(value, rays->limit.v[i], _CMP_LE_OQ));
        within->v[i] = _mm256_sub_epi32(within->v[i], hit);
        if (number == BSW_ENTRY_SUM) {
            __m256 least = _mm256_min_ps(value, rays->limit.v[i]);
            numbers[i] = _mm256_cvttps_epi32(_mm256_mul_ps(least, rays->inverse.v[i]));
        } else {
            numbers[i] = _mm256_sub_epi32(_mm256_setzero_si256(), hit);
        }
        if (number == BSW_ENTRY_RING)
            numbers[i] = _mm256_sub_epi32(numbers[i], _mm256_castps_si256(_mm256_cmp_ps(
                                                          value, rays->inner.v[i], _CMP_LE_OQ)));
    }
    return _mm256_packs_epi32(numbers[0], numbers[1]);
}

// Bytes of a part, [256][16].
INLINE void part_bytes(enum bsw_entry_number number, const struct bsw_entry_bound_rays *all,
                       const float *points, uint32_t p, uint8_t *out, struct hits *within)
{
    size_t at = (size_t)p * BSW_ENTRY_BOUND_QUERIES;
    const float *limit = all->limit + at;
    const struct part_rays rays = {load_sixteen(all->x + at), load_sixteen(all->y + at),
                                   load_sixteen(limit),
                                   load_sixteen(number == BSW_ENTRY_RING ? all->inner + at : limit),
                                   load_sixteen(number == BSW_ENTRY_SUM ? all->inverse : limit)};
    const float *x = points + (size_t)p * 512;
    for (size_t e = 0; e < 256; e += 2) {
        __m256i first = entry_numbers(number, &rays, x + e, within),
                second = entry_numbers(number, &rays, x + e + 1, within);
        __m256i bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(first, second), 0xd8);
        _mm256_store_si256((__m256i *)(void *)(out + e * BSW_ENTRY_BOUND_QUERIES), bytes);
    }
}

// ---- sums of bytes ----

INLINE uint32_t queries_pass(enum bsw_entry_number number, const uint16_t *at,
                             const uint16_t *limits)
{
    __m256i sums = _mm256_load_si256((const __m256i *)(const void *)at),
            ends = _mm256_loadu_si256((const __m256i *)(const void *)limits);
    __m256i most = _mm256_max_epu16(sums, ends),
            same = _mm256_cmpeq_epi16(most, number == BSW_ENTRY_SUM ? ends : sums);
    return (uint32_t)_mm_movemask_epi8(
        _mm_packs_epi16(_mm256_castsi256_si128(same), _mm256_extracti128_si256(same, 1)));
}

// Lanes of struct sixteen's order.
INLINE void add_within(const struct hits *hits, uint32_t *within)
{
    uint32_t lanes[2][8];
    for (int i = 0; i < 2; i++) _mm256_storeu_si256((__m256i *)(void *)lanes[i], hits->v[i]);
    for (size_t q = 0; q < BSW_ENTRY_BOUND_QUERIES; q++)
        within[q] += lanes[q / 4 % 2][q % 4 + q / 8 * 4];
}

_Static_assert(BSW_ENTRY_BOUND_QUERIES == BSW_SIXTEEN, "of a register");
_Static_assert(BSW_ENTRY_BOUND_PARTS == BSW_SIXTEEN_PARTS, "the room is for as many");

INLINE void pass(enum bsw_entry_number number, const struct bsw_entry_bound_rows *rows,
                 const struct bsw_entry_bound_rays *rays, void *room, uint32_t *masks,
                 uint32_t *within)
{
    uint16_t *sums = (uint16_t *)room;
    uint8_t *bytes = (uint8_t *)room + bsw_entry_bound_sums_bytes(rows->num_bundles);
    struct hits hits = {0};
    for (uint32_t p = 0; p < rows->parts; p += BSW_SIXTEEN_PARTS) {
        uint32_t left = rows->parts - p,
                 parts = left < BSW_SIXTEEN_PARTS ? left : BSW_SIXTEEN_PARTS;
        for (uint32_t i = 0; i < parts; i++)
            part_bytes(number, rays, rows->points, p + i, bytes + (size_t)i * 256 * BSW_SIXTEEN,
                       &hits);
        bsw_sixteen_add(bytes, rows->codes + p * BSW_BUNDLE_ROWS, rows->bundle_bytes,
                        rows->num_bundles, parts, p == 0, sums);
    }
    memset(masks, 0, BSW_SIXTEEN * rows->num_bundles * sizeof *masks);
    for (size_t i = 0; i < rows->num_bundles * BSW_BUNDLE_ROWS; i++)
        bsw_sixteen_mark(queries_pass(number, sums + i * BSW_SIXTEEN, rays->ends) & rays->wanted, i,
                         rows->masks, rows->num_bundles, masks);
    add_within(&hits, within);
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

#define ROWS 4 // of a register

// A part's numbers of four rows' codes.
INLINE __m128 four(const float *numbers, const uint8_t *const *codes, size_t at)
{
    __m128 a = _mm_load_ss(numbers + codes[0][at]), b = _mm_load_ss(numbers + codes[1][at]),
           c = _mm_load_ss(numbers + codes[2][at]), d = _mm_load_ss(numbers + codes[3][at]);
    return _mm_movelh_ps(_mm_unpacklo_ps(a, b), _mm_unpacklo_ps(c, d));
}

// A lane has a row: sums keep their order.
INLINE __m128 four_sums(const struct bsw_entry_bound_terms *terms, const uint8_t *const *codes)
{
    const __m128 infinity = _mm_set1_ps(INFINITY), zero = _mm_setzero_ps();
    const float *points = terms->points, *list = terms->list, *query = terms->query;
    __m128 sum = zero, any = zero;
    for (uint32_t p = 0; p < terms->parts; p++, points += 512, list += 256, query += 2) {
        size_t at = (size_t)p * BSW_BUNDLE_ROWS, ray = p * terms->stride;
        __m128 x = four(points, codes, at), y = four(points + 256, codes, at),
               limit = _mm_set1_ps(terms->limit[ray]);
        __m128 dx = _mm_sub_ps(_mm_set1_ps(terms->x[ray]), x),
               dy = _mm_sub_ps(_mm_set1_ps(terms->y[ray]), y),
               hit = _mm_cmple_ps(_mm_fmadd_ps(dy, dy, _mm_mul_ps(dx, dx)), limit);
        __m128 product = _mm_fmadd_ps(_mm_set1_ps(query[1]), y,
                                      _mm_fmadd_ps(_mm_set1_ps(query[0]), x, zero)),
               distance = _mm_add_ps(_mm_add_ps(four(list, codes, at), product),
                                     _mm_set1_ps(terms->bases[p]));
        __m128 miss = terms->is_miss_infinite ? infinity : limit;
        sum = _mm_add_ps(sum, _mm_blendv_ps(miss, _mm_max_ps(distance, zero), hit));
        any = _mm_or_ps(any, hit);
    }
    return _mm_blendv_ps(infinity, sum, any);
}

// Where the last four rows lack some the last takes their places.
static void row_sums(const struct bsw_entry_bound_terms *terms, const uint8_t *codes,
                     size_t bundle_bytes, const uint32_t *places, size_t num_places, float *sums)
{
    for (size_t i = 0; i < num_places; i += ROWS) {
        const uint8_t *at[ROWS];
        float found[ROWS];
        size_t num = num_places - i < ROWS ? num_places - i : ROWS;
        for (size_t r = 0; r < ROWS; r++) {
            uint32_t place = places[i + (r < num ? r : num - 1)];
            at[r] = codes + place / BSW_BUNDLE_ROWS * bundle_bytes + place % BSW_BUNDLE_ROWS;
        }
        _mm_storeu_ps(found, four_sums(terms, at));
        memcpy(sums + i, found, num * sizeof *sums);
    }
}

const struct bsw_entry_bounds_table bsw_entry_bounds_avx2 = {
    .level = "avx2", .pass = {pass_sum, pass_ring, pass_count}, .sums = row_sums};
