// SPDX-License-Identifier: Apache-2.0
// A search by lists on a GPU without the host between its steps: which lists queries look at and
// what is added to their keys there, then, for every list, its queries, and work items of them
// (kernels/device_scan/device_list_scan.h).
//
// What a query looks at is scanned in steps, its nearest list first; a step in passes, where lists
// that are longer than there is room for come a part at a time. The host knows beforehand how many
// items of each shape of tile a pass has at most; how many there are stays in device memory.
//
// Launchers as in device_scan.h.
#ifndef BITSWEEP_KERNELS_GPU_LISTS_H
#define BITSWEEP_KERNELS_GPU_LISTS_H

#include "kernels/device_scan/device_list_scan.h"
#include "kernels/gpu_select/gpu_select.h"

BSW_C_BEGIN

#define BSW_LIST_STEPS       3
#define BSW_MOST_LIST_PASSES 12 // of all steps

// What flags say, which are bits of bsw_device_lists.overflowed, too: nothing of the answer is of
// use then.
enum {
    BSW_CHOICE_UNTOLD = 4, // a query's best lists do not tell which ones it looks at
    BSW_ITEMS_TOO_MANY = 8 // more slots or items than there is room for
};

// Lists of queries, as struct bsw_list_choice has them, in device memory.
struct bsw_device_choice {
    uint32_t num_queries, num_lists, most;
    uint32_t ends[BSW_LIST_STEPS]; // step s: lists of a query from number ends[s - 1], or 0, to
                                   // ends[s]; rising, none above the last
    uint32_t *lists;               // [num_queries][most], the nearest first
    uint32_t *counts;              // [num_queries]
    float *additions;              // [num_queries][most]; NULL: nothing is added
    uint32_t *step_queries;        // [BSW_LIST_STEPS][num_lists]: how many look at a list
    uint32_t *flags;               // one
};

// step_queries and flags to 0, before the first queries are chosen for.
BSW_DEVICE_CALL int bsw_device_choice_clear(const struct bsw_device_choice *choice,
                                            bsw_stream stream);

// How lists are chosen: as choose_found and add_products of shard/lists/coarse_search.c do it.
struct bsw_device_chooser {
    uint32_t keep;  // that queries have of candidates at most; num_lists: all there are
    uint32_t probe; // lists that a query looks at, at most; the choice has room for these or keep
    uint32_t rank;  // of the list whose distance is the yardstick, >= 1
    float least_key;
    float ratio; // of squared distances; 0: as many as `probe` are looked at
    uint32_t is_l2;
    const float *norms; // [found->num_queries]: of queries, squared; with a ratio of l2
    // With additions: the sum over dims of vectors[q] * centroids[list], in lanes and tree of
    // kernel_sums.h, s = fma(vector, centroid, s); twice that with is_l2.
    uint32_t dims;
    const float *vectors, *centroids; // [found->num_queries][dims], [num_lists][dims]
};

// found: for queries first .. first + found->num_queries - 1 of the choice, candidates in any
// order, whose rows are lists; they, counts and limits are of no use afterwards. A query of which
// they do not tell has no lists, and BSW_CHOICE_UNTOLD is set; so it is where a list was too short
// or *found->overflowed is not 0. keep <= BSW_MOST_LAST_KEEP. One kernel.
BSW_DEVICE_CALL int bsw_device_choose_lists(const struct bsw_device_lists *found, uint32_t first,
                                            const struct bsw_device_chooser *chooser,
                                            const struct bsw_device_choice *choice,
                                            bsw_stream stream);

// The lists of a shard, in device memory.
struct bsw_device_list_shape {
    const uint32_t *first_bundles; // [num_lists + 1]
    const uint32_t *num_rows;      // [num_lists]
};

// Bundles [first_bundle, first_bundle + num_bundles) of each list that queries look at in a step:
// cut into items of item_bundles, of which num_bundles is a multiple, or more than any list has.
// Queries of a list are cut into whole groups of tile `wide`, and what is left is in tile `narrow`,
// if it holds so many, else in the wide one: two kernels a pass, whatever lists there are. Items of
// tile t have room in the table from number first_item[t] to first_item[t + 1].
struct bsw_device_list_pass {
    uint32_t step, first_bundle, num_bundles, item_bundles;
    uint32_t narrow, wide; // narrow <= wide < BSW_LIST_TILES
    uint32_t first_item[BSW_LIST_TILES + 1];
};
struct bsw_device_list_passes {
    uint32_t num;
    struct bsw_device_list_pass pass[BSW_MOST_LIST_PASSES];
};

// What was looked at: pairs of query and list, and of query and row; bundles of all items.
struct bsw_device_list_totals {
    uint64_t list_pairs, row_pairs, bundles;
};

// Device memory that is written; every one but items, queries and additions is cleared first.
struct bsw_device_list_tables {
    struct bsw_device_list_item *items;
    uint32_t *queries; // [most_slots]
    float *additions;  // [most_slots]; NULL: without
    uint32_t most_slots;
    uint32_t *next_slots; // [BSW_LIST_STEPS][num_lists]: scratch
    uint32_t *num_items;  // [BSW_MOST_LIST_PASSES][BSW_LIST_TILES] of each pass and tile, which
                          // may be more than had room, and behind them the number of slots
    struct bsw_device_list_totals *totals;
};
#define BSW_LIST_COUNTERS (BSW_MOST_LIST_PASSES * BSW_LIST_TILES + 1)

// Slots and items of all passes, in any order. Flags of the choice, and BSW_ITEMS_TOO_MANY, are
// added to *flags; nothing is written where there is no room. Two kernels.
BSW_DEVICE_CALL int bsw_device_list_items(const struct bsw_device_choice *choice,
                                          const struct bsw_device_list_shape *shape,
                                          const struct bsw_device_list_passes *passes,
                                          const struct bsw_device_list_tables *tables,
                                          uint32_t *flags, bsw_stream stream);

BSW_C_END
#endif
