// SPDX-License-Identifier: Apache-2.0
// Tables of work items: a warp a list and step finds room for the list's slots and makes its items,
// then a block a query puts it into the slots of its lists. Room is what atomics give, so slots and
// items lie in any order.
#include "kernels/gpu_lists/gpu_lists.cuh"

namespace bsw
{
namespace
{

constexpr uint32_t item_threads = 256, item_warps = item_threads / warp_rows, slot_threads = 128;

struct item_arguments {
    bsw_device_choice choice;
    bsw_device_list_shape shape;
    bsw_device_list_passes passes;
    bsw_device_list_tables tables;
    uint32_t *flags;
};
static_assert(sizeof(item_arguments) <= 4096, "more than a launch carries");

__device__ __forceinline__ void add_total(uint64_t *total, uint64_t more)
{
    atomicAdd(reinterpret_cast<unsigned long long *>(total), static_cast<unsigned long long>(more));
}

// A list as a step looks at it; by the threads of a warp.
struct list_of_step {
    uint32_t first_bundle, num_bundles, first_slot, num_queries;
};

// Items of a tile in a pass, for pieces [first, first + num) of as many queries as the wide tile
// has.
__device__ __forceinline__ void make_items(const item_arguments &a, const list_of_step &list,
                                           uint32_t number, uint32_t tile, uint32_t first,
                                           uint32_t num)
{
    const bsw_device_list_pass &pass = a.passes.pass[number];
    const uint32_t lane = threadIdx.x % warp_rows, widest = bsw_device_list_tile_slots(pass.wide);
    const uint32_t end = min(list.num_bundles - pass.first_bundle, pass.num_bundles);
    const uint32_t cuts = (end - 1) / pass.item_bundles + 1;
    const uint32_t room = pass.first_item[tile + 1] - pass.first_item[tile];
    const uint64_t all = static_cast<uint64_t>(cuts) * num;
    uint32_t at = 0;
    if (num == 0) return;
    if (lane == 0 && all <= room)
        at = atomicAdd(a.tables.num_items + number * BSW_LIST_TILES + tile,
                       static_cast<uint32_t>(all));
    at = __shfl_sync(all_lanes, at, 0);
    if (all > room || at > room - all) {
        if (lane == 0) atomicOr(a.flags, unsigned{BSW_ITEMS_TOO_MANY});
        return;
    }
    if (lane == 0) add_total(&a.tables.totals->bundles, static_cast<uint64_t>(end) * num);
    for (uint32_t i = lane; i < all; i += warp_rows) {
        const uint32_t query = (first + i % num) * widest, bundle = i / num * pass.item_bundles;
        a.tables.items[pass.first_item[tile] + at + i] = {
            list.first_bundle + pass.first_bundle + bundle, min(end - bundle, pass.item_bundles),
            list.first_slot + query, min(list.num_queries - query, widest)};
    }
}

__device__ __forceinline__ void make_items(const item_arguments &a, const list_of_step &list,
                                           uint32_t number)
{
    const bsw_device_list_pass &pass = a.passes.pass[number];
    const uint32_t widest = bsw_device_list_tile_slots(pass.wide),
                   whole = list.num_queries / widest, left = list.num_queries % widest;
    const bool is_narrow =
        left > 0 && pass.narrow < pass.wide && left <= bsw_device_list_tile_slots(pass.narrow);
    make_items(a, list, number, pass.wide, 0, whole + (left > 0 && !is_narrow ? 1 : 0));
    if (is_narrow) make_items(a, list, number, pass.narrow, whole, 1);
}

__global__ void __launch_bounds__(item_threads)
    place_lists(const __grid_constant__ item_arguments a)
{
    const uint32_t own = blockIdx.x * item_warps + threadIdx.x / warp_rows,
                   lists = a.choice.num_lists;
    const uint32_t step = own / lists, number = own % lists, lane = threadIdx.x % warp_rows;
    if (blockIdx.x == 0 && threadIdx.x == 0 && *a.choice.flags) atomicOr(a.flags, *a.choice.flags);
    if (step >= BSW_LIST_STEPS) return;
    const uint32_t num = a.choice.step_queries[own];
    if (num == 0) return;
    const uint32_t bundle = __ldg(a.shape.first_bundles + number);
    list_of_step list = {bundle, __ldg(a.shape.first_bundles + number + 1) - bundle, 0, num};
    if (lane == 0) {
        list.first_slot = atomicAdd(a.tables.num_items + BSW_LIST_COUNTERS - 1, num);
        a.tables.next_slots[own] = list.first_slot;
        add_total(&a.tables.totals->list_pairs, num);
        add_total(&a.tables.totals->row_pairs,
                  static_cast<uint64_t>(num) * __ldg(a.shape.num_rows + number));
    }
    list.first_slot = __shfl_sync(all_lanes, list.first_slot, 0);
    if (num > a.tables.most_slots || list.first_slot > a.tables.most_slots - num) {
        if (lane == 0) atomicOr(a.flags, unsigned{BSW_ITEMS_TOO_MANY});
        return;
    }
    for (uint32_t p = 0; p < a.passes.num; p++)
        if (a.passes.pass[p].step == step && a.passes.pass[p].first_bundle < list.num_bundles)
            make_items(a, list, p);
}

__global__ void __launch_bounds__(slot_threads) fill_slots(const __grid_constant__ item_arguments a)
{
    const bsw_device_choice &choice = a.choice;
    const size_t first = static_cast<size_t>(blockIdx.x) * choice.most;
    const uint32_t count = choice.counts[blockIdx.x];
    for (uint32_t i = threadIdx.x; i < count; i += slot_threads) {
        const size_t list = place_of_list(choice, i, choice.lists[first + i]);
        const uint32_t slot = atomicAdd(a.tables.next_slots + list, 1u);
        if (slot >= a.tables.most_slots) continue;
        a.tables.queries[slot] = blockIdx.x;
        if (a.tables.additions) a.tables.additions[slot] = choice.additions[first + i];
    }
}

bool is_valid(const bsw_device_choice &choice, const bsw_device_list_passes &passes,
              const bsw_device_list_tables &tables)
{
    if (choice.num_queries > INT32_MAX || choice.most < 1 || choice.num_lists < 1 ||
        choice.num_lists > INT32_MAX / BSW_LIST_STEPS ||
        choice.ends[BSW_LIST_STEPS - 1] < choice.most || passes.num > BSW_MOST_LIST_PASSES ||
        (tables.additions && !choice.additions))
        return false;
    for (uint32_t p = 0; p < passes.num; p++) {
        const bsw_device_list_pass &pass = passes.pass[p];
        if (pass.step >= BSW_LIST_STEPS || pass.num_bundles < 1 || pass.item_bundles < 1 ||
            pass.narrow > pass.wide || pass.wide >= BSW_LIST_TILES)
            return false;
        for (uint32_t t = 0; t < BSW_LIST_TILES; t++)
            if (pass.first_item[t] > pass.first_item[t + 1]) return false;
    }
    return true;
}

cudaError_t clear(const bsw_device_list_tables &tables, cudaStream_t stream)
{
    const cudaError_t error =
        cudaMemsetAsync(tables.num_items, 0, BSW_LIST_COUNTERS * sizeof *tables.num_items, stream);
    return error ? error : cudaMemsetAsync(tables.totals, 0, sizeof *tables.totals, stream);
}

} // namespace
} // namespace bsw

