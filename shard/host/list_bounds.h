// SPDX-License-Identifier: Apache-2.0
// Lists of product codes by bounds (kernels/table_bounds): a query's table of bytes serves all
// lists, and sums are made of those rows alone that may reach its limit.
//
// Under l2 with residuals bytes are of the query's term of distances. Of tables of float32 sums are
// then made without a table; of another type the query's table for the list is made once a row
// passes, as its scale depends on its largest number. Else a query has one table, and bytes are of
// that (fixed_bounds.h).
//
// What is of rows alone, R of kernels/table_bounds, is made once for all batches, 4 bytes a row, as
// far as it takes no more than BSW_LIST_TABLE_BYTES in all shards; else for a run of bundles.
//
// For radius tables list_radius.h does it; this has the same calls for both.
//
// A thread enters a list, then a run of its bundles; then for up to 16 queries
// at a time some tiles of it, and then what each query found in a tile.
#ifndef BITSWEEP_SHARD_LIST_BOUNDS_H
#define BITSWEEP_SHARD_LIST_BOUNDS_H

#include "kernels/table_bounds/table_bounds.h"
#include "shard/host/fixed_bounds.h"
#include "shard/host/list_radius.h"
#include "shard/host/list_tables.h"

#define BSW_BOUND_RUN_BUNDLES 512 // whose terms are kept: 64 KiB

// A batch's queries.
struct bsw_list_bounds {
    const struct bsw_list_tables *tables;
    const struct bsw_table_bounds_table *kernels;
    int is_on; // 0: codes, tables or numbers for which there are no bounds
    size_t query_bytes, tile_bundles;
    size_t pass_bundles; // of a call of bsw_list_bounds_pass, at most
    struct bsw_list_radius radius;
    const float *terms; // of all places of the shard, or NULL: made where they are needed
    double entries;     // sum over parts of the largest squared norm of an entry
};

// Room of one thread.
struct bsw_list_bound_room {
    float *run_terms;
    const float *terms; // of the run's rows
    float *query, *bases;
    struct bsw_passed_room passed;
    uint32_t *masks;
    void *scratch;
    struct bsw_list_radius_room radius;
    size_t first_bundle; // of the run
    size_t pass_bundle, pass_bundles;
    double length; // of c'
};

// Queries that go over a tile together, counted in the range, with limits that are not
// BSW_SCORE_OF_MINUS_INFINITY or less; additions: to keys, 0 without.
struct bsw_bound_group {
    uint32_t queries[BSW_BOUND_QUERIES], limits[BSW_BOUND_QUERIES];
    float additions[BSW_BOUND_QUERIES];
    size_t num;
};

// After bsw_list_tables_open; all is borrowed until the batch's end. tile_bundles: at most in a
// call.
enum bsw_status bsw_list_bounds_open(const struct bsw_list_tables *tables, size_t tile_bundles,
                                     struct bsw_list_bounds *out, struct bsw_error *err);
struct bsw_list_bound_room bsw_list_bounds_room(const struct bsw_list_bounds *bounds,
                                                size_t thread);
// Whether there are bounds for the list that table_room has entered; else it has to have tables.
int bsw_list_bounds_hold(const struct bsw_list_bounds *bounds,
                         const struct bsw_list_table_room *table_room);
// So many queries of a list are worth it: fewer have tables.
size_t bsw_list_bounds_least(const struct bsw_list_bounds *bounds);
// A run of at most BSW_BOUND_RUN_BUNDLES of the list that table_room has entered.
void bsw_list_bounds_enter(const struct bsw_list_bounds *bounds,
                           const struct bsw_list_table_room *table_room, size_t bundle,
                           size_t num_bundles, struct bsw_list_bound_room *room);
// What a query will need soon.
void bsw_list_bounds_prefetch(const struct bsw_list_bounds *bounds, uint32_t query);
// Which rows of some tiles of the run may be wanted.
void bsw_list_bounds_pass(const struct bsw_list_bounds *bounds,
                          const struct bsw_list_table_room *table_room,
                          const struct bsw_bound_group *group, size_t bundle, size_t num_bundles,
                          struct bsw_list_bound_room *room);
// Finds, in a tile of them, places whose keys reach the limit of query i of the group, as
// candidates; returns how many. items has room for all rows of the tile; table_room takes the
// query.
size_t bsw_list_bounds_find(const struct bsw_list_bounds *bounds,
                            struct bsw_list_table_room *table_room,
                            const struct bsw_bound_group *group, size_t i, size_t bundle,
                            size_t num_bundles, struct bsw_list_bound_room *room, uint64_t *items);

#endif
