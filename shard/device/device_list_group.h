// SPDX-License-Identifier: Apache-2.0
// A group of queries of a batch over a shard with lists on a device, under way: what
// device_list_batch.c and device_list_all.c share.
#ifndef BITSWEEP_SHARD_DEVICE_LIST_GROUP_H
#define BITSWEEP_SHARD_DEVICE_LIST_GROUP_H

#include "shard/device/device_group.h"
#include "shard/device/device_list_blocks.h"

struct bsw_device_list_group {
    struct bsw_device_group group;
    const struct bsw_device_shard *shard;
    const struct bsw_list_order *order;
    uint32_t resident_lists;       // on the device as a whole, the first; others come in blocks
    struct bsw_code_layout layout; // of the dimensions that keys are made of
    struct bsw_device_codes codes;
    struct bsw_device_list_work work; // all of the tables
    struct bsw_device_list_table table;
    const float *centroids; // c' of all lists, on the device; NULL: tables are of queries alone
    const uint32_t *bundle_lists; // likewise, the list of each bundle
    size_t room_bundles;          // of one query that are sure to have room in its list
    int has_additions;
    const uint32_t *limits;                        // of the group
    int is_stepwise;                               // what lists hold by now the host has seen
    int is_ahead;                                  // segments are queued that nobody waited for
    const struct bsw_device_list_segment *segment; // under way
    uint64_t num_pairs, num_rows, scanned;
};

// Codes that are on the device, all lists; or a block.
void bsw_device_list_group_look_at_resident(struct bsw_device_list_group *batch);
void bsw_device_list_group_look_at(struct bsw_device_list_group *batch,
                                   const struct bsw_device_list_block *block);

// The tables on their way to the device; they stay as they are until a scan has been waited for.
enum bsw_status bsw_device_list_group_send_tables(struct bsw_device_list_group *batch,
                                                  struct bsw_error *err);

// Queues a scan of items [first, last) of the tables, which are of one tile.
enum bsw_status bsw_device_list_group_launch(struct bsw_device_list_group *batch, size_t first,
                                             size_t last, uint32_t tile,
                                             const struct bsw_device_lists *lists,
                                             struct bsw_error *err);

// All lists for all queries, whose tables are empty, segment after segment (device_list_all.c).
enum bsw_status bsw_device_list_group_scan_all(struct bsw_device_list_group *batch,
                                               struct bsw_error *err);

#endif
