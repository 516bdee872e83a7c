// SPDX-License-Identifier: Apache-2.0
// IEEE 754 half precision in integer arithmetic: the same bits on every compiler and machine.
#ifndef BITSWEEP_COMMON_HALF_H
#define BITSWEEP_COMMON_HALF_H

#include <stdint.h>
#include <string.h>

#define BSW_HALF_MAX 65504.0f

static inline float bsw_half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = (half >> 10) & 0x1fu;
    uint32_t mantissa = half & 0x3ffu;
    float value;
    if (exponent == 0) {
        value = (float)mantissa * 0x1p-24f;
        return sign ? -value : value;
    }
    uint32_t bits = exponent == 31 ? sign | 0x7f800000u | mantissa << 13
                                   : sign | (exponent + 112) << 23 | mantissa << 13;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// The largest half that is not above value; value is finite and >= 0. Above the range it gives
// 65504.
static inline uint16_t bsw_half_floor(double value)
{
    if (value >= 65504.0) return 0x7bff;
    if (value < 0x1p-14)
        return (uint16_t)(value * 0x1p24); // subnormal halves are multiples of 2^-24
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits >> 42) -
                      ((uint64_t)(1023 - 15) << 10)); // 10 of 52 mantissa bits, exponent rebased
}

// Nearest half, ties to even mantissa; value is finite and >= 0. Above the range it saturates at
// 65504, never inf.
static inline uint16_t bsw_half_nearest(double value)
{
    uint16_t below = bsw_half_floor(value);
    if (below == 0x7bff) return below;
    double low = bsw_half_to_float(below), high = bsw_half_to_float((uint16_t)(below + 1));
    double to_low = value - low, to_high = high - value;
    if (to_low < to_high) return below;
    if (to_high < to_low) return (uint16_t)(below + 1);
    return (uint16_t)(below + (below & 1));
}

// The smallest half that is not below value; value is finite and >= 0. Above 65504 it gives
// +infinity.
static inline uint16_t bsw_half_up(double value)
{
    if (value > 65504.0) return 0x7c00;
    uint16_t below = bsw_half_floor(value);
    return (double)bsw_half_to_float(below) < value ? (uint16_t)(below + 1) : below;
}

#endif
