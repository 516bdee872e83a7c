// SPDX-License-Identifier: Apache-2.0
// Exact values of survivors, a warp a pair, as device_refine.cu has them; those that reach their
// query's limit go to its list.
#include "kernels/gpu_screen/half_arguments.cuh"

namespace bsw
{
namespace
{

constexpr uint32_t value_threads = 256, value_warps = value_threads / warp_rows;
constexpr uint32_t value_blocks = 8; // of a multiprocessor: all its threads

template <class T, bool IS_L2>
__device__ __forceinline__ double pair_sum(const screen_arguments &a, const bsw_device_pair &pair)
{
    const uint32_t dims = a.raw.dims;
    const T *row = static_cast<const T *>(a.raw.numbers) + static_cast<size_t>(pair.row) * dims;
    const double *query = a.queries.numbers + static_cast<size_t>(pair.query) * dims;
    double sum = 0;
#pragma unroll 4
    for (uint32_t i = threadIdx.x % warp_rows; i < dims; i += warp_rows)
        sum = add_product<IS_L2>(load_number(row + i), __ldg(query + i), sum);
    return tree_sum(sum);
}

template <class T, bool IS_L2>
__global__ void __launch_bounds__(value_threads)
    value_survivors(const __grid_constant__ screen_arguments a)
{
    const uint64_t num = a.survivors.counts->num;
    const uint64_t stride = static_cast<uint64_t>(gridDim.x) * value_warps;
    if (num > a.survivors.capacity) return;
    for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * value_warps + threadIdx.x / warp_rows;
         i < num; i += stride) {
        const bsw_device_pair pair = a.survivors.pairs[i];
        const double sum = pair_sum<T, IS_L2>(a, pair);
        if (threadIdx.x % warp_rows > 0) continue;
        const bool is_cosine = bsw_has_unit_rows(a.metric);
        const double row_norm = is_cosine ? __ldg(a.rows.norms + pair.row) : 0.0;
        const double query_norm = is_cosine ? __ldg(a.queries.norms + pair.query) : 0.0;
        const uint64_t score =
            exact_score(a.metric, bsw_refine_value(a.metric, bsw_refine_is_integer(a.raw.type), sum,
                                                   row_norm, query_norm));
        if (score >= __ldg(a.lists.limits + pair.query))
            append_pair(a.lists, pair.query, score, a.rows.first_row + pair.row);
    }
}

// In the order of enum bsw_vector_type; l2 second.
void (*const value_kernels[][2])(screen_arguments) = {
    {value_survivors<float, false>, value_survivors<float, true>},
    {value_survivors<half_number, false>, value_survivors<half_number, true>},
    {value_survivors<uint8_t, false>, value_survivors<uint8_t, true>},
    {value_survivors<int8_t, false>, value_survivors<int8_t, true>}};

} // namespace

cudaError_t launch_values(const screen_arguments &a, bsw_stream stream)
{
    device_traits device;
    cudaError_t error = get_device_traits(&device);
    if (error) return error;
    const uint32_t blocks = static_cast<uint32_t>(device.multiprocessors) * value_blocks;
    return launch({dim3(blocks), dim3(value_threads), 0, stream},
                  value_kernels[a.raw.type][bsw_has_row_norms(a.metric)], a);
}

} // namespace bsw
