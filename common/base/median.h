// SPDX-License-Identifier: Apache-2.0
// The median of repeated measurements.
#ifndef BITSWEEP_COMMON_MEDIAN_H
#define BITSWEEP_COMMON_MEDIAN_H

#include <stdlib.h>

static inline int bsw_compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Sorts the n >= 1 values; of an even number the mean of the middle two. No NaN.
static inline double bsw_median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, bsw_compare_doubles);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

#endif
