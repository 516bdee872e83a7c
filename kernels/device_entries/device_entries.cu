// SPDX-License-Identifier: Apache-2.0
// Entries within a radius: a warp a ray. Points of a subspace, 2 KB, come from the first cache when
// rays of one follow each other; what is written, 5 bytes a hit, is most of the rest.
#include "kernels/cuda_switch.cuh"
#include "kernels/device_entries/device_entries.h"

namespace bsw
{
namespace
{

constexpr uint32_t block_warps = 8, warp_lanes = 32;
constexpr unsigned every_lane = 0xffffffffu;

// The formulas of entries_within.h.
template <int VALUE>
__device__ __forceinline__ float value_of(const bsw_entry_ray &ray, float x, float y)
{
    if (VALUE == BSW_ENTRY_IP) return __fmaf_rn(ray.y, y, __fmaf_rn(ray.x, x, 0.0f));
    const float dx = __fsub_rn(ray.x, x), dy = __fsub_rn(ray.y, y);
    return __fmaf_rn(dy, dy, __fmul_rn(dx, dx));
}

__device__ __forceinline__ float least_product(const bsw_entry_ray &ray)
{
    const float norm = __fmaf_rn(ray.y, ray.y, __fmul_rn(ray.x, ray.x));
    return __fmul_rn(0.5f, __fsub_rn(norm, ray.limit));
}

template <int VALUE>
__global__ void __launch_bounds__(block_warps *warp_lanes)
    within(const __grid_constant__ bsw_device_entry_book book, const bsw_entry_ray *rays,
           uint32_t num_rays, const __grid_constant__ bsw_device_entry_hits hits)
{
    const uint32_t r = blockIdx.x * block_warps + threadIdx.x / warp_lanes,
                   lane = threadIdx.x % warp_lanes;
    if (r >= num_rays) return;
    const bsw_entry_ray ray = rays[r];
    const float *x = book.points + static_cast<size_t>(ray.subspace) * 2 * book.entries,
                *y = x + book.entries,
                bound = VALUE == BSW_ENTRY_IP ? least_product(ray) : ray.limit;
    const size_t first = static_cast<size_t>(r) * book.entries;
    uint32_t count = 0;
    for (uint32_t e = lane; e - lane < book.entries; e += warp_lanes) {
        float value = 0.0f;
        bool is_hit = false;
        if (e < book.entries) { // 16 are half a warp
            value = value_of<VALUE>(ray, x[e], y[e]);
            is_hit = VALUE == BSW_ENTRY_IP ? value >= bound : value <= bound;
        }
        const unsigned mask = __ballot_sync(every_lane, is_hit);
        const size_t place = first + count + __popc(mask & ((1u << lane) - 1));
        if (is_hit) {
            hits.entries[place] = static_cast<uint8_t>(e);
            hits.values[place] = value;
        }
        count += __popc(mask);
    }
    if (lane == 0) hits.counts[r] = count;
}

} // namespace
} // namespace bsw

DEVICE_POINTERS(bsw_device_entry_book, a.points)
DEVICE_POINTERS(bsw_device_entry_hits, a.counts, a.entries, a.values)

extern "C" int bsw_device_entries_within(const struct bsw_device_entry_book *book,
                                         const struct bsw_entry_ray *rays, uint32_t num_rays,
                                         const struct bsw_device_entry_hits *hits,
                                         bsw_stream stream)
{
    if (book->entries != 16 && book->entries != 256) return cudaErrorInvalidValue;
    if (num_rays == 0) return cudaSuccess;
    const bsw::launch_shape shape = {dim3((num_rays - 1) / bsw::block_warps + 1),
                                     dim3(bsw::block_warps * bsw::warp_lanes), 0, stream};
    return book->value == BSW_ENTRY_IP
               ? bsw::launch(shape, bsw::within<BSW_ENTRY_IP>, *book, rays, num_rays, *hits)
               : bsw::launch(shape, bsw::within<BSW_ENTRY_L2>, *book, rays, num_rays, *hits);
}
