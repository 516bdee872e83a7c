// SPDX-License-Identifier: Apache-2.0
// `pass` of entry_bounds' levels with vectors. Each defines QUERIES_PASS and includes this behind
// its own struct hits, of entries for 16 queries, part_bytes, queries_pass and add_within.
#ifndef BITSWEEP_KERNELS_ENTRY_BOUNDS_PASS_H
#define BITSWEEP_KERNELS_ENTRY_BOUNDS_PASS_H

#include <string.h>

#include "kernels/entry_bounds/entry_bounds.h"
#include "kernels/sixteen_sums.h"

#if defined(QUERIES_PASS) // nothing without it

_Static_assert(BSW_ENTRY_BOUND_QUERIES == BSW_SIXTEEN, "of a register");
_Static_assert(BSW_ENTRY_BOUND_PARTS == BSW_SIXTEEN_PARTS, "the room is for as many");

INLINE void pass(enum bsw_entry_number number, const struct bsw_entry_bound_rows *rows,
                 const struct bsw_entry_bound_rays *rays, void *room, uint32_t *masks,
                 uint32_t *within)
{
    uint16_t *sums = (uint16_t *)room;
    uint8_t *bytes = (uint8_t *)room + bsw_entry_bound_sums_bytes(rows->num_bundles);
    struct hits hits = {0};
    for (uint32_t p = 0; p < rows->parts; p += BSW_SIXTEEN_PARTS) {
        uint32_t left = rows->parts - p,
                 parts = left < BSW_SIXTEEN_PARTS ? left : BSW_SIXTEEN_PARTS;
        for (uint32_t i = 0; i < parts; i++)
            part_bytes(number, rays, rows->points, p + i, bytes + (size_t)i * 256 * BSW_SIXTEEN,
                       &hits);
        bsw_sixteen_add(bytes, rows->codes + p * BSW_BUNDLE_ROWS, rows->bundle_bytes,
                        rows->num_bundles, parts, p == 0, sums);
    }
    memset(masks, 0, BSW_SIXTEEN * rows->num_bundles * sizeof *masks);
    for (size_t i = 0; i < rows->num_bundles * BSW_BUNDLE_ROWS; i++)
        bsw_sixteen_mark(queries_pass(number, sums + i * BSW_SIXTEEN, rays->ends) & rays->wanted, i,
                         rows->masks, rows->num_bundles, masks);
    add_within(&hits, within);
}

#define PASS(name, number)                                                                 \
    static void name(const struct bsw_entry_bound_rows *rows,                              \
                     const struct bsw_entry_bound_rays *rays, void *room, uint32_t *masks, \
                     uint32_t *within)                                                     \
    {                                                                                      \
        pass(number, rows, rays, room, masks, within);                                     \
    }
PASS(pass_sum, BSW_ENTRY_SUM)
PASS(pass_ring, BSW_ENTRY_RING)
PASS(pass_count, BSW_ENTRY_COUNT)

#endif
#endif
