// SPDX-License-Identifier: Apache-2.0
// plane_scan on AVX2: table look-ups of nibbles, as in plane_scan_avx512.c.
//
// vpshufb has one table of 16 entries for a whole register, so the words of 32 documents are first
// turned into four registers of one byte each; then a register of 32 look-ups serves 4 dimensions
// of 32 documents. Sums are 16 bits wide, even and odd bytes apart, over one plane of a chunk: at
// most 32 words * 8 nibbles * 252 = 64,512. The seventh query bit is a second pass.
#include <immintrin.h>

#include "kernels/plane_scan/plane_scan.h"
#include "kernels/plane_scan/plane_scan_rows.h"

#define INLINE static inline __attribute__((always_inline))

// Nibble t of a word (dimensions 4t .. 4t + 3): 16 distances.
struct nibble_tables {
    _Alignas(32) uint8_t of[8][16];
};

// A query plane's word as 32 bytes of 0 or 1.
INLINE __m256i spread_bits(uint32_t word)
{
    __m256i byte = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2,
                                    2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201u);
    __m256i x = _mm256_shuffle_epi8(_mm256_set1_epi32((int)word), byte);
    return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(x, bit), bit), _mm256_set1_epi8(1));
}

// All-ones in the entries whose bit k is 1.
INLINE __m256i entries_with_bit(int k)
{
    static const long long low[4] = {(long long)0xff00ff00ff00ff00u, (long long)0xffff0000ffff0000u,
                                     (long long)0xffffffff00000000u, 0};
    static const long long high[4] = {(long long)0xff00ff00ff00ff00u,
                                      (long long)0xffff0000ffff0000u,
                                      (long long)0xffffffff00000000u, -1};
    return _mm256_setr_epi64x(low[k], high[k], low[k], high[k]);
}

// Entry n of nibble t is the sum over k of u[4t + k], or full - u where bit k of n is 1: full is a
// power of two less one, so that is an xor. Nibbles t and t + 4 are made together.
INLINE void store_tables(__m256i u, __m256i full, struct nibble_tables *table)
{
    for (int t = 0; t < 4; t++) {
        __m256i sum = _mm256_setzero_si256();
        for (int k = 0; k < 4; k++) {
            __m256i code = _mm256_shuffle_epi8(u, _mm256_set1_epi8((char)(4 * t + k)));
            __m256i turned = _mm256_and_si256(full, entries_with_bit(k));
            sum = _mm256_add_epi8(sum, _mm256_xor_si256(code, turned));
        }
        _mm_store_si128((__m128i *)(void *)table->of[t], _mm256_castsi256_si128(sum));
        _mm_store_si128((__m128i *)(void *)table->of[t + 4], _mm256_extracti128_si256(sum, 1));
    }
}

// Tables of num_words words from query planes that are `words` apart.
static void make_tables(const uint32_t *query, size_t words, size_t num_words, unsigned query_bits,
                        struct nibble_tables *tables)
{
    __m256i full = _mm256_set1_epi8((char)((1 << query_bits) - 1));
    for (size_t w = 0; w < num_words; w++) {
        __m256i u = _mm256_setzero_si256();
        for (unsigned i = 0; i < query_bits; i++) {
            u = _mm256_add_epi8(_mm256_add_epi8(u, u), spread_bits(query[i * words + w]));
        }
        store_tables(u, full, &tables[w]);
    }
}

// Byte b of the words of 32 documents in bytes[b]. Documents come in the order of the 32-bit
// unpacks: 128-bit half h of byte 4q + i is document 8q + 4h + i.
INLINE void turn_word(const uint32_t *word, __m256i bytes[4])
{
    __m256i by_byte = _mm256_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0, 4,
                                       8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m256i x[4];
    for (int i = 0; i < 4; i++) {
        x[i] = _mm256_load_si256((const __m256i *)(const void *)(word + 8 * i));
        x[i] = _mm256_shuffle_epi8(x[i], by_byte);
    }
    __m256i low01 = _mm256_unpacklo_epi32(x[0], x[1]), high01 = _mm256_unpackhi_epi32(x[0], x[1]);
    __m256i low23 = _mm256_unpacklo_epi32(x[2], x[3]), high23 = _mm256_unpackhi_epi32(x[2], x[3]);
    bytes[0] = _mm256_unpacklo_epi64(low01, low23);
    bytes[1] = _mm256_unpackhi_epi64(low01, low23);
    bytes[2] = _mm256_unpacklo_epi64(high01, high23);
    bytes[3] = _mm256_unpackhi_epi64(high01, high23);
}

