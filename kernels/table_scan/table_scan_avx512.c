// SPDX-License-Identifier: Apache-2.0
// table_scan on AVX-512: 16 entries, or rows, at a time. The 16 numbers of 4-bit codes are a
// register of floats, whatever their type; the 256 of 8-bit codes are planes of bytes, each four
// registers, for 64 rows at a time.
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "kernels/table_scan/table_scan.h"

#define INLINE static inline __attribute__((always_inline))
#define LANES  16 // floats of a register
#define BLOCK  16 // registers of entries under way

// ---- making tables ----

// Chains of num registers of entries of a part, from `start` on, or 0.
INLINE void chain(const float *entries, size_t stride, uint32_t part_dims, const float *x,
                  float factor, const float *start, size_t num, __m512 *sums)
{
    for (size_t k = 0; k < num; k++)
        sums[k] = start ? _mm512_loadu_ps(start + k * LANES) : _mm512_setzero_ps();
    for (uint32_t d = 0; d < part_dims; d++) {
        __m512 v = _mm512_set1_ps(factor * x[d]);
        for (size_t k = 0; k < num; k++)
            sums[k] =
                _mm512_fmadd_ps(v, _mm512_loadu_ps(entries + d * stride + k * LANES), sums[k]);
    }
}

INLINE void part_products(const float *entries, size_t num, uint32_t part_dims, const float *x,
                          const float *start, float *out)
{
    __m512 sums[BLOCK];
    chain(entries, num, part_dims, x, 1.0f, start, num / LANES, sums);
    for (size_t k = 0; k < num / LANES; k++) _mm512_storeu_ps(out + k * LANES, sums[k]);
}

// The least of all lanes, and of equal ones the one of the first entry.
INLINE uint8_t first_least(__m512 least, __m512i numbers)
{
    float values[LANES];
    int32_t places[LANES];
    int best = 0;
    _mm512_storeu_ps(values, least);
    _mm512_storeu_si512(places, numbers);
    for (int i = 1; i < LANES; i++)
        if (values[i] < values[best] || (values[i] == values[best] && places[i] < places[best]))
            best = i;
    return (uint8_t)places[best];
}

INLINE uint8_t part_nearest(const float *entries, const float *norms, size_t num,
                            uint32_t part_dims, const float *x)
{
    __m512 least = _mm512_set1_ps(INFINITY), sums[BLOCK];
    __m512i best = _mm512_setzero_si512(), step = _mm512_set1_epi32(LANES),
            number = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    chain(entries, num, part_dims, x, -2.0f, norms, num / LANES, sums);
    for (size_t k = 0; k < num / LANES; k++) {
        __mmask16 is_less = _mm512_cmp_ps_mask(sums[k], least, _CMP_LT_OQ);
        least = _mm512_mask_mov_ps(least, is_less, sums[k]);
        best = _mm512_mask_mov_epi32(best, is_less, number);
        number = _mm512_add_epi32(number, step);
    }
    return first_least(least, best);
}

static float avx512_distances(const struct bsw_product_book *book, const float *list,
                              const float *query, const float *bases, float *out)
{
    size_t num = bsw_product_entries(book);
    __m512 largest = _mm512_setzero_ps();
    for (uint32_t p = 0; p < book->parts; p++) {
        __m512 base = _mm512_set1_ps(bases[p]);
        for (size_t i = p * num; i < (p + 1) * num; i += LANES) {
            __m512 sum = _mm512_add_ps(_mm512_loadu_ps(list + i), _mm512_loadu_ps(query + i));
            sum = _mm512_max_ps(_mm512_add_ps(sum, base), _mm512_setzero_ps());
            largest = _mm512_max_ps(sum, largest);
            _mm512_storeu_ps(out + i, sum);
        }
    }
    float lanes[LANES], most = 0.0f;
    _mm512_storeu_ps(lanes, largest);
    for (int i = 0; i < LANES; i++) most = lanes[i] > most ? lanes[i] : most;
    return most;
}

// ---- formats ----

// The bytes of 16 numbers.
INLINE __m128i float8_of(__m512 v, uint32_t exponent_bits, int is_signed)
{
    uint32_t bias = (1u << (exponent_bits - 1)) - 1;
    __m512i bits = _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(0x7fffffff)),
            first = _mm512_set1_epi32((int)(0x3f800000u - (bias << 23)));
    // Bits of positive floats are in order, below the sign.
    __m512i over = _mm512_sub_epi32(_mm512_max_epi32(bits, first), first);
    __m512i u =
        _mm512_min_epi32(_mm512_srli_epi32(over, 15 + exponent_bits), _mm512_set1_epi32(255));
    if (is_signed) {
        __mmask16 is_below = _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_LT_OQ);
        u = _mm512_and_si512(u, _mm512_set1_epi32(254));
        u = _mm512_mask_or_epi32(u, is_below, u, _mm512_set1_epi32(1));
    }
    return _mm512_cvtepi32_epi8(u);
}

// The floats of 16 bytes.
INLINE __m512 float_of8(__m128i bytes, uint32_t exponent_bits, int is_signed)
{
    uint32_t base =
        is_signed ? bsw_float8_signed_base(exponent_bits) : bsw_float8_base(exponent_bits);
    __m512i u = _mm512_cvtepu8_epi32(bytes),
            shifted = is_signed ? _mm512_and_si512(u, _mm512_set1_epi32(254)) : u;
    __m512i bits = _mm512_add_epi32(_mm512_slli_epi32(shifted, 15 + exponent_bits),
                                    _mm512_set1_epi32((int)base));
    if (is_signed) bits = _mm512_or_si512(bits, _mm512_slli_epi32(u, 31));
    return _mm512_castsi512_ps(bits);
}

