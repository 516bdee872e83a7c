// SPDX-License-Identifier: Apache-2.0
// What the numbers of screen.h must be given so that no row is lost: scales, biases, limits, and
// the proof that they suffice.
//
// x a row, q a query, both exact in float32; D dims; u = 2^-24. Norms as float64 sums are right to
// 2^-36 of themselves (D <= 2^16), so are the exact sums that define a value. Let K be the key that
// refine gives, a float64 number. A row matters if K >= l, the list's limit.
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
//     K >= l gives C >= l - 2^-34 and s + c >= l, one rounding of at most 1.1 u included (c holds t
//     and 2^-34 too: t <= 2^-132). Bias c, limit l.
// ip. a = x, b = q/|q| rounded. x.q >= l - 2^-35 |x||q|, so s >= l/|q| - (g + 1.2 u)|x| - t. The
//     bias c|x| + t is added with one rounding of at most u (1.02 |x| + 2t): still 5 u |x| too
//     high, which covers 2^-35 |x|. Limit l/|q|. q = 0: all keys are 0, the limit is -INFINITY or
//     INFINITY.
// l2. a = x, b = q. K = -(sum of squares) >= l gives |x - q|^2 <= -l (1 + 2^-35), so x.q >=
//     (|x|^2 + |q|^2 + l (1 + 2^-35)) / 2. And |x||q| <= (|x|^2 + |q|^2) / 2, so
//         s + t - (1 - g) |x|^2 / 2 >= (l (1 + 2^-35) + (1 - g) |q|^2) / 2.
//     Bias t - (1 - c) |x|^2 / 2, limit (l (1 + 2^-35) + (1 - c) |q|^2) / 2: what c has beyond g,
//     4 u (|x|^2 + |q|^2), is more than the one rounding of the addition, u (|x|^2 + |q|^2 / 2).
//
// Codes. x^ and q^ are what the bytes of x and q stand for, |x - x^| <= p |x|, |q - q^| <= r |q|.
// Then
//     |x.q - x^.q^| <= |x - x^||q| + |x^||q - q^| <= f |x||q|,   f = p + (1 + p) r.
// x^.q^ = scale * (half * dot) with an exact integer dot; it is rounded four times (dot, half *
// dot, the query's scale, the sum with the bias), none below the normal range, and |x^||q^| <= 4
// |x||q| as p, r <= 1. So c = 64 u does for all that, and c + f takes the place of c in the biases
// of cosine and ip. For l2, with any F > 0,
//     f |x||q| <= (f^2 / F |x|^2 + F |q|^2) / 2,
// so c + f^2 / F takes it in the bias, c + F in the limit; F near f loses least. A large f^2 / F,
// which the last rounding sees, loses nothing: either f|x| >= 2 F|q|, and the line above has more
// to spare, or it adds no more than 4 u |q|^2 (F <= 2).
// What p is: a row's step is s, its code c_i, and d_i = x_i / s - c_i is known to 2^-14 each, the
// root of their squares' sum to 2^-12 of itself: p |x| = s (that root (1 + 2^-10) + sqrt(D) 2^-14).
// A step rounded by a share of e to what a half holds adds e (1 + p); rows out of its range have
// scale 0, x^ = 0 and p = 1.
//
// Biases are rounded up to float32 and limits down; of codes a bias beyond float32 (p = 1 and a
// large |x|) becomes infinite, and its row passes. Data far from the origin, or of tiny numbers,
// makes the margin large against the distances: more rows get an exact value then, none is lost.
#ifndef BITSWEEP_KERNELS_SCREEN_MARGIN_H
#define BITSWEEP_KERNELS_SCREEN_MARGIN_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/codes/code_layout.h"
#include "common/codes/metric.h"

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

// The smallest float >= x, the largest <= x; beyond the largest float infinity.
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

// share: bsw_screen_share, or what the row's code adds to bsw_screen_code_share.
static inline float bsw_screen_row_bias(enum bsw_metric metric, double squared_norm, double share,
                                        size_t dims)
{
    double t = bsw_screen_underflow(dims);
    if (metric == BSW_METRIC_COSINE) return bsw_round_up(share);
    if (metric == BSW_METRIC_IP) return bsw_round_up(share * sqrt(squared_norm) + t);
    return bsw_round_up(t - (1.0 - share) * squared_norm * 0.5);
}

// The limit of a query whose list takes exact scores (common/codes/metric.h) from `score` on.
static inline float bsw_screen_limit(enum bsw_metric metric, double squared_norm, double share,
                                     uint64_t score)
{
    if (score <= bsw_exact_score(-INFINITY)) return -INFINITY;
    if (score > bsw_exact_score(INFINITY)) return INFINITY;
    double l = bsw_exact_score_to_key(score);
    if (metric == BSW_METRIC_COSINE) return bsw_round_down(l);
    if (metric == BSW_METRIC_L2)
        return bsw_round_down((l - fabs(l) * 0x1p-35 + (1.0 - share) * squared_norm) * 0.5);
    if (squared_norm == 0.0) return l > 0.0 ? INFINITY : -INFINITY;
    double limit = l / sqrt(squared_norm);
    limit -= fabs(limit) * 0x1p-35;
    return fabs(limit) > 3e38 ? (limit > 0 ? INFINITY : -INFINITY) : bsw_round_down(limit);
}

// ---- codes ----

#define BSW_SCREEN_CODE_SHARE 0x1p-18 // c
// 2 * 255 * 127 * dims, twice the largest sum, fits int32.
#define BSW_SCREEN_CODE_DIMS 32000
// A tile is screened by codes where scales of queries times the block's unit are 0 or no less.
#define BSW_SCREEN_LEAST_SCALE 0x1p-100f

// p of a row whose code has this step and sum of squared errors (screen.h).
static inline double bsw_screen_code_error(float step, float squared_error, double squared_norm,
                                           size_t dims)
{
    if (step == 0.0f || squared_norm == 0.0) return 1.0;
    double root = sqrt((double)squared_error) * (1.0 + 0x1p-10) + sqrt((double)dims) * 0x1p-14;
    return (double)step * root / sqrt(squared_norm) * (1.0 + 0x1p-30);
}

// The half nearest to step / unit, a power of two, normal or 0 where there is none; *error becomes
// that of the step so rounded.
static inline uint16_t bsw_screen_code_scale(double step, double unit, double *error)
{
    float scaled = (float)(step / unit);
    uint32_t bits;
    memcpy(&bits, &scaled, sizeof bits);
    bits = (bits + 0x1000) & ~UINT32_C(0x1fff); // 11 bits of mantissa
    if (bits < UINT32_C(113) << 23 || bits >= UINT32_C(143) << 23) {
        *error = 1.0;
        return 0;
    }
    memcpy(&scaled, &bits, sizeof scaled);
    *error += fabs((double)scaled * unit / step - 1.0) * (1.0 + *error);
    return (uint16_t)((bits >> 13) - (112u << 10));
}

// f, and what it adds to the share of a row's bias; F for l2.
static inline double bsw_screen_code_share(enum bsw_metric metric, double row_error,
                                           double query_error, double balance)
{
    double f = row_error + (1.0 + row_error) * query_error;
    return BSW_SCREEN_CODE_SHARE + (metric == BSW_METRIC_L2 ? f * f / balance : f);
}

#endif
