// SPDX-License-Identifier: Apache-2.0
// Short lists by counting how many entries go before each, longer ones by radix. Loops of single
// instructions are left to the compiler, which has vectors for them.
#include <arm_neon.h>

#include "kernels/merge/merge.h"

#define FEW 64

// places[i]: how many of n values are larger than value i. Room for 8 more places.
static void count_larger(const uint64_t *values, size_t n, uint64_t *places)
{
    uint64_t keys[FEW];
    for (size_t i = 0; i < n; i++) keys[i] = values[i];
    for (size_t i = n; i % 8; i++) keys[i] = 0;
    for (size_t i = 0; i < n; i += 8) {
        uint64x2_t key[4], place[4];
        for (size_t g = 0; g < 4; g++) {
            key[g] = vld1q_u64(keys + i + 2 * g);
            place[g] = vdupq_n_u64(0);
        }
        for (size_t j = 0; j < n; j++) { // a true compare is -1
            const uint64x2_t other = vdupq_n_u64(keys[j]);
            for (size_t g = 0; g < 4; g++) place[g] = vsubq_u64(place[g], vcgtq_u64(other, key[g]));
        }
        for (size_t g = 0; g < 4; g++) vst1q_u64(places + i + 2 * g, place[g]);
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

#include "kernels/merge/merge_few.h"

const struct bsw_merge_table bsw_merge_neon = {
    .level = "neon",
    .sort_candidates = sort_candidates,
    .best_ranked = best_ranked,
};
