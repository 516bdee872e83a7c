// SPDX-License-Identifier: Apache-2.0
// device_merge: candidates of several shards on one GPU, from their sorted lists to each query's
// cut: the worst candidate that is among the best `keep` of all, as rbeGIR's global sort finds it.
//
// Items are packed as in common/codes/metric.h, every list in descending order. Shards come
// in the order of their rows, so an item's place in the lists of its query, one behind the other,
// decides between equal scores: keys are (score, complemented place), sorted by bsw_device_sort.
//
// Launchers are as those of kernels/device_scan/device_scan.h.
#ifndef BITSWEEP_KERNELS_DEVICE_MERGE_H
#define BITSWEEP_KERNELS_DEVICE_MERGE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/codes/metric.h"
#include "kernels/device_scan/device_scan.h"

BSW_C_BEGIN

// Lists of any lengths in one piece of memory: list l has items [offsets[l], offsets[l] +
// counts[l]). All device pointers.
struct bsw_device_ragged {
    const uint64_t *items;
    const uint64_t *offsets; // [num_lists]
    const uint32_t *counts;  // [num_lists]
    uint32_t num_lists;
};

// Every list to to[offsets[l]] and on; the two do not overlap.
BSW_DEVICE_CALL int bsw_device_pack_lists(const struct bsw_device_ragged *from, uint64_t *to,
                                          const uint64_t *to_offsets, bsw_stream stream);

// What is merged: list s * num_queries + q of `lists` is shard s's of query q, in ascending order
// of the shards' rows.
struct bsw_device_merge {
    struct bsw_device_ragged lists; // [num_shards][num_queries]
    const uint64_t *first_rows;     // [num_shards]: ids of the shards' first rows
    uint32_t num_queries, num_shards;
    uint64_t keep; // >= 1
};

// Keys of every query to its list, and their number; keys->capacity is at least that of each
// query's items. Limits and queues are not used.
BSW_DEVICE_CALL int bsw_device_merge_keys(const struct bsw_device_merge *merge,
                                          const struct bsw_device_lists *keys, bsw_stream stream);
// cuts [num_queries], from sorted keys: the keep-th item's score and id, bsw_keep_all() where there
// are fewer.
BSW_DEVICE_CALL int bsw_device_merge_cuts(const struct bsw_device_merge *merge,
                                          const struct bsw_device_lists *keys, struct bsw_cut *cuts,
                                          bsw_stream stream);

// counts[q]: how many items of list q, of a shard whose first row has the id first_row, are within
// cuts[q].
BSW_DEVICE_CALL int bsw_device_count_survivors(const struct bsw_device_ragged *lists,
                                               uint64_t first_row, const struct bsw_cut *cuts,
                                               uint32_t *counts, bsw_stream stream);

BSW_C_END
#endif
