// SPDX-License-Identifier: Apache-2.0
// The best of a list in order, in shared memory: a list that is longer than fits there is cut to
// what is kept, then a bitonic sort. A block of cut_threads a list.
#ifndef BITSWEEP_KERNELS_SORTED_LIST_CUH
#define BITSWEEP_KERNELS_SORTED_LIST_CUH

#include "kernels/gpu_select/radix_select.cuh"

namespace bsw
{
namespace
{

// In descending order. size: a power of two, 2 or more.
__device__ void sort_shared(uint64_t *items, uint32_t size)
{
    for (uint32_t run = 2; run <= size; run *= 2) {
        for (uint32_t step = run / 2; step > 0; step /= 2) {
            for (uint32_t i = threadIdx.x; i < size / 2; i += cut_threads) {
                const uint32_t low = i / step * 2 * step + i % step, high = low + step;
                const uint64_t a = items[low], b = items[high];
                const bool is_rising = low & run;
                if ((a < b) != is_rising) {
                    items[low] = b;
                    items[high] = a;
                }
            }
            __syncthreads();
        }
    }
}

__device__ uint32_t stored_count(const bsw_device_lists &lists)
{
    const uint32_t stored = lists.counts[blockIdx.x];
    return stored < lists.capacity ? stored : lists.capacity;
}

// The block's list to sorted [most], of which the best min(count, keep) are of account; how many
// these are. keep <= most, which is a power of two.
__device__ uint32_t sort_best(const bsw_device_lists &lists, uint32_t keep, uint32_t most,
                              uint64_t *sorted, cut_state &state)
{
    const uint64_t *items = lists.items + static_cast<size_t>(blockIdx.x) * lists.capacity;
    if (stored_count(lists) > most) cut_list(lists, keep, state);
    __syncthreads(); // the count is that of the cut
    const uint32_t count = stored_count(lists);
    uint32_t size = 2;
    while (size < count) size *= 2;
    for (uint32_t i = threadIdx.x; i < size; i += cut_threads) sorted[i] = i < count ? items[i] : 0;
    __syncthreads();
    sort_shared(sorted, size);
    return count < keep ? count : keep;
}

} // namespace
} // namespace bsw

#endif
