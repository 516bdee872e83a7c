// SPDX-License-Identifier: Apache-2.0
// Small functions of numbers: a hash, equal parts, the median.
#ifndef BITSWEEP_COMMON_ARITHMETIC_H
#define BITSWEEP_COMMON_ARITHMETIC_H

#include <stdint.h>
#include <stdlib.h>

#include "common/base/c_linkage.h"

// The integer hash behind every seeded choice: splitmix64's finaliser (Steele, Lea, Flood, OOPSLA
// 2014), the same bits everywhere.
BSW_HOST_DEVICE uint64_t bsw_hash(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// Hash of a pair; order matters.
BSW_HOST_DEVICE uint64_t bsw_hash2(uint64_t a, uint64_t b)
{
    return bsw_hash(bsw_hash(a) ^ b);
}

// Equal parts of a number of items, as work and rows are shared out everywhere: the first of
// `parts` consecutive ranges of `total` items that part `part` begins: part * total / parts.
static inline uint64_t bsw_part_first(uint64_t total, uint64_t part, uint64_t parts)
{
    return (uint64_t)((unsigned __int128)total * part / parts);
}

static inline int bsw_compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The median of repeated measurements. Sorts the n >= 1 values; of an even number the mean of the
// middle two. No NaN.
static inline double bsw_median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, bsw_compare_doubles);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

#endif
