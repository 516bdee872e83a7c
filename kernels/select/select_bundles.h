// SPDX-License-Identifier: Apache-2.0
// select of levels without a compressing store: rows that pass are few once a limit stands, so they
// are appended one by one, and a filter's common case ends at one branch. Each includes this behind
// its own bundle_keys, 32 floats in registers of LANES, dots_reaching, keys_reaching,
// bounds_reaching, scores_of, partition and put_lanes.
#ifndef BITSWEEP_KERNELS_SELECT_BUNDLES_H
#define BITSWEEP_KERNELS_SELECT_BUNDLES_H

#include "kernels/select/select.h"
#include "kernels/select/select_queue.h"
#include "kernels/select/select_quick.h"

#if defined(LANES) // nothing without it

// Appends those of 32 rows, first_row on, whose bit in pass is 1.
static inline size_t append32(const uint32_t scores[32], uint32_t pass, uint32_t first_row,
                              uint64_t *out)
{
    size_t count = 0;
    for (; pass; pass &= pass - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(pass);
        out[count++] = bsw_candidate_pack(scores[lane], first_row + lane);
    }
    return count;
}

// Inlined, it would have the loop load all dots first, for this rare case.
static __attribute__((noinline)) size_t append_dots(const int32_t *dots, uint32_t pass,
                                                    uint32_t first_row, uint64_t *out)
{
    _Alignas(32) uint32_t scores[32];
    for (size_t lane = 0; lane < 32; lane++) scores[lane] = bsw_score_from_integer(dots[lane]);
    return append32(scores, pass, first_row, out);
}

static size_t filter_integer(const int32_t *dots, const uint32_t *masks, size_t num_bundles,
                             uint32_t first_row, uint32_t limit, uint64_t *out)
{
    const int32_t least = bsw_score_to_integer(limit);
    size_t count = 0;
    for (size_t b = 0; b < num_bundles; b++) {
        uint32_t pass = dots_reaching(dots + 32 * b, least) & masks[b];
        if (pass)
            count += append_dots(dots + 32 * b, pass, first_row + (uint32_t)(32 * b), out + count);
    }
    return count;
}

static size_t append_keys(const bundle_keys keys, uint32_t pass, uint32_t first_row, uint64_t *out)
{
    _Alignas(32) uint32_t scores[32];
    scores_of(keys, scores);
    return append32(scores, pass, first_row, out);
}

static size_t filter_affine(const int32_t *dots, const uint16_t *scales, const float *biases,
                            float query_scale, const uint32_t *masks, size_t num_bundles,
                            uint32_t first_row, uint32_t limit, uint64_t *out)
{
    const float least = bsw_float_limit(limit);
    size_t count = 0;
    for (size_t b = 0, i = 0; b < num_bundles; b++, i += 32) {
        bundle_keys keys;
        uint32_t pass =
            keys_reaching(dots + i, scales + i, biases + i, query_scale, least, keys) & masks[b];
        if (pass) count += append_keys(keys, pass, first_row + (uint32_t)i, out + count);
    }
    return count;
}

static size_t filter_reach(const int32_t *dots, const uint16_t *scales, const float *biases,
                           const uint16_t *tails, float query_scale, float reach,
                           const uint32_t *masks, size_t num_bundles, float limit, uint32_t *places)
{
    size_t count = 0;
    for (size_t b = 0, i = 0; b < num_bundles; b++, i += 32) {
        uint32_t pass =
            bounds_reaching(dots + i, scales + i, biases + i, tails + i, query_scale, reach, limit);
        for (pass &= masks[b]; pass; pass &= pass - 1)
            places[count++] = (uint32_t)i + (uint32_t)__builtin_ctz(pass);
    }
    return count;
}

static size_t keep_best(uint64_t *candidates, size_t n, size_t keep, uint64_t *scratch)
{
    return bsw_quick_keep(candidates, n, keep, scratch, partition);
}

static uint64_t keep_exact(uint64_t *scores, uint32_t *rows, size_t n, size_t keep,
                           uint64_t *scratch)
{
    const uint64_t worst = bsw_quick_nth(scores, n, keep, scratch, partition);
    size_t above = 0, count = 0;
    for (size_t i = 0; i < n; i++) above += scores[i] > worst;
    size_t ties = keep - above;
    for (size_t i = 0; i < n; i++) { // without a branch
        uint64_t score = scores[i];
        size_t is_tie = score == worst && ties > 0;
        ties -= is_tie;
        scores[count] = score;
        rows[count] = rows[i];
        count += (size_t)(score > worst) | is_tie;
    }
    return worst;
}

static void queue_insert(const uint64_t *candidates, size_t n, size_t queue_length,
                         uint64_t *queues)
{
    bsw_queue_insert(candidates, n, queue_length, queues, put_lanes);
}

#endif
#endif
