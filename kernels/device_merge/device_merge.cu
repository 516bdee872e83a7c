// SPDX-License-Identifier: Apache-2.0
// From sorted lists of several shards to cuts, and what they leave of a list. Bound by memory.
#include "kernels/device_merge/device_merge.h"
#include "kernels/device_scan/device_key.cuh"

namespace bsw
{
namespace
{

constexpr uint32_t merge_threads = 256; // of a block that has a list
constexpr uint32_t query_threads = 64;  // of one whose threads have a query each

__global__ void __launch_bounds__(merge_threads)
    pack(const __grid_constant__ bsw_device_ragged from, uint64_t *to, const uint64_t *to_offsets)
{
    const uint32_t list = blockIdx.x, count = from.counts[list];
    const uint64_t *items = from.items + from.offsets[list];
    uint64_t *out = to + to_offsets[list];
    for (uint32_t i = threadIdx.x; i < count; i += merge_threads) out[i] = items[i];
}

// A block a query.
__global__ void __launch_bounds__(merge_threads)
    make_keys(const __grid_constant__ bsw_device_merge merge,
              const __grid_constant__ bsw_device_lists keys)
{
    const uint32_t query = blockIdx.x;
    uint64_t *out = keys.items + static_cast<size_t>(query) * keys.capacity;
    uint32_t place = 0;
    for (uint32_t shard = 0; shard < merge.num_shards; shard++) {
        const size_t list = static_cast<size_t>(shard) * merge.num_queries + query;
        const uint32_t count = merge.lists.counts[list];
        const uint64_t *items = merge.lists.items + merge.lists.offsets[list];
        for (uint32_t i = threadIdx.x; i < count; i += merge_threads)
            out[place + i] = pack_candidate(static_cast<uint32_t>(items[i] >> 32), place + i);
        place += count;
    }
    if (threadIdx.x == 0) keys.counts[query] = place;
}

// The item that was at this place of the query's lists.
__device__ __forceinline__ bsw_cut cut_at(const bsw_device_merge &merge, uint32_t query,
                                          uint32_t place)
{
    uint32_t shard = 0;
    size_t list = query;
    for (; place >= merge.lists.counts[list]; shard++, list += merge.num_queries)
        place -= merge.lists.counts[list];
    const uint64_t item = merge.lists.items[merge.lists.offsets[list] + place];
    return {bsw_candidate_score(item), 0, merge.first_rows[shard] + bsw_candidate_row(item)};
}

__global__ void __launch_bounds__(query_threads)
    find_cuts(const __grid_constant__ bsw_device_merge merge,
              const __grid_constant__ bsw_device_lists keys, bsw_cut *cuts)
{
    const uint32_t query = blockIdx.x * query_threads + threadIdx.x;
    if (query >= merge.num_queries) return;
    bsw_cut cut = bsw_keep_all();
    if (keys.counts[query] >= merge.keep) {
        const size_t begin = static_cast<size_t>(query) * keys.capacity;
        cut = cut_at(merge, query, bsw_candidate_row(keys.items[begin + merge.keep - 1]));
    }
    cuts[query] = cut;
}

__global__ void __launch_bounds__(query_threads)
    count_survivors(const __grid_constant__ bsw_device_ragged lists, uint64_t first_row,
                    const bsw_cut *cuts, uint32_t *counts)
{
    const uint32_t list = blockIdx.x * query_threads + threadIdx.x;
    if (list >= lists.num_lists) return;
    const uint64_t *items = lists.items + lists.offsets[list];
    uint32_t low = 0, high = lists.counts[list];
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (bsw_is_within_cut(items[middle], first_row, &cuts[list]))
            low = middle + 1;
        else
            high = middle;
    }
    counts[list] = low;
}

dim3 blocks_for(uint32_t num)
{
    return dim3((num + query_threads - 1) / query_threads);
}

} // namespace
} // namespace bsw

DEVICE_POINTERS(bsw_device_ragged, a.items, a.offsets, a.counts)
DEVICE_POINTERS(bsw_device_merge, a.lists, a.first_rows)

extern "C" int bsw_device_pack_lists(const struct bsw_device_ragged *from, uint64_t *to,
                                     const uint64_t *to_offsets, bsw_stream stream)
{
    if (from->num_lists == 0) return cudaSuccess;
    return bsw::launch({dim3(from->num_lists), dim3(bsw::merge_threads), 0, stream}, bsw::pack,
                       *from, to, to_offsets);
}

extern "C" int bsw_device_merge_keys(const struct bsw_device_merge *merge,
                                     const struct bsw_device_lists *keys, bsw_stream stream)
{
    if (keys->num_queries != merge->num_queries || merge->keep < 1) return cudaErrorInvalidValue;
    if (merge->num_queries == 0) return cudaSuccess;
    return bsw::launch({dim3(merge->num_queries), dim3(bsw::merge_threads), 0, stream},
                       bsw::make_keys, *merge, *keys);
}

extern "C" int bsw_device_merge_cuts(const struct bsw_device_merge *merge,
                                     const struct bsw_device_lists *keys, struct bsw_cut *cuts,
                                     bsw_stream stream)
{
    if (merge->num_queries == 0) return cudaSuccess;
    return bsw::launch({bsw::blocks_for(merge->num_queries), dim3(bsw::query_threads), 0, stream},
                       bsw::find_cuts, *merge, *keys, cuts);
}

extern "C" int bsw_device_count_survivors(const struct bsw_device_ragged *lists, uint64_t first_row,
                                          const struct bsw_cut *cuts, uint32_t *counts,
                                          bsw_stream stream)
{
    if (lists->num_lists == 0) return cudaSuccess;
    return bsw::launch({bsw::blocks_for(lists->num_lists), dim3(bsw::query_threads), 0, stream},
                       bsw::count_survivors, *lists, first_row, cuts, counts);
}
