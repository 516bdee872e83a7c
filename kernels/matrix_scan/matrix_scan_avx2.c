// matrix_scan on AVX2.
//
// vpmaddubsw multiplies bytes and adds pairs into 16 bits, which two products of 255 * 127
// overflow. How much the documents really use is found once a tile: codes of up to 4 bits leave
// room for 8 pairs, 5 for 4, 6 for 2, 7 for one; 8-bit codes are widened to 16 bits first. A block
// is up to 4 queries against 16 rows. Its integers go to a small array in the first cache, which
// the filters of select read: with 16 registers the epilogue would have to spill them anyway.
#include <immintrin.h>
#include <string.h>

#include "kernels/matrix_scan/matrix_scan.h"
#include "kernels/select/select.h"

#define INLINE        static inline __attribute__((always_inline))

#define BLOCK_QUERIES 4
#define BLOCK_BUNDLES 8 // integers of a query between scan and filter
#define HALF_ROWS     16

// ---- planes to bytes ----

// One word of 8 documents: 8 groups of 4 dimensions, 64 bytes apart. Byte k of a word is copied to
// the four dimensions of groups 2k and 2k + 1, each of which then tests its own bit.
INLINE void unpack_word(const uint32_t *word, size_t plane_stride, unsigned bits, uint8_t *bytes)
{
    const __m256i places = _mm256_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c, 0, 0x04040404,
                                             0x08080808, 0x0c0c0c0c);
    const __m256i low_bits = _mm256_set1_epi32(0x08040201);
    const __m256i high_bits = _mm256_set1_epi32((int)0x80402010u);
    __m256i u[8];
    for (int g = 0; g < 8; g++) u[g] = _mm256_setzero_si256();
    for (unsigned p = 0; p < bits; p++) {
        __m256i x = _mm256_load_si256((const __m256i *)(const void *)(word + p * plane_stride));
        for (int k = 0; k < 4; k++) {
            __m256i place = _mm256_add_epi8(places, _mm256_set1_epi8((char)k));
            __m256i byte = _mm256_shuffle_epi8(x, place);
            __m256i low = _mm256_cmpeq_epi8(_mm256_and_si256(byte, low_bits), low_bits);
            __m256i high = _mm256_cmpeq_epi8(_mm256_and_si256(byte, high_bits), high_bits);
            u[2 * k] = _mm256_sub_epi8(_mm256_add_epi8(u[2 * k], u[2 * k]), low);
            u[2 * k + 1] = _mm256_sub_epi8(_mm256_add_epi8(u[2 * k + 1], u[2 * k + 1]), high);
        }
    }
    for (int g = 0; g < 8; g++) _mm256_store_si256((__m256i *)(void *)(bytes + 64 * g), u[g]);
}

// The part of a bundle's bytes that one segment fills.
static void unpack_bundle(const struct bsw_segment *segment, const uint32_t *bundle,
                          size_t padded_dims, uint8_t *bytes)
{
    size_t plane_stride = (size_t)segment->words * BSW_BUNDLE_ROWS;
    for (size_t w = 0; w < segment->words; w++, bundle += BSW_BUNDLE_ROWS, bytes += 512) {
        for (size_t part = 0; part < 4; part++) { // 8 rows each, two parts a half bundle
            uint8_t *out = bytes + part / 2 * HALF_ROWS * padded_dims + part % 2 * 32;
            unpack_word(bundle + 8 * part, plane_stride, segment->bits, out);
        }
    }
}

static void avx2_unpack(const struct bsw_code_layout *layout, const uint32_t *const *planes,
                        size_t num_bundles, uint8_t *bytes)
{
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        uint8_t *out = bytes + HALF_ROWS * (size_t)segment->padded_dim;
        for (size_t b = 0; b < num_bundles; b++) {
            unpack_bundle(segment, planes[s] + b * bsw_segment_bundle_words(segment),
                          layout->padded_dims, out);
            out += BSW_BUNDLE_ROWS * (size_t)layout->padded_dims;
        }
    }
}

// 32 bits as bytes of 0 or -1.
INLINE __m256i spread_bits(uint32_t word)
{
    const __m256i byte = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2,
                                          2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201u);
    __m256i x = _mm256_shuffle_epi8(_mm256_set1_epi32((int)word), byte);
    return _mm256_cmpeq_epi8(_mm256_and_si256(x, bit), bit);
}

