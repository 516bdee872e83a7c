// SPDX-License-Identifier: Apache-2.0
#include "common/device/device_node.h"

#define OF_THREAD (HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET)

int bsw_device_node_find(hwloc_topology_t topology, const char *bus_id, hwloc_bitmap_t out)
{
    hwloc_obj_t device = hwloc_get_pcidev_by_busidstring(topology, bus_id);
    hwloc_obj_t place = device ? hwloc_get_non_io_ancestor_obj(topology, device) : NULL;
    hwloc_const_nodeset_t all = hwloc_topology_get_topology_nodeset(topology);
    if (!place || !place->nodeset || hwloc_bitmap_iszero(place->nodeset) ||
        hwloc_bitmap_isequal(place->nodeset, all))
        return 0;
    return hwloc_bitmap_copy(out, place->nodeset) == 0;
}

// PCI devices alone: looking for other devices may start their drivers.
static int load(hwloc_topology_t topology)
{
    return hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PCI_DEVICE,
                                          HWLOC_TYPE_FILTER_KEEP_IMPORTANT) == 0 &&
           hwloc_topology_load(topology) == 0;
}

void bsw_device_node_open(const char *bus_id, struct bsw_device_node *out)
{
    *out = (struct bsw_device_node){NULL, hwloc_bitmap_alloc()};
    if (out->nodes && hwloc_topology_init(&out->topology) != 0) out->topology = NULL;
    if (!out->topology || !load(out->topology) ||
        !bsw_device_node_find(out->topology, bus_id, out->nodes))
        bsw_device_node_close(out);
}

void bsw_device_node_close(struct bsw_device_node *node)
{
    hwloc_bitmap_free(node->nodes);
    if (node->topology) hwloc_topology_destroy(node->topology);
    *node = (struct bsw_device_node){NULL, NULL};
}

void bsw_device_node_enter(const struct bsw_device_node *node,
                           struct bsw_device_node_before *before)
{
    *before = (struct bsw_device_node_before){NULL, HWLOC_MEMBIND_DEFAULT};
    hwloc_bitmap_t nodes = node->nodes ? hwloc_bitmap_alloc() : NULL;
    if (nodes && hwloc_get_membind(node->topology, nodes, &before->policy, OF_THREAD) == 0 &&
        hwloc_set_membind(node->topology, node->nodes, HWLOC_MEMBIND_BIND, OF_THREAD) == 0)
        before->nodes = nodes;
    else
        hwloc_bitmap_free(nodes);
}

void bsw_device_node_leave(const struct bsw_device_node *node,
                           struct bsw_device_node_before *before)
{
    if (before->nodes) hwloc_set_membind(node->topology, before->nodes, before->policy, OF_THREAD);
    hwloc_bitmap_free(before->nodes);
    before->nodes = NULL;
}

// ---- its memory ----

#define MIB ((size_t)1 << 20)
// Figures of others; those of this program were not logged.
//
// A process's context, its kernels not among it: 555 MiB on 188 multiprocessors, 107 MiB on 34
// (ggml-org/llama.cpp pull request 23604, 2026: an RTX PRO 6000 and a 4060 Ti), so that others, the
// H200's 132 among them, take no more than the first.
#define CONTEXT_BYTES (555 * MIB)
// NCCL, on eight H100 in one host: 1.06 GB with the context and a communicator, and 3.28 GB more
// once each has sent to its seven peers (NVIDIA/nccl issue 1685, 2025). Peers on other hosts share
// one buffer (issue 1450).
#define NCCL_BYTES      (500 * MIB)
#define NCCL_PEER_BYTES (450 * MIB)
#define MOST_NCCL_PEERS 7

// A link's first transfers connect every two ranks (common/net/device_link.h). Without a wish of
// the user's, ranks that share a device are not linked by NCCL.
static size_t nccl_bytes(const struct bsw_device_crowd *crowd)
{
    int num_peers = crowd->num_ranks - 1;
    if (crowd->num_ranks == 1 || crowd->num_sharers > 1) return 0;
    if (num_peers > MOST_NCCL_PEERS) num_peers = MOST_NCCL_PEERS;
    return NCCL_BYTES + (size_t)num_peers * NCCL_PEER_BYTES;
}

size_t bsw_device_memory_forecast(const struct bsw_device_crowd *crowd, size_t total_bytes)
{
    size_t num_sharers = (size_t)crowd->num_sharers;
    size_t taken = num_sharers * CONTEXT_BYTES + nccl_bytes(crowd);
    size_t left = total_bytes > taken ? total_bytes - taken : 0;
    return bsw_device_usable_bytes(left, total_bytes) / num_sharers;
}
