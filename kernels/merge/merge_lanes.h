// SPDX-License-Identifier: Apache-2.0
// merge of all levels with vectors: short lists, the usual case of one query, by counting for every
// value how many are larger, which is its place: quadratic, but without a branch. Longer ones by
// radix. Loops of single instructions are left to the compiler, which has vectors for them.
#ifndef BITSWEEP_KERNELS_MERGE_LANES_H
#define BITSWEEP_KERNELS_MERGE_LANES_H

#include "kernels/lanes.h"

#include "kernels/merge/merge.h"
#include "kernels/merge/merge_radix.h"

#if defined(LANES) // nothing without it

#define FEW      (LANES == 16 ? 192 : LANES == 8 ? 128 : 64) // of a short list
#define TOGETHER (LANES == 16 ? 16 : 8) // values that are counted for at a time

typedef int64_t lane_keys __attribute__((vector_size(4 * LANES)));
#define KEY_LANES ((size_t)LANES / 2)

// counts + 1 where a is above b.
INLINE lane_keys count_above(lane_keys counts, lane_keys a, lane_keys b)
{
#if LANES == 16
    __mmask8 above = _mm512_cmpgt_epi64_mask((__m512i)a, (__m512i)b);
    __m512i all = (__m512i)counts;
    return (lane_keys)_mm512_mask_add_epi64(all, above, all, _mm512_set1_epi64(1));
#else
    return counts - (a > b); // a true compare is -1
#endif
}

// places[i]: how many of n values are larger than value i. Room for TOGETHER more places.
static __attribute__((noinline)) void count_larger(const uint64_t *values, size_t n,
                                                   uint64_t *places)
{
    _Alignas(64) int64_t keys[FEW]; // order turned signed, for the compare
    for (size_t i = 0; i < n; i++) keys[i] = (int64_t)(values[i] ^ (1ull << 63));
    for (size_t i = n; i % TOGETHER; i++) keys[i] = 0;
    for (size_t i = 0; i < n; i += TOGETHER) {
        lane_keys key[TOGETHER / KEY_LANES], place[TOGETHER / KEY_LANES];
        for (size_t g = 0; g < TOGETHER / KEY_LANES; g++) {
            memcpy(&key[g], keys + i + g * KEY_LANES, sizeof key[g]);
            place[g] = (lane_keys){0};
        }
        for (size_t j = 0; j < n; j++) {
            const lane_keys other = keys[j] - (lane_keys){0};
            for (size_t g = 0; g < TOGETHER / KEY_LANES; g++)
                place[g] = count_above(place[g], other, key[g]);
        }
        for (size_t g = 0; g < TOGETHER / KEY_LANES; g++)
            memcpy(places + i + g * KEY_LANES, &place[g], sizeof place[g]);
    }
}

static uint64_t varying_bits(const uint64_t *values, size_t n)
{
    uint64_t varying = 0;
    for (size_t i = 0; i < n; i++) varying |= values[i] ^ values[0];
    return varying;
}

static uint64_t varying_score_bits(const struct bsw_ranked *entries, size_t n)
{
    uint64_t varying = 0;
    for (size_t i = 0; i < n; i++) varying |= entries[i].score ^ entries[0].score;
    return varying;
}

// Keeps the entries that reach cutoff, in order; returns how many. Every entry is stored, and stays
// if the count moves past it: no branch, and never beyond the place read.
static size_t drop_below(struct bsw_ranked *entries, size_t n, uint64_t cutoff)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        struct bsw_ranked entry = entries[i];
        entries[count] = entry;
        count += entry.score >= cutoff;
    }
    return count;
}

// Distinct values, descending.
static void sort_few(uint64_t *values, size_t n, uint64_t *scratch)
{
    uint64_t places[FEW + TOGETHER];
    count_larger(values, n, places);
    for (size_t i = 0; i < n; i++) scratch[places[i]] = values[i];
    memcpy(values, scratch, n * sizeof *values);
}

// Entries by the bits `by` of their scores, descending, stable: those that are equal have one place
// and take it and the next ones in turn.
static void rank_few(struct bsw_ranked *entries, size_t n, uint64_t by, struct bsw_ranked *scratch)
{
    uint64_t scores[FEW], places[FEW + TOGETHER];
    uint8_t taken[FEW] = {0};
    if (n == 0) return;
    for (size_t i = 0; i < n; i++) scores[i] = entries[i].score & by;
    count_larger(scores, n, places);
    for (size_t i = 0; i < n; i++) scratch[places[i] + taken[places[i]]++] = entries[i];
    memcpy(entries, scratch, n * sizeof *entries);
}

static void sort_candidates(uint64_t *candidates, size_t n, uint64_t *scratch)
{
    if (n <= 1) return;
    if (n <= FEW) {
        sort_few(candidates, n, scratch);
        return;
    }
    uint64_t varying = varying_bits(candidates, n);
    if (bsw_candidates_ascend(candidates, n)) varying &= ~(uint64_t)UINT32_MAX;
    bsw_radix_sort_candidates(candidates, n, varying, scratch);
}

static size_t best_ranked(struct bsw_ranked *entries, size_t n, size_t keep, uint64_t by,
                          struct bsw_ranked *scratch)
{
    const size_t kept = n < keep ? n : keep;
    if (kept == 0) return 0;
    if (n > FEW) {
        uint64_t varying = varying_score_bits(entries, n) & by;
        if (keep < n) n = drop_below(entries, n, bsw_radix_cutoff(entries, n, keep, by, varying));
        if (n > FEW) bsw_radix_sort_ranked(entries, n, varying, scratch);
    }
    if (n <= FEW) rank_few(entries, n, by, scratch);
    return kept;
}

const struct bsw_merge_table LEVEL_TABLE(merge) = {
    .level = LEVEL_TEXT,
    .sort_candidates = sort_candidates,
    .best_ranked = best_ranked,
};

#endif
#endif
