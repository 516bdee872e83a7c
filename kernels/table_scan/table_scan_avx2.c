// SPDX-License-Identifier: Apache-2.0
// table_scan on AVX2: 8 entries, or rows, at a time. Look-ups of 8-bit codes are loads; those of
// 4-bit codes are shuffles of the bytes of 16 numbers, 32 rows at a time.
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "kernels/table_scan/table_scan.h"

#define INLINE static inline __attribute__((always_inline))
#define LANES  8 // floats of a register
#define BLOCK  8 // registers of entries under way
#define WIDE   4 // registers of sums of a bundle

// ---- making tables ----

// Chains of num registers of entries of a part, from `start` on, or 0.
INLINE void chain(const float *entries, size_t stride, uint32_t part_dims, const float *x,
                  float factor, const float *start, size_t num, __m256 *sums)
{
    for (size_t k = 0; k < num; k++)
        sums[k] = start ? _mm256_loadu_ps(start + k * LANES) : _mm256_setzero_ps();
    for (uint32_t d = 0; d < part_dims; d++) {
        __m256 v = _mm256_set1_ps(factor * x[d]);
        for (size_t k = 0; k < num; k++)
            sums[k] =
                _mm256_fmadd_ps(v, _mm256_loadu_ps(entries + d * stride + k * LANES), sums[k]);
    }
}

INLINE void part_products(const float *entries, size_t num, uint32_t part_dims, const float *x,
                          const float *start, float *out)
{
    const size_t block = num < BLOCK * LANES ? num / LANES : BLOCK;
    for (size_t j = 0; j < num; j += block * LANES) {
        __m256 sums[BLOCK];
        chain(entries + j, num, part_dims, x, 1.0f, start ? start + j : NULL, block, sums);
        for (size_t k = 0; k < block; k++) _mm256_storeu_ps(out + j + k * LANES, sums[k]);
    }
}

// The least of all lanes, and of equal ones the one of the first entry.
INLINE uint8_t first_least(__m256 least, __m256i numbers)
{
    float values[LANES];
    int32_t places[LANES];
    int best = 0;
    _mm256_storeu_ps(values, least);
    _mm256_storeu_si256((__m256i *)(void *)places, numbers);
    for (int i = 1; i < LANES; i++)
        if (values[i] < values[best] || (values[i] == values[best] && places[i] < places[best]))
            best = i;
    return (uint8_t)places[best];
}

INLINE uint8_t part_nearest(const float *entries, const float *norms, size_t num,
                            uint32_t part_dims, const float *x)
{
    const size_t block = num < BLOCK * LANES ? num / LANES : BLOCK;
    __m256 least = _mm256_set1_ps(INFINITY);
    __m256i best = _mm256_setzero_si256(), number = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
            step = _mm256_set1_epi32(LANES);
    for (size_t j = 0; j < num; j += block * LANES) {
        __m256 sums[BLOCK];
        chain(entries + j, num, part_dims, x, -2.0f, norms + j, block, sums);
        for (size_t k = 0; k < block; k++) {
            __m256 is_less = _mm256_cmp_ps(sums[k], least, _CMP_LT_OQ);
            least = _mm256_blendv_ps(least, sums[k], is_less);
            best = _mm256_blendv_epi8(best, number, _mm256_castps_si256(is_less));
            number = _mm256_add_epi32(number, step);
        }
    }
    return first_least(least, best);
}

static float avx2_distances(const struct bsw_product_book *book, const float *list,
                            const float *query, const float *bases, float *out)
{
    size_t num = bsw_product_entries(book);
    __m256 largest = _mm256_setzero_ps();
    for (uint32_t p = 0; p < book->parts; p++) {
        __m256 base = _mm256_set1_ps(bases[p]);
        for (size_t i = p * num; i < (p + 1) * num; i += LANES) {
            __m256 sum = _mm256_add_ps(_mm256_loadu_ps(list + i), _mm256_loadu_ps(query + i));
            sum = _mm256_max_ps(_mm256_add_ps(sum, base), _mm256_setzero_ps());
            largest = _mm256_max_ps(sum, largest);
            _mm256_storeu_ps(out + i, sum);
        }
    }
    float lanes[LANES], most = 0.0f;
    _mm256_storeu_ps(lanes, largest);
    for (int i = 0; i < LANES; i++) most = lanes[i] > most ? lanes[i] : most;
    return most;
}

