// SPDX-License-Identifier: Apache-2.0
// Float keys with something added to them, and the limit that a key must reach before.
//
// A key x becomes x + g, rounded once to float32. That rises with x, though rounding may make keys
// equal, so there is a lowest score whose sum reaches a limit: rows below it may be left out before
// anything is added. g is finite.
#ifndef BITSWEEP_KERNELS_KEY_SHIFT_H
#define BITSWEEP_KERNELS_KEY_SHIFT_H

#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/codes/metric.h"

#define BSW_SCORE_OF_MINUS_INFINITY 0x007fffffu
#define BSW_SCORE_OF_INFINITY       0xff800000u

BSW_HOST_DEVICE uint32_t bsw_key_bits(float key)
{
    union {
        float key;
        uint32_t bits;
    } both;
    both.key = key;
    return both.bits;
}

BSW_HOST_DEVICE float bsw_key_of_bits(uint32_t bits)
{
    union {
        uint32_t bits;
        float key;
    } both;
    both.bits = bits;
    return both.key;
}

// The score of a key with `g` added.
BSW_HOST_DEVICE uint32_t bsw_score_add(uint32_t score, float g)
{
    float key = bsw_key_of_bits(score >> 31 ? score & 0x7fffffffu : ~score);
    uint32_t bits = bsw_key_bits((key + g) + 0.0f);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

// The lowest score that reaches `limit` once g is added; UINT32_MAX, which no key has, where none
// does.
BSW_HOST_DEVICE uint32_t bsw_limit_before(uint32_t limit, float g)
{
    uint32_t low = BSW_SCORE_OF_MINUS_INFINITY, high = BSW_SCORE_OF_INFINITY;
    if (limit == 0) return 0;
    if (bsw_score_add(high, g) < limit) return UINT32_MAX;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (bsw_score_add(middle, g) >= limit)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

#endif
