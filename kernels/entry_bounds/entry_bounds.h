// SPDX-License-Identifier: Apache-2.0
// entry_bounds: which rows of product codes may reach a query's limit by a radius table
// (shard/codecs/selective_table.h), without making it; what table_bounds is to full tables, of
// parts of 2 dimensions and 256 entries, under l2.
//
// A radius table is of query and list. Its numbers as bytes take less to make than the table, for
// 16 queries side by side, so that a row's code then reads all 16 at once:
//
//   SUM    trunc(min(value, limit) * inverse), at most 255: no more than what the entry adds, in
//          units; value is the squared distance of entries_within.h
//   RING   2 for a hit within `inner` too, 1 for another, 0 for a miss: one more than it adds
//   COUNT  1 for a hit, 0 for a miss: what it adds
//
// Sums over parts are exact, so for RING and COUNT they say all; of SUM those that are small enough
// (bsw_entry_bound_most) are computed as they are defined.
//
// Nothing here can fail or allocate. Thread-safe. Every level gives the bits of the reference.
#ifndef BITSWEEP_KERNELS_ENTRY_BOUNDS_H
#define BITSWEEP_KERNELS_ENTRY_BOUNDS_H

#include <math.h>

#include "common/codes/code_layout.h"
#include "kernels/entry_tables/entry_tables.h"

BSW_C_BEGIN

#define BSW_ENTRY_BOUND_QUERIES 16
#define BSW_ENTRY_BOUND_PARTS   8   // whose bytes are there at a time
#define BSW_ENTRY_BOUND_MOST    257 // parts: sums are below 2^16

// Room for a call of `pass`: first uint16_t [32 * num_bundles][16], the sums, which stay; then
// bytes.
static inline size_t bsw_entry_bound_sums_bytes(size_t num_bundles)
{
    return num_bundles * BSW_BUNDLE_ROWS * BSW_ENTRY_BOUND_QUERIES * sizeof(uint16_t);
}
static inline size_t bsw_entry_bound_room_bytes(size_t num_bundles)
{
    return bsw_entry_bound_sums_bytes(num_bundles) +
           (size_t)BSW_ENTRY_BOUND_PARTS * 256 * BSW_ENTRY_BOUND_QUERIES;
}

// Rows of one list. Arrays borrowed.
struct bsw_entry_bound_rows {
    uint32_t parts;
    const float *points;  // [parts][2][256], 64-byte aligned: the book's entries
    const uint8_t *codes; // as table_scan has them, of 8 bits
    size_t bundle_bytes, num_bundles;
    const uint32_t *masks; // rows that count
};

// 16 queries; those that are fewer are followed by any. Arrays borrowed, [parts][16].
struct bsw_entry_bound_rays {
    const float *x, *y, *limit;
    const float *inner;                     // RING
    const float *inverse;                   // [16], SUM
    uint32_t wanted;                        // bit q: rows of query q are asked for
    uint16_t ends[BSW_ENTRY_BOUND_QUERIES]; // sums: SUM at most this; RING and COUNT at least this
};

// What a row's sum is made of, of one query: number p * stride of x, y and limit is part p's.
struct bsw_entry_bound_terms {
    uint32_t parts;
    const float *points; // as above
    const float *list;   // [parts][256]
    const float *query;  // [2 * parts]
    const float *bases;  // [parts]
    const float *x, *y, *limit;
    size_t stride;
    int is_miss_infinite;
};

struct bsw_entry_bounds_table {
    const char *level;

    // masks[q][bundle]: rows that pass, of rows->masks, for wanted queries, else 0. within[q]
    // grows by the entries that are hit, for all 16. room: bsw_entry_bound_room_bytes, 64-byte
    // aligned.
    void (*pass[BSW_NUM_ENTRY_NUMBERS])(const struct bsw_entry_bound_rows *rows,
                                        const struct bsw_entry_bound_rays *rays, void *room,
                                        uint32_t *masks, uint32_t *within);

    // sums[i]: over p ascending, from +0.0, of what SUM, L2 of entry_tables.h adds for row
    // places[i], with query[e] the chain of fmaf(query, entry, sum) over both dimensions from +0.0
    // and miss the limit, or infinity. Infinity for a row that hits nothing.
    void (*sums)(const struct bsw_entry_bound_terms *terms, const uint8_t *codes,
                 size_t bundle_bytes, const uint32_t *places, size_t num_places, float *sums);
};

BSW_KERNEL_LEVELS(entry_bounds);

// The largest sum of SUM's bytes, in units, that a row can have whose float sum is at most `limit`;
// below 0: none. With u = 2^-24, A_p = |e|^2 + 2 (|q'_p| + |c'_p|) |e| + |q'_p - c'_p|^2 and x, y
// the differences of q' and c', rounded: a hit adds d, a float max(0, (L + Q) + B), no less than
// the true squared distance less 8 u A_p (two roundings of |e|^2 and two of the product in L, two
// in Q, four in B, three in the sum, each of numbers no larger than A_p); `value` is no more than
// the true one and 14 u (B_p + |e|^2): x and y are off by u |q' - c'|, differences by as much
// again, squares and sum by 3 u. Both are within 22 u A_p of one another; 32 are taken. A miss adds
// `limit`, which min(value, limit) is. Float sums of parts, all >= 0, are no less than
// (1 - parts u) times the true sum. Over parts, by Cauchy and Schwarz,
//   A = entries + base + 2 (|q'| + |c'|) sqrt(entries).
// Squares below 2^-126 lose up to 2^-150 each, for which 2^-140 a dimension is more than enough.
// limit >= 0; base: sum over p of |q'_p - c'_p|^2; entries: sum over p of the largest |e|^2;
// lengths: |q'| + |c'|.
static inline double bsw_entry_bound_most(uint32_t parts, double limit, double base, double entries,
                                          double lengths)
{
    double u = 0x1p-24, tiny = 0x1p-140 * parts,
           all = 1.01 * (entries + tiny + base + 2 * lengths * sqrt(entries + tiny));
    return limit * (1 + 2.5 * u * parts) + 32 * u * all + tiny;
}

BSW_C_END
#endif
