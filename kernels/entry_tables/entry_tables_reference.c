// SPDX-License-Identifier: Apache-2.0
// The oracle: entry_tables.h's numbers entry by entry.
#include "kernels/entry_tables/entry_tables.h"

#include "kernels/entries_within/entry_value.h"

static int is_within(enum bsw_entry_value kind, const struct bsw_entry_ray *ray, float value)
{
    return kind == BSW_ENTRY_L2 ? value <= ray->limit : value >= bsw_entry_least(ray);
}

static float number_of(enum bsw_entry_value kind, enum bsw_entry_number number,
                       const struct bsw_entry_part *part, size_t e, float value)
{
    if (number == BSW_ENTRY_COUNT) return 1.0f;
    if (number == BSW_ENTRY_RING) {
        struct bsw_entry_ray inner = part->ray;
        inner.limit = part->inner;
        return is_within(kind, &inner, value) ? 1.0f : 0.0f;
    }
    if (kind == BSW_ENTRY_IP) return part->query[e];
    float sum = (part->list[e] + part->query[e]) + part->base;
    return sum > 0.0f ? sum : 0.0f;
}

static size_t make(enum bsw_entry_value kind, enum bsw_entry_number number,
                   const struct bsw_entry_part *part, size_t num, float *out, uint32_t *hits)
{
    float miss = number == BSW_ENTRY_SUM ? part->miss : number == BSW_ENTRY_RING ? -1.0f : 0.0f;
    size_t count = 0;
    for (size_t e = 0; e < num; e++) {
        float value = kind == BSW_ENTRY_L2 ? bsw_entry_distance(&part->ray, part->x[e], part->y[e])
                                           : bsw_entry_product(&part->ray, part->x[e], part->y[e]);
        int is_hit = is_within(kind, &part->ray, value);
        out[e] = is_hit ? number_of(kind, number, part, e, value) : miss;
        if (e % 32 == 0) hits[e / 32] = 0;
        hits[e / 32] |= (uint32_t)is_hit << e % 32;
        count += (size_t)is_hit;
    }
    return count;
}

#define MAKE(name, kind, number)                                                                  \
    static size_t name(const struct bsw_entry_part *part, size_t num, float *out, uint32_t *hits) \
    {                                                                                             \
        return make(kind, number, part, num, out, hits);                                          \
    }
MAKE(sum_l2, BSW_ENTRY_L2, BSW_ENTRY_SUM)
MAKE(ring_l2, BSW_ENTRY_L2, BSW_ENTRY_RING)
MAKE(count_l2, BSW_ENTRY_L2, BSW_ENTRY_COUNT)
MAKE(sum_ip, BSW_ENTRY_IP, BSW_ENTRY_SUM)
MAKE(ring_ip, BSW_ENTRY_IP, BSW_ENTRY_RING)
MAKE(count_ip, BSW_ENTRY_IP, BSW_ENTRY_COUNT)

const struct bsw_entry_tables_table bsw_entry_tables_reference = {
    .level = "reference",
    .make = {[BSW_ENTRY_L2] = {sum_l2, ring_l2, count_l2},
             [BSW_ENTRY_IP] = {sum_ip, ring_ip, count_ip}}};

BSW_KERNEL_TABLE_GET(entry_tables, BSW_KERNEL_AVX2(entry_tables) BSW_KERNEL_AVX512(entry_tables)
                                       BSW_KERNEL_NEON(entry_tables))
