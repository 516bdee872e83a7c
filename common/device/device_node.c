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