// Sums of 32 documents: `all` adds whole 16-bit pairs of bytes, `odd` the upper bytes alone.
struct sums {
    __m256i all, odd;
};

INLINE struct sums add_byte(struct sums sums, __m256i byte, const struct nibble_tables *table,
                            int b)
{
    const __m128i *of = (const __m128i *)(const void *)table->of[2 * b];
    __m256i nibble = _mm256_set1_epi8(0x0f);
    __m256i low = _mm256_and_si256(byte, nibble);
    __m256i high = _mm256_and_si256(_mm256_srli_epi16(byte, 4), nibble);
    low = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_load_si128(of)), low);
    high = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_load_si128(of + 1)), high);
    sums.all = _mm256_add_epi16(sums.all, _mm256_add_epi16(low, high));
    sums.odd = _mm256_add_epi16(sums.odd, _mm256_srli_epi16(low, 8));
    sums.odd = _mm256_add_epi16(sums.odd, _mm256_srli_epi16(high, 8));
    return sums;
}

// Distances of documents 8q .. 8q + 7, as 32 bits, added to distances[q] after doubling those.
INLINE void add_plane(struct sums sums, __m256i distances[4])
{
    __m256i even = _mm256_sub_epi16(sums.all, _mm256_slli_epi16(sums.odd, 8));
    __m256i low = _mm256_unpacklo_epi16(even, sums.odd);
    __m256i high = _mm256_unpackhi_epi16(even, sums.odd);
    __m256i zero = _mm256_setzero_si256();
    __m256i plane[4] = {_mm256_unpacklo_epi16(low, zero), _mm256_unpackhi_epi16(low, zero),
                        _mm256_unpacklo_epi16(high, zero), _mm256_unpackhi_epi16(high, zero)};
    for (int q = 0; q < 4; q++) {
        distances[q] = _mm256_add_epi32(_mm256_add_epi32(distances[q], distances[q]), plane[q]);
    }
}

// dots += offset - 2 * (distance << shift) over the chunk's words; the old dots count if
// `accumulate`.
static void scan_chunk(const struct chunk *chunk, const struct nibble_tables *tables,
                       size_t num_bundles, int32_t offset, int accumulate, int32_t *dots)
{
    for (size_t b = 0; b < num_bundles; b++) {
        const uint32_t *plane = chunk->codes + b * chunk->bundle_words;
        __m256i zero = _mm256_setzero_si256(), distances[4] = {zero, zero, zero, zero};
        for (unsigned j = 0; j < chunk->bits; j++, plane += chunk->words * BSW_BUNDLE_ROWS) {
            struct sums sums = {zero, zero};
            for (size_t w = 0; w < chunk->num_words; w++) {
                __m256i bytes[4];
                bsw_prefetch_word(chunk, plane + w * BSW_BUNDLE_ROWS);
                turn_word(plane + w * BSW_BUNDLE_ROWS, bytes);
                for (int k = 0; k < 4; k++) sums = add_byte(sums, bytes[k], &tables[w], k);
            }
            add_plane(sums, distances);
        }
        for (int q = 0; q < 4; q++, dots += 8) {
            __m256i *to = (__m256i *)(void *)dots;
            __m256i twice =
                _mm256_sll_epi32(distances[q], _mm_cvtsi32_si128((int)chunk->shift + 1));
            __m256i from = _mm256_set1_epi32(offset);
            if (accumulate) from = _mm256_add_epi32(from, _mm256_load_si256(to));
            _mm256_store_si256(to, _mm256_sub_epi32(from, twice));
        }
    }
}

#define SECOND_PASS
#include "kernels/plane_scan/plane_scan_passes.h"

const struct bsw_plane_scan_table bsw_plane_scan_avx2 = {
    .level = "avx2",
    .dots = scan_dots,
    .add_rows = bsw_add_rows,
};