// ---- formats ----

// Bytes of 8 numbers in 8 lanes of 32 bits.
INLINE __m256i float8_of(__m256 v, uint32_t exponent_bits, int is_signed)
{
    uint32_t bias = (1u << (exponent_bits - 1)) - 1;
    __m256i all = _mm256_castps_si256(v),
            bits = _mm256_and_si256(all, _mm256_set1_epi32(0x7fffffff)),
            first = _mm256_set1_epi32((int)(0x3f800000u - (bias << 23)));
    // Bits of positive floats are in order, below the sign.
    __m256i over = _mm256_sub_epi32(_mm256_max_epi32(bits, first), first);
    __m256i u =
        _mm256_min_epi32(_mm256_srli_epi32(over, 15 + (int)exponent_bits), _mm256_set1_epi32(255));
    if (!is_signed) return u;
    __m256i sign = _mm256_castps_si256(_mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_LT_OQ));
    return _mm256_or_si256(_mm256_and_si256(u, _mm256_set1_epi32(254)),
                           _mm256_srli_epi32(sign, 31));
}

// The floats of 8 bytes in 8 lanes, whose upper bits are 0.
INLINE __m256 float_of8(__m256i u, uint32_t exponent_bits, int is_signed)
{
    uint32_t base =
        is_signed ? bsw_float8_signed_base(exponent_bits) : bsw_float8_base(exponent_bits);
    __m256i shifted = is_signed ? _mm256_and_si256(u, _mm256_set1_epi32(254)) : u;
    __m256i bits = _mm256_add_epi32(_mm256_slli_epi32(shifted, 15 + (int)exponent_bits),
                                    _mm256_set1_epi32((int)base));
    if (is_signed) bits = _mm256_or_si256(bits, _mm256_slli_epi32(u, 31));
    return _mm256_castsi256_ps(bits);
}

INLINE void convert_float8(uint32_t exponent_bits, int is_signed, float power, const float *in,
                           size_t n, uint8_t *out)
{
    const __m256 factor = _mm256_set1_ps(power);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    size_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        __m256i u[4];
        for (int k = 0; k < 4; k++)
            u[k] = float8_of(_mm256_mul_ps(_mm256_loadu_ps(in + i + k * LANES), factor),
                             exponent_bits, is_signed);
        __m256i bytes =
            _mm256_packus_epi16(_mm256_packus_epi32(u[0], u[1]), _mm256_packus_epi32(u[2], u[3]));
        _mm256_storeu_si256((__m256i *)(void *)(out + i),
                            _mm256_permutevar8x32_epi32(bytes, order));
    }
    for (; i < n; i++)
        out[i] = is_signed ? bsw_float8_encode_signed(exponent_bits, in[i] * power)
                           : bsw_float8_encode(exponent_bits, in[i] * power);
}

INLINE __m128i halves_of(__m256 v, __m256 factor)
{
    const __m256 most = _mm256_set1_ps(BSW_HALF_MAX), zero = _mm256_setzero_ps();
    v = _mm256_mul_ps(v, factor);
    v = _mm256_max_ps(_mm256_min_ps(v, most), _mm256_sub_ps(zero, most));
    // -0 is 0, as in the reference.
    return _mm256_cvtps_ph(_mm256_add_ps(v, zero), _MM_FROUND_TO_NEAREST_INT);
}

static void convert_halves(float power, const float *in, size_t n, uint16_t *out)
{
    const __m256 factor = _mm256_set1_ps(power);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        _mm_storeu_si128((__m128i *)(void *)(out + i), halves_of(_mm256_loadu_ps(in + i), factor));
    if (i == n) return;
    float eight[LANES] = {0}; // copies of any length would stall whole loads
    memcpy(eight, in + i, (n - i) * sizeof *in);
    __m128i halves = halves_of(_mm256_loadu_ps(eight), factor);
    memcpy(out + i, &halves, (n - i) * sizeof *out);
}

