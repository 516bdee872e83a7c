// SPDX-License-Identifier: Apache-2.0
// The last step of a pass: the best of every list, in order.
#include "kernels/gpu_select/sorted_list.cuh"

namespace bsw
{
namespace
{

__global__ void __launch_bounds__(cut_threads)
    finish_lists(const __grid_constant__ bsw_device_lists lists, uint32_t keep, uint32_t most,
                 uint64_t *answers)
{
    DYNAMIC_SHARED(uint64_t, sorted); // [most]
    __shared__ cut_state state;
    uint64_t *items = lists.items + static_cast<size_t>(blockIdx.x) * lists.capacity;
    if (threadIdx.x == 0) tell(lists, keep);
    const uint32_t kept = sort_best(lists, keep, most, sorted, state);
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
