// SPDX-License-Identifier: Apache-2.0
// Radii that hold the nearest quarter of a codebook's entries: for product codes with parts of 2
// dimensions, under l2.
//
// JUNO's radii (product_radii.h) go by the density of rows around a query. Where its list's
// centroid lies far from it a ray is far from all entries, and hits few of those of the rows that
// matter; where it is near, most. Here a radius is the ray's own, after the centroid is taken off:
// what holds a quarter of the entries (the share that JUNO's Section 3.2 finds in use), times a
// scale. It is looked up, not computed: each part's plane is divided into 32 x 32 cells, over the
// box that holds its entries, twice as wide and high; a cell has the radius of its middle, and what
// entries outside that are on average: the mean of their squared distances from the middle. Rays
// outside the box have the nearest cell.
//
// Made of the codebooks alone, by operations that are the same on every machine, where a search is
// opened: 1,024 cells of a part look at all its entries.
#ifndef BITSWEEP_SHARD_ENTRY_MAP_H
#define BITSWEEP_SHARD_ENTRY_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/memory.h"

BSW_C_BEGIN

#define BSW_ENTRY_MAP_CELLS 32 // a side of a box
#define BSW_ENTRY_MAP       ((size_t)BSW_ENTRY_MAP_CELLS * BSW_ENTRY_MAP_CELLS)

// Owned arrays.
struct bsw_entry_map {
    uint32_t parts;
    float *boxes;  // [parts][4]: least x, least y, most x, most y
    float *limits; // [parts][cells of y][cells of x]: (radius * scale)^2, above 0; infinity too
    float *misses; // likewise: the mean of what is outside, at least the limit
};

// entries: [parts][2][num], num a multiple of 4; scale: positive, infinity too.
enum bsw_status bsw_entry_map_create(uint32_t parts, size_t num, const float *entries, float scale,
                                     struct bsw_entry_map **out, struct bsw_error *err);
void bsw_entry_map_destroy(struct bsw_entry_map **map); // accepts NULL inside

// The place in limits and misses of a ray of a part.
size_t bsw_entry_map_at(const struct bsw_entry_map *map, uint32_t part, float x, float y);

BSW_C_END
#endif
