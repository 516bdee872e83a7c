// SPDX-License-Identifier: Apache-2.0
// The two formulas of entries_within.h, a number at a time.
#ifndef BITSWEEP_KERNELS_ENTRY_VALUE_H
#define BITSWEEP_KERNELS_ENTRY_VALUE_H

#include <math.h>

#include "kernels/entries_within/entries_within.h"

static inline float bsw_entry_distance(const struct bsw_entry_ray *ray, float x, float y)
{
    float dx = ray->x - x, dy = ray->y - y;
    return fmaf(dy, dy, dx * dx);
}

static inline float bsw_entry_product(const struct bsw_entry_ray *ray, float x, float y)
{
    return fmaf(ray->y, y, fmaf(ray->x, x, 0.0f));
}

// What a product must reach.
static inline float bsw_entry_least(const struct bsw_entry_ray *ray)
{
    return 0.5f * (fmaf(ray->y, ray->y, ray->x * ray->x) - ray->limit);
}

#endif
