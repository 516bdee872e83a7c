// Every list in descending order: CUB's segmented radix sort; under the emulator one thread a list.
// CUB sorts from one array to another, so items go out to the scratch and back; its places are of
// 31 bits, so larger batches go in slices.
#if defined(__CUDACC__)
#include <cub/device/device_segmented_radix_sort.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#else
#include <algorithm>
#include <functional>
#endif

#include "kernels/device_scan/device_key.cuh"

namespace bsw
{
namespace
{

constexpr uint32_t copy_threads = 256;

__device__ __forceinline__ uint32_t stored_items(const bsw_device_lists &lists, uint32_t query)
{
    const uint32_t count = lists.counts[query];
    return count < lists.capacity ? count : lists.capacity;
}

// Lists of one slice.
uint32_t slice_queries(uint32_t num_queries, uint32_t capacity)
{
    const uint32_t most = capacity > 0 ? INT32_MAX / capacity : INT32_MAX;
    return num_queries < most ? num_queries : most;
}

size_t items_bytes(uint32_t num_queries, uint32_t capacity)
{
    const size_t bytes = static_cast<size_t>(num_queries) * capacity * sizeof(uint64_t);
    return (bytes + 255) / 256 * 256;
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

// sorted NULL: only sets *bytes.
cudaError_t sort_to(void *temporary, size_t *bytes, const bsw_device_lists &lists, uint64_t *sorted,
                    cudaStream_t stream)
{
    auto queries = thrust::make_counting_iterator<uint32_t>(0);
    auto begins = thrust::make_transform_iterator(queries, list_begin{lists.capacity});
    auto ends = thrust::make_transform_iterator(queries, list_end{lists.capacity, lists.counts});
    const uint64_t *items = lists.items;
    return cub::DeviceSegmentedRadixSort::SortKeysDescending(
        temporary, *bytes, items, sorted, static_cast<int>(lists.num_queries * lists.capacity),
        static_cast<int>(lists.num_queries), begins, ends, 0, 64, stream);
}

#else

constexpr size_t emulated_temporary_bytes = 256; // so that callers leave room for some

__global__ void sort_list(bsw_device_lists lists, uint64_t *sorted, unsigned char *temporary)
{
    const uint32_t query = blockIdx.x, count = stored_items(lists, query);
    const uint64_t *items = lists.items + static_cast<size_t>(query) * lists.capacity;
    uint64_t *out = sorted + static_cast<size_t>(query) * lists.capacity;
    std::copy(items, items + count, out);
    std::sort(out, out + count, std::greater<uint64_t>());
    if (query == 0) temporary[emulated_temporary_bytes - 1] = 0;
}

cudaError_t sort_to(void *temporary, size_t *bytes, const bsw_device_lists &lists, uint64_t *sorted,
                    cudaStream_t stream)
{
    *bytes = emulated_temporary_bytes;
    if (!sorted) return cudaSuccess;
    return launch({dim3(lists.num_queries), dim3(1), 0, stream}, sort_list, lists, sorted,
                  static_cast<unsigned char *>(temporary));
}

#endif

// One slice.
cudaError_t sort_slice(const bsw_device_lists &lists, void *scratch, size_t temporary_bytes,
                       cudaStream_t stream)
{
    uint64_t *sorted = static_cast<uint64_t *>(scratch);
    unsigned char *temporary =
        static_cast<unsigned char *>(scratch) + items_bytes(lists.num_queries, lists.capacity);
    cudaError_t error = sort_to(temporary, &temporary_bytes, lists, sorted, stream);
    if (error) return error;
    return launch({dim3(lists.num_queries), dim3(copy_threads), 0, stream}, copy_lists, lists,
                  static_cast<const uint64_t *>(sorted));
}

// What CUB wants beside the sorted items; 0: it was refused.
size_t find_temporary_bytes(uint32_t num_queries, uint32_t capacity)
{
    const bsw_device_lists lists = {num_queries, capacity, nullptr, nullptr, nullptr};
    size_t bytes = 0;
    return sort_to(nullptr, &bytes, lists, nullptr, nullptr) == cudaSuccess ? bytes : 0;
}

} // namespace
} // namespace bsw

extern "C" size_t bsw_device_sort_bytes(uint32_t num_queries, uint32_t capacity)
{
    using namespace bsw;
    if (capacity > INT32_MAX) return 0;
    const uint32_t slice = slice_queries(num_queries, capacity);
    const size_t temporary_bytes = find_temporary_bytes(slice, capacity);
    return temporary_bytes > 0 ? items_bytes(slice, capacity) + temporary_bytes : 0;
}

extern "C" int bsw_device_sort(const struct bsw_device_lists *lists, void *scratch,
                               bsw_stream stream)
{
    using namespace bsw;
    if (lists->capacity > INT32_MAX) return cudaErrorInvalidValue;
    if (lists->num_queries == 0 || lists->capacity == 0) return cudaSuccess;
    const uint32_t slice = slice_queries(lists->num_queries, lists->capacity);
    const size_t temporary_bytes = find_temporary_bytes(slice, lists->capacity);
    if (temporary_bytes == 0) return cudaErrorInvalidValue;
    for (uint32_t first = 0; first < lists->num_queries; first += slice) {
        bsw_device_lists some = *lists;
        some.num_queries = slice_queries(lists->num_queries - first, lists->capacity);
        some.items += static_cast<size_t>(first) * lists->capacity;
        some.counts += first;
        cudaError_t error = sort_slice(some, scratch, temporary_bytes, stream);
        if (error) return error;
    }
    return cudaSuccess;
}
