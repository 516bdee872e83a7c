// SPDX-License-Identifier: Apache-2.0
// The oracle: entries_within.h's formulas entry by entry.
#include "kernels/entries_within/entry_value.h"

static size_t reference_l2(const float *x, const float *y, size_t num,
                           const struct bsw_entry_ray *ray, uint8_t *entries, float *values)
{
    size_t count = 0;
    for (size_t e = 0; e < num; e++) {
        float value = bsw_entry_distance(ray, x[e], y[e]);
        if (!(value <= ray->limit)) continue;
        entries[count] = (uint8_t)e;
        values[count++] = value;
    }
    return count;
}

static size_t reference_ip(const float *x, const float *y, size_t num,
                           const struct bsw_entry_ray *ray, uint8_t *entries, float *values)
{
    float least = bsw_entry_least(ray);
    size_t count = 0;
    for (size_t e = 0; e < num; e++) {
        float value = bsw_entry_product(ray, x[e], y[e]);
        if (!(value >= least)) continue;
        entries[count] = (uint8_t)e;
        values[count++] = value;
    }
    return count;
}

const struct bsw_entries_within_table bsw_entries_within_reference = {
    .level = "reference", .within = {[BSW_ENTRY_L2] = reference_l2, [BSW_ENTRY_IP] = reference_ip}};

BSW_KERNEL_TABLE_GET(entries_within,
                     BSW_KERNEL_AVX2(entries_within) BSW_KERNEL_NEON(entries_within))
