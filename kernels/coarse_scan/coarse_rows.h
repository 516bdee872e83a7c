// SPDX-License-Identifier: Apache-2.0
// What levels of coarse_scan share: a key, plain loops that compilers turn into vectors, and those
// of kernels/lanes.h where a level includes it before.
#ifndef BITSWEEP_KERNELS_COARSE_ROWS_H
#define BITSWEEP_KERNELS_COARSE_ROWS_H

#include <math.h>

#include "common/codes/half.h"
#include "common/codes/result_order.h"
#include "kernels/coarse_scan/coarse_scan.h"
#include "kernels/kernel_sums.h"

static inline float coarse_key(const struct bsw_matrix_tile *tile, size_t row, int32_t sum,
                               const struct bsw_matrix_queries *queries, size_t q)
{
    int32_t dot = queries->constants[q] - 2 * sum;
    float scaled = bsw_half_to_float(tile->scales[row]) * (float)dot;
    return fmaf(queries->scales[q], scaled, tile->biases[row]) + 0.0f;
}

static inline void coarse_maxima(const float *keys, size_t n, float out[BSW_COARSE_LANES])
{
    size_t whole = n / BSW_COARSE_LANES * BSW_COARSE_LANES;
    for (size_t l = 0; l < BSW_COARSE_LANES; l++) out[l] = -INFINITY;
    for (size_t i = 0; i < whole; i += BSW_COARSE_LANES) {
        for (size_t l = 0; l < BSW_COARSE_LANES; l++)
            out[l] = keys[i + l] > out[l] ? keys[i + l] : out[l];
    }
    for (size_t l = 0; whole + l < n; l++)
        out[l] = keys[whole + l] > out[l] ? keys[whole + l] : out[l];
}

// Lanes in a loop of their own, which compilers turn into vectors.
static inline void coarse_products(const float *query, const float *rows, size_t dims,
                                   const uint32_t *numbers, size_t n, float *out)
{
    size_t whole = dims / BSW_SUM_LANES * BSW_SUM_LANES;
    for (size_t i = 0; i < n; i++) {
        const float *row = rows + numbers[i] * dims;
        float s[BSW_SUM_LANES] = {0};
        for (size_t d = 0; d < whole; d += BSW_SUM_LANES)
            for (size_t l = 0; l < BSW_SUM_LANES; l++) s[l] = fmaf(query[d + l], row[d + l], s[l]);
        for (size_t l = 0; whole + l < dims; l++)
            s[l] = fmaf(query[whole + l], row[whole + l], s[l]);
        out[i] = bsw_tree_sum_float(s);
    }
}

#if defined(LANES)

// Bits of 32 keys that are at least the limit. Bits first: a branch for every register would be
// predicted wrongly for most of those that are picked.
INLINE uint32_t coarse_reaching(const float *keys, floats least)
{
    lane_marks reached[WORD];
    for (size_t k = 0; k < WORD; k++) reached[k] = at_most(least, load(keys + k * LANES));
    return word_of(reached);
}

#endif

static inline size_t coarse_pick(const float *keys, size_t n, float limit, uint64_t *items)
{
    size_t count = 0, i = 0;
#if defined(LANES)
    const floats least = every(limit);
    for (; i + 32 <= n; i += 32) {
        for (uint32_t pass = coarse_reaching(keys + i, least); pass; pass &= pass - 1) {
            size_t at = i + (size_t)__builtin_ctz(pass);
            items[count++] = bsw_candidate_pack(bsw_score_from_float(keys[at]), (uint32_t)at);
        }
    }
#endif
    for (; i < n; i++) {
        if (keys[i] >= limit)
            items[count++] = bsw_candidate_pack(bsw_score_from_float(keys[i]), (uint32_t)i);
    }
    return count;
}

#endif
