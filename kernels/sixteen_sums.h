// SPDX-License-Identifier: Apache-2.0
// Sums of bytes of 16 queries that lie side by side, so that a row's code of 8 bits reads all of
// them at once: what entry_bounds and table_bounds do alike. For levels with AVX2 or NEON, each for
// its own CPU.
#ifndef BITSWEEP_KERNELS_SIXTEEN_SUMS_H
#define BITSWEEP_KERNELS_SIXTEEN_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "common/codes/code_layout.h"

#define BSW_SIXTEEN       16 // queries
#define BSW_SIXTEEN_PARTS 8  // whose bytes are there at a time

#if defined(__AVX2__) || defined(__aarch64__) // nothing elsewhere

#if defined(__AVX2__)
#include <immintrin.h>
#else
#include <arm_neon.h>
#endif

#define BSW_SIXTEEN_INLINE static inline __attribute__((always_inline))

// Adds a row's bytes of some parts to its 16 sums; bytes: [parts][256][16], codes: of this row.
BSW_SIXTEEN_INLINE void bsw_sixteen_add_row(const uint8_t *bytes, const uint8_t *codes,
                                            uint32_t parts, int is_first, uint16_t *sums)
{
#if defined(__AVX2__)
    __m256i *to = (__m256i *)(void *)sums,
            sum = is_first ? _mm256_setzero_si256() : _mm256_load_si256(to);
    for (uint32_t p = 0; p < parts; p++) {
        const uint8_t *at = bytes + ((size_t)p * 256 + codes[p * BSW_BUNDLE_ROWS]) * BSW_SIXTEEN;
        sum = _mm256_add_epi16(
            sum, _mm256_cvtepu8_epi16(_mm_load_si128((const __m128i *)(const void *)at)));
    }
    _mm256_store_si256(to, sum);
#else
    uint16x8_t low = is_first ? vdupq_n_u16(0) : vld1q_u16(sums),
               high = is_first ? vdupq_n_u16(0) : vld1q_u16(sums + 8);
    for (uint32_t p = 0; p < parts; p++) {
        uint8x16_t found =
            vld1q_u8(bytes + ((size_t)p * 256 + codes[p * BSW_BUNDLE_ROWS]) * BSW_SIXTEEN);
        low = vaddw_u8(low, vget_low_u8(found));
        high = vaddw_high_u8(high, found);
    }
    vst1q_u16(sums, low);
    vst1q_u16(sums + 8, high);
#endif
}

BSW_SIXTEEN_INLINE void bsw_sixteen_add_bundle(const uint8_t *bytes, const uint8_t *codes,
                                               uint32_t parts, int is_first, uint16_t *sums)
{
    for (size_t i = 0; i < BSW_BUNDLE_ROWS; i++)
        bsw_sixteen_add_row(bytes, codes + i, parts, is_first, sums + i * BSW_SIXTEEN);
}

// Up to BSW_SIXTEEN_PARTS parts of all rows. codes: byte 0 of these parts of the first bundle;
// sums: [32 * num_bundles][16], 32-byte aligned, which the first parts begin.
BSW_SIXTEEN_INLINE void bsw_sixteen_add(const uint8_t *bytes, const uint8_t *codes,
                                        size_t bundle_bytes, size_t num_bundles, uint32_t parts,
                                        int is_first, uint16_t *sums)
{
    for (size_t b = 0; b < num_bundles; b++, codes += bundle_bytes) {
        uint16_t *to = sums + b * BSW_BUNDLE_ROWS * BSW_SIXTEEN;
        if (parts == BSW_SIXTEEN_PARTS)
            bsw_sixteen_add_bundle(bytes, codes, BSW_SIXTEEN_PARTS, is_first, to);
        else
            bsw_sixteen_add_bundle(bytes, codes, parts, is_first, to);
    }
}

// Bits of rows from bits of queries: few pass. masks: [16][num_bundles].
BSW_SIXTEEN_INLINE void bsw_sixteen_mark(uint32_t found, size_t row, const uint32_t *row_masks,
                                         size_t num_bundles, uint32_t *masks)
{
    size_t bundle = row / BSW_BUNDLE_ROWS;
    uint32_t bit = 1u << row % BSW_BUNDLE_ROWS & row_masks[bundle];
    for (; found; found &= found - 1)
        masks[(size_t)__builtin_ctz(found) * num_bundles + bundle] |= bit;
}

#endif
#endif
