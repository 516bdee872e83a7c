// SPDX-License-Identifier: Apache-2.0
// plane_scan on AVX-512: table look-ups of nibbles.
//
// For one query the distance of 4 dimensions in one document plane is a function of the plane's 4
// bits: sum over k of u_k, or of (2^Bq - 1) - u_k where the bit is 1, u the query's codes. Up to 6
// query bits that is at most 252 and fits a byte, so 16 bytes serve a nibble and vpermb looks up 4
// of them a word at once, with the byte's place in index bits 4 and 5. A word of 16 documents costs
// 7 instructions (shift, 2 ternary logic, 2 permutes, 2 dot products), whatever the query bits;
// xor, popcount and add for each pair of planes are 3 a query bit: 18 at the default of 6 (from the
// second cache, 96 dims and 3 x 4 bits: 1.26 G documents/s this way, 0.84 that way, both without
// spills). The seventh query bit is done that way.
#include <immintrin.h>

#include "kernels/plane_scan/plane_scan.h"
#include "kernels/plane_scan/plane_scan_rows.h"

#define INLINE static inline __attribute__((always_inline))

// Distances of the low and the high nibble of byte b of a word: entry 16*b + nibble.
struct nibble_tables {
    _Alignas(64) uint8_t low[64];
    uint8_t high[64];
};

// first: place of dimension 0 of each byte's nibble. turned[k]: 2^bits - 1 where bit k of the entry
// is 1.
INLINE __m512i nibble_table(__m512i u, __m512i first, const __m512i turned[4])
{
    __m512i sum = _mm512_setzero_si512();
    for (int k = 0; k < 4; k++) {
        __m512i place = _mm512_add_epi8(first, _mm512_set1_epi8((char)k));
        __m512i code = _mm512_permutexvar_epi8(place, u);
        sum = _mm512_add_epi8(sum, _mm512_xor_si512(code, turned[k]));
    }
    return sum;
}

// Tables of num_words words from query planes that are `words` apart.
static void make_tables(const uint32_t *query, size_t words, size_t num_words, unsigned query_bits,
                        struct nibble_tables *tables)
{
    __m512i full = _mm512_set1_epi8((char)((1 << query_bits) - 1));
    const __m512i turned[4] = {_mm512_maskz_mov_epi8(0xaaaaaaaaaaaaaaaau, full),
                               _mm512_maskz_mov_epi8(0xccccccccccccccccu, full),
                               _mm512_maskz_mov_epi8(0xf0f0f0f0f0f0f0f0u, full),
                               _mm512_maskz_mov_epi8(0xff00ff00ff00ff00u, full)};
    __m512i low = _mm512_inserti32x4(_mm512_setzero_si512(), _mm_set1_epi8(8), 1);
    low = _mm512_inserti32x4(low, _mm_set1_epi8(16), 2);
    low = _mm512_inserti32x4(low, _mm_set1_epi8(24), 3);
    __m512i high = _mm512_add_epi8(low, _mm512_set1_epi8(4));
    for (size_t w = 0; w < num_words; w++) {
        __m256i u = _mm256_setzero_si256();
        for (unsigned i = 0; i < query_bits; i++) {
            u = _mm256_add_epi8(u, u);
            u = _mm256_mask_add_epi8(u, query[i * words + w], u, _mm256_set1_epi8(1));
        }
        __m512i codes = _mm512_castsi256_si512(u);
        _mm512_store_si512(tables[w].low, nibble_table(codes, low, turned));
        _mm512_store_si512(tables[w].high, nibble_table(codes, high, turned));
    }
}

// Two sums, so that the additions of a word do not wait for each other.
struct sums {
    __m512i low, high, extra;
};

// A loaded value stays in its register: gcc would load it again for each use, and a CPU that loads
// 64 bytes a cycle does little else then.
INLINE __m512i load_once(const void *from)
{
    __m512i value = _mm512_load_si512(from);
    __asm__("" : "+v"(value));
    return value;
}

