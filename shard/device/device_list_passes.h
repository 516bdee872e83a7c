// SPDX-License-Identifier: Apache-2.0
// The passes of a batch whose work items a device makes (kernels/gpu_lists), and how many items of
// each tile they have at most, whichever lists queries look at: arithmetic alone.
#ifndef BITSWEEP_SHARD_DEVICE_LIST_PASSES_H
#define BITSWEEP_SHARD_DEVICE_LIST_PASSES_H

#include <stddef.h>

#include "kernels/gpu_lists/gpu_lists.h"

struct bsw_device_pass_needs {
    const uint64_t *longest; // [num_lists + 1]: bundles of the n longest lists
    size_t num_lists, num_queries;
    size_t most;          // lists of a query
    const uint32_t *ends; // of steps, as struct bsw_device_choice has them
    size_t room_bundles;  // of one query that are sure to have room in its list of candidates
    size_t least_item;    // bundles of an item at least, where a list has them
    size_t most_items, most_slots;
};

// The first step in parts of as many bundles of a list as have room, the others whole. 0: there are
// more passes, items or slots than there is room for.
int bsw_device_list_passes_plan(const struct bsw_device_pass_needs *needs,
                                struct bsw_device_list_passes *out);

#endif
