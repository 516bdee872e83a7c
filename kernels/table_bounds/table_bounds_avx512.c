// SPDX-License-Identifier: Apache-2.0
// table_bounds on AVX-512: 4-bit codes of four parts a time, which vpdpbusd adds; 8-bit codes of up
// to FEW_QUERIES queries by permutations of their bytes, 64 rows at a time.
#include "kernels/table_bounds/table_bounds_lanes.h"

// ---- bounds ----

// Rows of 16 whose bound is within the query's.
INLINE uint32_t sixteen_pass(__m512i sums, const struct bsw_bound_query *query, const float *terms)
{
    __m512 bound = _mm512_fmadd_ps(_mm512_set1_ps(query->unit), _mm512_cvtepi32_ps(sums),
                                   _mm512_loadu_ps(terms));
    return _mm512_cmp_ps_mask(bound, _mm512_set1_ps(query->most), _CMP_LE_OQ);
}

// ---- 4-bit codes ----

#define MOST_TOGETHER 8 // queries that share what is unpacked

// Sums of a bundle, a row a lane.
struct bundle_sums {
    __m512i half[2];
};

// Places of four parts' numbers, of 16 each, for the rows of a bundle: a lane's bytes are of parts
// p to p + 3. codes: of two bytes of all rows.
INLINE struct bundle_sums places_of(const uint8_t *codes)
{
    // In each 64 bits both bytes of two rows, in the lower half of them.
    const __m512i rows =
                      _mm512_setr_epi32(0x21012000, 0, 0x23032202, 0, 0x25052404, 0, 0x27072606, 0,
                                        0x29092808, 0, 0x2b0b2a0a, 0, 0x2d0d2c0c, 0, 0x2f0f2e0e, 0),
                  later = _mm512_add_epi8(rows, _mm512_set1_epi8(16)),
                  nibbles = _mm512_set1_epi64(0x1c1814100c080400), nibble = _mm512_set1_epi8(15),
                  part = _mm512_set1_epi32(0x30201000), both = _mm512_loadu_si512(codes);
    struct bundle_sums places = {
        {_mm512_permutexvar_epi8(rows, both), _mm512_permutexvar_epi8(later, both)}};
    for (int h = 0; h < 2; h++) {
        __m512i apart = _mm512_multishift_epi64_epi8(nibbles, places.half[h]);
        places.half[h] =
            _mm512_ternarylogic_epi32(apart, nibble, part, 0xea); // apart & nibble | part
    }
    return places;
}

INLINE void add_numbers(struct bundle_sums *sums, const struct bundle_sums *places, __m512i numbers)
{
    const __m512i one = _mm512_set1_epi8(1);
    for (int h = 0; h < 2; h++) {
        __m512i bytes = _mm512_permutexvar_epi8(places->half[h], numbers);
        sums->half[h] = _mm512_dpbusd_epi32(sums->half[h], bytes, one);
        __asm__("" : "+v"(sums->half[h])); // or gcc copies each sum twice, and has no register left
    }
}

INLINE void pass_bundle(const struct bsw_bound_rows *rows, const struct bsw_bound_query *queries,
                        size_t num, size_t bundle, uint32_t *masks)
{
    const uint8_t *codes = rows->codes + bundle * rows->bundle_bytes;
    const float *terms = rows->terms + bundle * BSW_BUNDLE_ROWS;
    struct bundle_sums sums[MOST_TOGETHER];
    size_t p = 0;
    for (size_t q = 0; q < num; q++)
        for (int h = 0; h < 2; h++) sums[q].half[h] = _mm512_setzero_si512();
    for (; p + 2 < rows->parts; p += 4, codes += 2 * BSW_BUNDLE_ROWS) {
        struct bundle_sums places = places_of(codes);
        for (size_t q = 0; q < num; q++)
            add_numbers(&sums[q], &places, _mm512_loadu_si512(queries[q].numbers + p * 16));
    }
    if (p < rows->parts) { // one or two are left
        struct bundle_sums places = places_of(codes);
        for (size_t q = 0; q < num; q++)
            add_numbers(&sums[q], &places,
                        _mm512_maskz_loadu_epi8(UINT32_MAX, queries[q].numbers + p * 16));
    }
    for (size_t q = 0; q < num; q++)
        masks[q * rows->num_bundles + bundle] =
            rows->masks[bundle] & (sixteen_pass(sums[q].half[0], &queries[q], terms) |
                                   sixteen_pass(sums[q].half[1], &queries[q], terms + LANES) << 16);
}