// ---- 8-bit codes ----

// A load and an addition a row were faster than gathers, 0.30 ns against 0.42 on Zen 3.
// The tables of so many parts stay in the first cache while all bundles go over them.
#define PART_BLOCK 16

INLINE void add_floats(const float *numbers, const uint8_t *codes, uint32_t parts, float *sums)
{
    float s[LANES];
    memcpy(s, sums, sizeof s);
    for (uint32_t p = 0; p < parts; p++) {
        for (int i = 0; i < LANES; i++) s[i] += numbers[codes[i]];
        numbers += 256;
        codes += BSW_BUNDLE_ROWS;
    }
    memcpy(sums, s, sizeof s);
}

static void sums_of_floats(const struct bsw_code_table *table, const uint8_t *codes,
                           size_t bundle_bytes, size_t num_bundles, float *sums)
{
    memset(sums, 0, num_bundles * BSW_BUNDLE_ROWS * sizeof *sums);
    for (uint32_t p = 0; p < table->parts; p += PART_BLOCK) {
        const float *numbers = table->numbers + (size_t)p * 256;
        uint32_t left = table->parts - p, parts = left < PART_BLOCK ? left : PART_BLOCK;
        for (size_t b = 0; b < num_bundles; b++)
            for (size_t r = 0; r < BSW_BUNDLE_ROWS; r += LANES)
                add_floats(numbers, codes + b * bundle_bytes + p * BSW_BUNDLE_ROWS + r, parts,
                           sums + b * BSW_BUNDLE_ROWS + r);
    }
}

// ---- numbers of a table ----

INLINE void expand_to(enum bsw_table_type type, int is_signed, const void *in, size_t n, float *out)
{
    const uint16_t *halves = in;
    const uint8_t *bytes = in;
    if (type == BSW_TABLE_FLOAT32) {
        memcpy(out, in, n * sizeof *out);
        return;
    }
    for (size_t i = 0; i < n; i += LANES)
        if (type == BSW_TABLE_FLOAT16) {
            __m128i eight = _mm_loadu_si128((const __m128i *)(const void *)(halves + i));
            _mm256_storeu_ps(out + i, _mm256_cvtph_ps(eight));
        } else {
            __m128i eight = _mm_loadl_epi64((const __m128i *)(const void *)(bytes + i));
            _mm256_storeu_ps(out + i, float_of8(_mm256_cvtepu8_epi32(eight),
                                                bsw_float8_exponent_bits(type), is_signed));
        }
}

// ---- 4-bit codes ----

// Registers of a bundle's numbers hold rows 4i to 4i + 3 and 16 + 4i to 19 + 4i.
struct wide {
    __m256 k[WIDE];
};

// Byte `place` of each of 16 numbers, twice.
INLINE __m256i bytes_of(const float *numbers, size_t place)
{
    const uint8_t *bytes = (const uint8_t *)numbers;
    uint8_t sixteen[16];
    for (size_t j = 0; j < 16; j++) sixteen[j] = bytes[j * sizeof *numbers + place];
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)sixteen));
}

INLINE struct wide shuffle_up(const __m256i *table, __m256i codes)
{
    struct wide found;
    __m256i b[4];
    for (size_t i = 0; i < 4; i++) b[i] = _mm256_shuffle_epi8(table[i], codes);
    __m256i low = _mm256_unpacklo_epi8(b[0], b[1]), high = _mm256_unpackhi_epi8(b[0], b[1]);
    __m256i low2 = _mm256_unpacklo_epi8(b[2], b[3]), high2 = _mm256_unpackhi_epi8(b[2], b[3]);
    found.k[0] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(low, low2));
    found.k[1] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(low, low2));
    found.k[2] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(high, high2));
    found.k[3] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(high, high2));
    return found;
}

