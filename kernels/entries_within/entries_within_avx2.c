// SPDX-License-Identifier: Apache-2.0
// entries_within on AVX2: 8 entries at a time. What hits is moved to the front of its register by a
// permutation that a table has for each of 256 masks, and stored whole; the next store begins where
// the hits end. No branch depends on what hits: with a quarter of the entries near, a register
// without any is rare.
#include "kernels/lanes.h"

// places[mask]: the numbers of its bits, ascending, a byte each; 0 behind them.
#define PLACE(mask, bit)                        \
    ((uint64_t)((mask) >> (bit)&1u ? (bit) : 0) \
     << (8 * __builtin_popcount((mask) & ((1u << (bit)) - 1))))
#define PLACES1(mask)                                                                         \
    PLACE(mask, 1u) | PLACE(mask, 2u) | PLACE(mask, 3u) | PLACE(mask, 4u) | PLACE(mask, 5u) | \
        PLACE(mask, 6u) | PLACE(mask, 7u)
#define PLACES4(mask)  PLACES1(mask), PLACES1(mask + 1u), PLACES1(mask + 2u), PLACES1(mask + 3u)
#define PLACES16(mask) PLACES4(mask), PLACES4(mask + 4u), PLACES4(mask + 8u), PLACES4(mask + 12u)
#define PLACES64(mask) \
    PLACES16(mask), PLACES16(mask + 16u), PLACES16(mask + 32u), PLACES16(mask + 48u)
static const uint64_t places[256] = {PLACES64(0u), PLACES64(64u), PLACES64(128u), PLACES64(192u)};

// Stores what hits of entries first to first + 7; returns how many.
INLINE size_t keep(floats value, lane_marks is_hit, size_t first, uint8_t *entries, float *values)
{
    uint32_t mask = bits_of(is_hit);
    uint64_t order = places[mask], numbers = order + first * 0x0101010101010101u;
    __m256i lanes = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)order));
    _mm256_storeu_ps(values, _mm256_permutevar8x32_ps(value, lanes));
    memcpy(entries, &numbers, sizeof numbers);
    return (size_t)_mm_popcnt_u32(mask);
}

#include "kernels/entries_within/entries_within_lanes.h"
