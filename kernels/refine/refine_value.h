// SPDX-License-Identifier: Apache-2.0
// From the sums of a pair to its value: the one formula that all levels of refine share.
#ifndef BITSWEEP_KERNELS_REFINE_VALUE_H
#define BITSWEEP_KERNELS_REFINE_VALUE_H

#include <math.h>

#include "common/codes/metric.h"

// sum: of x*q (cosine, ip) or of (x - q)^2 (l2). The norms are squared ones, used by cosine alone.
static inline double bsw_refine_value(enum bsw_metric metric, double sum, double row_norm,
                                      double query_norm)
{
    if (metric == BSW_METRIC_COSINE) sum = sum / (sqrt(row_norm) * sqrt(query_norm));
    return sum + 0.0;
}

#endif
