// SPDX-License-Identifier: Apache-2.0
// Bits of lanes on Arm, which has no instruction for them: for the levels neon and i8mm.
#ifndef BITSWEEP_KERNELS_NEON_MASK_H
#define BITSWEEP_KERNELS_NEON_MASK_H

#include <stdint.h>

#if defined(__aarch64__) // nothing elsewhere

#include <arm_neon.h>

// Bit i is set where byte i of 32 is all-ones; the others are 0.
static inline __attribute__((always_inline)) uint32_t bsw_neon_byte_mask(uint8x16_t low,
                                                                         uint8x16_t high)
{
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
    uint8x16_t sums = vpaddq_u8(vandq_u8(low, bit), vandq_u8(high, bit));
    sums = vpaddq_u8(sums, sums);
    sums = vpaddq_u8(sums, sums);
    return vgetq_lane_u32(vreinterpretq_u32_u8(sums), 0);
}

// The same of 32 lanes of 32 bits, eight registers.
static inline __attribute__((always_inline)) uint32_t bsw_neon_word_mask(const uint32x4_t words[8])
{
    uint8x16_t halves[2];
    for (int h = 0; h < 2; h++) {
        const uint32x4_t *four = words + 4 * h;
        uint16x8_t low = vcombine_u16(vmovn_u32(four[0]), vmovn_u32(four[1]));
        uint16x8_t high = vcombine_u16(vmovn_u32(four[2]), vmovn_u32(four[3]));
        halves[h] = vcombine_u8(vmovn_u16(low), vmovn_u16(high));
    }
    return bsw_neon_byte_mask(halves[0], halves[1]);
}

// 32 bits as bytes of 0 or all-ones, bytes 16 .. 31 in high.
static inline __attribute__((always_inline)) void
bsw_neon_spread_bits(uint32_t word, uint8x16_t *low, uint8x16_t *high)
{
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201u));
    const uint8x16_t byte = vcombine_u8(vdup_n_u8(0), vdup_n_u8(1));
    uint8x16_t x = vreinterpretq_u8_u32(vdupq_n_u32(word));
    *low = vtstq_u8(vqtbl1q_u8(x, byte), bit);
    *high = vtstq_u8(vqtbl1q_u8(x, vaddq_u8(byte, vdupq_n_u8(2))), bit);
}

#endif
#endif
