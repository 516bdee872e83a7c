// SPDX-License-Identifier: Apache-2.0
// Which NUMA node a PCI device is next to, on a machine described in XML, and memory bound there.
#include <string.h>

#include "common/device/device_node.h"
#include "unit_test.h"

#define SETS(kind, cpus, nodes)                                                     \
    "<object type='" kind "' os_index='0' cpuset='" cpus "' complete_cpuset='" cpus \
    "' nodeset='" nodes "' complete_nodeset='" nodes "'"
#define NODE(index, cpu, node)                                                                  \
    "<object type='Package' os_index='" index "' cpuset='" cpu "' complete_cpuset='" cpu        \
    "' nodeset='" node "' complete_nodeset='" node "'><object type='NUMANode' os_index='" index \
    "' cpuset='" cpu "' complete_cpuset='" cpu "' nodeset='" node "' complete_nodeset='" node   \
    "' local_memory='1000000'/><object type='PU' os_index='" index "' cpuset='" cpu             \
    "' complete_cpuset='" cpu "' nodeset='" node "' complete_nodeset='" node "'/>"
#define BRIDGE "<object type='Bridge' bridge_type='0-1' depth='0' bridge_pci='0000:[00-ff]'>"
#define GPU(bus_id) \
    "<object type='PCIDev' pci_busid='" bus_id "' pci_type='0302 [10de:2336] [10de:0001] a1'/>"

// Two sockets, a GPU at each and one that the machine does not place.
static const char two_sockets[] =
    "<?xml version='1.0' encoding='UTF-8'?><topology version='2.0'>" SETS(
        "Machine", "0x3", "0x3") " allowed_cpuset='0x3' allowed_nodeset='0x3'>" NODE("0", "0x1",
                                                                                     "0x1")
        BRIDGE GPU("0000:3b:00.0") "</object></object>" NODE("1", "0x2", "0x2")
            BRIDGE GPU("0001:d8:00.0") "</object></object>" BRIDGE GPU(
                "0002:01:00.0") "</object></object></topology>";

static hwloc_topology_t load(unsigned long flags)
{
    hwloc_topology_t topology;
    assert_int_equal(hwloc_topology_init(&topology), 0);
    assert_int_equal(hwloc_topology_set_flags(topology, flags), 0);
    assert_int_equal(hwloc_topology_set_xmlbuffer(topology, two_sockets, (int)sizeof two_sockets),
                     0);
    assert_int_equal(hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PCI_DEVICE,
                                                    HWLOC_TYPE_FILTER_KEEP_IMPORTANT),
                     0);
    assert_int_equal(hwloc_topology_load(topology), 0);
    return topology;
}

// -1: not found, else the only node.
static int node_of(hwloc_topology_t topology, const char *bus_id)
{
    hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
    int node = bsw_device_node_find(topology, bus_id, nodes) ? hwloc_bitmap_first(nodes) : -1;
    if (node >= 0) assert_int_equal(hwloc_bitmap_weight(nodes), 1);
    hwloc_bitmap_free(nodes);
    return node;
}

UNIT_TEST(test_device_finds_its_node)
{
    hwloc_topology_t topology = load(0);
    assert_int_equal(node_of(topology, "0000:3b:00.0"), 0);
    assert_int_equal(node_of(topology, "0001:D8:00.0"), 1); // as CUDA writes it
    assert_int_equal(node_of(topology, "0002:01:00.0"), -1);
    assert_int_equal(node_of(topology, "0000:3c:00.0"), -1);
    assert_int_equal(node_of(topology, "no bus id"), -1);
    hwloc_topology_destroy(topology);
}

UNIT_TEST(test_one_node_is_not_worth_binding)
{
    hwloc_topology_t topology;
    assert_int_equal(hwloc_topology_init(&topology), 0);
    assert_int_equal(hwloc_topology_set_synthetic(topology, "numa:1 pu:4"), 0);
    assert_int_equal(hwloc_topology_load(topology), 0);
    assert_int_equal(node_of(topology, "0000:3b:00.0"), -1);
    hwloc_topology_destroy(topology);
}

static hwloc_membind_policy_t policy_of(hwloc_topology_t topology, hwloc_bitmap_t nodes)
{
    hwloc_membind_policy_t policy = HWLOC_MEMBIND_MIXED;
    (void)hwloc_get_membind(topology, nodes, &policy,
                            HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET);
    return policy;
}

// Node 0, which this machine has, too; as if the XML described it.
UNIT_TEST(test_memory_is_bound_meanwhile)
{
    hwloc_topology_t topology = load(HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM);
    struct bsw_device_node node = {topology, hwloc_bitmap_alloc()};
    struct bsw_device_node_before before;
    hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
    assert_true(bsw_device_node_find(topology, "0000:3b:00.0", node.nodes));
    hwloc_membind_policy_t at_first = policy_of(topology, nodes);
    bsw_device_node_enter(&node, &before);
    if (before.nodes) { // the system allows it
        assert_int_equal(policy_of(topology, nodes), HWLOC_MEMBIND_BIND);
        assert_true(hwloc_bitmap_isequal(nodes, node.nodes));
    }
    bsw_device_node_leave(&node, &before);
    assert_null(before.nodes);
    assert_int_equal(policy_of(topology, nodes), at_first);
    hwloc_bitmap_free(nodes);
    bsw_device_node_close(&node);
}

UNIT_TEST(test_unknown_node_changes_nothing)
{
    struct bsw_device_node node;
    struct bsw_device_node_before before;
    bsw_device_node_open("ffff:1f:1f.7", &node); // loads this machine's topology
    assert_null(node.nodes);
    bsw_device_node_enter(&node, &before);
    assert_null(before.nodes);
    bsw_device_node_leave(&node, &before);
    bsw_device_node_close(&node);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
