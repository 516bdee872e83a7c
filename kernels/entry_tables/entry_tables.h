// SPDX-License-Identifier: Apache-2.0
// entry_tables: a part of a radius table in one pass over its entries, without a list of hits in
// between: what a finder that looks at every entry (entries_within.h, `brute`) and a table of
// selective_table.h are together.
//
// An entry is hit where entries_within.h says so, by its value. Its number is
//
//   SUM, L2   max(0, (list[e] + query[e]) + base) for a hit, `miss` for a miss
//   SUM, IP   query[e] for a hit, `miss` for a miss
//   RING      1 for a hit within `inner` too, 0 for another, -1 for a miss
//   COUNT     1 for a hit, 0 for a miss
//
// max(0, v) is 0 where v is not above 0. Each operation rounds once, in the order written.
//
// Nothing here can fail or allocate. Thread-safe. Every level gives the bits of the reference.
#ifndef BITSWEEP_KERNELS_ENTRY_TABLES_H
#define BITSWEEP_KERNELS_ENTRY_TABLES_H

#include "kernels/entries_within/entries_within.h"

BSW_C_BEGIN

enum bsw_entry_number { BSW_ENTRY_SUM, BSW_ENTRY_RING, BSW_ENTRY_COUNT, BSW_NUM_ENTRY_NUMBERS };

// Arrays borrowed, 32-byte aligned.
struct bsw_entry_part {
    struct bsw_entry_ray ray;
    float inner;               // limit of RING's inner sphere; others do not read it
    float miss, base;          // of SUM
    const float *x, *y;        // [num]: coordinates of the part's entries
    const float *list, *query; // [num], of SUM; IP does not read list
};

struct bsw_entry_tables_table {
    const char *level;

    // Numbers of a part, num 16 or 256, to out [num], 32-byte aligned; bit e % 32 of hits[e / 32]
    // for the entries hit, [num / 32] words, 1 where num is 16. Returns how many are hit.
    size_t (*make[BSW_NUM_ENTRY_VALUES][BSW_NUM_ENTRY_NUMBERS])(const struct bsw_entry_part *part,
                                                                size_t num, float *out,
                                                                uint32_t *hits);
};

BSW_KERNEL_LEVELS(entry_tables);

BSW_C_END
#endif
