// SPDX-License-Identifier: Apache-2.0
// table_bounds on AVX2: 4-bit codes by shuffles, a bundle and up to four queries at a time; 8-bit
// codes by 16 queries side by side.
#define TOGETHER 4 // queries that share what is unpacked of 4-bit codes
#include "kernels/table_bounds/table_bounds_lanes.h"

// ---- 4-bit codes ----

// Sums of a bundle's even rows, and of its odd ones, as 16 bits; even: with 256 times the odd ones.
struct halves {
    __m256i even, odd;
};

INLINE void add_bytes(struct halves *sums, __m256i bytes)
{
    sums->even = _mm256_add_epi16(sums->even, bytes);
    sums->odd = _mm256_add_epi16(sums->odd, _mm256_srli_epi16(bytes, 8));
}

// Rows of 8 whose bound is within the query's.
INLINE uint32_t eight_pass(__m128i sums, __m256 unit, __m256 most, const float *terms)
{
    __m256 sum = _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(sums));
    __m256 bound = _mm256_fmadd_ps(unit, sum, _mm256_loadu_ps(terms));
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(bound, most, _CMP_LE_OQ));
}

INLINE uint32_t bundle_passes(const struct halves *sums, const struct bsw_bound_query *query,
                              const float *terms)
{
    __m256 unit = _mm256_set1_ps(query->unit), most = _mm256_set1_ps(query->most);
    __m256i even = _mm256_sub_epi16(sums->even, _mm256_slli_epi16(sums->odd, 8));
    __m256i low = _mm256_unpacklo_epi16(even, sums->odd), // rows 0 to 7, 16 to 23
        high = _mm256_unpackhi_epi16(even, sums->odd);    // rows 8 to 15, 24 to 31
    return eight_pass(_mm256_castsi256_si128(low), unit, most, terms) |
           eight_pass(_mm256_castsi256_si128(high), unit, most, terms + 8) << 8 |
           eight_pass(_mm256_extracti128_si256(low, 1), unit, most, terms + 16) << 16 |
           eight_pass(_mm256_extracti128_si256(high, 1), unit, most, terms + 24) << 24;
}

INLINE __m256i table_of(const uint8_t *numbers, size_t part)
{
    return _mm256_broadcastsi128_si256(
        _mm_loadu_si128((const __m128i *)(const void *)(numbers + part * 16)));
}

INLINE void pass_bundle(const struct bsw_bound_rows *rows, const struct bsw_bound_query *queries,
                        size_t num, size_t bundle, uint32_t *masks)
{
    const __m256i nibble = _mm256_set1_epi8(15);
    const uint8_t *codes = rows->codes + bundle * rows->bundle_bytes;
    struct halves sums[TOGETHER];
    for (size_t q = 0; q < num; q++)
        sums[q] = (struct halves){_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (size_t p = 0; p < rows->parts; p += 2, codes += BSW_BUNDLE_ROWS) {
        __m256i both = _mm256_loadu_si256((const __m256i *)(const void *)codes),
                low = _mm256_and_si256(both, nibble),
                high = _mm256_and_si256(_mm256_srli_epi16(both, 4), nibble);
        for (size_t q = 0; q < num; q++) {
            add_bytes(&sums[q], _mm256_shuffle_epi8(table_of(queries[q].numbers, p), low));
            add_bytes(&sums[q], _mm256_shuffle_epi8(table_of(queries[q].numbers, p + 1), high));
        }
    }
    for (size_t q = 0; q < num; q++)
        masks[q * rows->num_bundles + bundle] =
            rows->masks[bundle] &
            bundle_passes(&sums[q], &queries[q], rows->terms + bundle * BSW_BUNDLE_ROWS);
}

// ---- 8-bit codes ----

// 32 bytes of each of 16 queries, at [q]: register i is then entry i of all queries, and entry
// 16 + i in its upper half.
INLINE void turn_registers(__m256i r[16])
{
    for (int step = 0; step < 4; step++) { // each is a perfect shuffle of two halves
        __m256i t[16];
        for (int i = 0; i < 8; i++) {
            t[2 * i] = _mm256_unpacklo_epi8(r[i], r[i + 8]);
            t[2 * i + 1] = _mm256_unpackhi_epi8(r[i], r[i + 8]);
        }
        for (int i = 0; i < 16; i++) r[i] = t[i];
    }
}

static void turn_part(const uint8_t *const *numbers, size_t first, uint8_t *out)
{
    for (size_t j = 0; j < 256; j += 32) {
        __m256i r[16];
        for (size_t q = 0; q < 16; q++)
            r[q] = _mm256_loadu_si256((const __m256i *)(const void *)(numbers[q] + first + j));
        turn_registers(r);
        for (size_t i = 0; i < 16; i++) {
            _mm_store_si128((__m128i *)(void *)(out + (j + i) * 16), _mm256_castsi256_si128(r[i]));
            _mm_store_si128((__m128i *)(void *)(out + (j + 16 + i) * 16),
                            _mm256_extracti128_si256(r[i], 1));
        }
    }
}

// ---- rows of 4-bit codes that passed ----

// The distances of a part's 16 entries.
struct sixteen_floats {
    __m256 low, high;
};

INLINE struct sixteen_floats part_distances(const float *entries, const float *list,
                                            const float *query, float base, uint32_t part_dims)
{
    struct sixteen_floats t = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (uint32_t d = 0; d < part_dims; d++, entries += 16) {
        __m256 v = _mm256_set1_ps(query[d]);
        t.low = _mm256_fmadd_ps(v, _mm256_loadu_ps(entries), t.low);
        t.high = _mm256_fmadd_ps(v, _mm256_loadu_ps(entries + 8), t.high);
    }
    __m256 more = _mm256_set1_ps(base), zero = _mm256_setzero_ps();
    t.low = _mm256_add_ps(_mm256_add_ps(_mm256_loadu_ps(list), t.low), more);
    t.high = _mm256_add_ps(_mm256_add_ps(_mm256_loadu_ps(list + 8), t.high), more);
    t.low = _mm256_max_ps(t.low, zero);
    t.high = _mm256_max_ps(t.high, zero);
    return t;
}

// Looks up 8 codes, whose last 4 bits count.
INLINE __m256 of_sixteen(const struct sixteen_floats *t, __m256i codes)
{
    __m256 upper = _mm256_castsi256_ps(_mm256_slli_epi32(codes, 28));
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(t->low, codes),
                            _mm256_permutevar8x32_ps(t->high, codes), upper);
}