INLINE struct sums add_word(struct sums sums, const uint32_t *word, __m512i low_table,
                            __m512i high_table, __m512i weight, int has_extra, uint32_t extra)
{
    __m512i nibble = _mm512_set1_epi32(0x0f0f0f0f), place = _mm512_set1_epi32(0x30201000);
    __m512i x = load_once(word);
    __m512i low = _mm512_ternarylogic_epi32(x, nibble, place, 0xea); // (x & nibble) | place
    __m512i high = _mm512_ternarylogic_epi32(_mm512_srli_epi32(x, 4), nibble, place, 0xea);
    low = _mm512_permutexvar_epi8(low, low_table);
    high = _mm512_permutexvar_epi8(high, high_table);
    sums.low = _mm512_dpbusd_epi32(sums.low, low, weight);
    sums.high = _mm512_dpbusd_epi32(sums.high, high, weight);
    if (has_extra) {
        __m512i differing = _mm512_xor_si512(x, _mm512_set1_epi32((int)extra));
        sums.extra = _mm512_dpbusd_epi32(sums.extra, _mm512_popcnt_epi8(differing), weight);
    }
    return sums;
}

// -2 * distance of 16 documents from the sums, which hold negative weights.
INLINE __m512i minus_two_distances(struct sums sums, int has_extra)
{
    __m512i sum = _mm512_add_epi32(sums.low, sums.high);
    sum = _mm512_add_epi32(sum, sum);
    if (has_extra)
        sum = _mm512_add_epi32(_mm512_add_epi32(sum, sum), _mm512_slli_epi32(sums.extra, 1));
    return sum;
}

// dots += offset - 2 * distance over the chunk's words; the old dots count if `accumulate`.
// Weights are negative because -128 fits a byte and 128 does not.
INLINE void scan_chunk(const struct chunk *chunk, const struct nibble_tables *tables,
                       size_t num_bundles, int has_extra, int32_t offset, int accumulate,
                       int32_t *dots)
{
    for (size_t b = 0; b < num_bundles; b++, dots += BSW_BUNDLE_ROWS) {
        const uint32_t *plane = chunk->codes + b * chunk->bundle_words;
        struct sums lower = {_mm512_setzero_si512(), _mm512_setzero_si512(),
                             _mm512_setzero_si512()};
        struct sums upper = lower;
        for (unsigned j = 0; j < chunk->bits; j++, plane += chunk->words * BSW_BUNDLE_ROWS) {
            __m512i weight = _mm512_set1_epi8((char)-(1 << (chunk->bits - 1 - j)));
            for (size_t w = 0; w < chunk->num_words; w++) {
                const uint32_t *word = plane + w * BSW_BUNDLE_ROWS;
                bsw_prefetch_word(chunk, word);
                uint32_t extra = has_extra ? chunk->extra[w] : 0;
                const __m512i low = load_once(tables[w].low), high = load_once(tables[w].high);
                lower = add_word(lower, word, low, high, weight, has_extra, extra);
                upper = add_word(upper, word + 16, low, high, weight, has_extra, extra);
            }
        }
        __m512i first = _mm512_set1_epi32(offset), second = first;
        if (accumulate) {
            first = _mm512_add_epi32(first, _mm512_load_si512(dots));
            second = _mm512_add_epi32(second, _mm512_load_si512(dots + 16));
        }
        _mm512_store_si512(dots, _mm512_add_epi32(first, minus_two_distances(lower, has_extra)));
        _mm512_store_si512(dots + 16,
                           _mm512_add_epi32(second, minus_two_distances(upper, has_extra)));
    }
}

static void avx512_dots(const struct bsw_segment *segment, struct bsw_word_range range,
                        const uint32_t *codes, size_t num_bundles, const uint32_t *query,
                        unsigned query_bits, int accumulate, int32_t *dots)
{
    struct nibble_tables tables[CHUNK_WORDS];
    unsigned table_bits = query_bits < TABLE_BITS ? query_bits : TABLE_BITS;
    size_t words = segment->words, last = (size_t)range.first + range.count;
    int32_t offset = bsw_range_limit(segment, range, query_bits);
    for (size_t w = range.first; w < last; w += CHUNK_WORDS) {
        struct chunk chunk = bsw_chunk_of(segment, range, codes, num_bundles, w);
        if (query_bits > TABLE_BITS) chunk.extra = query + TABLE_BITS * words + w;
        make_tables(query + w, words, chunk.num_words, table_bits, tables);
        if (query_bits > TABLE_BITS)
            scan_chunk(&chunk, tables, num_bundles, 1, offset, accumulate, dots);
        else
            scan_chunk(&chunk, tables, num_bundles, 0, offset, accumulate, dots);
        offset = 0;
        accumulate = 1;
    }
}

const struct bsw_plane_scan_table bsw_plane_scan_avx512 = {
    .level = "avx512",
    .dots = avx512_dots,
    .add_rows = bsw_add_rows,
};
