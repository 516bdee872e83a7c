// SPDX-License-Identifier: Apache-2.0
// The host memory nearest to a device: a bus between sockets would slow copies down.
#ifndef BITSWEEP_COMMON_DEVICE_NODE_H
#define BITSWEEP_COMMON_DEVICE_NODE_H

#include <hwloc.h>
#include <stddef.h>

#include "common/base/c_linkage.h"

BSW_C_BEGIN

struct bsw_device_node {
    hwloc_topology_t topology;
    hwloc_bitmap_t nodes; // NULL: not known, then all below does nothing
};

// The NUMA nodes of the PCI device with this bus id ("0000:3b:00.0", in either case) in a topology
// that was loaded with its PCI devices. 0, and `out` undefined, where the topology does not have
// the device, or not where it is: then it hangs on the whole machine.
int bsw_device_node_find(hwloc_topology_t topology, const char *bus_id, hwloc_bitmap_t out);

// Finds the node of this machine. *out is {NULL} where the topology does not tell.
void bsw_device_node_open(const char *bus_id, struct bsw_device_node *out);
void bsw_device_node_close(struct bsw_device_node *node); // accepts {NULL}

// Memory that the calling thread takes from the system between the two lies on the nodes, while
// they have room. Where the system does not allow it, nothing changes.
struct bsw_device_node_before {
    hwloc_bitmap_t nodes; // NULL: nothing to go back to
    hwloc_membind_policy_t policy;
};
void bsw_device_node_enter(const struct bsw_device_node *node,
                           struct bsw_device_node_before *before);
void bsw_device_node_leave(const struct bsw_device_node *node,
                           struct bsw_device_node_before *before);

BSW_C_END

// What of a device's memory ranks may use, and how much of a device nobody has seen yet that is.

// Kept free for the driver and for kernels' local memory: this part of all memory.
#define BSW_DEVICE_RESERVE_PART 64

// Without the reserve.
static inline size_t bsw_device_usable_bytes(size_t free_bytes, size_t total_bytes)
{
    size_t reserve = total_bytes / BSW_DEVICE_RESERVE_PART;
    return free_bytes > reserve ? free_bytes - reserve : 0;
}

// The ranks of a job, of which num_sharers have the same device.
struct bsw_device_crowd {
    int num_ranks;
    int num_sharers; // 1 .. num_ranks
};

// A rank's equal part of a device of total_bytes, by figures for what CUDA and NCCL take
// (device_node.c), the same on every rank; 0 where nothing is left. A job goes by what is free
// once all have started.
size_t bsw_device_memory_forecast(const struct bsw_device_crowd *crowd, size_t total_bytes);

#endif
