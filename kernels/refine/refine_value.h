// SPDX-License-Identifier: Apache-2.0
// From the sums of a pair to its value: the one formula that all levels of refine share with the
// kernels of device_exact.
//
// Cosines of integer rows and integer queries tie exactly: x and 3x have one value. What decides
// there is s^2 / n, s the sum of products, n the row's squared norm, both exact: a rational number,
// rounded once, so that the value is a function of the number and not of how s and n write it.
// What follows, a division by the query's norm and a root, is monotone: no larger cosine gets a
// smaller value, and none is above 1. Two numbers that differ, differ by a share of 1 / (s^2 n) at
// least: below 2^50 their values differ, too. Beyond, cosines that differ by less than a share of
// 2^-50 may count as equal.
#ifndef BITSWEEP_KERNELS_REFINE_VALUE_H
#define BITSWEEP_KERNELS_REFINE_VALUE_H

#include <math.h>

#include "common/base/c_linkage.h"
#include "common/codes/metric.h"
#include "common/rows/vectors.h"

BSW_HOST_DEVICE int bsw_refine_is_integer(enum bsw_vector_type type)
{
    return type == BSW_VECTOR_UINT8 || type == BSW_VECTOR_INT8;
}

// s^2 / n, rounded once where both are sums of products of bytes. Such a square may have 64 bits:
// what float64 lacks of it, and of the quotient, adds up exactly, and the quotient of the sum is so
// far from every number at which rounding turns (a share of 2^-33 or more, or nothing) that it may
// be rounded before it is added.
BSW_HOST_DEVICE double bsw_refine_square_over(double s, double n)
{
    double square = s * s, quotient = square / n;
    if (square < 0x1p53) return quotient; // of integers nothing is lacking
    double rest = fma(s, s, -square);
    return quotient + (fma(-quotient, n, square) + rest) / n;
}

// sum: of x*q (cosine, ip) or of (x - q)^2 (l2). The norms are squared ones, used by cosine alone.
// is_integer: the row's numbers are.
BSW_HOST_DEVICE double bsw_refine_value(enum bsw_metric metric, int is_integer, double sum,
                                        double row_norm, double query_norm)
{
    if (bsw_has_unit_rows(metric) && is_integer)
        sum = copysign(sqrt(bsw_refine_square_over(sum, row_norm) / query_norm), sum);
    else if (bsw_has_unit_rows(metric))
        sum = sum / (sqrt(row_norm) * sqrt(query_norm));
    return sum + 0.0;
}

#endif
