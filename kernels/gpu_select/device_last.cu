// SPDX-License-Identifier: Apache-2.0
// The last step of a pass: a list that is longer than fits in shared memory is cut to what is kept,
// then a bitonic sort there.
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

__global__ void __launch_bounds__(cut_threads)
    finish_lists(const __grid_constant__ bsw_device_lists lists, uint32_t keep, uint32_t most,
                 uint64_t *answers)
{
    DYNAMIC_SHARED(uint64_t, sorted); // [most]
    __shared__ cut_state state;
    uint64_t *items = lists.items + static_cast<size_t>(blockIdx.x) * lists.capacity;
    if (threadIdx.x == 0) tell(lists, keep);
    if (stored_count(lists) > most) cut_list(lists, keep, state);
    __syncthreads(); // the count is that of the cut
    const uint32_t count = stored_count(lists), kept = count < keep ? count : keep;
    uint32_t size = 2;
    while (size < count) size *= 2;
    for (uint32_t i = threadIdx.x; i < size; i += cut_threads) sorted[i] = i < count ? items[i] : 0;
    __syncthreads();
    sort_shared(sorted, size);
    for (uint32_t i = threadIdx.x; i < kept; i += cut_threads) {
        items[i] = sorted[i];
        if (answers) answers[static_cast<size_t>(blockIdx.x) * keep + i] = sorted[i];
    }
    if (threadIdx.x == 0) lists.counts[blockIdx.x] = kept;
}

} // namespace
} // namespace bsw

extern "C" int bsw_device_last(const struct bsw_device_lists *lists, uint32_t keep,
                               uint64_t *answers, bsw_stream stream)
{
    using namespace bsw;
    const uint32_t most = BSW_MOST_LAST_KEEP;
    if (keep < 1 || keep > most || keep > lists->capacity || lists->num_queries > INT32_MAX)
        return cudaErrorInvalidValue;
    if (lists->num_queries == 0) return cudaSuccess;
    return launch({dim3(lists->num_queries), dim3(cut_threads), most * sizeof(uint64_t), stream},
                  finish_lists, *lists, keep, most, answers);
}