INLINE size_t together_of(size_t num, size_t most)
{
    while (most > num) most /= 2;
    return most;
}

static void pass_halves(const struct bsw_bound_rows *rows, const struct bsw_bound_query *queries,
                        size_t num_queries, uint32_t *masks)
{
    for (size_t q = 0, num; q < num_queries; q += num) {
        uint32_t *out = masks + q * rows->num_bundles;
        num = together_of(num_queries - q, MOST_TOGETHER);
        for (size_t b = 0; b < rows->num_bundles; b++) {
            if (num == 8)
                pass_bundle(rows, queries + q, 8, b, out);
            else if (num == 4)
                pass_bundle(rows, queries + q, 4, b, out);
            else if (num == 2)
                pass_bundle(rows, queries + q, 2, b, out);
            else
                pass_bundle(rows, queries + q, 1, b, out);
        }
    }
}

// ---- 8-bit codes ----

#define FEW_QUERIES   12
#define PAIR          64 // rows of two bundles
#define BLOCK_BUNDLES 32 // whose sums stay in the first cache
#define SHARE         4  // queries whose tables lie in registers
#define QUARTERS      4

// Sums of a pair's even rows, and of its odd ones, as 16 bits; even: with 256 times the odd ones.
struct halves {
    __m512i even, odd;
};

INLINE __m256i bundle_codes(const uint8_t *at)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)at);
}

// Numbers of 64 codes: each quarter over the ones before, where a code is not below its first.
INLINE __m512i look_up(const __m512i quarters[QUARTERS], __m512i codes, __mmask64 top,
                       __mmask64 next)
{
    __m512i found = _mm512_permutexvar_epi8(codes, quarters[0]);
    found = _mm512_mask_permutexvar_epi8(found, next, codes, quarters[1]);
    found = _mm512_mask_permutexvar_epi8(found, top, codes, quarters[2]);
    return _mm512_mask_permutexvar_epi8(found, top & next, codes, quarters[3]);
}

INLINE void add_pair(const __m512i tables[][QUARTERS], size_t num, __m512i codes,
                     struct halves *sums, size_t stride)
{
    __mmask64 top = _mm512_movepi8_mask(codes),
              next = _mm512_movepi8_mask(_mm512_add_epi8(codes, codes));
    for (size_t q = 0; q < num; q++) {
        __m512i bytes = look_up(tables[q], codes, top, next);
        struct halves *to = &sums[q * stride];
        to->even = _mm512_add_epi16(to->even, bytes);
        to->odd = _mm512_add_epi16(to->odd, _mm512_srli_epi16(bytes, 8));
    }
}

// Adds a part to the sums of num queries, [num][pairs].
INLINE void add_part(const struct bsw_bound_query *queries, size_t num, size_t part,
                     const uint8_t *codes, size_t bundle_bytes, size_t num_bundles,
                     struct halves *sums)
{
    const size_t pairs = (num_bundles + 1) / 2;
    __m512i tables[SHARE][QUARTERS];
    for (size_t q = 0; q < num; q++)
        for (size_t i = 0; i < QUARTERS; i++)
            tables[q][i] = _mm512_loadu_si512(queries[q].numbers + part * 256 + i * 64);
    for (size_t b = 0; b + 1 < num_bundles; b += 2, codes += 2 * bundle_bytes)
        add_pair(tables, num,
                 _mm512_inserti64x4(_mm512_castsi256_si512(bundle_codes(codes)),
                                    bundle_codes(codes + bundle_bytes), 1),
                 sums + b / 2, pairs);
    if (num_bundles % 2)
        add_pair(tables, num, _mm512_zextsi256_si512(bundle_codes(codes)), sums + pairs - 1, pairs);
}

