// SPDX-License-Identifier: Apache-2.0
// Keys and appends of the matrix scans, whose sums are those of u * q: device_matrix_scan.cu and
// device_matrix_scan_hopper.cu, in whose accumulators alike four lanes share a query.
#ifndef BITSWEEP_KERNELS_MATRIX_KEYS_CUH
#define BITSWEEP_KERNELS_MATRIX_KEYS_CUH

#include "kernels/device_scan/scan_arguments.cuh"

namespace bsw
{

enum class key_kind { integer, small_float, any_float }; // small: |dot| < 2^21

inline key_kind choose_keys(const scan_arguments &a)
{
    if (!a.codes.scales) return key_kind::integer;
    return a.dot_limit < 1 << 21 ? key_kind::small_float : key_kind::any_float;
}

// constant - 2 * sum reaches the limit as far as this.
__device__ __forceinline__ int most_sum(int constant, uint32_t limit)
{
    const long long twice = static_cast<long long>(constant) - integer_limit(limit);
    return static_cast<int>(min(twice >> 1, static_cast<long long>(INT32_MAX)));
}

template <key_kind KIND> __device__ __forceinline__ float float_of_dot(int dot)
{
    if (KIND == key_kind::any_float) return __int2float_rn(dot);
    // 0x4b400000 is 1.5 * 2^23, whose mantissa counts ones.
    return __fadd_rn(__int_as_float(0x4b400000 + dot), -12582912.0f);
}

template <key_kind KIND>
__device__ __forceinline__ uint32_t score_of(int dot, float query_scale, float scale, float bias)
{
    if (KIND == key_kind::integer) return score_of_integer(dot);
    return score_of_float(
        __fadd_rn(float_key(query_scale, scale, float_of_dot<KIND>(dot), bias), 0.0f));
}

// What a thread needs of a query where a row may pass. Limits are what they are when a launch
// begins.
struct thread_query {
    int constant;
    int most_sum;
    float scale, float_limit;
};

// Makes a query that exists, whose constant is known.
template <key_kind KIND>
__device__ __forceinline__ thread_query make_query(const scan_arguments &a, uint32_t query,
                                                   int constant)
{
    thread_query out = {constant, 0, 0.0f, 0.0f};
    const uint32_t limit = __ldg(a.lists.limits + query);
    if (KIND == key_kind::integer) {
        out.most_sum = most_sum(out.constant, limit);
    } else {
        out.float_limit = float_limit(limit);
        out.scale = __ldg(a.queries.scales + query);
    }
    return out;
}

// Queries that do not exist have limits that nothing reaches.
template <key_kind KIND>
__device__ __forceinline__ thread_query load_query(const scan_arguments &a, uint32_t query)
{
    if (query >= a.queries.num_queries) return {0, INT32_MIN, 0.0f, __uint_as_float(0x7fffffffu)};
    return make_query<KIND>(a, query, __ldg(a.queries.constants + query));
}

template <key_kind KIND>
__device__ __forceinline__ bool reaches(const thread_query &query, int sum, float scale, float bias)
{
    if (KIND == key_kind::integer) return sum <= query.most_sum;
    return float_key(query.scale, scale, float_of_dot<KIND>(query.constant - 2 * sum), bias) >=
           query.float_limit;
}

// Places in a query's list for `count` items of each of the four lanes that share it, one atomicAdd
// for all; the calling lane's first. With queues there are none to take. All 32 lanes call it.
__device__ __forceinline__ uint32_t take_places(const bsw_device_lists &lists, uint32_t query,
                                                uint32_t count)
{
    if (lists.queues.slots) return 0;
    const uint32_t lane = threadIdx.x % 4;
    uint32_t through = count;
#pragma unroll
    for (uint32_t step = 1; step < 4; step *= 2) {
        const uint32_t below = __shfl_up_sync(all_lanes, through, step, 4);
        if (lane >= step) through += below;
    }
    uint32_t at = 0;
    if (lane == 3 && through > 0) at = atomicAdd(&lists.counts[query], through);
    return __shfl_sync(all_lanes, at, 3, 4) + through - count;
}

// An item to the place that was taken for it, or to its queue.
__device__ __forceinline__ void put_item(const bsw_device_lists &lists, uint32_t query, uint32_t at,
                                         uint64_t item)
{
    if (lists.queues.slots)
        put_in_queue(lists.queues, query, item);
    else if (at < lists.capacity)
        lists.items[static_cast<size_t>(query) * lists.capacity + at] = item;
}

} // namespace bsw

#endif
