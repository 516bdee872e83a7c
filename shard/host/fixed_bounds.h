// SPDX-License-Identifier: Apache-2.0
// Behind list_bounds.h: bounds of queries that have one table for all rows (kernels/table_bounds),
// which is without lists, with lists that are an order of rows, and under ip and cosine, tables of
// any type; and rows that passed, whatever made the bounds.
#ifndef BITSWEEP_SHARD_FIXED_BOUNDS_H
#define BITSWEEP_SHARD_FIXED_BOUNDS_H

#include "kernels/table_bounds/table_bounds.h"

// Bytes of 8-bit codes are looked up for 16 queries at once, however few there are: below this sums
// of all rows are faster (0.72 ns a row and part, against 0.30 to 0.49 a query, on Zen 3).
#define BSW_FIXED_BOUND_LEAST 3
static inline size_t bsw_fixed_bound_least(const struct bsw_product_book *book)
{
    return book->bits == 8 ? BSW_FIXED_BOUND_LEAST : 1;
}

// The bound of one query.
struct bsw_fixed_bound {
    struct bsw_bound_scale numbers;
    double size, multiplier; // A, and m of keys
};

// multiplier: of bsw_product_table. room: [numbers of a table], 64-byte aligned; numbers:
// bsw_bound_bytes.
struct bsw_fixed_bound bsw_fixed_bound_make(const struct bsw_product_book *book,
                                            const struct bsw_table_bounds_table *kernels,
                                            const struct bsw_code_table *table, float multiplier,
                                            float *room, uint8_t *numbers);

// The query as rows pass it that reach the limit, a score.
struct bsw_bound_query bsw_fixed_bound_query(const struct bsw_fixed_bound *bound, uint32_t parts,
                                             const uint8_t *numbers, float addition,
                                             uint32_t limit);

// R of the rows of a tile: zeros.
#define BSW_FIXED_BOUND_ROWS 2048
const float *bsw_fixed_bound_terms(void);

// Rows of a tile that passed. Arrays borrowed.
struct bsw_passed_rows {
    const uint8_t *codes; // of the tile's first bundle
    size_t bundle_bytes, num_bundles;
    const uint32_t *masks; // [num_bundles]
    uint32_t first_row;    // of the tile
};
// Room for all rows of a tile.
struct bsw_passed_room {
    uint32_t *places;
    float *sums;
};
// Places of the rows, counted in the tile; returns how many.
size_t bsw_passed_places(const struct bsw_passed_rows *rows, uint32_t *places);
// Those whose keys, multiplier * sum + addition as table_scan's filter has them, reach the limit,
// as candidates; sums: of the places. Returns how many.
size_t bsw_passed_keys(const struct bsw_passed_rows *rows, const struct bsw_passed_room *room,
                       size_t count, float multiplier, float addition, uint32_t limit,
                       uint64_t *items);
// All of it by a query's table.
size_t bsw_passed_find(const struct bsw_passed_rows *rows,
                       const struct bsw_table_scan_table *table_scan,
                       const struct bsw_code_table *table, float multiplier, float addition,
                       uint32_t limit, const struct bsw_passed_room *room, uint64_t *items);

#endif