#define MOST_EIGHTS 4 // of rows under way

// Sums of rows of 4-bit codes, eight by eight, whose codes lie [parts / 2][num][8].
INLINE void sums_of_eights(const struct bsw_bound_terms *terms, const uint8_t *codes,
                           uint32_t part_dims, size_t num, float *out)
{
    const float *entries = terms->book->entries, *list = terms->list, *query = terms->query;
    __m256 sums[MOST_EIGHTS];
    for (size_t k = 0; k < num; k++) sums[k] = _mm256_setzero_ps();
    for (uint32_t p = 0; p < terms->book->parts; p++) {
        struct sixteen_floats t = part_distances(entries, list, query, terms->bases[p], part_dims);
        for (size_t k = 0; k < num; k++) {
            __m256i j = _mm256_cvtepu8_epi32(
                _mm_loadl_epi64((const __m128i *)(const void *)(codes + k * LANES)));
            if (p & 1) j = _mm256_srli_epi32(j, 4);
            sums[k] = _mm256_add_ps(sums[k], of_sixteen(&t, j));
        }
        if (p & 1) codes += num * LANES;
        entries += (size_t)16 * part_dims;
        list += 16;
        query += part_dims;
    }
    for (size_t k = 0; k < num; k++) _mm256_storeu_ps(out + k * LANES, sums[k]);
}

INLINE void sums_by_dims(const struct bsw_bound_terms *terms, const uint8_t *codes, size_t num,
                         float *out)
{
    if (terms->book->part_dims == 2)
        sums_of_eights(terms, codes, 2, num, out);
    else if (terms->book->part_dims == 4)
        sums_of_eights(terms, codes, 4, num, out);
    else
        sums_of_eights(terms, codes, terms->book->part_dims, num, out);
}

// Up to MOST_EIGHTS * 8 rows; where the last eight lack some its last row takes their places.
static void sums_of_halves(const struct bsw_bound_terms *terms, const uint8_t *codes,
                           size_t bundle_bytes, const uint32_t *places, size_t num, float *sums)
{
    uint8_t together[(BSW_BOUND_MAX_PARTS + 1) / 2 * MOST_EIGHTS * LANES];
    size_t bytes = (terms->book->parts + 1) / 2, eights = (num + LANES - 1) / LANES;
    float found[MOST_EIGHTS * LANES];
    for (size_t k = 0; k < eights; k++) {
        const uint8_t *at[LANES];
        for (size_t i = 0; i < LANES; i++) {
            uint32_t place = places[k * LANES + i < num ? k * LANES + i : num - 1];
            at[i] = codes + place / BSW_BUNDLE_ROWS * bundle_bytes + place % BSW_BUNDLE_ROWS;
        }
        for (size_t m = 0, from = 0; m < bytes; m++, from += BSW_BUNDLE_ROWS) {
            uint8_t eight[LANES] = {at[0][from], at[1][from], at[2][from], at[3][from],
                                    at[4][from], at[5][from], at[6][from], at[7][from]};
            memcpy(together + (m * eights + k) * LANES, eight, sizeof eight);
        }
    }
    if (eights == 1)
        sums_by_dims(terms, together, 1, found);
    else if (eights == 2)
        sums_by_dims(terms, together, 2, found);
    else
        sums_by_dims(terms, together, eights, found);
    memcpy(sums, found, num * sizeof *sums);
}

static void sums(const struct bsw_bound_terms *terms, const uint8_t *codes, size_t bundle_bytes,
                 const uint32_t *places, size_t num_places, float *out)
{
    if (terms->book->bits == 8) {
        byte_sums(terms, codes, bundle_bytes, places, num_places, out);
        return;
    }
    for (size_t i = 0; i < num_places; i += MOST_EIGHTS * LANES) {
        size_t left = num_places - i;
        sums_of_halves(terms, codes, bundle_bytes, places + i,
                       left < MOST_EIGHTS * LANES ? left : MOST_EIGHTS * LANES, out + i);
    }
}

const struct bsw_table_bounds_table bsw_table_bounds_avx2 = {
    .level = "avx2", .narrow = narrow, .pass = pass, .gap = gap, .bases = bases, .sums = sums};
