// SPDX-License-Identifier: Apache-2.0
// Every list in descending order: CUB's segmented radix sort, between the lists and the scratch and
// back; under the emulator one thread a list. CUB's places are of 31 bits, so larger batches go in
// slices.
#if defined(__CUDACC__)
#include <cub/device/device_segmented_radix_sort.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#else
#include <algorithm>
#include <functional>
#endif

#include "kernels/device_scan/device_key.cuh"
#include "kernels/gpu_select/gpu_select.h"

namespace bsw
{
namespace
{

constexpr uint32_t copy_threads = 256;
constexpr uint64_t cub_launches = 11; // of CUDA 13's CUB, whatever the lists, by the profiler

__device__ __forceinline__ uint32_t stored_items(const bsw_device_lists &lists, uint32_t query)
{
    const uint32_t count = lists.counts[query];
    return count < lists.capacity ? count : lists.capacity;
}

__global__ void __launch_bounds__(copy_threads)
    copy_lists(const __grid_constant__ bsw_device_lists lists, const uint64_t *sorted)
{
    const uint32_t query = blockIdx.x, count = stored_items(lists, query);
    const size_t begin = static_cast<size_t>(query) * lists.capacity;
    for (uint32_t i = threadIdx.x; i < count; i += copy_threads)
        lists.items[begin + i] = sorted[begin + i];
}

#if defined(__CUDACC__)

struct list_begin {
    uint32_t capacity;
    __host__ __device__ int operator()(uint32_t query) const
    {
        return static_cast<int>(query * capacity);
    }
};

struct list_end {
    uint32_t capacity;
    const uint32_t *counts;
    __host__ __device__ int operator()(uint32_t query) const
    {
#if defined(__CUDA_ARCH__)
        const uint32_t count = counts[query];
        return static_cast<int>(query * capacity + (count < capacity ? count : capacity));
#else
        return static_cast<int>(query * capacity); // counts are on the device
#endif
    }
};

// *sorted: where the sorted items are then, in the lists or in `other`. Between two arrays that it
// may both overwrite CUB needs next to nothing else.
cudaError_t sort_slice(const bsw_device_lists &lists, uint64_t *other, void *temporary,
                       const uint64_t **sorted, cudaStream_t stream)
{
    auto queries = thrust::make_counting_iterator<uint32_t>(0);
    auto begins = thrust::make_transform_iterator(queries, list_begin{lists.capacity});
    auto ends = thrust::make_transform_iterator(queries, list_end{lists.capacity, lists.counts});
    cub::DoubleBuffer<uint64_t> keys(lists.items, other);
    const int num_items = static_cast<int>(lists.num_queries * lists.capacity);
    const int num_lists = static_cast<int>(lists.num_queries);
    num_launches.fetch_add(cub_launches, std::memory_order_relaxed);
    size_t bytes = 0;
    cudaError_t error = cub::DeviceSegmentedRadixSort::SortKeysDescending(
        nullptr, bytes, keys, num_items, num_lists, begins, ends, 0, 64, stream);
    if (!error && bytes > BSW_DEVICE_SORT_TEMPORARY_BYTES) error = cudaErrorMemoryAllocation;
    if (!error)
        error = cub::DeviceSegmentedRadixSort::SortKeysDescending(
            temporary, bytes, keys, num_items, num_lists, begins, ends, 0, 64, stream);
    *sorted = keys.Current();
    return error;
}

#else

__global__ void sort_list(bsw_device_lists lists, uint64_t *sorted, unsigned char *temporary)
{
    const uint32_t query = blockIdx.x, count = stored_items(lists, query);
    const uint64_t *items = lists.items + static_cast<size_t>(query) * lists.capacity;
    uint64_t *out = sorted + static_cast<size_t>(query) * lists.capacity;
    std::copy(items, items + count, out);
    std::sort(out, out + count, std::greater<uint64_t>());
    if (query == 0) temporary[BSW_DEVICE_SORT_TEMPORARY_BYTES - 1] = 0; // is there
}

cudaError_t sort_slice(const bsw_device_lists &lists, uint64_t *other, void *temporary,
                       const uint64_t **sorted, cudaStream_t stream)
{
    *sorted = other;
    return launch({dim3(lists.num_queries), dim3(1), 0, stream}, sort_list, lists, other,
                  static_cast<unsigned char *>(temporary));
}

#endif

} // namespace
} // namespace bsw

extern "C" uint64_t bsw_device_launches(void)
{
    return bsw::num_launches.load(std::memory_order_relaxed);
}

extern "C" int bsw_device_sort(const struct bsw_device_lists *lists, void *scratch,
                               bsw_stream stream)
{
    using namespace bsw;
    if (lists->capacity > INT32_MAX) return cudaErrorInvalidValue;
    if (lists->num_queries == 0 || lists->capacity == 0) return cudaSuccess;
    const uint32_t slice = bsw_device_sort_slice(lists->num_queries, lists->capacity);
    unsigned char *temporary = static_cast<unsigned char *>(scratch);
    uint64_t *other = reinterpret_cast<uint64_t *>(temporary + BSW_DEVICE_SORT_TEMPORARY_BYTES);
    for (uint32_t first = 0; first < lists->num_queries; first += slice) {
        const uint64_t *sorted = nullptr;
        bsw_device_lists some = *lists;
        some.num_queries = bsw_device_sort_slice(lists->num_queries - first, lists->capacity);
        some.items += static_cast<size_t>(first) * lists->capacity;
        some.counts += first;
        cudaError_t error = sort_slice(some, other, temporary, &sorted, stream);
        if (!error && sorted != some.items)
            error = launch({dim3(some.num_queries), dim3(copy_threads), 0, stream}, copy_lists,
                           some, sorted);
        if (error) return error;
    }
    return cudaSuccess;
}
