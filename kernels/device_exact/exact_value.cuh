// SPDX-License-Identifier: Apache-2.0
// Numbers of raw rows, sums in lanes and tree, values and their scores, shared by the kernels of
// this folder. Each operation is rounded as kernels/refine writes it.
#ifndef BITSWEEP_KERNELS_EXACT_VALUE_CUH
#define BITSWEEP_KERNELS_EXACT_VALUE_CUH

#include "kernels/current_device.cuh"
#include "kernels/device_exact/device_exact.h"
#include "kernels/device_scan/device_key.cuh"
#include "kernels/refine/refine_value.h"

namespace bsw
{

struct half_number {
    uint16_t bits;
};

__device__ __forceinline__ double load_number(const float *place)
{
    return __ldg(place);
}

__device__ __forceinline__ double load_number(const double *place)
{
    return __ldg(place);
}

__device__ __forceinline__ double load_number(const half_number *place)
{
    return half_to_float(__ldg(&place->bits));
}

__device__ __forceinline__ double load_number(const uint8_t *place)
{
    return __ldg(place);
}

__device__ __forceinline__ double load_number(const int8_t *place)
{
    return __ldg(place);
}

// One more dimension of a lane: x*q, or (x - q)^2.
template <bool IS_L2> __device__ __forceinline__ double add_product(double x, double q, double sum)
{
    if (!IS_L2) return __fma_rn(x, q, sum);
    const double difference = __dsub_rn(x, q);
    return __fma_rn(difference, difference, sum);
}

// The tree over the lanes of a warp; the sum is lane 0's.
__device__ __forceinline__ double tree_sum(double sum)
{
#pragma unroll
    for (unsigned h = warp_rows / 2; h > 0; h /= 2)
        sum = __dadd_rn(sum, __shfl_down_sync(all_lanes, sum, h));
    return sum;
}

__device__ __forceinline__ uint64_t exact_score(bsw_metric metric, double value)
{
    const double key = bsw_is_distance(metric) ? __dsub_rn(0.0, value) : __dadd_rn(value, 0.0);
    const uint64_t bits = static_cast<uint64_t>(__double_as_longlong(key));
    return bits >> 63 ? ~bits : bits | uint64_t{1} << 63;
}

// The key that reaches the limit and no more; NaN where all do.
__device__ __forceinline__ double exact_key(uint64_t limit)
{
    const uint64_t bits = limit >> 63 ? limit & ~(uint64_t{1} << 63) : ~limit;
    return __longlong_as_double(static_cast<long long>(bits));
}

// About 1/sqrt of a squared norm that has no fault.
__device__ __forceinline__ float about_inverse(float norm)
{
    return __frsqrt_rn(norm);
}

// Whether a cosine may reach the limit, without roots and divisions in float64, of which almost all
// pairs then need none: all errors here together are below 1e-6, as a cosine is at most 1.
__device__ __forceinline__ bool may_reach(float sum, float inverse_row, float inverse_query,
                                          float limit_key)
{
    const float slack = 4e-6f;
    const float about = __fmul_rn(__fmul_rn(sum, inverse_row), inverse_query);
    return !(about < __fsub_rn(limit_key, slack)); // NaN: all reach it
}

// One pair to its query's list.
__device__ __forceinline__ void append_pair(const bsw_device_exact_lists &lists, uint32_t query,
                                            uint64_t score, uint32_t row)
{
    const uint32_t at = atomicAdd(&lists.counts[query], 1u);
    if (at >= lists.capacity) return;
    const size_t place = static_cast<size_t>(query) * lists.capacity + at;
    lists.scores[place] = score;
    lists.rows[place] = row;
}

// Lanes that went apart where some appended go on together, as mma wants it; orders no memory.
__device__ __forceinline__ void converge()
{
    __syncwarp();
}

// How the blocks of a scan share rows and queries: a block takes step_bundles bundles and one of
// `parts` parts of the queries, in steps of step_queries.
struct exact_shape {
    uint32_t num_bundles; // of the part; kernels count them from 0
    uint32_t parts;
};

inline bool is_valid_exact(const bsw_device_exact_rows &rows, const bsw_device_part &part,
                           uint32_t dims, const bsw_device_exact_lists &lists)
{
    if (part.step < 1 || part.first > part.last || part.last > rows.num_bundles || dims < 1)
        return false;
    const uint64_t bundles =
        (static_cast<uint64_t>(part.last) - part.first + part.step - 1) / part.step;
    return bundles * warp_rows + lists.capacity <= UINT32_MAX;
}

// Queries are cut into parts only where there are too few bundles to keep the device busy.
inline cudaError_t plan_exact(const bsw_device_part &part, uint32_t num_queries,
                              uint32_t step_bundles, uint32_t step_queries, uint32_t busy_blocks,
                              exact_shape *shape, uint32_t *num_blocks)
{
    device_traits device;
    cudaError_t error = get_device_traits(&device);
    if (error) return error;
    const uint64_t target = static_cast<uint64_t>(device.multiprocessors) * busy_blocks;
    shape->num_bundles =
        (part.last - part.first) / part.step + ((part.last - part.first) % part.step != 0);
    const uint64_t row_steps =
        (static_cast<uint64_t>(shape->num_bundles) + step_bundles - 1) / step_bundles;
    const uint64_t query_steps =
        (static_cast<uint64_t>(num_queries) + step_queries - 1) / step_queries;
    const uint64_t wanted = (target + row_steps - 1) / row_steps;
    shape->parts = static_cast<uint32_t>(wanted < query_steps ? wanted : query_steps);
    *num_blocks = static_cast<uint32_t>(row_steps * shape->parts);
    return row_steps * shape->parts <= INT32_MAX ? cudaSuccess : cudaErrorInvalidValue;
}

} // namespace bsw

DEVICE_POINTERS(bsw_device_raw_rows, a.numbers)
DEVICE_POINTERS(bsw_device_vectors, a.numbers, a.norms)
DEVICE_POINTERS(bsw_device_exact_rows, a.norms, a.masks)
DEVICE_POINTERS(bsw_device_exact_lists, a.scores, a.rows, a.counts, a.limits)
DEVICE_POINTERS(bsw_device_packed, a.bytes, a.terms)

#endif
