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
#include "common/codes/metric.h"

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

// Moves the members of source[0, n) that are >= pivot to winners and the others to losers, both in
// order; returns the number of winners. source may be winners or losers itself: a partition writes
// no further than it has read. Room for n in both.
typedef size_t bsw_partition_fn(const uint64_t *source, size_t n, uint64_t pivot, uint64_t *winners,
                                uint64_t *losers);

// So that a level's partition is compiled into the loops that call it.
#define BSW_QUICK_INLINE static inline __attribute__((always_inline))

// Values that are compared with each other by counting: their order is no branch's business.
#define BSW_FEW_VALUES 32

typedef uint64_t bsw_four_values __attribute__((vector_size(32)));

// counts[i], for i below n <= BSW_FEW_VALUES: how many of the n values are at least values[i].
BSW_QUICK_INLINE void bsw_count_reaching(const uint64_t *values, size_t n,
                                         uint64_t counts[BSW_FEW_VALUES])
{
    uint64_t few[BSW_FEW_VALUES];
    for (size_t i = 0; i < n; i++) few[i] = values[i];
    for (size_t i = n; i % 4; i++) few[i] = 0; // counted for nothing
    for (size_t i = 0; i < n; i += 4) {
        bsw_four_values four, count = {0};
        memcpy(&four, few + i, sizeof four);
        for (size_t j = 0; j < n; j++) {
            const bsw_four_values other = {few[j], few[j], few[j], few[j]};
            count -= (bsw_four_values)(other >= four); // true is -1
        }
        memcpy(counts + i, &count, sizeof count);
    }
}

// The keep-th largest of n values, which may be equal; 1 <= keep <= n <= BSW_FEW_VALUES.
BSW_QUICK_INLINE uint64_t bsw_nth_of_few(const uint64_t *values, size_t n, size_t keep)
{
    uint64_t counts[BSW_FEW_VALUES], found = 0;
    bsw_count_reaching(values, n, counts);
    for (size_t i = 0; i < n; i++)
        found = counts[i] >= keep && values[i] > found ? values[i] : found;
    return found;
}

// The keep largest of n distinct values, n <= BSW_FEW_VALUES, to the front, in order of place.
BSW_QUICK_INLINE void bsw_keep_of_few(uint64_t *values, size_t n, size_t keep)
{
    uint64_t counts[BSW_FEW_VALUES];
    size_t num = 0;
    bsw_count_reaching(values, n, counts);
    for (size_t i = 0; i < n; i++) {
        values[num] = values[i];
        num += counts[i] <= keep;
    }
}

// A member of values[0, n), n >= 16, near the keep-th largest and rather on the side of it that
// leaves the smaller rest. Places are drawn by a generator, so no order of the input is bad for
// it; it starts from a constant, so that runs repeat.
static inline uint64_t bsw_choose_pivot(const uint64_t *values, size_t n, size_t keep,
                                        uint64_t *state)
{
    enum { MAX_SAMPLE = 31 };
    uint64_t sample[MAX_SAMPLE]; // some places may be drawn twice
    size_t num = n < 1024 ? 11 : MAX_SAMPLE;
    for (size_t i = 0; i < num; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        sample[i] = values[(*state >> 32) % n];
    }
    size_t place = (size_t)((double)keep / (double)n * (double)num);
    place = keep < n / 2 ? place + 1 : place > 1 ? place - 1 : place;
    return bsw_nth_of_few(sample, num, place + 1);
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
    if (keep > 0 && keep < n) bsw_keep_of_few(source, n, keep);
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
    return bsw_nth_of_few(source, n, keep);
}

#endif
