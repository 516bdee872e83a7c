// SPDX-License-Identifier: Apache-2.0
// Additions to keys around a scan (kernels/select/key_shift.h): first the limits that keys must
// reach before, then the sums of what the scan has appended. And row masks of a search.
#include "kernels/device_scan/device_key.cuh"
#include "kernels/device_scan/device_shift.h"

namespace bsw
{
namespace
{

constexpr unsigned shift_threads = 128;

__global__ void __launch_bounds__(shift_threads)
    begin_shift(const __grid_constant__ bsw_device_lists lists,
                const __grid_constant__ bsw_device_shift shift)
{
    const uint32_t query = blockIdx.x * shift_threads + threadIdx.x;
    if (query >= lists.num_queries) return;
    shift.limits[query] =
        bsw_limit_before(lists.limits[query], shift.additions[query], shift.is_float);
    shift.counts[query] = lists.counts[query];
}

// A block a query.
__global__ void __launch_bounds__(shift_threads)
    end_shift(const __grid_constant__ bsw_device_lists lists,
              const __grid_constant__ bsw_device_shift shift)
{
    const uint32_t query = blockIdx.x, count = lists.counts[query];
    const uint32_t last = count < lists.capacity ? count : lists.capacity;
    uint64_t *items = lists.items + static_cast<size_t>(query) * lists.capacity;
    for (uint32_t i = shift.counts[query] + threadIdx.x; i < last; i += shift_threads) {
        const uint32_t score = bsw_score_add(static_cast<uint32_t>(items[i] >> 32),
                                             shift.additions[query], shift.is_float);
        items[i] = static_cast<uint64_t>(score) << 32 | static_cast<uint32_t>(items[i]);
    }
}

__global__ void __launch_bounds__(shift_threads)
    join_masks(uint32_t *masks, const uint32_t *more, uint32_t num)
{
    const uint32_t i = blockIdx.x * shift_threads + threadIdx.x;
    if (i < num) masks[i] &= more[i];
}

} // namespace
} // namespace bsw

DEVICE_POINTERS(bsw_device_shift, a.additions, a.limits, a.counts)

static dim3 blocks_of(uint32_t num)
{
    return dim3((num + bsw::shift_threads - 1) / bsw::shift_threads);
}

extern "C" int bsw_device_shift_begin(const struct bsw_device_lists *lists,
                                      const struct bsw_device_shift *shift, bsw_stream stream)
{
    if (lists->num_queries == 0) return cudaSuccess;
    return bsw::launch({blocks_of(lists->num_queries), dim3(bsw::shift_threads), 0, stream},
                       bsw::begin_shift, *lists, *shift);
}

extern "C" int bsw_device_shift_end(const struct bsw_device_lists *lists,
                                    const struct bsw_device_shift *shift, bsw_stream stream)
{
    if (lists->num_queries == 0) return cudaSuccess;
    return bsw::launch({dim3(lists->num_queries), dim3(bsw::shift_threads), 0, stream},
                       bsw::end_shift, *lists, *shift);
}

extern "C" int bsw_device_join_masks(uint32_t *masks, const uint32_t *more, uint32_t num_bundles,
                                     bsw_stream stream)
{
    if (num_bundles == 0) return cudaSuccess;
    return bsw::launch({blocks_of(num_bundles), dim3(bsw::shift_threads), 0, stream},
                       bsw::join_masks, masks, more, num_bundles);
}