// Sum of 32 signed bytes.
INLINE int32_t sum_bytes(__m256i x)
{
    __m256i turned = _mm256_xor_si256(x, _mm256_set1_epi8(INT8_MIN)); // x + 128
    __m256i four = _mm256_sad_epu8(turned, _mm256_setzero_si256());
    __m128i two = _mm_add_epi64(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
    return (int32_t)(_mm_cvtsi128_si64(two) + _mm_extract_epi64(two, 1)) - 32 * 128;
}

static void avx2_unpack_query(const struct bsw_code_layout *layout, const uint32_t *words,
                              unsigned query_bits, int8_t *components, int32_t *constant)
{
    const __m256i full = _mm256_set1_epi8((char)((1 << query_bits) - 1));
    *constant = 0;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        int8_t *out = components + segment->padded_dim;
        for (size_t w = 0; w < segment->words; w++) {
            size_t rest = segment->dims - 32 * w;
            uint32_t valid = rest < 32 ? (1u << rest) - 1 : UINT32_MAX;
            __m256i u = _mm256_setzero_si256();
            for (unsigned p = 0; p < query_bits; p++)
                u = _mm256_sub_epi8(_mm256_add_epi8(u, u),
                                    spread_bits(words[p * segment->words + w]));
            __m256i q = _mm256_sub_epi8(full, _mm256_add_epi8(u, u));
            q = _mm256_and_si256(q, spread_bits(valid));
            _mm256_store_si256((__m256i *)(void *)(out + 32 * w), q);
            *constant += ((1 << segment->bits) - 1) * sum_bytes(q);
        }
        words += (size_t)query_bits * segment->words;
    }
}

// ---- sums of a block ----

// 16 rows' sums with a block of queries.
typedef __m256i block_sums[BLOCK_QUERIES][2];

INLINE __m256i broadcast_four(const int8_t *components)
{
    int32_t four;
    memcpy(&four, components, sizeof four);
    return _mm256_set1_epi32(four);
}

INLINE __m256i load(const void *from)
{
    return _mm256_load_si256((const __m256i *)from);
}

// Adds the products of `dims` dimensions, few enough for 16 bits.
INLINE void multiply_narrow(const uint8_t *rows, const int8_t *components, size_t stride,
                            size_t dims, block_sums sums, const size_t num)
{
    const __m256i ones = _mm256_set1_epi16(1);
    block_sums part;
    for (size_t j = 0; j < num; j++) part[j][0] = part[j][1] = _mm256_setzero_si256();
    for (size_t i = 0; i < dims; i += 4, rows += 64) {
        __m256i low = load(rows), high = load(rows + 32);
        for (size_t j = 0; j < num; j++) {
            __m256i q = broadcast_four(components + j * stride + i);
            part[j][0] = _mm256_add_epi16(part[j][0], _mm256_maddubs_epi16(low, q));
            part[j][1] = _mm256_add_epi16(part[j][1], _mm256_maddubs_epi16(high, q));
        }
    }
    for (size_t j = 0; j < num; j++) {
        for (size_t h = 0; h < 2; h++)
            sums[j][h] = _mm256_add_epi32(sums[j][h], _mm256_madd_epi16(part[j][h], ones));
    }
}

// Even and odd bytes apart, as 16 bits each.
INLINE __m256i add_wide(__m256i sum, __m256i u, __m256i even, __m256i odd)
{
    __m256i low = _mm256_and_si256(u, _mm256_set1_epi16(0xff));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(low, even));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_srli_epi16(u, 8), odd));
}

// The same for any codes and any number of dimensions.
INLINE void multiply_wide(const uint8_t *rows, const int8_t *components, size_t stride, size_t dims,
                          block_sums sums, const size_t num)
{
    for (size_t i = 0; i < dims; i += 4, rows += 64) {
        for (size_t j = 0; j < num; j++) {
            __m256i q = broadcast_four(components + j * stride + i);
            __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(q, 8), 8);
            __m256i odd = _mm256_srai_epi16(q, 8);
            sums[j][0] = add_wide(sums[j][0], load(rows), even, odd);
            sums[j][1] = add_wide(sums[j][1], load(rows + 32), even, odd);
        }
    }
}

// Dots of 16 rows with num queries; those of a query are BLOCK_BUNDLES bundles apart. step: the
// dimensions whose products fit 16 bits, 0 for none.
INLINE void multiply(const uint8_t *rows, const int8_t *components, const int32_t *constants,
                     size_t padded_dims, size_t step, int32_t *dots, const size_t num)
{
    block_sums sums;
    for (size_t j = 0; j < num; j++) sums[j][0] = sums[j][1] = _mm256_setzero_si256();
    if (step == 0) {
        multiply_wide(rows, components, padded_dims, padded_dims, sums, num);
    } else {
        for (size_t i = 0; i < padded_dims; i += step)
            multiply_narrow(rows + HALF_ROWS * i, components + i, padded_dims, step, sums, num);
    }
    for (size_t j = 0; j < num; j++) {
        __m256i constant = _mm256_set1_epi32(constants[j]);
        __m256i *out = (__m256i *)(void *)(dots + j * BLOCK_BUNDLES * BSW_BUNDLE_ROWS);
        for (size_t h = 0; h < 2; h++) {
            __m256i twice = _mm256_add_epi32(sums[j][h], sums[j][h]);
            _mm256_store_si256(out + h, _mm256_sub_epi32(constant, twice));
        }
    }
}

