// SPDX-License-Identifier: Apache-2.0
// Work items of a batch as they go to the device: arithmetic alone, in memory that the caller has.
#ifndef BITSWEEP_SHARD_DEVICE_LIST_TABLE_H
#define BITSWEEP_SHARD_DEVICE_LIST_TABLE_H

#include "common/files/list_order.h"
#include "kernels/device_scan/device_list_scan.h"
#include "shard/scan/work.h"

// Items that may be scanned between two cuts: those of tile t are [first[t], first[t + 1]).
struct bsw_device_list_segment {
    size_t first[BSW_LIST_TILES + 1];
};

struct bsw_device_list_table {
    struct bsw_device_list_item *items; // [most_items]
    uint32_t *queries;                  // [most_slots]
    float *additions;                   // [most_slots]
    size_t most_items, most_slots, num_items, num_slots;
    struct bsw_buffer segments; // owned
    size_t num_segments;
};

void bsw_device_list_table_deinit(struct bsw_device_list_table *table);
// No items, segments or slots.
void bsw_device_list_table_clear(struct bsw_device_list_table *table);
// No items and segments; slots stay.
void bsw_device_list_table_clear_items(struct bsw_device_list_table *table);

static inline const struct bsw_device_list_segment *
bsw_device_list_segment_at(const struct bsw_device_list_table *table, size_t i)
{
    return (const struct bsw_device_list_segment *)(const void *)table->segments.data + i;
}

// Some lists of groups, which have queries: ascending, and all of those in between.
struct bsw_device_list_range {
    const struct bsw_list_order *order;
    const struct bsw_list_groups *groups;
    const uint32_t *lists; // [num]
    size_t num;
};

// Slots for their queries from *first_slot on; 0: there is no room for them. Groups that are the
// same for all lists share slots, which those that are there already are then.
int bsw_device_list_table_add_slots(struct bsw_device_list_table *table,
                                    const struct bsw_device_list_range *range, size_t *first_slot);

// How lists are cut into items.
struct bsw_device_list_cut {
    size_t item_bundles; // of one item at most
    size_t part_bundles; // of one list between two cuts at most; a multiple of item_bundles
};

// Bundles of an item: so many that there are some thousand items, if there is work for them; at
// most `most`, and then a power of two.
size_t bsw_device_list_item_bundles(const struct bsw_device_list_range *range, size_t most);
// The same where all items together have `work` bundles.
size_t bsw_device_list_item_bundles_of(size_t work, size_t most);

// Where in the items of some lists a table has got to; {0}: at the beginning.
struct bsw_device_list_place {
    size_t part; // of part_bundles of every list
    uint32_t tile;
    size_t list, item; // of the range; of the list in the part
};

// Adds items of the lists, whose slots begin at first_slot, from *place on: as segments, a part a
// segment. 0 where the table is full, *place then says where it goes on; 1: all are there.
enum bsw_status bsw_device_list_table_add(struct bsw_device_list_table *table,
                                          const struct bsw_device_list_range *range,
                                          size_t first_slot, const struct bsw_device_list_cut *cut,
                                          struct bsw_device_list_place *place, int *is_whole,
                                          struct bsw_error *err);

#endif