// Rows of a pair that pass, of each bundle.
INLINE void pair_passes(const struct halves *sums, const struct bsw_bound_query *query,
                        const float *terms, size_t num_bundles, uint32_t *masks)
{
    const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                  second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    __m512i even = _mm512_sub_epi16(sums->even, _mm512_slli_epi16(sums->odd, 8));
    __m512i low = _mm512_unpacklo_epi16(even, sums->odd), // the first 8 of each 16 rows
        high = _mm512_unpackhi_epi16(even, sums->odd);
    const __m512i bundles[2] = {_mm512_permutex2var_epi64(low, first, high),
                                _mm512_permutex2var_epi64(low, second, high)};
    for (size_t b = 0; b < num_bundles; b++, terms += BSW_BUNDLE_ROWS) {
        __m256i lower = _mm512_castsi512_si256(bundles[b]),
                upper = _mm512_extracti64x4_epi64(bundles[b], 1);
        masks[b] &= sixteen_pass(_mm512_cvtepu16_epi32(lower), query, terms) |
                    sixteen_pass(_mm512_cvtepu16_epi32(upper), query, terms + LANES) << 16;
    }
}

// Passes over the bundles from `first` on.
static void pass_block(const struct bsw_bound_rows *rows, const struct bsw_bound_query *queries,
                       size_t num_queries, size_t first, size_t num_bundles, struct halves *sums,
                       uint32_t *masks)
{
    const size_t pairs = (num_bundles + 1) / 2;
    const uint8_t *codes = rows->codes + first * rows->bundle_bytes;
    memset(sums, 0, num_queries * pairs * sizeof *sums);
    for (size_t p = 0; p < rows->parts; p++, codes += BSW_BUNDLE_ROWS) {
        for (size_t q = 0, num; q < num_queries; q += num) {
            struct halves *to = sums + q * pairs;
            num = together_of(num_queries - q, SHARE);
            if (num == 4)
                add_part(queries + q, 4, p, codes, rows->bundle_bytes, num_bundles, to);
            else if (num == 2)
                add_part(queries + q, 2, p, codes, rows->bundle_bytes, num_bundles, to);
            else
                add_part(queries + q, 1, p, codes, rows->bundle_bytes, num_bundles, to);
        }
    }
    for (size_t q = 0; q < num_queries; q++) {
        uint32_t *out = masks + q * rows->num_bundles + first;
        memcpy(out, rows->masks + first, num_bundles * sizeof *out);
        for (size_t b = 0; b < num_bundles; b += 2)
            pair_passes(&sums[q * pairs + b / 2], &queries[q],
                        rows->terms + (first + b) * BSW_BUNDLE_ROWS, num_bundles - b < 2 ? 1 : 2,
                        out + b);
    }
}

static void avx512_pass(const struct bsw_bound_rows *rows, const struct bsw_bound_query *queries,
                        size_t num_queries, void *room, uint32_t *masks)
{
    if (rows->bits == 4) {
        pass_halves(rows, queries, num_queries, masks);
        return;
    }
    if (num_queries > FEW_QUERIES) { // what AVX2 does for 16 costs as much for one
        bsw_table_bounds_avx2.pass(rows, queries, num_queries, room, masks);
        return;
    }
    for (size_t b = 0; b < rows->num_bundles; b += BLOCK_BUNDLES) {
        size_t left = rows->num_bundles - b;
        pass_block(rows, queries, num_queries, b, left < BLOCK_BUNDLES ? left : BLOCK_BUNDLES, room,
                   masks);
    }
}

// ---- rows that passed ----

// Few rows: wider registers lose where fewer than 24 pass.
static void sums(const struct bsw_bound_terms *terms, const uint8_t *codes, size_t bundle_bytes,
                 const uint32_t *places, size_t num_places, float *out)
{
    bsw_table_bounds_avx2.sums(terms, codes, bundle_bytes, places, num_places, out);
}

const struct bsw_table_bounds_table bsw_table_bounds_avx512 = {.level = "avx512",
                                                               .narrow = narrow,
                                                               .pass = avx512_pass,
                                                               .gap = gap,
                                                               .bases = bases,
                                                               .sums = sums};
