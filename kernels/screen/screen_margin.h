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
// Halves. A GPU multiplies halves by matrix units (kernels/gpu_screen). X = 2^e x and Q = U q are
// rounded to halves X^ and Q^, with powers of two 2^e and U that bring the largest number of each
// into [2^13, 2^14), or as near as floats come; p = |X - X^| / |X|, r = |Q - Q^| / |Q|. Products of
// halves are exact and no less than 2^-48, so nothing underflows, and sums stay below 2^44. A
// device may make a step of 16 dimensions four of 4, and cut the five addends of each, and their
// sum, to 23 bits below the largest addend's exponent: it loses 24 * 2^-23 a step of the largest
// addend, which is no more than T = sum |X^_i Q^_i| and what was lost before. D padded dims are
// D / 16 steps, so
//     |s - X^.Q^| <= 3.1 D u T <= G |X^||Q^|,   G = 3.1 D u,
// as D <= 2^16 loses less than T / 64. With |X^| <= (1 + p)|X| and |Q^| <= (1 + r)|Q|
//     |s - X.Q| <= h |X||Q|,   h = (1 + p)(1 + G)(1 + r) - 1:  f with p + (1 + p) G in place of p.
// What is compared is fma(b, w, fl(s m)) >= L: m = 2^-e (cosine: fl(2^-e / |x|)), b the bias as for
// codes, w = U for l2 and fl(U |q|) else, L the limit times w, rounded down. That is the comparison
// of codes times w > 0. Roundings of m, s m, w and the sum are 5 u |X||Q| 2^-e at most, for l2,
// where only the sum is rounded, u U (1.1 |x||q| + 0.6 |x|^2): c = 64 u does. s m and the sum may
// underflow, by less than 2^-148, which L is lowered by. A bias that is infinite lets its row pass;
// one that is no number keeps it out, which is for rows that are masked. Where r is above 2^-10
// (the query's largest number is subnormal, or nearly) L is -infinity.
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
BSW_HOST_DEVICE double bsw_screen_underflow(size_t dims)
{
    return (double)dims * 0x1p-148;
}

// The smallest float >= x, the largest <= x; beyond the largest float infinity.
BSW_HOST_DEVICE float bsw_round_up(double x)
{
    float f = (float)x;
    return (double)f < x ? nextafterf(f, INFINITY) : f;
}
BSW_HOST_DEVICE float bsw_round_down(double x)
{
    return -bsw_round_up(-x);
}

// What a row is multiplied by, and what a query is (before rounding to float32). Squared norms of
// good rows and queries (kernels/encode/prepare_rows.h).
static inline float bsw_screen_row_scale(enum bsw_metric metric, double squared_norm)
{
    return bsw_has_unit_rows(metric) ? (float)(1.0 / sqrt(squared_norm)) : 1.0f;
}
static inline double bsw_screen_query_scale(enum bsw_metric metric, double squared_norm)
{
    if (bsw_has_row_norms(metric)) return 1.0;
    return squared_norm > 0.0 ? 1.0 / sqrt(squared_norm) : 0.0;
}

// share: bsw_screen_share, or what the row's code adds to bsw_screen_code_share.
BSW_HOST_DEVICE float bsw_screen_row_bias(enum bsw_metric metric, double squared_norm, double share,
                                          size_t dims)
{
    double t = bsw_screen_underflow(dims);
    if (bsw_has_unit_rows(metric)) return bsw_round_up(share);
    if (!bsw_has_distances(metric)) return bsw_round_up(share * sqrt(squared_norm) + t);
    return bsw_round_up(t - (1.0 - share) * squared_norm * 0.5);
}

// The limit of a query whose list takes exact scores (common/codes/metric.h) from `score` on.
BSW_HOST_DEVICE float bsw_screen_limit(enum bsw_metric metric, double squared_norm, double share,
                                       uint64_t score)
{
    if (score <= bsw_exact_score(-INFINITY)) return -INFINITY;
    if (score > bsw_exact_score(INFINITY)) return INFINITY;
    double l = bsw_exact_score_to_key(score);
    if (bsw_has_unit_rows(metric)) return bsw_round_down(l);
    if (bsw_has_row_norms(metric))
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
BSW_HOST_DEVICE double bsw_screen_code_share(enum bsw_metric metric, double row_error,
                                             double query_error, double balance)
{
    double f = row_error + (1.0 + row_error) * query_error;
    return BSW_SCREEN_CODE_SHARE + (bsw_has_row_norms(metric) ? f * f / balance : f);
}

// ---- halves ----

// The exponent that a largest number gets, 2^-126 .. 2^126 the factors that do it.
#define BSW_SCREEN_HALF_EXPONENT 13
// r of queries that are screened.
#define BSW_SCREEN_HALF_QUERY_ERROR 0x1p-10

// e, of the bits of the largest |x| of a vector.
BSW_HOST_DEVICE int bsw_screen_half_exponent(uint32_t largest_bits)
{
    if (largest_bits == 0) return 0;
    int e = BSW_SCREEN_HALF_EXPONENT + 127 - (int)(largest_bits >> 23);
    return e > 126 ? 126 : e < -126 ? -126 : e;
}

// p or r, of a float32 sum of squared errors in lanes and tree (off by less than 2^-11 of itself
// and what may underflow) and the squared norm. exponent: e.
BSW_HOST_DEVICE double bsw_screen_half_error(float squared_error, double squared_norm, int exponent)
{
    if (squared_norm == 0.0) return 0.0;
    double root = sqrt((double)squared_error) * (1.0 + 0x1p-10);
    return root / (sqrt(squared_norm) * ldexp(1.0, exponent)) + 0x1p-40;
}

// G, of padded dims.
BSW_HOST_DEVICE double bsw_screen_half_sum(size_t padded_dims)
{
    return 3.1 * (double)padded_dims * 0x1p-24;
}

// F for l2: about h of the worst query and a row whose p is what it is for most. is_rounded: rows
// are not all halves as they are.
BSW_HOST_DEVICE double bsw_screen_half_balance(double query_error, size_t padded_dims,
                                               int is_rounded)
{
    double least = is_rounded ? 0x1p-12 : 0.0, twice = 2.0 * query_error;
    return bsw_screen_half_sum(padded_dims) + (twice > least ? twice : least);
}

// b.
BSW_HOST_DEVICE float bsw_screen_half_bias(enum bsw_metric metric, double squared_norm,
                                           double row_error, double query_error, double balance,
                                           size_t padded_dims)
{
    double error = row_error + (1.0 + row_error) * bsw_screen_half_sum(padded_dims);
    double share = bsw_screen_code_share(metric, error, query_error, balance);
    return bsw_screen_row_bias(metric, squared_norm, share, padded_dims);
}

// w; unit: U.
BSW_HOST_DEVICE float bsw_screen_half_weight(enum bsw_metric metric, double squared_norm,
                                             double unit)
{
    if (bsw_has_row_norms(metric) || squared_norm == 0.0) return (float)unit;
    return (float)(unit * sqrt(squared_norm));
}

// L, of the score from which the list takes rows; weight: w.
BSW_HOST_DEVICE float bsw_screen_half_limit(enum bsw_metric metric, double squared_norm,
                                            double balance, float weight, uint64_t score)
{
    double share = BSW_SCREEN_CODE_SHARE + balance;
    float limit = bsw_screen_limit(metric, squared_norm, share, score);
    return bsw_round_down((double)limit * (double)weight - 0x1p-147);
}

#endif
