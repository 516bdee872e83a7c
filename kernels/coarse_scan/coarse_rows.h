// What levels of coarse_scan share: a key, and plain loops that compilers turn into vectors.
#ifndef BITSWEEP_KERNELS_COARSE_ROWS_H
#define BITSWEEP_KERNELS_COARSE_ROWS_H

#include <math.h>

#include "common/codes/half.h"
#include "common/codes/result_order.h"
#include "kernels/coarse_scan/coarse_scan.h"

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

static inline size_t coarse_pick(const float *keys, size_t n, float limit, uint64_t *items)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (keys[i] >= limit)
            items[count++] = bsw_candidate_pack(bsw_score_from_float(keys[i]), (uint32_t)i);
    }
    return count;
}

#endif
