// SPDX-License-Identifier: Apache-2.0
// The two formulas of entries_within.h, a number at a time, and for files with kernels/lanes.h
// LANES at a time.
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

#if defined(LANES)

// A ray in all lanes; end: its limit, or what a product must reach.
struct entry_rays {
    floats x, y, end;
};

INLINE struct entry_rays entry_rays_of(enum bsw_entry_value kind, const struct bsw_entry_ray *ray)
{
    float end = kind == BSW_ENTRY_L2 ? ray->limit : bsw_entry_least(ray);
    return (struct entry_rays){every(ray->x), every(ray->y), every(end)};
}

INLINE floats entry_values(enum bsw_entry_value kind, struct entry_rays rays, const float *x,
                           const float *y)
{
    floats at_x = load(x), at_y = load(y);
    if (kind == BSW_ENTRY_IP)
        return multiply_add(rays.y, at_y, multiply_add(rays.x, at_x, every(0.0f)));
    floats dx = rays.x - at_x, dy = rays.y - at_y;
    return multiply_add(dy, dy, dx * dx);
}

INLINE lane_marks entry_hits(enum bsw_entry_value kind, floats values, floats end)
{
    return kind == BSW_ENTRY_L2 ? at_most(values, end) : at_most(end, values);
}

#endif
#endif