INLINE void convert_float8(uint32_t exponent_bits, int is_signed, float power, const float *in,
                           size_t n, uint8_t *out)
{
    const __m512 factor = _mm512_set1_ps(power);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        _mm_storeu_si128(
            (__m128i *)(void *)(out + i),
            float8_of(_mm512_mul_ps(_mm512_loadu_ps(in + i), factor), exponent_bits, is_signed));
    for (; i < n; i++)
        out[i] = is_signed ? bsw_float8_encode_signed(exponent_bits, in[i] * power)
                           : bsw_float8_encode(exponent_bits, in[i] * power);
}

INLINE __m256i halves_of(__m512 v, __m512 factor)
{
    const __m512 most = _mm512_set1_ps(BSW_HALF_MAX), zero = _mm512_setzero_ps();
    v = _mm512_mul_ps(v, factor);
    v = _mm512_max_ps(_mm512_min_ps(v, most), _mm512_sub_ps(zero, most));
    // -0 is 0, as in the reference.
    return _mm512_cvtps_ph(_mm512_add_ps(v, zero), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static void convert_halves(float power, const float *in, size_t n, uint16_t *out)
{
    const __m512 factor = _mm512_set1_ps(power);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        _mm256_storeu_si256((__m256i *)(void *)(out + i),
                            halves_of(_mm512_loadu_ps(in + i), factor));
    if (i == n) return;
    float last[LANES] = {0}; // copies of any length would stall whole loads
    memcpy(last, in + i, (n - i) * sizeof *in);
    __m256i halves = halves_of(_mm512_loadu_ps(last), factor);
    memcpy(out + i, &halves, (n - i) * sizeof *out);
}

// The floats of 16 numbers.
INLINE __m512 sixteen_floats(enum bsw_table_type type, int is_signed, const unsigned char *numbers)
{
    if (type == BSW_TABLE_FLOAT32) return _mm512_loadu_ps(numbers);
    if (type == BSW_TABLE_FLOAT16)
        return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)numbers));
    return float_of8(_mm_loadu_si128((const __m128i *)(const void *)numbers),
                     bsw_float8_exponent_bits(type), is_signed);
}

INLINE void expand_to(enum bsw_table_type type, int is_signed, const void *in, size_t n, float *out)
{
    const unsigned char *bytes = in;
    for (size_t i = 0; i < n; i += LANES)
        _mm512_storeu_ps(out + i,
                         sixteen_floats(type, is_signed, bytes + i * bsw_table_number_bytes(type)));
}

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

INLINE void sums_of(const struct bsw_code_table *table, const uint8_t *codes, size_t bundle_bytes,
                    size_t num_bundles, float *sums)
{
    size_t b = 0;
    if (table->bits == 8) {
        for (size_t num; b < num_bundles; b += num) {
            num = num_bundles - b < BLOCK_BUNDLES ? num_bundles - b : BLOCK_BUNDLES;
            if (num < LEAST_BUNDLES) break;
            sums_of_bytes(table, codes + b * bundle_bytes, bundle_bytes, num,
                          sums + b * BSW_BUNDLE_ROWS);
        }
        if (b < num_bundles)
            bsw_table_scan_avx2.sums(table, codes + b * bundle_bytes, bundle_bytes, num_bundles - b,
                                     sums + b * BSW_BUNDLE_ROWS);
        return;
    }
    for (; b + GROUP <= num_bundles; b += GROUP)
        sums_of_halves(table, codes + b * bundle_bytes, bundle_bytes, GROUP,
                       sums + b * BSW_BUNDLE_ROWS);
    for (; b < num_bundles; b++)
        sums_of_halves(table, codes + b * bundle_bytes, bundle_bytes, 1,
                       sums + b * BSW_BUNDLE_ROWS);
}

#include "kernels/table_scan/table_scan_lanes.h"

static size_t avx512_filter(const float *sums, float multiplier, float addition,
                            const uint32_t *masks, size_t num_bundles, uint32_t first_row,
                            uint32_t limit, uint64_t *items)
{
    const __m512 factor = _mm512_set1_ps(multiplier), more = _mm512_set1_ps(addition),
                 zero = _mm512_setzero_ps(), least = _mm512_set1_ps(bsw_float_limit(limit));
    size_t count = 0;
    for (size_t i = 0; i < num_bundles * BSW_BUNDLE_ROWS; i += LANES) {
        __m512 key = _mm512_mul_ps(_mm512_loadu_ps(sums + i), factor);
        key = _mm512_add_ps(_mm512_add_ps(_mm512_add_ps(key, zero), more), zero);
        uint32_t found = _mm512_cmp_ps_mask(key, least, _CMP_GE_OQ);
        found &= masks[i / BSW_BUNDLE_ROWS] >> (i % BSW_BUNDLE_ROWS);
        if (!found) continue;
        float keys[LANES];
        _mm512_storeu_ps(keys, key);
        count += append_keys(keys, found, first_row + (uint32_t)i, limit, items + count);
    }
    return count;
}

const struct bsw_table_scan_table bsw_table_scan_avx512 = {.level = "avx512",
                                                           .products = products,
                                                           .nearest = nearest,
                                                           .distances = avx512_distances,
                                                           .convert = convert,
                                                           .expand = expand,
                                                           .sums = sums,
                                                           .sums_at = sums_at,
                                                           .filter = avx512_filter};
