// SPDX-License-Identifier: Apache-2.0
// matrix_scan on 256-bit registers: all but how products are added. A level that includes this
// defines BLOCK_QUERIES before it, and tile_form (matrix_scan_blocks.h) and add_products, which is
// declared here, behind it.
#ifndef BITSWEEP_KERNELS_MATRIX_SCAN_256_H
#define BITSWEEP_KERNELS_MATRIX_SCAN_256_H

#include <immintrin.h>
#include <string.h>

#define SELECT_TABLE bsw_select_avx2
#define UNPACK_ROWS  8
#include "kernels/matrix_scan/matrix_scan_blocks.h"

#if defined(BLOCK_QUERIES) // nothing without it

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

INLINE int32_t unpack_query_word(const uint32_t *word, size_t plane_stride, unsigned query_bits,
                                 uint32_t valid, int8_t *out)
{
    const __m256i full = _mm256_set1_epi8((char)((1 << query_bits) - 1));
    __m256i u = _mm256_setzero_si256();
    for (unsigned p = 0; p < query_bits; p++)
        u = _mm256_sub_epi8(_mm256_add_epi8(u, u), spread_bits(word[p * plane_stride]));
    __m256i q = _mm256_sub_epi8(full, _mm256_add_epi8(u, u));
    q = _mm256_and_si256(q, spread_bits(valid));
    _mm256_store_si256((__m256i *)(void *)out, q);
    return sum_bytes(q);
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

// The level's: the sums, which start at 0, of `dims` dimensions of 16 rows with num queries.
INLINE void add_products(const struct factors *factors, block_sums sums, const size_t num);

INLINE const int32_t *complete_constants(const struct factors *factors, const int32_t *constants,
                                         size_t num, int32_t room[BLOCK_QUERIES])
{
    (void)factors, (void)num, (void)room;
    return constants; // products lack nothing
}

INLINE void multiply(const struct factors *factors, const int32_t *constants, int32_t *dots,
                     const size_t num)
{
    const __m256i weight = _mm256_set1_epi32(factors->weight);
    block_sums sums;
    for (size_t j = 0; j < num; j++) sums[j][0] = sums[j][1] = _mm256_setzero_si256();
    add_products(factors, sums, num);
    for (size_t j = 0; j < num; j++) {
        __m256i constant = _mm256_set1_epi32(constants[j]);
        __m256i *out = (__m256i *)(void *)(dots + j * BLOCK_BUNDLES * BSW_BUNDLE_ROWS);
        for (size_t h = 0; h < 2; h++) {
            __m256i product = _mm256_mullo_epi32(sums[j][h], weight);
            _mm256_store_si256(out + h, _mm256_add_epi32(constant, product));
        }
    }
}

#define MULTIPLY(num)                                                                   \
    static void multiply_##num(const struct factors *factors, const int32_t *constants, \
                               int32_t *dots)                                           \
    {                                                                                   \
        multiply(factors, constants, dots, num);                                        \
    }
MULTIPLY(1)
MULTIPLY(2)
MULTIPLY(3)
MULTIPLY(4)
#if BLOCK_QUERIES > 4
MULTIPLY(5)
MULTIPLY(6)
#endif
#undef MULTIPLY

// ---- whole keys ----

INLINE uint32_t whole_scores(const int32_t *dots, const int32_t *offsets, uint32_t limit,
                             uint32_t scores[BSW_BUNDLE_ROWS])
{
    const __m256i sign = _mm256_set1_epi32(INT32_MIN), least = _mm256_set1_epi32((int)limit);
    uint32_t pass = 0;
    for (size_t r = 0; r < BSW_BUNDLE_ROWS; r += 8) {
        __m256i totals = _mm256_add_epi32(load(dots + r), load(offsets + r));
        __m256i found = _mm256_xor_si256(totals, sign);
        __m256i reach = _mm256_cmpeq_epi32(_mm256_max_epu32(found, least), found);
        _mm256_store_si256((__m256i *)(scores + r), found);
        pass |= (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(reach)) << r;
    }
    return pass;
}

#endif
#endif