#define GROUP 4 // bundles that share the shuffled bytes of a table

// Rows of a register back in their order.
INLINE void store_wide(const struct wide *s, float *sums)
{
    for (int k = 0; k < WIDE; k++) {
        _mm_storeu_ps(sums + 4 * k, _mm256_castps256_ps128(s->k[k]));
        _mm_storeu_ps(sums + 16 + 4 * k, _mm256_extractf128_ps(s->k[k], 1));
    }
}

INLINE void sums_of_halves(const struct bsw_code_table *table, const uint8_t *codes,
                           size_t bundle_bytes, size_t num_bundles, float *sums)
{
    const __m256i nibble = _mm256_set1_epi8(15);
    const float *numbers = table->numbers;
    struct wide s[GROUP];
    for (size_t g = 0; g < num_bundles; g++)
        for (int k = 0; k < WIDE; k++) s[g].k[k] = _mm256_setzero_ps();
    for (uint32_t p = 0; p < table->parts; p++, numbers += 16) {
        __m256i bytes[4];
        for (size_t i = 0; i < 4; i++) bytes[i] = bytes_of(numbers, i);
        for (size_t g = 0; g < num_bundles; g++) {
            const uint8_t *at = codes + g * bundle_bytes + p / 2 * BSW_BUNDLE_ROWS;
            __m256i both = _mm256_loadu_si256((const __m256i *)(const void *)at);
            if (p % 2) both = _mm256_srli_epi16(both, 4);
            struct wide found = shuffle_up(bytes, _mm256_and_si256(both, nibble));
            for (int k = 0; k < WIDE; k++) s[g].k[k] = _mm256_add_ps(s[g].k[k], found.k[k]);
        }
    }
    for (size_t g = 0; g < num_bundles; g++) store_wide(&s[g], sums + g * BSW_BUNDLE_ROWS);
}

// ---- both ----

INLINE void sums_of(const struct bsw_code_table *table, const uint8_t *codes, size_t bundle_bytes,
                    size_t num_bundles, float *sums)
{
    if (table->bits == 8) {
        sums_of_floats(table, codes, bundle_bytes, num_bundles, sums);
        return;
    }
    for (size_t b = 0; b < num_bundles; b += GROUP) {
        size_t left = num_bundles - b;
        sums_of_halves(table, codes + b * bundle_bytes, bundle_bytes, left < GROUP ? left : GROUP,
                       sums + b * BSW_BUNDLE_ROWS);
    }
}

#include "kernels/table_scan/table_scan_lanes.h"

static size_t avx2_filter(const float *sums, float multiplier, float addition,
                          const uint32_t *masks, size_t num_bundles, uint32_t first_row,
                          uint32_t limit, uint64_t *items)
{
    const __m256 factor = _mm256_set1_ps(multiplier), more = _mm256_set1_ps(addition),
                 zero = _mm256_setzero_ps(), least = _mm256_set1_ps(bsw_float_limit(limit));
    size_t count = 0;
    for (size_t i = 0; i < num_bundles * BSW_BUNDLE_ROWS; i += LANES) {
        __m256 key = _mm256_mul_ps(_mm256_loadu_ps(sums + i), factor);
        key = _mm256_add_ps(_mm256_add_ps(_mm256_add_ps(key, zero), more), zero);
        uint32_t found = (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(key, least, _CMP_GE_OQ));
        found &= masks[i / BSW_BUNDLE_ROWS] >> (i % BSW_BUNDLE_ROWS);
        if (!found) continue;
        float keys[LANES];
        _mm256_storeu_ps(keys, key);
        count += append_keys(keys, found, first_row + (uint32_t)i, limit, items + count);
    }
    return count;
}

const struct bsw_table_scan_table bsw_table_scan_avx2 = {.level = "avx2",
                                                         .products = products,
                                                         .nearest = nearest,
                                                         .distances = avx2_distances,
                                                         .convert = convert,
                                                         .expand = expand,
                                                         .sums = sums,
                                                         .sums_at = sums_at,
                                                         .filter = avx2_filter};
