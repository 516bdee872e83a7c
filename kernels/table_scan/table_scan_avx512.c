// SPDX-License-Identifier: Apache-2.0
// Look-ups of table_scan on AVX-512. The 16 numbers of 4-bit codes are a register; the 256 of 8-bit
// codes are planes of bytes, each four registers, for 64 rows at a time.
#include "kernels/table_scan/table_scan_lanes.h"

// ---- 4-bit codes ----

#define GROUP 4 // bundles that share the floats of a table

// Adds the numbers of the codes in the last 4 bits of each lane.
INLINE __m512 add_codes(__m512 sum, __m512 table, __m512i codes)
{
    return _mm512_add_ps(sum, _mm512_permutexvar_ps(codes, table));
}

INLINE void sums_of_halves(const struct bsw_code_table *table, const uint8_t *codes,
                           size_t bundle_bytes, size_t num_bundles, float *sums)
{
    const float *numbers = table->numbers;
    __m512 s[GROUP * 2];
    for (size_t k = 0; k < num_bundles * 2; k++) s[k] = _mm512_setzero_ps();
    for (uint32_t p = 0; p < table->parts; p += 2, numbers += 2 * LANES, codes += BSW_BUNDLE_ROWS) {
        int has_second = p + 1 < table->parts;
        __m512 first = _mm512_loadu_ps(numbers), second = first;
        if (has_second) second = _mm512_loadu_ps(numbers + LANES);
        for (size_t k = 0; k < num_bundles * 2; k++) {
            const uint8_t *at = codes + k / 2 * bundle_bytes + k % 2 * LANES;
            __m512i both = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)at));
            s[k] = add_codes(s[k], first, both);
            if (has_second) s[k] = add_codes(s[k], second, _mm512_srli_epi32(both, 4));
        }
    }
    for (size_t k = 0; k < num_bundles * 2; k++) _mm512_storeu_ps(sums + k * LANES, s[k]);
}

// ---- 8-bit codes ----

#define ROWS          64 // of a register of bytes
#define BLOCK_BUNDLES 64 // whose sums stay in the first cache while the parts go by
#define PLANES        4
#define QUARTERS      4

// A part's 256 numbers: byte i of number 64 q + j is byte j of at[i][q].
struct planes {
    __m512i at[PLANES][QUARTERS];
};

// Lower and upper bytes of 64 words, whose order is that of the bytes after `order`, of dwords.
INLINE void split_words(__m512i first, __m512i second, __m512i order, __m512i *low, __m512i *high)
{
    const __m512i byte = _mm512_set1_epi16(255);
    *low = _mm512_permutexvar_epi32(
        order, _mm512_packus_epi16(_mm512_and_si512(first, byte), _mm512_and_si512(second, byte)));
    *high = _mm512_permutexvar_epi32(
        order, _mm512_packus_epi16(_mm512_srli_epi16(first, 8), _mm512_srli_epi16(second, 8)));
}

INLINE void planes_of_floats(const float *numbers, struct planes *planes)
{
    // Packing twice leaves the dwords of a register's lane one to each lane.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
                  half = _mm512_set1_epi32(0xffff);
    for (size_t q = 0; q < QUARTERS; q++) {
        __m512i v[4], low[2], high[2];
        for (size_t i = 0; i < 4; i++) v[i] = _mm512_loadu_si512(numbers + q * ROWS + i * LANES);
        for (size_t i = 0; i < 2; i++) {
            low[i] = _mm512_packus_epi32(_mm512_and_si512(v[2 * i], half),
                                         _mm512_and_si512(v[2 * i + 1], half));
            high[i] = _mm512_packus_epi32(_mm512_srli_epi32(v[2 * i], 16),
                                          _mm512_srli_epi32(v[2 * i + 1], 16));
        }
        split_words(low[0], low[1], order, &planes->at[0][q], &planes->at[1][q]);
        split_words(high[0], high[1], order, &planes->at[2][q], &planes->at[3][q]);
    }
}

// Floats of 64 rows, in the order in which look-ups leave them.
struct rows {
    __m512 k[4];
};

// Bytes of one plane: each quarter over the ones before, where a code is not below its first.
INLINE __m512i look_up(const __m512i quarters[QUARTERS], __m512i codes, __mmask64 top,
                       __mmask64 next)
{
    __m512i found = _mm512_permutexvar_epi8(codes, quarters[0]);
    found = _mm512_mask_permutexvar_epi8(found, next, codes, quarters[1]);
    found = _mm512_mask_permutexvar_epi8(found, top, codes, quarters[2]);
    return _mm512_mask_permutexvar_epi8(found, top & next, codes, quarters[3]);
}

