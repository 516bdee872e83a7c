// SPDX-License-Identifier: Apache-2.0
// The median of repeated measurements.
#ifndef BITSWEEP_COMMON_MEDIAN_H
#define BITSWEEP_COMMON_MEDIAN_H

#include <stddef.h>

// Sorts the n >= 1 values; of an even number the mean of the middle two. No NaN.
double bsw_median(double *values, size_t n);

#endif
