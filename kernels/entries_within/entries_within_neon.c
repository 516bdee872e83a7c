// SPDX-License-Identifier: Apache-2.0
// entries_within on Advanced SIMD: 4 entries at a time. What hits is moved to the front of its
// register by a byte shuffle that a table has for each of 16 masks, and stored whole.
#include "kernels/lanes.h"

// places[mask]: the numbers of its bits, ascending, a byte each; 0 behind them.
static const uint32_t places[16] = {0x0, 0x0,   0x1,   0x100,   0x2,   0x200,   0x201,   0x20100,
                                    0x3, 0x300, 0x301, 0x30100, 0x302, 0x30200, 0x30201, 0x3020100};

// Stores what hits of entries first to first + 3; returns how many.
INLINE size_t keep(floats value, lane_marks is_hit, size_t first, uint8_t *entries, float *values)
{
    uint32_t mask = bits_of(is_hit), order = places[mask],
             numbers = order + (uint32_t)first * 0x01010101u;
    // Bytes 4 p to 4 p + 3 of place p.
    uint8x8_t lanes = vreinterpret_u8_u32(vdup_n_u32(order));
    uint8x16_t each = vqtbl1q_u8(vcombine_u8(lanes, lanes),
                                 (uint8x16_t){0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3});
    each =
        vaddq_u8(vshlq_n_u8(each, 2), (uint8x16_t){0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3});
    vst1q_f32(values, vreinterpretq_f32_u8(vqtbl1q_u8(vreinterpretq_u8_f32(value), each)));
    memcpy(entries, &numbers, sizeof numbers);
    return (size_t)__builtin_popcount(mask);
}

#include "kernels/entries_within/entries_within_lanes.h"
