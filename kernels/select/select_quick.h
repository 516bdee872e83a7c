// SPDX-License-Identifier: Apache-2.0
// What the vector levels of select share: the limit of the float filters, the counting of
// distances, and the quickselect round a level's own partition.
#ifndef BITSWEEP_KERNELS_SELECT_QUICK_H
#define BITSWEEP_KERNELS_SELECT_QUICK_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/codes/half.h"
#include "common/codes/result_order.h"

// A float f with (key >= f) == (score of key >= limit) for every key a filter may meet: none is
// NaN or -0. Scores below that of -infinity are reached by all keys. Scores above that of
// +infinity are NaN patterns; the NaN compares false with every key, as it must.
static inline float bsw_float_limit(uint32_t limit)
{
    return limit <= bsw_score_from_float(-INFINITY) ? -INFINITY : bsw_score_to_float(limit);
}

// filter_places of select.h: few rows, one by one.
static inline size_t bsw_filter_places(const int32_t *dots, const uint16_t *scales,
                                       const float *biases, float query_scale,
                                       const uint32_t *places, size_t num_places,
                                       uint32_t first_row, uint32_t limit, uint64_t *out)
{
    size_t count = 0;
    for (size_t i = 0; i < num_places; i++) {
        uint32_t place = places[i];
        float scaled = bsw_half_to_float(scales[place]) * (float)dots[place];
        uint32_t score = bsw_score_from_float(fmaf(query_scale, scaled, biases[place]) + 0.0f);
        if (score >= limit) out[count++] = bsw_candidate_pack(score, first_row + place);
    }
    return count;
}

// Counts the distances of a bundle's rows, four a step: gcc does not unroll it and loses a third.
static inline void bsw_count_distances(const uint32_t distances[32], uint32_t mask,
                                       uint64_t *counts)
{
    if (mask == UINT32_MAX) {
        for (size_t i = 0; i < 32; i += 4) {
            counts[distances[i]]++;
            counts[distances[i + 1]]++;
            counts[distances[i + 2]]++;
            counts[distances[i + 3]]++;
        }
        return;
    }
    for (; mask; mask &= mask - 1) counts[distances[__builtin_ctz(mask)]]++;
}

// So that a level's partition is compiled into the loops that call it.
#define BSW_QUICK_INLINE static inline __attribute__((always_inline))

// Moves the members of source[0, n) that are >= pivot to winners and the others to losers, both in
// order; returns the number of winners. source may be winners or losers itself: a partition writes
// no further than it has read. Room for n in both.
typedef size_t bsw_partition_fn(const uint64_t *source, size_t n, uint64_t pivot, uint64_t *winners,
                                uint64_t *losers);

static inline void bsw_sort_few_descending(uint64_t *values, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        uint64_t value = values[i];
        size_t j = i;
        for (; j > 0 && values[j - 1] < value; j--) values[j] = values[j - 1];
        values[j] = value;
    }
}

// A member of values[0, n), n >= 16, near the keep-th largest and rather on the side of it that
// leaves the smaller rest. Places are drawn by a generator, so no order of the input is bad for
// it; it starts from a constant, so that runs repeat.
static inline uint64_t bsw_choose_pivot(const uint64_t *values, size_t n, size_t keep,
                                        uint64_t *state)
{
    enum { MAX_SAMPLE = 31 };
    uint64_t sample[MAX_SAMPLE];
    size_t num = n < 1024 ? 11 : MAX_SAMPLE;
    for (size_t i = 0; i < num; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        sample[i] = values[(*state >> 32) % n];
    }
    bsw_sort_few_descending(sample, num);
    size_t place = (size_t)((double)keep / (double)n * (double)num);
    if (keep < n / 2) return sample[place + 1];
    return sample[place > 1 ? place - 1 : place];
}

// keep_best of select.h. Winners gather at the front of candidates, losers in scratch; the next
// round works on whichever side holds the boundary. Expected linear: candidates are distinct, and
// a drawn pivot takes off a constant share of them on average.
BSW_QUICK_INLINE size_t bsw_quick_keep(uint64_t *candidates, size_t n, size_t keep,
                                       uint64_t *scratch, bsw_partition_fn *partition)
{
    enum { FEW = 24 };
    if (n <= keep) return n;
    const size_t kept = keep;
    uint64_t state = n;
    uint64_t *source = candidates, *front = candidates;
    while (keep > 0 && keep < n && n > FEW) {
        uint64_t pivot = bsw_choose_pivot(source, n, keep, &state);
        size_t num_winners = partition(source, n, pivot, front, scratch);
        if (num_winners > keep) {
            source = front;
            n = num_winners;
        } else {
            source = scratch;
            front += num_winners;
            keep -= num_winners;
            n -= num_winners;
        }
    }
    if (keep > 0 && keep < n) bsw_sort_few_descending(source, n);
    if (keep > 0 && source != front) memcpy(front, source, keep * sizeof *front);
    return kept;
}

// The keep-th largest of n values, which may be equal; 1 <= keep <= n. scratch: room for 2 * n.
BSW_QUICK_INLINE uint64_t bsw_quick_nth(const uint64_t *values, size_t n, size_t keep,
                                        uint64_t *scratch, bsw_partition_fn *partition)
{
    enum { FEW = 24 };
    uint64_t state = n, pivot = 0, *winners = scratch, *losers = scratch + n;
    const uint64_t *source = values;
    int all_reach = 0; // the last pivot: the next is one above
    while (n > FEW) {
        pivot = all_reach ? pivot + 1 : bsw_choose_pivot(source, n, keep, &state);
        size_t num_winners = partition(source, n, pivot, winners, losers);
        if (all_reach && num_winners < keep) return pivot - 1;
        all_reach = num_winners == n;
        if (num_winners >= keep) {
            source = winners;
            n = num_winners;
        } else {
            source = losers;
            keep -= num_winners;
            n -= num_winners;
        }
    }
    uint64_t few[FEW];
    memcpy(few, source, n * sizeof *few);
    bsw_sort_few_descending(few, n);
    return few[keep - 1];
}

#endif
