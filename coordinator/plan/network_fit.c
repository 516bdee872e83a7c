// SPDX-License-Identifier: Apache-2.0
#include "coordinator/plan/network_fit.h"

#include <math.h>

static double worst_error(const struct bsw_network_fit *fit, const double *bytes,
                          const double *seconds, size_t count)
{
    double worst = 0;
    for (size_t i = 0; i < count; i++) {
        double model = fit->alpha_seconds + bytes[i] * fit->beta_seconds_per_byte;
        worst = fmax(worst, fabs(model - seconds[i]) / seconds[i]);
    }
    return worst;
}

// With x_i = 1 / t_i and y_i = n_i / t_i: the sum of (alpha x_i + beta y_i - 1)^2. Where a number
// would be negative it is 0 and the other alone fits best: the sum is convex.
int bsw_network_fit_make(const double *bytes, const double *seconds, size_t count,
                         struct bsw_network_fit *out)
{
    double xx = 0, xy = 0, yy = 0, x1 = 0, y1 = 0;
    int differ = 0;
    for (size_t i = 0; i < count; i++) {
        double x = 1 / seconds[i], y = bytes[i] / seconds[i];
        xx += x * x;
        xy += x * y;
        yy += y * y;
        x1 += x;
        y1 += y;
        differ |= bytes[i] != bytes[0];
    }
    if (!differ) return 0;
    double determinant = xx * yy - xy * xy;
    double alpha = (x1 * yy - y1 * xy) / determinant, beta = (y1 * xx - x1 * xy) / determinant;
    if (alpha < 0) {
        alpha = 0;
        beta = y1 / yy;
    } else if (beta < 0) {
        alpha = x1 / xx;
        beta = 0;
    }
    *out = (struct bsw_network_fit){.alpha_seconds = alpha, .beta_seconds_per_byte = beta};
    out->worst = worst_error(out, bytes, seconds, count);
    return 1;
}

uint32_t bsw_tree_depth(uint32_t num_ranks)
{
    uint32_t depth = 0;
    while (depth < 31 && (1u << depth) < num_ranks) depth++;
    return depth;
}

double bsw_network_broadcast_seconds(const struct bsw_network_fit *fit, uint32_t num_ranks,
                                     double bytes)
{
    return bsw_tree_depth(num_ranks) * (fit->alpha_seconds + bytes * fit->beta_seconds_per_byte);
}

double bsw_network_gather_seconds(const struct bsw_network_fit *fit, uint32_t num_ranks,
                                  double bytes)
{
    return num_ranks > 1 ? fit->alpha_seconds + bytes * fit->beta_seconds_per_byte : 0;
}
