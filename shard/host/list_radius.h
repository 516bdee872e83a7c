// SPDX-License-Identifier: Apache-2.0
// What list_bounds.h is to full tables, of radius tables (shard/codecs/selective_table.h): l2 with
// residuals, 256 entries a part, finders that look at all entries. Bytes of the tables of 16
// queries say which rows may be wanted (kernels/entry_bounds); tables of float32 are not made. For
// modes M and L the bytes say all.
#ifndef BITSWEEP_SHARD_LIST_RADIUS_H
#define BITSWEEP_SHARD_LIST_RADIUS_H

#include "kernels/entry_bounds/entry_bounds.h"
#include "shard/codecs/selective_table.h"
#include "shard/host/list_tables.h"

#define BSW_RADIUS_BUNDLES 128 // of a pass: 128 KiB of sums

struct bsw_bound_group; // shard/host/list_bounds.h

// A batch's queries.
struct bsw_list_radius {
    const struct bsw_list_tables *tables;
    const struct bsw_entry_bounds_table *kernels;
    int is_on;      // 0: entries, codes or numbers for which there is none of this
    double entries; // sum over parts of the largest squared norm of an entry
};

// Room of one thread.
struct bsw_list_radius_room {
    float *x, *y, *limit, *inner, *inverse; // [parts][16]; [16]
    float *query, *bases, *sums;
    uint32_t *masks, *places;
    void *scratch;
};

// Terms of l2 with residuals of `tables`; all is borrowed until the batch's end.
enum bsw_status bsw_list_radius_open(const struct bsw_list_tables *tables,
                                     struct bsw_list_radius *out, struct bsw_error *err);
struct bsw_list_radius_room bsw_list_radius_room(const struct bsw_list_radius *radius,
                                                 size_t thread);

// Which rows of at most BSW_RADIUS_BUNDLES bundles of the list that table_room has entered may be
// wanted by the group; counts the tables' entries where is_counted, once a query and list.
void bsw_list_radius_pass(const struct bsw_list_radius *radius,
                          const struct bsw_list_table_room *table_room,
                          const struct bsw_bound_group *group, size_t bundle, size_t num_bundles,
                          int is_counted, struct bsw_list_radius_room *room);

// A tile of what was passed, `at` bundles on: places whose keys reach the limit of query i of the
// group, as candidates; returns how many.
struct bsw_radius_tile {
    size_t pass_bundles, at, num_bundles; // of the pass; of the tile
    size_t bundle;                        // of the shard: the tile's first
};
size_t bsw_list_radius_find(const struct bsw_list_radius *radius,
                            const struct bsw_list_table_room *table_room,
                            const struct bsw_bound_group *group, size_t i,
                            const struct bsw_radius_tile *tile, struct bsw_list_radius_room *room,
                            uint64_t *items);

#endif
