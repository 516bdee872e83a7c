// SPDX-License-Identifier: Apache-2.0
// Lists whose codes are the host's, on their way to a device: what a group of queries looks at, and
// nothing else, packed into one of the engine's two blocks, list after list. In a block places and
// bundles count anew, and the rows of its places travel with it.
#ifndef BITSWEEP_SHARD_DEVICE_LIST_BLOCKS_H
#define BITSWEEP_SHARD_DEVICE_LIST_BLOCKS_H

#include "shard/device/device_list_table.h"
#include "shard/device/device_shard.h"

// Bundles of a shard, packed.
struct bsw_device_list_block {
    struct bsw_device_codes codes;      // of the whole layout
    const uint32_t *rows;               // device: of each place
    const uint32_t *bundle_lists;       // device: of each bundle; NULL where no tables want it
    struct bsw_device_list_range range; // of its lists, which have their bundles in `order`
    struct bsw_list_order order;        // first_bundles alone
};

// Where in the lists of a range blocks have got to; {0}: at the beginning.
struct bsw_device_list_cursor {
    size_t list, bundle; // of the range; of that list
};

// How many lists, from the first on, have all their bundles on the device.
uint32_t bsw_device_resident_lists(const struct bsw_device_shard *shard);

// The next lists of a range of the shard on their way to block `place` (0 or 1), on BSW_QUEUE_COPY:
// as many as it holds, or a part of one. range.num 0: none are left. Nothing that is queued reads
// the block; *out is good until the block is taken again.
enum bsw_status bsw_device_list_block_next(struct bsw_device_engine *engine,
                                           const struct bsw_device_shard *shard,
                                           const struct bsw_device_list_range *all,
                                           struct bsw_device_list_cursor *at, unsigned place,
                                           struct bsw_device_list_block *out,
                                           struct bsw_error *err);

#endif
