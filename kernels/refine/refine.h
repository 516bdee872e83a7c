// SPDX-License-Identifier: Apache-2.0
// refine: the exact value of one raw row and one query, the number that results are ordered by.
//
// Numbers are converted exactly to float64; lane i mod 32 ascending from +0.0 with s = fma(a, b,
// s), then the tree of kernel_sums.h. cosine: xq / (sqrt(xx) * sqrt(qq)); ip: xq; l2: sum of (x -
// q)^2, never expanded; then + 0.0. It is rounded to float32 only when it is written
// (common/codes/metric.h). Sums of integer rows and queries, at most 65536 * 255^2, are exact in
// float64, so that ip and l2 are the integers themselves; cosine of integer rows is the root of
// (xq^2 / xx) / qq, with the sign of xq, and ties where it should (refine_value.h). Cost: 1 (ip,
// l2) or 2 (cosine) fused multiply-adds a dimension; bound by the fetch of the row.
#ifndef BITSWEEP_KERNELS_REFINE_H
#define BITSWEEP_KERNELS_REFINE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/codes/metric.h"
#include "common/rows/vectors.h"
#include "kernels/kernel_table.h"

BSW_C_BEGIN

struct bsw_refine_table {
    const char *level;

    // Numbers as float64, exactly. n numbers.
    void (*to_double)(enum bsw_vector_type type, const void *numbers, size_t n, double *out);

    // Sum of x^2 in lanes and tree: the qq of cosine.
    double (*squared_norm)(const double *numbers, size_t dims);

    // The value. row: dims numbers of `type`, any alignment; query: [dims] from to_double;
    // query_norm = squared_norm of it (used by cosine alone). A zero row or query under cosine
    // gives NaN: callers keep them out.
    double (*value)(enum bsw_metric metric, enum bsw_vector_type type, const void *row,
                    const double *query, double query_norm, size_t dims);
};

BSW_KERNEL_LEVELS(refine);

BSW_C_END
#endif
