// SPDX-License-Identifier: Apache-2.0
// The other way of device_items.c for lists that queries chose: the device chooses
// (device_coarse.h) and makes work items (kernels/gpu_lists), so that all of a batch is queued, the
// last step too, and the host waits once. Where it can be taken is decided here alone: the choice
// was put off, the queries are one group, all lists are on the device, and tables have room for
// whatever is chosen. What only shows in the end, as candidates that had no room or a query whose
// lists were not told, the host does again as ever.
#ifndef BITSWEEP_SHARD_DEVICE_GPU_ITEMS_H
#define BITSWEEP_SHARD_DEVICE_GPU_ITEMS_H

#include "shard/device/device_group.h"

// The lists of shard `index`, where the engine's plan has gpu_lists and all of them are there.
enum bsw_status bsw_device_list_shape_load(struct bsw_device_engine *engine, size_t index,
                                           struct bsw_device_shard *shard, struct bsw_error *err);

// Queues the group, whose queries are on their way, unless it cannot be done so:
// group->items.is_on_device says which.
enum bsw_status bsw_device_gpu_items_begin(struct bsw_device_group *group, struct bsw_error *err);

// Waits for it. *is_whole: 0 where nothing of it is of use.
enum bsw_status bsw_device_gpu_items_end(struct bsw_device_group *group, int *is_whole,
                                         struct bsw_error *err);

#endif