INLINE struct rows look_up_rows(const struct planes *planes, __m512i codes)
{
    __mmask64 top = _mm512_movepi8_mask(codes),
              next = _mm512_movepi8_mask(_mm512_add_epi8(codes, codes));
    __m512i b[PLANES];
    for (size_t i = 0; i < PLANES; i++) b[i] = look_up(planes->at[i], codes, top, next);
    __m512i low = _mm512_unpacklo_epi8(b[0], b[1]), high = _mm512_unpackhi_epi8(b[0], b[1]);
    __m512i low2 = _mm512_unpacklo_epi8(b[2], b[3]), high2 = _mm512_unpackhi_epi8(b[2], b[3]);
    struct rows out;
    out.k[0] = _mm512_castsi512_ps(_mm512_unpacklo_epi16(low, low2));
    out.k[1] = _mm512_castsi512_ps(_mm512_unpackhi_epi16(low, low2));
    out.k[2] = _mm512_castsi512_ps(_mm512_unpacklo_epi16(high, high2));
    out.k[3] = _mm512_castsi512_ps(_mm512_unpackhi_epi16(high, high2));
    return out;
}

// Sums of 64 rows into their order.
INLINE void order_rows(float *sums)
{
    __m512 k[4], t[4];
    for (size_t i = 0; i < 4; i++) k[i] = _mm512_loadu_ps(sums + i * LANES);
    // Lane L of register i has rows 16 L + 4 i to 16 L + 4 i + 3.
    t[0] = _mm512_shuffle_f32x4(k[0], k[1], 0x44);
    t[1] = _mm512_shuffle_f32x4(k[2], k[3], 0x44);
    t[2] = _mm512_shuffle_f32x4(k[0], k[1], 0xee);
    t[3] = _mm512_shuffle_f32x4(k[2], k[3], 0xee);
    for (size_t i = 0; i < 4; i += 2) {
        _mm512_storeu_ps(sums + i * LANES, _mm512_shuffle_f32x4(t[i], t[i + 1], 0x88));
        _mm512_storeu_ps(sums + (i + 1) * LANES, _mm512_shuffle_f32x4(t[i], t[i + 1], 0xdd));
    }
}

INLINE void add_rows(const struct planes *planes, __m512i codes, float *sums)
{
    struct rows found = look_up_rows(planes, codes);
    for (size_t i = 0; i < 4; i++)
        _mm512_storeu_ps(sums + i * LANES,
                         _mm512_add_ps(_mm512_loadu_ps(sums + i * LANES), found.k[i]));
}

INLINE __m256i bundle_codes(const uint8_t *at)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)at);
}

INLINE void sums_of_bytes(const struct bsw_code_table *table, const uint8_t *codes,
                          size_t bundle_bytes, size_t num_bundles, float *sums)
{
    const size_t pairs = num_bundles / 2;
    float last[ROWS] = {0}; // of a bundle without another
    memset(sums, 0, num_bundles * BSW_BUNDLE_ROWS * sizeof *sums);
    for (uint32_t p = 0; p < table->parts; p++, codes += BSW_BUNDLE_ROWS) {
        struct planes planes;
        planes_of_floats(table->numbers + (size_t)p * 256, &planes);
        const uint8_t *at = codes;
        for (size_t i = 0; i < pairs; i++, at += 2 * bundle_bytes)
            add_rows(&planes,
                     _mm512_inserti64x4(_mm512_castsi256_si512(bundle_codes(at)),
                                        bundle_codes(at + bundle_bytes), 1),
                     sums + i * ROWS);
        if (num_bundles % 2) add_rows(&planes, _mm512_zextsi256_si512(bundle_codes(at)), last);
    }
    for (size_t i = 0; i < pairs; i++) order_rows(sums + i * ROWS);
    order_rows(last);
    if (num_bundles % 2) memcpy(sums + pairs * ROWS, last, BSW_BUNDLE_ROWS * sizeof *sums);
}

// ---- both ----

// Planes cost a part as much as looking some 128 to 256 rows up one by one (llvm-mca's clocks).
#define LEAST_BUNDLES 8

static void sums(const struct bsw_code_table *table, const uint8_t *codes, size_t bundle_bytes,
                 size_t num_bundles, float *out)
{
    size_t b = 0;
    if (table->bits == 8) {
        for (size_t num; b < num_bundles; b += num) {
            num = num_bundles - b < BLOCK_BUNDLES ? num_bundles - b : BLOCK_BUNDLES;
            if (num < LEAST_BUNDLES) break;
            sums_of_bytes(table, codes + b * bundle_bytes, bundle_bytes, num,
                          out + b * BSW_BUNDLE_ROWS);
        }
        if (b < num_bundles)
            bsw_table_scan_avx2.sums(table, codes + b * bundle_bytes, bundle_bytes, num_bundles - b,
                                     out + b * BSW_BUNDLE_ROWS);
        return;
    }
    for (; b + GROUP <= num_bundles; b += GROUP)
        sums_of_halves(table, codes + b * bundle_bytes, bundle_bytes, GROUP,
                       out + b * BSW_BUNDLE_ROWS);
    for (; b < num_bundles; b++)
        sums_of_halves(table, codes + b * bundle_bytes, bundle_bytes, 1, out + b * BSW_BUNDLE_ROWS);
}

const struct bsw_table_scan_table bsw_table_scan_avx512 = {.level = "avx512",
                                                           .products = products,
                                                           .nearest = nearest,
                                                           .distances = distances,
                                                           .round_numbers = round_numbers,
                                                           .sums = sums,
                                                           .sums_at = sums_at,
                                                           .filter = filter};
