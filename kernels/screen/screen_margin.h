// What the numbers of screen.h must be given so that no row is lost: scales, biases, limits, and
// the proof that they suffice.
//
// x a row, q a query, both exact in float32; D dims; u = 2^-24. Norms as float64 sums are right to
// 2^-36 of themselves (D <= 2^16), so are the exact sums that define a value. Let K be the key that
// refine gives: a float64 number rounded to float32. A row matters if K >= L, the list's limit.
// Rounding is monotonic, so then the float64 number is >= l, the float below L.
//
// The chain. s = fl(... fma(a_1, b_1, 0) ...) makes D roundings, each fl(z) = z(1 + d) + e with
// |d| <= u, |e| <= 2^-150 (products below the normal range). So, in any order of summation and with
// or without fma,
//     |s - a.b| <= g sum|a_i b_i| + D 2^-149 <= g |a||b| + D 2^-149,   g = D u / (1 - D u)
// by Cauchy-Schwarz; D <= 2^16 makes g <= 1.004 D u. Nothing overflows: squared norms are at most
// 1e37 (rows with larger ones are refused), so |a||b| and all partial sums stay below 2e37.
// Let c = 1.01 (D + 8) u, hence c - g >= 8 u, and t = D 2^-148.
//
// cosine. a = x scaled by fl(1/|x|), b = q/|q| rounded: relative errors of at most 2.1 u and 1.1 u
//     a component, and 2^-150 for those that underflow, which add up to D 2^-149 at most. C the
//     real cosine: |s - C| <= g (1 + 4u) + 3.3 u + t. The float64 number is within 2^-34 of C, so
//     K >= L gives C >= l - 2^-34 and s >= l - c. Bias 0, limit l - c (c holds t and 2^-34 too:
//     t <= 2^-132).
// ip. a = x, b = q/|q| rounded. x.q >= l - 2^-35 |x||q|, so s >= l/|q| - (g + 1.2 u)|x| - t. The
//     bias c|x| + t is added with one rounding of at most u (1.02 |x| + 2t): still 5 u |x| too
//     high, which covers 2^-35 |x|. Limit l/|q|. q = 0: all keys are 0, the limit is -INFINITY or
//     INFINITY.
// l2. a = x, b = q. K = -(sum of squares) >= L gives |x - q|^2 <= -l (1 + 2^-35), so x.q >=
//     (|x|^2 + |q|^2 + l (1 + 2^-35)) / 2. And |x||q| <= (|x|^2 + |q|^2) / 2, so
//         s + t - (1 - g) |x|^2 / 2 >= (l (1 + 2^-35) + (1 - g) |q|^2) / 2.
//     Bias t - (1 - c) |x|^2 / 2, limit (l (1 + 2^-35) + (1 - c) |q|^2) / 2: what c has beyond g,
//     4 u (|x|^2 + |q|^2), is more than the one rounding of the addition, u (|x|^2 + |q|^2 / 2).
//
// Biases are rounded up to float32 and limits down. Data far from the origin, or of tiny numbers,
// makes the margin large against the distances: more rows get an exact value then, none is lost.
#ifndef BITSWEEP_KERNELS_SCREEN_MARGIN_H
#define BITSWEEP_KERNELS_SCREEN_MARGIN_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "common/code_layout.h"
#include "common/metric.h"
#include "common/result_order.h"

#ifdef __cplusplus
extern "C" {
#endif

#if BSW_MAX_DIMS > 65536
#error "the proof's bound of g"
#endif

// c and t of the proof.
static inline double bsw_screen_share(size_t dims)
{
    return 1.01 * ((double)dims + 8.0) * 0x1p-24;
}
static inline double bsw_screen_underflow(size_t dims)
{
    return (double)dims * 0x1p-148;
}

// The smallest float >= x, the largest <= x; |x| below the largest float.
static inline float bsw_round_up(double x)
{
    float f = (float)x;
    return (double)f < x ? nextafterf(f, INFINITY) : f;
}
static inline float bsw_round_down(double x)
{
    return -bsw_round_up(-x);
}

// What a row is multiplied by, and what a query is (before rounding to float32). Squared norms of
// good rows and queries (kernels/encode/prepare_rows.h).
static inline float bsw_screen_row_scale(enum bsw_metric metric, double squared_norm)
{
    return metric == BSW_METRIC_COSINE ? (float)(1.0 / sqrt(squared_norm)) : 1.0f;
}
static inline double bsw_screen_query_scale(enum bsw_metric metric, double squared_norm)
{
    if (metric == BSW_METRIC_L2) return 1.0;
    return squared_norm > 0.0 ? 1.0 / sqrt(squared_norm) : 0.0;
}

static inline float bsw_screen_row_bias(enum bsw_metric metric, double squared_norm, size_t dims)
{
    double c = bsw_screen_share(dims), t = bsw_screen_underflow(dims);
    if (metric == BSW_METRIC_COSINE) return 0.0f;
    if (metric == BSW_METRIC_IP) return bsw_round_up(c * sqrt(squared_norm) + t);
    return bsw_round_up(t - (1.0 - c) * squared_norm * 0.5);
}

// The limit of a query whose list takes scores (common/result_order.h) from `score` on.
static inline float bsw_screen_limit(enum bsw_metric metric, double squared_norm, size_t dims,
                                     uint32_t score)
{
    if (score <= bsw_score_from_float(-INFINITY) + 1) return -INFINITY;
    if (score > bsw_score_from_float(INFINITY)) return INFINITY;
    // The float below L; -0, which has a score of its own, is no other number than 0.
    uint32_t below = score == bsw_score_from_float(0.0f) ? score - 2 : score - 1;
    double l = (double)bsw_score_to_float(below), c = bsw_screen_share(dims);
    if (metric == BSW_METRIC_COSINE) return bsw_round_down(l - c);
    if (metric == BSW_METRIC_L2)
        return bsw_round_down((l - fabs(l) * 0x1p-35 + (1.0 - c) * squared_norm) * 0.5);
    if (squared_norm == 0.0) return bsw_score_to_float(score) > 0.0f ? INFINITY : -INFINITY;
    double limit = l / sqrt(squared_norm);
    limit -= fabs(limit) * 0x1p-35;
    return fabs(limit) > 3e38 ? (limit > 0 ? INFINITY : -INFINITY) : bsw_round_down(limit);
}

#ifdef __cplusplus
}
#endif
#endif
