// SPDX-License-Identifier: Apache-2.0
// Lists of queries from what the coarse step has found: a block a query. The best, at most some
// hundred, are brought in order, and threads look at all of them for the last that counts and the
// first that does not; a warp then makes an addition, whose lanes are those of kernel_sums.h.
#include "kernels/gpu_lists/gpu_lists.cuh"
#include "kernels/gpu_select/sorted_list.cuh"

namespace bsw
{
namespace
{

constexpr uint32_t choose_threads = cut_threads, choose_warps = choose_threads / warp_rows;

struct choose_arguments {
    bsw_device_lists found;
    uint32_t first;
    bsw_device_chooser how;
    bsw_device_choice out;
};

__device__ __forceinline__ float key_of(uint64_t item)
{
    const uint32_t score = static_cast<uint32_t>(item >> 32);
    return __uint_as_float(score >> 31 ? score & 0x7fffffffu : ~score);
}

// The least key within the ratio, of the block's query; as ratio_limit of coarse_search.c.
__device__ __forceinline__ float limit_of(const bsw_device_chooser &how, float yardstick,
                                          float nearest)
{
    if (how.ratio == 0.0f) return how.least_key;
    const float norm = how.is_l2 ? __ldg(how.norms + blockIdx.x) : 0.0f;
    const float distance =
        how.is_l2 ? __fsub_rn(norm, yardstick) : __fsub_rn(2.0f, __fmul_rn(2.0f, yardstick));
    const float most = __fmul_rn(how.ratio, distance > 0.0f ? distance : 0.0f);
    const float limit = how.is_l2 ? __fsub_rn(norm, most) : __fsub_rn(1.0f, __fmul_rn(0.5f, most));
    return fminf(__fadd_rn(limit, 0.0f), nearest);
}

// By the threads of a warp; the sum is that of lane 0.
__device__ __forceinline__ float product(const float *vector, const float *centroid, uint32_t dims)
{
    float sum = 0.0f;
#pragma unroll 4
    for (uint32_t d = threadIdx.x % warp_rows; d < dims; d += warp_rows)
        sum = __fmaf_rn(__ldg(vector + d), __ldg(centroid + d), sum);
#pragma unroll
    for (unsigned step = warp_rows / 2; step > 0; step /= 2)
        sum = __fadd_rn(sum, __shfl_down_sync(all_lanes, sum, step));
    return sum;
}

__device__ __forceinline__ void add_products(const choose_arguments &a, uint32_t q,
                                             const uint64_t *items, uint32_t num)
{
    const bsw_device_chooser &how = a.how;
    const float *vector = how.vectors + static_cast<size_t>(blockIdx.x) * how.dims;
    for (uint32_t i = threadIdx.x / warp_rows; i < num; i += choose_warps) {
        const size_t list = ~static_cast<uint32_t>(items[i]);
        const float sum = product(vector, how.centroids + list * how.dims, how.dims);
        if (threadIdx.x % warp_rows == 0)
            a.out.additions[static_cast<size_t>(q) * a.out.most + i] =
                how.is_l2 ? __fmul_rn(2.0f, sum) : sum;
    }
}

__device__ __forceinline__ void put_lists(const bsw_device_choice &out, uint32_t q,
                                          const uint64_t *items, uint32_t num)
{
    for (uint32_t i = threadIdx.x; i < num; i += choose_threads) {
        const uint32_t list = ~static_cast<uint32_t>(items[i]);
        out.lists[static_cast<size_t>(q) * out.most + i] = list;
        atomicAdd(out.step_queries + place_of_list(out, i, list), 1u);
    }
}

__global__ void __launch_bounds__(choose_threads)
    choose_lists(const __grid_constant__ choose_arguments a)
{
    DYNAMIC_SHARED(uint64_t, items); // [BSW_MOST_LAST_KEEP]
    __shared__ cut_state state;
    __shared__ uint32_t known, within; // items with keys; the first that does not count
    const uint32_t q = a.first + blockIdx.x;
    const bool has_room = a.found.counts[blockIdx.x] <= a.found.capacity;
    if (threadIdx.x == 0) {
        known = 0;
        within = UINT32_MAX;
    }
    __syncthreads();
    const uint32_t stored = sort_best(a.found, a.how.keep, BSW_MOST_LAST_KEEP, items, state);
    for (uint32_t i = threadIdx.x; i < stored; i += choose_threads)
        if (key_of(items[i]) >= a.how.least_key) atomicMax(&known, i + 1);
    __syncthreads();
    const uint32_t count = known, most = min(count, a.how.probe);
    const bool is_whole = count < stored || a.how.keep == a.out.num_lists;
    const bool has_rank = count > 0 && (count >= a.how.rank || is_whole);
    if (has_rank) {
        const float limit =
            limit_of(a.how, key_of(items[min(count, a.how.rank) - 1]), key_of(items[0]));
        for (uint32_t i = threadIdx.x; i < most; i += choose_threads)
            if (!(key_of(items[i]) >= limit)) atomicMin(&within, i);
    }
    __syncthreads();
    const uint32_t num = min(within, most);
    const bool tells = has_rank && num > 0 && (num < count || num == a.how.probe || is_whole) &&
                       has_room && !(a.found.overflowed && *a.found.overflowed);
    if (threadIdx.x == 0) {
        a.out.counts[q] = tells ? num : 0;
        if (!tells) atomicOr(a.out.flags, unsigned{BSW_CHOICE_UNTOLD});
    }
    if (!tells) return;
    put_lists(a.out, q, items, num);
    if (a.out.additions) add_products(a, q, items, num);
}

bool is_valid(const bsw_device_lists &found, uint32_t first, const bsw_device_chooser &how,
              const bsw_device_choice &out)
{
    return found.num_queries <= INT32_MAX && first <= out.num_queries &&
           found.num_queries <= out.num_queries - first && how.keep >= 1 &&
           how.keep <= found.capacity && how.keep <= BSW_MOST_LAST_KEEP && how.rank >= 1 &&
           how.probe >= 1 && out.most >= (how.keep < how.probe ? how.keep : how.probe) &&
           out.ends[BSW_LIST_STEPS - 1] >= out.most &&
           (how.ratio == 0.0f || !how.is_l2 || how.norms) &&
           (!out.additions || (how.vectors && how.centroids));
}

} // namespace
} // namespace bsw

DEVICE_POINTERS(bsw_device_chooser, a.norms, a.vectors, a.centroids)
DEVICE_POINTERS(bsw::choose_arguments, a.found, a.how, a.out)

extern "C" int bsw_device_choice_clear(const struct bsw_device_choice *choice, bsw_stream stream)
{
    const size_t bytes = size_t{BSW_LIST_STEPS} * choice->num_lists * sizeof *choice->step_queries;
    cudaError_t error = cudaMemsetAsync(choice->step_queries, 0, bytes, stream);
    return error ? error : cudaMemsetAsync(choice->flags, 0, sizeof *choice->flags, stream);
}

extern "C" int bsw_device_choose_lists(const struct bsw_device_lists *found, uint32_t first,
                                       const struct bsw_device_chooser *chooser,
                                       const struct bsw_device_choice *choice, bsw_stream stream)
{
    using namespace bsw;
    if (!is_valid(*found, first, *chooser, *choice)) return cudaErrorInvalidValue;
    if (found->num_queries == 0) return cudaSuccess;
    const choose_arguments a = {*found, first, *chooser, *choice};
    return launch({dim3(found->num_queries), dim3(choose_threads),
                   BSW_MOST_LAST_KEEP * sizeof(uint64_t), stream},
                  choose_lists, a);
}
