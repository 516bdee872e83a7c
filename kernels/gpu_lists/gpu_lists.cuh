// SPDX-License-Identifier: Apache-2.0
// What both kernels of gpu_lists take.
#ifndef BITSWEEP_KERNELS_GPU_LISTS_CUH
#define BITSWEEP_KERNELS_GPU_LISTS_CUH

#include "kernels/device_scan/device_key.cuh"
#include "kernels/gpu_lists/gpu_lists.h"

namespace bsw
{

// Where a list that queries look at in the step of their list `number` is among those of all steps.
__device__ __forceinline__ size_t place_of_list(const bsw_device_choice &choice, uint32_t number,
                                                uint32_t list)
{
    uint32_t step = 0;
    while (number >= choice.ends[step]) step++;
    return static_cast<size_t>(step) * choice.num_lists + list;
}

} // namespace bsw

DEVICE_POINTERS(bsw_device_choice, a.lists, a.counts, a.additions, a.step_queries, a.flags)

#endif
