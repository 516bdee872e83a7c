// SPDX-License-Identifier: Apache-2.0
// What the vector levels of merge do alike: short lists by counting for every value how many are
// larger, which is its place; longer ones by radix. Each includes this behind its own FEW, the
// length of a short list, count_larger, varying_bits, varying_score_bits and drop_below.
#ifndef BITSWEEP_KERNELS_MERGE_FEW_H
#define BITSWEEP_KERNELS_MERGE_FEW_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/merge/merge.h"
#include "kernels/merge/merge_radix.h"

#if defined(FEW) // nothing without it

#define SPARE_PLACES 16 // that a level may write behind the last

// Distinct values, descending.
static void sort_few(uint64_t *values, size_t n, uint64_t *scratch)
{
    uint64_t places[FEW + SPARE_PLACES];
    count_larger(values, n, places);
    for (size_t i = 0; i < n; i++) scratch[places[i]] = values[i];
    memcpy(values, scratch, n * sizeof *values);
}

// Entries by the bits `by` of their scores, descending, stable: those that are equal have one place
// and take it and the next ones in turn.
static void rank_few(struct bsw_ranked *entries, size_t n, uint64_t by, struct bsw_ranked *scratch)
{
    uint64_t scores[FEW], places[FEW + SPARE_PLACES];
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

#endif
#endif
