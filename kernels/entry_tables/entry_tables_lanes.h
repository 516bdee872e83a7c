// SPDX-License-Identifier: Apache-2.0
// entry_tables of all levels with vectors: LANES entries at a time, hit or miss by a choice.
#ifndef BITSWEEP_KERNELS_ENTRY_TABLES_LANES_H
#define BITSWEEP_KERNELS_ENTRY_TABLES_LANES_H

#include "kernels/lanes.h"

#include "kernels/entries_within/entry_value.h"
#include "kernels/entry_tables/entry_tables.h"

#if defined(LANES) // nothing without it

INLINE floats number_of(enum bsw_entry_value kind, enum bsw_entry_number number,
                        const struct bsw_entry_part *part, floats inner, size_t e, floats value)
{
    const floats one = every(1.0f);
    if (number == BSW_ENTRY_COUNT) return one;
    if (number == BSW_ENTRY_RING) return only(entry_hits(kind, value, inner), one);
    floats query = load(part->query + e);
    if (kind == BSW_ENTRY_IP) return query;
    return larger((load(part->list + e) + query) + every(part->base), every(0.0f));
}

INLINE size_t make(enum bsw_entry_value kind, enum bsw_entry_number number,
                   const struct bsw_entry_part *part, size_t num, float *out, uint32_t *hits)
{
    struct bsw_entry_ray inner = part->ray;
    inner.limit = part->inner;
    const struct entry_rays rays = entry_rays_of(kind, &part->ray),
                            inner_rays = entry_rays_of(kind, &inner);
    const floats miss = every(number == BSW_ENTRY_SUM    ? part->miss
                              : number == BSW_ENTRY_RING ? -1.0f
                                                         : 0.0f);
    size_t count = 0, step = num < 32 ? num : 32;
    for (size_t first = 0; first < num; first += step) {
        uint32_t word = 0;
        for (size_t e = first; e < first + step; e += LANES) {
            floats value = entry_values(kind, rays, part->x + e, part->y + e);
            lane_marks is_hit = entry_hits(kind, value, rays.end);
            floats found = number_of(kind, number, part, inner_rays.end, e, value);
            store(out + e, choose(is_hit, found, miss));
            word |= bits_of(is_hit) << (e - first);
        }
        hits[first / 32] = word;
        count += (size_t)__builtin_popcount(word);
    }
    return count;
}

#define MAKE(name, kind, number)                                                                  \
    static size_t name(const struct bsw_entry_part *part, size_t num, float *out, uint32_t *hits) \
    {                                                                                             \
        return num == 256 ? make(kind, number, part, 256, out, hits)                              \
                          : make(kind, number, part, 16, out, hits);                              \
    }
MAKE(sum_l2, BSW_ENTRY_L2, BSW_ENTRY_SUM)
MAKE(ring_l2, BSW_ENTRY_L2, BSW_ENTRY_RING)
MAKE(count_l2, BSW_ENTRY_L2, BSW_ENTRY_COUNT)
MAKE(sum_ip, BSW_ENTRY_IP, BSW_ENTRY_SUM)
MAKE(ring_ip, BSW_ENTRY_IP, BSW_ENTRY_RING)
MAKE(count_ip, BSW_ENTRY_IP, BSW_ENTRY_COUNT)

const struct bsw_entry_tables_table LEVEL_TABLE(entry_tables) = {
    .level = LEVEL_TEXT,
    .make = {[BSW_ENTRY_L2] = {sum_l2, ring_l2, count_l2},
             [BSW_ENTRY_IP] = {sum_ip, ring_ip, count_ip}}};

#endif
#endif