DEVICE_POINTERS(bsw_device_list_shape, a.first_bundles, a.num_rows)
DEVICE_POINTERS(bsw_device_list_tables, a.items, a.queries, a.additions, a.next_slots, a.num_items,
                a.totals)
DEVICE_POINTERS(bsw::item_arguments, a.choice, a.shape, a.tables, a.flags)

extern "C" int bsw_device_list_items(const struct bsw_device_choice *choice,
                                     const struct bsw_device_list_shape *shape,
                                     const struct bsw_device_list_passes *passes,
                                     const struct bsw_device_list_tables *tables, uint32_t *flags,
                                     bsw_stream stream)
{
    using namespace bsw;
    if (!is_valid(*choice, *passes, *tables)) return cudaErrorInvalidValue;
    if (choice->num_queries == 0) return cudaSuccess;
    const item_arguments a = {*choice, *shape, *passes, *tables, flags};
    const uint32_t blocks = (BSW_LIST_STEPS * choice->num_lists - 1) / item_warps + 1;
    cudaError_t error = clear(*tables, stream);
    if (!error) error = launch({dim3(blocks), dim3(item_threads), 0, stream}, place_lists, a);
    if (error) return error;
    return launch({dim3(choice->num_queries), dim3(slot_threads), 0, stream}, fill_slots, a);
}
