// SPDX-License-Identifier: Apache-2.0
// What the levels of Arm do alike in matrix_scan: all but their products. A level that includes
// this defines BLOCK_QUERIES before it, and tile_form, complete_constants and its products behind
// it (matrix_scan_blocks.h).
#ifndef BITSWEEP_KERNELS_MATRIX_SCAN_NEON_H
#define BITSWEEP_KERNELS_MATRIX_SCAN_NEON_H

#if defined(__aarch64__) // nothing elsewhere

#include <arm_neon.h>

#include "kernels/neon_mask.h"

#define SELECT_TABLE bsw_select_neon
#define UNPACK_ROWS  4
#include "kernels/matrix_scan/matrix_scan_blocks.h"

#if defined(BLOCK_QUERIES) // nor without it

// One word of 4 documents: 8 groups of 4 dimensions, 64 bytes apart. Byte k of a word is copied to
// the four dimensions of groups 2k and 2k + 1, each of which then tests its own bit.
INLINE void unpack_word(const uint32_t *word, size_t plane_stride, unsigned bits, uint8_t *bytes)
{
    const uint8x16_t low_bits = vreinterpretq_u8_u32(vdupq_n_u32(0x08040201u));
    const uint8x16_t high_bits = vreinterpretq_u8_u32(vdupq_n_u32(0x80402010u));
    const uint8x16_t first = {0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12};
    uint8x16_t u[8];
    for (int g = 0; g < 8; g++) u[g] = vdupq_n_u8(0);
    for (unsigned p = 0; p < bits; p++) {
        uint8x16_t x = vreinterpretq_u8_u32(vld1q_u32(word + p * plane_stride));
        for (int k = 0; k < 4; k++) {
            uint8x16_t byte = vqtbl1q_u8(x, vaddq_u8(first, vdupq_n_u8((uint8_t)k)));
            u[2 * k] = vsliq_n_u8(vtstq_u8(byte, low_bits), u[2 * k], 1);
            u[2 * k + 1] = vsliq_n_u8(vtstq_u8(byte, high_bits), u[2 * k + 1], 1);
        }
    }
    for (int g = 0; g < 8; g++) vst1q_u8(bytes + 64 * g, u[g]);
}

INLINE int32_t unpack_query_word(const uint32_t *word, size_t plane_stride, unsigned query_bits,
                                 uint32_t valid, int8_t *out)
{
    const int8x16_t full = vdupq_n_s8((int8_t)((1 << query_bits) - 1));
    uint8x16_t u[2] = {vdupq_n_u8(0), vdupq_n_u8(0)}, bits[2];
    for (unsigned p = 0; p < query_bits; p++) {
        bsw_neon_spread_bits(word[p * plane_stride], &bits[0], &bits[1]);
        for (int h = 0; h < 2; h++) u[h] = vsliq_n_u8(bits[h], u[h], 1);
    }
    bsw_neon_spread_bits(valid, &bits[0], &bits[1]);
    int32_t sum = 0;
    for (int h = 0; h < 2; h++) {
        int8x16_t q = vsubq_s8(full, vreinterpretq_s8_u8(vaddq_u8(u[h], u[h])));
        q = vandq_s8(q, vreinterpretq_s8_u8(bits[h]));
        vst1q_s8(out + 16 * h, q);
        sum += vaddlvq_s8(q);
    }
    return sum;
}

INLINE uint32_t whole_scores(const int32_t *dots, const int32_t *offsets, uint32_t limit,
                             uint32_t scores[BSW_BUNDLE_ROWS])
{
    uint32x4_t reach[8];
    for (size_t g = 0; g < 8; g++) {
        int32x4_t total = vaddq_s32(vld1q_s32(dots + 4 * g), vld1q_s32(offsets + 4 * g));
        uint32x4_t found = veorq_u32(vreinterpretq_u32_s32(total), vdupq_n_u32(1u << 31));
        vst1q_u32(scores + 4 * g, found);
        reach[g] = vcgeq_u32(found, vdupq_n_u32(limit));
    }
    return bsw_neon_word_mask(reach);
}

INLINE void store_dots(int32_t *dots, int32x4_t sums, int32_t constant, int weight)
{
    vst1q_s32(dots, vmlaq_n_s32(vdupq_n_s32(constant), sums, weight));
}

#endif
#endif
#endif