typedef void multiply_fn(const uint8_t *rows, const int8_t *components, const int32_t *constants,
                         size_t padded_dims, size_t step, int32_t *dots);

#define MULTIPLY(num)                                                                     \
    static void multiply_##num(const uint8_t *rows, const int8_t *components,             \
                               const int32_t *constants, size_t padded_dims, size_t step, \
                               int32_t *dots)                                             \
    {                                                                                     \
        multiply(rows, components, constants, padded_dims, step, dots, num);              \
    }
MULTIPLY(1)
MULTIPLY(2)
MULTIPLY(3)
MULTIPLY(4)
#undef MULTIPLY

static multiply_fn *const multiply_table[BLOCK_QUERIES + 1] = {NULL, multiply_1, multiply_2,
                                                               multiply_3, multiply_4};

// ---- the tile ----

// Dimensions whose products can be added in 16 bits, at 2 * 127 * (2^bits - 1) a pair: 32 where
// codes have up to 4 bits, 4 with 7; 0 with 8.
static size_t narrow_dims(const struct bsw_matrix_tile *tile)
{
    size_t bytes = bsw_matrix_tile_bytes(tile->padded_dims, tile->num_bundles);
    __m256i all = _mm256_setzero_si256();
    for (size_t i = 0; i < bytes; i += 32) all = _mm256_or_si256(all, load(tile->bytes + i));
    for (unsigned bits = 4; bits < 8; bits++) {
        __m256i above = _mm256_set1_epi8((char)(0xff << bits));
        if (_mm256_testz_si256(all, above)) return (size_t)32 >> (bits - 4);
    }
    return 0;
}

static void filter(const struct bsw_matrix_tile *tile, size_t bundle, size_t num_bundles,
                   const int32_t *dots, float scale, struct bsw_matrix_output *output)
{
    size_t row = bundle * BSW_BUNDLE_ROWS;
    uint32_t first_row = tile->first_row + (uint32_t)row;
    uint64_t *items = output->items + output->count;
    if (!tile->scales)
        output->count += bsw_select_avx2.filter_integer(dots, tile->masks + bundle, num_bundles,
                                                        first_row, output->limit, items);
    else
        output->count += bsw_select_avx2.filter_affine(dots, tile->scales + row, tile->biases + row,
                                                       scale, tile->masks + bundle, num_bundles,
                                                       first_row, output->limit, items);
}

static void avx2_scan(const struct bsw_matrix_tile *tile, const struct bsw_matrix_queries *queries,
                      struct bsw_matrix_output *outputs)
{
    _Alignas(64) int32_t dots[BLOCK_QUERIES][BLOCK_BUNDLES * BSW_BUNDLE_ROWS];
    size_t dims = tile->padded_dims, step = narrow_dims(tile);
    for (size_t b = 0; b < tile->num_bundles; b += BLOCK_BUNDLES) {
        size_t rest = tile->num_bundles - b;
        size_t num_bundles = rest < BLOCK_BUNDLES ? rest : BLOCK_BUNDLES;
        for (size_t q = 0; q < queries->num_queries; q += BLOCK_QUERIES) {
            size_t num = queries->num_queries - q;
            if (num > BLOCK_QUERIES) num = BLOCK_QUERIES;
            for (size_t h = 0; h < 2 * num_bundles; h++)
                multiply_table[num](tile->bytes + (2 * b + h) * HALF_ROWS * dims,
                                    queries->components + q * dims, queries->constants + q, dims,
                                    step, dots[0] + h * HALF_ROWS);
            for (size_t j = 0; j < num; j++)
                filter(tile, b, num_bundles, dots[j], tile->scales ? queries->scales[q + j] : 0.0f,
                       &outputs[q + j]);
        }
    }
}

const struct bsw_matrix_scan_table bsw_matrix_scan_avx2 = {
    .level = "avx2",
    .unpack = avx2_unpack,
    .unpack_query = avx2_unpack_query,
    .scan = avx2_scan,
    .scan_staged = bsw_matrix_scan_staged_reference,
};
