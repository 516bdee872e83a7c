// SPDX-License-Identifier: Apache-2.0
// table_bounds on AVX2: 4-bit codes by shuffles, a bundle and up to four queries at a time; 8-bit
// codes by 16 queries side by side.
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "kernels/table_bounds/table_bounds.h"

#define INLINE   static inline __attribute__((always_inline))
#define LANES    8 // floats of a register
#define TOGETHER 4 // queries that share what is unpacked of 4-bit codes

// ---- a query's table ----

INLINE float across(__m256 v, int is_least)
{
    float lanes[LANES], found;
    _mm256_storeu_ps(lanes, v);
    found = lanes[0];
    for (int i = 1; i < LANES; i++)
        found = (is_least ? lanes[i] < found : lanes[i] > found) ? lanes[i] : found;
    return found;
}

INLINE float least_of(const float *numbers, size_t num, float *most)
{
    __m256 low = _mm256_loadu_ps(numbers), high = low;
    for (size_t j = LANES; j < num; j += LANES) {
        low = _mm256_min_ps(low, _mm256_loadu_ps(numbers + j));
        high = _mm256_max_ps(high, _mm256_loadu_ps(numbers + j));
    }
    *most = across(high, 0);
    return across(low, 1);
}

// 8 numbers to 8 bytes. Conversions to 16 bits and to bytes saturate at 255 as the definition does.
INLINE void narrow_eight(const float *terms, __m256 least, __m256 inverse, uint8_t *out)
{
    __m256 v = _mm256_mul_ps(_mm256_sub_ps(_mm256_loadu_ps(terms), least), inverse);
    __m256i whole = _mm256_cvttps_epi32(_mm256_min_ps(v, _mm256_set1_ps(255.0f)));
    __m128i halves =
        _mm_packus_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
    _mm_storel_epi64((__m128i *)(void *)out, _mm_packus_epi16(halves, halves));
}

INLINE void narrow_part(const float *terms, size_t num, float least, float inverse, uint8_t *out)
{
    const __m256 from = _mm256_set1_ps(least), times = _mm256_set1_ps(inverse);
    for (size_t i = 0; i < num; i += LANES) narrow_eight(terms + i, from, times, out + i);
}

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

struct sixteen {
    __m256 unit[2], most[2];
};

INLINE uint32_t queries_pass(const uint16_t *at, const struct sixteen *q, float term)
{
    __m256i sums = _mm256_load_si256((const __m256i *)(const void *)at);
    __m256 terms = _mm256_set1_ps(term);
    __m256 low = _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(sums))),
           high = _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(_mm256_extracti128_si256(sums, 1)));
    low = _mm256_cmp_ps(_mm256_fmadd_ps(q->unit[0], low, terms), q->most[0], _CMP_LE_OQ);
    high = _mm256_cmp_ps(_mm256_fmadd_ps(q->unit[1], high, terms), q->most[1], _CMP_LE_OQ);
    return (uint32_t)_mm256_movemask_ps(low) | (uint32_t)_mm256_movemask_ps(high) << LANES;
}

INLINE struct sixteen load_sixteen(const float *unit, const float *most)
{
    struct sixteen q;
    for (int i = 0; i < 2; i++) {
        q.unit[i] = _mm256_loadu_ps(unit + i * LANES);
        q.most[i] = _mm256_loadu_ps(most + i * LANES);
    }
    return q;
}

#define BY_SIXTEEN
#include "kernels/table_bounds/table_bounds_lanes.h"

// ---- gaps of query and centroid ----

static float avx2_gap(const float *x, const float *y, size_t dims)
{
    __m256 low = _mm256_setzero_ps(), high = low;
    float lanes[16], sum = 0.0f;
    for (size_t d = 0; d < dims; d += 16) {
        __m256 first = _mm256_sub_ps(_mm256_loadu_ps(x + d), _mm256_loadu_ps(y + d)),
               second = _mm256_sub_ps(_mm256_loadu_ps(x + d + 8), _mm256_loadu_ps(y + d + 8));
        low = _mm256_fmadd_ps(first, first, low);
        high = _mm256_fmadd_ps(second, second, high);
    }
    _mm256_storeu_ps(lanes, low);
    _mm256_storeu_ps(lanes + 8, high);
    for (int i = 0; i < 16; i++) sum += lanes[i];
    return sum;
}

INLINE void part_bases(uint32_t parts, uint32_t part_dims, const float *x, const float *y,
                       float *bases)
{
    for (uint32_t p = 0; p < parts; p++, x += part_dims, y += part_dims) {
        float sum = 0.0f;
        for (uint32_t d = 0; d < part_dims; d++) {
            float gap = x[d] - y[d];
            sum = fmaf(gap, gap, sum);
        }
        bases[p] = sum;
    }
}

static void avx2_bases(const struct bsw_product_book *book, const float *x, const float *y,
                       float *bases)
{
    if (book->part_dims == 2)
        part_bases(book->parts, 2, x, y, bases);
    else if (book->part_dims == 4)
        part_bases(book->parts, 4, x, y, bases);
    else if (book->part_dims == 8)
        part_bases(book->parts, 8, x, y, bases);
    else
        part_bases(book->parts, book->part_dims, x, y, bases);
}

// ---- rows that passed ----

INLINE float row_sum(const struct bsw_bound_terms *terms, const uint8_t *codes, uint32_t bits,
                     uint32_t part_dims)
{
    const size_t num = (size_t)1 << bits;
    const float *entries = terms->book->entries, *list = terms->list, *query = terms->query;
    __m128 sum = _mm_setzero_ps();
    for (uint32_t p = 0; p < terms->book->parts; p++) {
        size_t j = bits == 8 ? codes[p * BSW_BUNDLE_ROWS]
                             : codes[p / 2 * BSW_BUNDLE_ROWS] >> (4 * (p & 1)) & 15;
        float product = 0.0f;
        for (uint32_t d = 0; d < part_dims; d++)
            product = fmaf(query[d], entries[d * num + j], product);
        __m128 distance = _mm_set_ss((list[j] + product) + terms->bases[p]);
        sum = _mm_add_ss(sum, _mm_max_ss(distance, _mm_setzero_ps()));
        entries += part_dims * num;
        list += num;
        query += part_dims;
    }
    return _mm_cvtss_f32(sum);
}

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

static void avx2_sums(const struct bsw_bound_terms *terms, const uint8_t *codes,
                      size_t bundle_bytes, const uint32_t *places, size_t num_places, float *sums)
{
    uint32_t dims = terms->book->part_dims;
    for (size_t i = 0; i < num_places && terms->book->bits == 4; i += MOST_EIGHTS * LANES) {
        size_t left = num_places - i;
        sums_of_halves(terms, codes, bundle_bytes, places + i,
                       left < MOST_EIGHTS * LANES ? left : MOST_EIGHTS * LANES, sums + i);
    }
    for (size_t i = 0; i < num_places && terms->book->bits == 8; i++) {
        const uint8_t *at =
            codes + places[i] / BSW_BUNDLE_ROWS * bundle_bytes + places[i] % BSW_BUNDLE_ROWS;
        sums[i] = dims == 4   ? row_sum(terms, at, 8, 4)
                  : dims == 8 ? row_sum(terms, at, 8, 8)
                              : row_sum(terms, at, 8, dims);
    }
}

const struct bsw_table_bounds_table bsw_table_bounds_avx2 = {.level = "avx2",
                                                             .narrow = narrow,
                                                             .pass = pass,
                                                             .gap = avx2_gap,
                                                             .bases = avx2_bases,
                                                             .sums = avx2_sums};
