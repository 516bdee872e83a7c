// SPDX-License-Identifier: Apache-2.0
// Centroids as 8-bit codes on int8 units, and rows as their queries: which centroids may be the
// nearest of a row.
//
// Centroids are nearest by distance, for cosine of vectors of length one, so there is one margin
// for all metrics. With it an exact value is computed for a few centroids of a row alone, and none
// that is nearest is lost.
//
// All is relative to the centroids' mean m, in units of a power of two g in which their largest
// component is between 0.5 and 1: x = g (centroid - m), q = g (row - m), both of unit vectors under
// cosine. Distances are those of before, times g; numbers far from the origin lose nothing.
//
// Codes. x^ = s k and q^ = t j, s a half, t a float, k and j whole numbers of -127 .. 127. The
// errors e = |x - x^| of a centroid and f = |q - q^| of a row are measured, not assumed. E, X: the
// largest e and |x^| of the centroids that are scanned in one go. Then
//     |x.q - x^.q^| <= E |q| + X f
// What must pass. V: no less than the squared distance to the best centroid so far, times g^2; for
// l2 its float64 value, which is right to 2^-36, times 1 + 2^-35; for cosine 2 - 2 cos + 2^-33. One
// that is as near has |x - q|^2 <= V, so
//     x^.q^ - |x|^2 / 2 >= (|q|^2 - V) / 2 - E |q| - X f
// Roundings, u = 2^-24, D dims. matrix_scan rounds dot, scale * dot, the row's scale and the sum
// with the bias, all normal numbers or nothing against X; the bias is rounded too: 7 u X |q| + 2 u
// X^2 in all, as f <= 0.71 |q|. |q|^2 and the sum behind f are float32 sums of D squares: D u of
// themselves. c = (D + 64) u times X^2 + X |q| + |q|^2 is more than all of these. q itself is off
// by one rounding of the subtraction, and under cosine by two of the unit vector's components: 4 u
// (|q| + g) does for these as part of f, and in |q|^2 and E |q| 16 u g (|q| + X), for cosine alone,
// on top of c. What underflows is below 2^-100 of X^2, or X is 0 and all codes are exact.
#ifndef BITSWEEP_SHARD_CENTROID_CODES_H
#define BITSWEEP_SHARD_CENTROID_CODES_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/codes/code_layout.h"
#include "common/codes/metric.h"

struct bsw_centroid_codes {
    int is_cosine;
    size_t dims, padded_dims, num_lists, num_bundles;
    float *mean;     // m: [padded_dims], padding 0
    float unit;      // g
    double rounding; // c
    double half_squared_unit;
    uint8_t *bytes;   // as matrix_scan takes them: u = 128 - k
    uint16_t *scales; // s
    float *biases;
    // Bit lane: the centroid may be selected. Of equal ones the first may alone.
    uint32_t *masks;
    double error, norm; // E, X
};

// A row as matrix_scan takes it, but for its components, and what the margin needs of it.
struct bsw_coded_row {
    float scale;      // t / 2; 0: cannot be coded, all centroids pass
    int32_t constant; // of matrix_scan: 256 times the sum of j, which is even
    double most;      // of x^.q^ - |x|^2 / 2 what must pass, but for V / 2
};

// metric: cosine, else l2. centroids: [num_lists][dims], finite, under cosine not 0. Memory: about
// padded_dims + 40 bytes a centroid.
enum bsw_status bsw_centroid_codes_open(enum bsw_metric metric, const float *centroids,
                                        size_t num_lists, size_t dims, int num_threads,
                                        struct bsw_centroid_codes *out, struct bsw_error *err);
void bsw_centroid_codes_close(struct bsw_centroid_codes *codes);

// row: [dims], a good one (kernels/encode/prepare_rows.h); factor: 1, or under cosine that of unit
// length. scratch: [padded_dims]; components: [padded_dims], wholly written.
void bsw_centroid_codes_put_row(const struct bsw_centroid_codes *codes, const float *row,
                                float factor, float *scratch, int8_t *components,
                                struct bsw_coded_row *out);

// The least score of matrix_scan that a centroid may have whose exact key (bsw_metric_key) is
// `key` or better. key: -INFINITY, or finite.
static inline uint32_t bsw_centroid_codes_limit(const struct bsw_centroid_codes *codes,
                                                const struct bsw_coded_row *row, double key)
{
    double V = codes->is_cosine ? 2.0 - 2.0 * key + 0x1p-33 : -key * (1.0 + 0x1p-35);
    double limit = row->most - V * codes->half_squared_unit;
    limit -= fabs(limit) * 0x1p-23; // for the rounding to float32
    return limit > -1e38 ? bsw_score_from_float((float)limit) : 0;
}

#endif
