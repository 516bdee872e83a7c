// SPDX-License-Identifier: Apache-2.0
// Rows' nearest centroids on a device: centroids are the rows of device_neighbours.h, which stay
// there, and rows its queries, of which each wants one. The same lists and keys as on the CPU: both
// are exact, and of centroids that are equally near the smaller list wins.
#ifndef BITSWEEP_SHARD_DEVICE_ASSIGNER_H
#define BITSWEEP_SHARD_DEVICE_ASSIGNER_H

#include "common/device/device.h"
#include "shard/lists/list_assignment.h"

// By a device, which is borrowed; it pays where the device's tuning says so (list_pairs).
struct bsw_list_finder bsw_device_list_finder(bsw_device *device);

#endif
