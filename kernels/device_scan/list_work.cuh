// SPDX-License-Identifier: Apache-2.0
// Work items of lists (device_list_scan.h) as kernels take them.
#ifndef BITSWEEP_KERNELS_LIST_WORK_CUH
#define BITSWEEP_KERNELS_LIST_WORK_CUH

#include "kernels/cuda_switch.cuh"
#include "kernels/device_scan/device_list_scan.h"

namespace bsw
{

__device__ __forceinline__ bsw_device_list_item load_item(const bsw_device_list_work &work,
                                                          uint32_t i)
{
    const uint4 four = __ldg(reinterpret_cast<const uint4 *>(work.items + i));
    return {four.x, four.y, four.z, four.w};
}

// Items of the launch; blocks beyond have nothing to do.
__device__ __forceinline__ uint32_t count_items(const bsw_device_list_work &work)
{
    return work.count ? min(__ldg(work.count), work.num_items) : work.num_items;
}

} // namespace bsw

DEVICE_POINTERS(bsw_device_list_work, a.items, a.queries, a.additions, a.rows, a.count)

#endif
