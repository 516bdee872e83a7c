// SPDX-License-Identifier: Apache-2.0
// coarse_scan: how near all centroids are to a few queries, and which are near enough.
//
// The same product and float keys as matrix_scan, but keys go to memory: a query looks at so many
// of a few thousand centroids that most blocks of matrix_scan would have some, and how many there
// are to be shows only once all keys are there.
//
// The r-th largest of the lanes' maxima is a bound: at least r keys reach it, as each of r lanes
// has one. With 64 lanes the 16 largest keys lie in about 14 of them, so it is a close one.
//
// Nothing here can fail or allocate. Thread-safe. Every level gives the bits of the reference.
#ifndef BITSWEEP_KERNELS_COARSE_SCAN_H
#define BITSWEEP_KERNELS_COARSE_SCAN_H

#include "kernels/matrix_scan/matrix_scan.h"

#define BSW_COARSE_LANES 64

// Bytes of centroids are 0 to 127 and components of queries -63 to 63: then levels without products
// of bytes in 32 bits can add four in 16. A bit more each changes no choice that anybody would
// notice: lists near the limit of a choice hold few neighbours.
#define BSW_COARSE_MOST_CODE  127
#define BSW_COARSE_MOST_QUERY 63

// Dots below this in size are told by sums modulo 2^16, which is what AVX2 has most of.
#define BSW_COARSE_NARROW 65536

// A row is the odd integers v = 127 - 2 * byte, and dot = sum of v * component: |dot|^2 is at most
// the sum of v^2 times that of components^2.
static inline uint64_t bsw_coarse_square(uint8_t byte)
{
    int v = BSW_COARSE_MOST_CODE - 2 * (int)byte;
    return (uint64_t)(v * v);
}

struct bsw_coarse_scan_table {
    const char *level;

    // keys[q * stride + row], rows from the tile's first bundle on: fmaf(scale_q,
    // half_to_float(scale_d) * (float)dot, bias) + 0.0f, dot = constants[q] - 2 * sum, as
    // matrix_scan's. Masks are not asked. keys and stride: of 64 and 16 floats' alignment.
    // most_square: no row has more of bsw_coarse_square in the dimensions that queries have, which
    // tells levels how many bits a dot takes; keys of rows that have more may be anything.
    void (*keys)(const struct bsw_matrix_tile *tile, const struct bsw_matrix_queries *queries,
                 uint64_t most_square, float *keys, size_t stride);

    // out[l]: the largest of keys[l], keys[l + 64], ... below n; -INFINITY where there is none. No
    // NaN. keys 64-byte aligned.
    void (*maxima)(const float *keys, size_t n, float out[BSW_COARSE_LANES]);

    // Appends bsw_candidate_pack(score of keys[i], i) for i below n, ascending, where keys[i] >=
    // limit; returns how many. items has room for n.
    size_t (*pick)(const float *keys, size_t n, float limit, uint64_t *items);

    // out[i] = sum over dims of query[d] * rows[numbers[i] * dims + d], lanes and tree of
    // kernel_sums.h, s = fma(query, row, s).
    void (*products)(const float *query, const float *rows, size_t dims, const uint32_t *numbers,
                     size_t n, float *out);
};

BSW_KERNEL_LEVELS(coarse_scan);

#endif
