// SPDX-License-Identifier: Apache-2.0
// entries_within of all levels with vectors: LANES entries at a time. Each includes this behind
// kernels/lanes.h and its own `keep`, which stores those of LANES values that hit, and the numbers
// of their entries, and returns how many.
#ifndef BITSWEEP_KERNELS_ENTRIES_WITHIN_LANES_H
#define BITSWEEP_KERNELS_ENTRIES_WITHIN_LANES_H

#include "kernels/entries_within/entry_value.h"

#if defined(LANES) // nothing without it

INLINE size_t within(enum bsw_entry_value kind, const float *x, const float *y, size_t num,
                     const struct bsw_entry_ray *ray, uint8_t *entries, float *values)
{
    const struct entry_rays rays = entry_rays_of(kind, ray);
    size_t count = 0;
    for (size_t e = 0; e < num; e += LANES) {
        floats value = entry_values(kind, rays, x + e, y + e);
        count += keep(value, entry_hits(kind, value, rays.end), e, entries + count, values + count);
    }
    return count;
}

#define WITHIN(name, kind)                                                               \
    static size_t name(const float *x, const float *y, size_t num,                       \
                       const struct bsw_entry_ray *ray, uint8_t *entries, float *values) \
    {                                                                                    \
        return num == 256 ? within(kind, x, y, 256, ray, entries, values)                \
                          : within(kind, x, y, num, ray, entries, values);               \
    }
WITHIN(within_l2, BSW_ENTRY_L2)
WITHIN(within_ip, BSW_ENTRY_IP)

const struct bsw_entries_within_table LEVEL_TABLE(entries_within) = {
    .level = LEVEL_TEXT, .within = {[BSW_ENTRY_L2] = within_l2, [BSW_ENTRY_IP] = within_ip}};

#endif
#endif
