// SPDX-License-Identifier: Apache-2.0
// Exact values of chosen pairs, norms of rows, and rows as queries: a warp a pair or row, its lanes
// those of kernel_sums.h. Rows lie far apart and each is read once, so only the number of loads
// under way counts.
#include "kernels/device_exact/pair_value.cuh"

namespace bsw
{
namespace
{

constexpr uint32_t refine_threads = 256;
constexpr uint32_t refine_warps = refine_threads / warp_rows;

struct refine_arguments {
    bsw_metric metric;
    bsw_device_raw_rows rows;
    bsw_device_vectors queries;
    const bsw_device_pair *pairs;
    size_t num_pairs;
    double *values;
};

// Norms, a number a row, or all numbers of rows.
struct row_arguments {
    bsw_device_raw_rows rows;
    double *out;
};

DEVICE_POINTERS(refine_arguments, a.rows, a.queries, a.pairs, a.values)
DEVICE_POINTERS(row_arguments, a.rows, a.out)

// Blocks and warps count up to the number of pairs or rows, which may pass 2^32.
__device__ __forceinline__ size_t own_warp()
{
    return static_cast<size_t>(blockIdx.x) * refine_warps + threadIdx.x / warp_rows;
}

template <class T>
__global__ void __launch_bounds__(refine_threads)
    refine_pairs(const __grid_constant__ refine_arguments a)
{
    const size_t i = own_warp();
    if (i >= a.num_pairs) return;
    const bsw_device_pair pair = a.pairs[i];
    const T *const row[1] = {row_at<T>(a.rows, pair.row)};
    double value[1];
    pair_values(a.metric, a.rows, row,
                a.queries.numbers + static_cast<size_t>(pair.query) * a.rows.dims,
                a.queries.norms + pair.query, value);
    if (threadIdx.x % warp_rows == 0) a.values[i] = value[0];
}

template <class T>
__global__ void __launch_bounds__(refine_threads)
    find_norms(const __grid_constant__ row_arguments a)
{
    const size_t row = own_warp();
    if (row >= a.rows.num_rows) return;
    const T *numbers = row_at<T>(a.rows, static_cast<uint32_t>(row));
    double sum = 0;
#pragma unroll 4
    for (uint32_t i = threadIdx.x % warp_rows; i < a.rows.dims; i += warp_rows) {
        const double x = load_number(numbers + i);
        sum = __fma_rn(x, x, sum);
    }
    sum = tree_sum(sum);
    if (threadIdx.x % warp_rows == 0) a.out[row] = sum;
}

template <class T>
__global__ void __launch_bounds__(refine_threads)
    widen_rows(const __grid_constant__ row_arguments a)
{
    const size_t row = own_warp();
    if (row >= a.rows.num_rows) return;
    const T *numbers = row_at<T>(a.rows, static_cast<uint32_t>(row));
    double *out = a.out + row * a.rows.dims;
    for (uint32_t i = threadIdx.x % warp_rows; i < a.rows.dims; i += warp_rows)
        out[i] = load_number(numbers + i);
}

// Launches for the type of the rows, a warp for each of `count`.
template <class A>
cudaError_t launch_warps(bsw_vector_type type, size_t count, bsw_stream stream,
                         void (*const (&kernels)[4])(A), const A &arguments)
{
    const size_t blocks = (count + refine_warps - 1) / refine_warps;
    if (blocks > INT32_MAX || type > BSW_VECTOR_INT8) return cudaErrorInvalidValue;
    return launch({dim3(static_cast<unsigned>(blocks)), dim3(refine_threads), 0, stream},
                  kernels[type], arguments);
}

// In the order of enum bsw_vector_type.
void (*const refine_kernels[])(refine_arguments) = {refine_pairs<float>, refine_pairs<half_number>,
                                                    refine_pairs<uint8_t>, refine_pairs<int8_t>};
void (*const norm_kernels[])(row_arguments) = {find_norms<float>, find_norms<half_number>,
                                               find_norms<uint8_t>, find_norms<int8_t>};
void (*const widen_kernels[])(row_arguments) = {widen_rows<float>, widen_rows<half_number>,
                                                widen_rows<uint8_t>, widen_rows<int8_t>};

cudaError_t launch_rows(const bsw_device_raw_rows &rows, double *out, bsw_stream stream,
                        void (*const (&kernels)[4])(row_arguments))
{
    if (rows.dims < 1) return cudaErrorInvalidValue;
    if (rows.num_rows == 0) return cudaSuccess;
    const row_arguments a = {rows, out};
    return launch_warps(rows.type, rows.num_rows, stream, kernels, a);
}

} // namespace
} // namespace bsw

extern "C" int bsw_device_row_norms(const struct bsw_device_raw_rows *rows, double *norms,
                                    bsw_stream stream)
{
    return bsw::launch_rows(*rows, norms, stream, bsw::norm_kernels);
}

extern "C" int bsw_device_widen(const struct bsw_device_raw_rows *rows, double *numbers,
                                bsw_stream stream)
{
    return bsw::launch_rows(*rows, numbers, stream, bsw::widen_kernels);
}

extern "C" int bsw_device_refine(enum bsw_metric metric, const struct bsw_device_raw_rows *rows,
                                 const struct bsw_device_vectors *queries,
                                 const struct bsw_device_pair *pairs, size_t num_pairs,
                                 double *values, bsw_stream stream)
{
    using namespace bsw;
    if (rows->dims < 1 || metric >= BSW_METRIC_NUM) return cudaErrorInvalidValue;
    if (num_pairs == 0) return cudaSuccess;
    const refine_arguments a = {metric, *rows, *queries, pairs, num_pairs, values};
    return launch_warps(rows->type, num_pairs, stream, refine_kernels, a);
}
