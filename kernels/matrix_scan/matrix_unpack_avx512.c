// SPDX-License-Identifier: Apache-2.0
// Bit planes to bytes on AVX-512 VBMI, for matrix_scan_avx512.c.
#include "kernels/matrix_scan/matrix_unpack_avx512.h"

#include <immintrin.h>

#define INLINE    static inline __attribute__((always_inline))

#define FAR_BYTES 8192 // planes to prefetch ahead; see plane_scan_avx512.c

// One word of 16 documents: 8 groups of 4 dimensions, 64 bytes each. A byte of a window is 8 bits
// from any bit on of the 64 that two documents share; rotated, the bit wanted is where the code has
// it.
INLINE void unpack_word(const uint32_t *word, size_t plane_stride, unsigned bits, uint8_t *bytes)
{
    const __m512i first = _mm512_set1_epi64(0x2322212003020100);
    __m512i u[8];
    for (int g = 0; g < 8; g++) u[g] = _mm512_setzero_si512();
    for (unsigned p = 0; p < bits; p++) {
        unsigned place = bits - 1 - p;
        __m512i bit = _mm512_set1_epi8((char)(1 << place));
        __m512i x = _mm512_load_si512(word + p * plane_stride);
        x = _mm512_rolv_epi64(x, _mm512_set1_epi64(place));
        for (int g = 0; g < 8; g++) {
            __m512i start = _mm512_add_epi8(first, _mm512_set1_epi8((char)(4 * g)));
            __m512i window = _mm512_multishift_epi64_epi8(start, x);
            u[g] = _mm512_ternarylogic_epi32(u[g], window, bit, 0xf8); // u | (window & bit)
        }
    }
    for (int g = 0; g < 8; g++) _mm512_store_si512(bytes + 64 * g, u[g]);
}

// The part of a bundle's bytes that one segment fills.
INLINE void unpack_bundle(const struct bsw_segment *segment, const uint32_t *bundle,
                          size_t padded_dims, uint8_t *bytes)
{
    size_t plane_stride = (size_t)segment->words * BSW_BUNDLE_ROWS;
    for (size_t w = 0; w < segment->words; w++, bundle += BSW_BUNDLE_ROWS, bytes += 512) {
        for (unsigned p = 0; p < segment->bits; p++) {
            const char *ahead = (const char *)(bundle + p * plane_stride) + FAR_BYTES;
            _mm_prefetch(ahead, _MM_HINT_T1);
            _mm_prefetch(ahead + 64, _MM_HINT_T1);
        }
        unpack_word(bundle, plane_stride, segment->bits, bytes);
        unpack_word(bundle + 16, plane_stride, segment->bits, bytes + 16 * padded_dims);
    }
}

void bsw_unpack_avx512(const struct bsw_code_layout *layout, const uint32_t *const *planes,
                       size_t num_bundles, uint8_t *bytes)
{
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        uint8_t *out = bytes + 16 * (size_t)segment->padded_dim;
        for (size_t b = 0; b < num_bundles; b++) {
            const uint32_t *bundle = planes[s] + b * bsw_segment_bundle_words(segment);
            unpack_bundle(segment, bundle, layout->padded_dims, out);
            out += BSW_BUNDLE_ROWS * (size_t)layout->padded_dims;
        }
    }
}

void bsw_unpack_query_avx512(const struct bsw_code_layout *layout, const uint32_t *words,
                             unsigned query_bits, int8_t *components, int32_t *constant)
{
    const __m256i one = _mm256_set1_epi8(1), full = _mm256_set1_epi8((char)((1 << query_bits) - 1));
    __m256i sum = _mm256_setzero_si256();
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        const __m256i weight = _mm256_set1_epi8((char)((1 << segment->bits) - 1));
        int8_t *out = components + segment->padded_dim;
        for (size_t w = 0; w < segment->words; w++) {
            size_t rest = segment->dims - 32 * w;
            __mmask32 valid = rest < 32 ? (__mmask32)((1u << rest) - 1) : UINT32_MAX;
            __m256i u = _mm256_setzero_si256();
            for (unsigned p = 0; p < query_bits; p++) {
                u = _mm256_add_epi8(u, u);
                u = _mm256_mask_add_epi8(u, words[p * segment->words + w], u, one);
            }
            __m256i q = _mm256_maskz_sub_epi8(valid, full, _mm256_add_epi8(u, u));
            _mm256_store_si256((__m256i *)(void *)(out + 32 * w), q);
            sum = _mm256_dpbusd_epi32(sum, weight, q);
        }
        words += (size_t)query_bits * segment->words;
    }
    *constant = _mm512_reduce_add_epi32(_mm512_zextsi256_si512(sum));
}
