// SPDX-License-Identifier: Apache-2.0
// Rows and queries to halves, a warp a vector, and what bounds their rounding
// (kernels/screen/screen_margin.h).
#include "kernels/gpu_screen/half_arguments.cuh"

namespace bsw
{
namespace
{

constexpr uint32_t pack_threads = 256, pack_warps = pack_threads / warp_rows;

struct half_row_arguments {
    bsw_metric metric;
    bsw_device_exact_rows rows;
    bsw_device_raw_rows raw;
    const uint32_t *worst_error;
    bsw_half_rows out;
};

struct half_query_arguments {
    bsw_device_vectors queries;
    uint32_t dims;
    bsw_half_queries out;
};

DEVICE_POINTERS(half_row_arguments, a.rows, a.raw, a.worst_error, a.out)
DEVICE_POINTERS(half_query_arguments, a.queries, a.out)

template <class T> __device__ __forceinline__ float load_float(const T *place)
{
    return __double2float_rn(load_number(place)); // it is one
}

struct rounding {
    int exponent;
    float squared_error; // the sum of squares, the same in all lanes
};

// Lanes take every 32nd number, as sums of kernel_sums.h do.
template <class T>
__device__ __forceinline__ rounding round_vector(const T *from, uint32_t dims, uint32_t padded,
                                                 uint32_t lane, uint16_t *to)
{
    uint32_t largest = 0;
    for (uint32_t i = lane; i < dims; i += warp_rows)
        largest = max(largest, __float_as_uint(load_float(from + i)) & 0x7fffffffu);
    rounding out = {bsw_screen_half_exponent(__reduce_max_sync(all_lanes, largest)), 0.0f};
    const float factor = power_of_two(out.exponent);
    for (uint32_t i = lane; i < padded; i += warp_rows) {
        const float number = i < dims ? __fmul_rn(load_float(from + i), factor) : 0.0f;
        const uint16_t half = float_to_half(number);
        const float error = __fadd_rn(number, -half_to_float(half)); // exact
        out.squared_error = __fmaf_rn(error, error, out.squared_error);
        to[i] = half;
    }
#pragma unroll
    for (int h = warp_rows / 2; h > 0; h /= 2)
        out.squared_error =
            __fadd_rn(out.squared_error, __shfl_xor_sync(all_lanes, out.squared_error, h));
    return out;
}

__device__ __forceinline__ bsw_half_row_term row_term(const half_row_arguments &a, uint32_t row,
                                                      const rounding &rounded)
{
    const double norm = __ldg(a.rows.norms + row), worst = __uint_as_float(__ldg(a.worst_error));
    const double error = bsw_screen_half_error(rounded.squared_error, norm, rounded.exponent);
    const double balance =
        bsw_screen_half_balance(worst, a.out.padded_dims, is_rounded(a.raw.type));
    const float scale = power_of_two(-rounded.exponent);
    return {bsw_has_unit_rows(a.metric) ? static_cast<float>(scale / sqrt(norm)) : scale,
            bsw_screen_half_bias(a.metric, norm, error, worst, balance, a.out.padded_dims)};
}

template <class T>
__global__ void __launch_bounds__(pack_threads)
    pack_half_rows(const __grid_constant__ half_row_arguments a)
{
    const uint32_t lane = threadIdx.x % warp_rows;
    const uint32_t row = blockIdx.x * pack_warps + threadIdx.x / warp_rows;
    if (row / warp_rows >= a.rows.num_bundles) return;
    if (!(__ldg(a.rows.masks + row / warp_rows) >> row % warp_rows & 1)) {
        if (lane == 0) a.out.terms[row] = {0.0f, __uint_as_float(0x7fc00000u)};
        return;
    }
    const size_t at = row;
    const rounding rounded =
        round_vector(static_cast<const T *>(a.raw.numbers) + at * a.raw.dims, a.raw.dims,
                     a.out.padded_dims, lane, a.out.numbers + at * a.out.padded_dims);
    if (lane == 0) a.out.terms[row] = row_term(a, row, rounded);
}

__global__ void __launch_bounds__(pack_threads)
    pack_half_queries(const __grid_constant__ half_query_arguments a)
{
    const uint32_t lane = threadIdx.x % warp_rows;
    const uint32_t query = blockIdx.x * pack_warps + threadIdx.x / warp_rows;
    if (query >= a.queries.num_queries) return;
    const size_t at = query;
    const rounding rounded =
        round_vector(a.queries.numbers + at * a.dims, a.dims, a.out.padded_dims, lane,
                     a.out.numbers + at * a.out.padded_dims);
    if (lane > 0) return;
    const double error = bsw_screen_half_error(rounded.squared_error,
                                               __ldg(a.queries.norms + query), rounded.exponent);
    const bool is_screened = error <= BSW_SCREEN_HALF_QUERY_ERROR;
    a.out.units[query] = is_screened ? power_of_two(rounded.exponent) : 0.0f;
    if (is_screened) atomicMax(a.out.worst_error, __float_as_uint(bsw_round_up(error)));
}

// In the order of enum bsw_vector_type.
void (*const row_kernels[])(half_row_arguments) = {pack_half_rows<float>,
                                                   pack_half_rows<half_number>,
                                                   pack_half_rows<uint8_t>, pack_half_rows<int8_t>};

bool is_padded(uint32_t dims, uint32_t padded_dims)
{
    return dims >= 1 && dims <= BSW_MAX_DIMS && padded_dims == bsw_half_padded_dims(dims);
}

} // namespace
} // namespace bsw

extern "C" int bsw_half_pack_queries(const struct bsw_device_vectors *queries, uint32_t dims,
                                     const struct bsw_half_queries *out, bsw_stream stream)
{
    using namespace bsw;
    if (!is_padded(dims, out->padded_dims) || queries->num_queries > INT32_MAX)
        return cudaErrorInvalidValue;
    cudaError_t error = cudaMemsetAsync(out->worst_error, 0, sizeof *out->worst_error, stream);
    if (error || queries->num_queries == 0) return error;
    const half_query_arguments a = {*queries, dims, *out};
    const uint32_t blocks = (queries->num_queries + pack_warps - 1) / pack_warps;
    return launch({dim3(blocks), dim3(pack_threads), 0, stream}, pack_half_queries, a);
}

extern "C" int bsw_half_pack_rows(enum bsw_metric metric, const struct bsw_device_exact_rows *rows,
                                  const struct bsw_device_raw_rows *raw,
                                  const struct bsw_half_queries *queries,
                                  const struct bsw_half_rows *out, bsw_stream stream)
{
    using namespace bsw;
    if (!is_padded(raw->dims, out->padded_dims) || raw->type > BSW_VECTOR_INT8 ||
        metric >= BSW_METRIC_NUM || rows->num_bundles > INT32_MAX / warp_rows)
        return cudaErrorInvalidValue;
    if (rows->num_bundles == 0) return cudaSuccess;
    const half_row_arguments a = {metric, *rows, *raw, queries->worst_error, *out};
    return launch(
        {dim3(rows->num_bundles * (warp_rows / pack_warps)), dim3(pack_threads), 0, stream},
        row_kernels[raw->type], a);
}
