// SPDX-License-Identifier: Apache-2.0
// The scan of an index with lists (common/files/list_order.h) on a GPU: work items, each some
// bundles of a list and some of the queries that look at it, which lie anywhere in the batch, with
// what is added to their keys there. The candidates of shard/host/list_scan.c.
//
// Rows that reach a query's limit, with their addition, are appended to its list; candidates have
// rows of the shard, not places. A list's rows come in no order, so lists are to be is_unordered
// (device_scan.h). Launchers as there.
#ifndef BITSWEEP_KERNELS_DEVICE_LIST_SCAN_H
#define BITSWEEP_KERNELS_DEVICE_LIST_SCAN_H

#include "kernels/device_scan/device_scan.h"
#include "kernels/device_scan/device_tuning.h"

BSW_C_BEGIN

// Bundles [first_bundle, first_bundle + num_bundles) for the queries of slots [first_slot,
// first_slot + num_slots). Both may be 0.
struct bsw_device_list_item {
    uint32_t first_bundle, num_bundles, first_slot, num_slots;
};

// Device memory.
struct bsw_device_list_work {
    const struct bsw_device_list_item *items; // 16-byte aligned
    uint32_t num_items;
    const uint32_t *queries; // of each slot; those of an item differ
    const float *additions;  // of each slot, finite; NULL: nothing is added. Float keys alone
    const uint32_t *rows;    // [num_bundles * 32]: of each place that a mask has
    uint64_t num_bundles;    // of all items together: which kernel takes them may depend on it, no
                             // result does
    // How many items there are, where the host does not know (kernels/gpu_lists): what is above
    // num_items does not count, and a launch is as wide as num_items. NULL: num_items.
    const uint32_t *count;
};

// Slots that an item of each shape of tile has at most: one block has them all, and from the second
// shape on needs room and time for as many.
BSW_HOST_DEVICE uint32_t bsw_device_list_tile_slots(uint32_t tile)
{
    return tile == 0 ? 8 : tile == 1 ? 16 : tile == 2 ? 64 : 256;
}

// The smallest that holds them.
BSW_HOST_DEVICE uint32_t bsw_device_list_tile(uint32_t num_slots)
{
    uint32_t tile = 0;
    while (tile + 1 < BSW_LIST_TILES && bsw_device_list_tile_slots(tile) < num_slots) tile++;
    return tile;
}

// codes->layout may have the first segments alone of what the planes hold: then keys are made of
// these, and queries were unpacked for it. tile: the shape, of at least as many slots as items
// have. Of the queries components and constants are read. No two items may find the same row for
// the same query.
// By dp4a and mma, or by one of the kernels below where device_tuning.h says so; the same
// candidates.
BSW_DEVICE_CALL int bsw_device_list_scan(const struct bsw_device_codes *codes,
                                         const struct bsw_device_list_work *work, uint32_t tile,
                                         const struct bsw_device_queries *queries,
                                         const struct bsw_device_lists *lists, bsw_stream stream);

// That scan for up to 16 queries with documents unpacked in registers (few_scan.cuh), whatever the
// tuning takes: of the first two tiles, and where queries fit 48 KB of shared memory.
BSW_DEVICE_CALL int bsw_device_list_scan_few_fits(const struct bsw_code_layout *layout,
                                                  uint32_t tile);
BSW_DEVICE_CALL int bsw_device_list_scan_few(const struct bsw_device_codes *codes,
                                             const struct bsw_device_list_work *work, uint32_t tile,
                                             const struct bsw_device_queries *queries,
                                             const struct bsw_device_lists *lists,
                                             bsw_stream stream);

// That scan by dp4a and mma, whatever the tuning takes; and by wgmma (sm_90a), whether or not the
// tuning takes it. cudaErrorInvalidValue for the latter where bsw_device_has_hopper_lists is 0: the
// current device is no Hopper GPU, the build has no code for one, or the layout has more than 256
// padded dimensions; and where codes are not aligned to 16 bytes.
BSW_DEVICE_CALL int bsw_device_list_scan_mma(const struct bsw_device_codes *codes,
                                             const struct bsw_device_list_work *work, uint32_t tile,
                                             const struct bsw_device_queries *queries,
                                             const struct bsw_device_lists *lists,
                                             bsw_stream stream);
BSW_DEVICE_CALL int bsw_device_has_hopper_lists(const struct bsw_code_layout *layout);
BSW_DEVICE_CALL int bsw_device_list_scan_hopper(const struct bsw_device_codes *codes,
                                                const struct bsw_device_list_work *work,
                                                uint32_t tile,
                                                const struct bsw_device_queries *queries,
                                                const struct bsw_device_lists *lists,
                                                bsw_stream stream);

BSW_C_END
#endif
