// SPDX-License-Identifier: Apache-2.0
// Limits by rank: a table of the list's bundles in shared memory, each with its best score, and a
// radix select over them.
#include "kernels/gpu_select/radix_select.cuh"

namespace bsw
{
namespace
{

constexpr uint32_t slots = 4096; // a power of two
constexpr uint32_t free_slot = UINT32_MAX;

struct bundle_table {
    uint32_t bundles[slots], best[slots];
    uint32_t num_bundles; // BSW_MOST_RANK_BUNDLES + cut_threads at most: never all slots
    cut_state state;
};

__device__ void empty_table(bundle_table &table)
{
    for (uint32_t i = threadIdx.x; i < slots; i += cut_threads) {
        table.bundles[i] = free_slot;
        table.best[i] = 0;
    }
    if (threadIdx.x == 0) table.num_bundles = 0;
    __syncthreads();
}

// False: there are too many bundles by now.
__device__ bool put_in_table(bundle_table &table, uint32_t bundle, uint32_t score)
{
    uint32_t slot = bundle * 2654435761u >> 20, there; // 12 bits of Knuth's multiplicative hash
    for (;; slot = (slot + 1) % slots) {
        there = atomicCAS(&table.bundles[slot], free_slot, bundle);
        if (there == free_slot || there == bundle) break;
    }
    atomicMax(&table.best[slot], score);
    return there == bundle || atomicAdd(&table.num_bundles, 1u) < BSW_MOST_RANK_BUNDLES;
}

// A bundle's items were appended together, so a thread takes items that follow each other and goes
// to the table once for a run of them.
__device__ void fill_table(const bsw_device_lists &lists, uint32_t count, bundle_table &table)
{
    const uint64_t *items = lists.items + static_cast<size_t>(blockIdx.x) * lists.capacity;
    const uint32_t own = (count + cut_threads - 1) / cut_threads, first = threadIdx.x * own;
    uint32_t bundle = free_slot, best = 0;
    bool has_room = true;
    for (uint32_t i = first; i < first + own && i < count && has_room; i++) {
        const uint64_t item = items[i];
        const uint32_t next = ~static_cast<uint32_t>(item) / warp_rows;
        const uint32_t score = static_cast<uint32_t>(item >> 32);
        if (next != bundle && bundle != free_slot) has_room = put_in_table(table, bundle, best);
        best = next != bundle || score > best ? score : best;
        bundle = next;
    }
    if (bundle != free_slot && has_room) put_in_table(table, bundle, best);
    __syncthreads();
}

// Scores that have the prefix above `shift`, by their next eight bits.
__device__ void count_scores(bundle_table &table, uint32_t prefix, int shift)
{
    for (uint32_t d = threadIdx.x; d < digits; d += cut_threads) table.state.histogram[d] = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < slots; i += cut_threads) {
        const uint32_t score = table.best[i];
        if (table.bundles[i] == free_slot) continue;
        if (shift < 24 && score >> (shift + 8) != prefix) continue;
        atomicAdd(&table.state.histogram[score >> shift & (digits - 1)], 1u);
    }
    __syncthreads();
}

// The rank-th best score; the table has as many.
__device__ uint32_t find_score(bundle_table &table, uint32_t rank)
{
    uint32_t prefix = 0, left = rank;
    for (int shift = 24; shift >= 0; shift -= 8) {
        count_scores(table, prefix, shift);
        if (threadIdx.x < 32) choose_digit(left, table.state);
        __syncthreads();
        prefix = prefix << 8 | table.state.digit;
        left = table.state.left;
    }
    return prefix;
}

__global__ void __launch_bounds__(cut_threads)
    raise_rank_limits(const __grid_constant__ bsw_device_lists lists,
                      const __grid_constant__ bsw_device_rank rank)
{
    __shared__ bundle_table table;
    const uint32_t query = blockIdx.x, stored = lists.counts[query];
    empty_table(table);
    fill_table(lists, stored < lists.capacity ? stored : lists.capacity, table);
    const bool is_raised =
        table.num_bundles >= rank.rank && table.num_bundles <= BSW_MOST_RANK_BUNDLES;
    const uint32_t score = is_raised ? find_score(table, rank.rank) : 0;
    __syncthreads(); // everybody has read the count
    if (threadIdx.x > 0) return;
    lists.counts[query] = 0;
    if (lists.hits && !rank.is_first)
        atomicAdd(reinterpret_cast<unsigned long long *>(lists.hits), stored);
    if (!is_raised) return;
    lists.limits[query] = score;
    if (!rank.is_sure) lists.raised[query] = 1;
}

} // namespace
} // namespace bsw

extern "C" int bsw_device_rank_limit(const struct bsw_device_lists *lists,
                                     const struct bsw_device_rank *rank, bsw_stream stream)
{
    using namespace bsw;
    if (rank->rank < 1 || lists->num_queries > INT32_MAX || (!rank->is_sure && !lists->raised))
        return cudaErrorInvalidValue;
    if (lists->num_queries == 0) return cudaSuccess;
    return launch({dim3(lists->num_queries), dim3(cut_threads), 0, stream}, raise_rank_limits,
                  *lists, *rank);
}
