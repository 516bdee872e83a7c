// SPDX-License-Identifier: Apache-2.0
// The product of saq on a GPU: rows by rotation in float32. Every output is one fma chain,
// ascending in the input dimension, so that dimension is never cut: a block has a tile of rows x
// outputs, a thread 8 rows x 4, 8 or 12 outputs in registers, and slices of 8 input dimensions go
// through two buffers in shared memory. Bound by multiply-adds; tensor units would round otherwise.
#include "kernels/cuda_switch.cuh"
#include "kernels/device_encode/device_encode.h"

namespace bsw
{
namespace
{

constexpr uint32_t project_threads = 128, tile_rows = 128, slice = 8;
constexpr uint32_t thread_rows = 8, column_threads = 8; // threads side by side, 4 outputs each
constexpr uint32_t word_columns = 32;                   // outputs that those have together
// Rows of a slice are apart by 4 more numbers, so that writing them column by column meets every
// bank once.
constexpr uint32_t row_stride = tile_rows + 4;
static_assert(project_threads / column_threads * thread_rows == tile_rows, "threads fill a tile");
static_assert(column_threads * 4 == word_columns, "threads fill a word");

struct project_arguments {
    const float *centered, *rotation;
    float *projected;
    uint32_t num_rows, dims, padded_dims;
    uint32_t num_column_tiles; // block = row tile * num_column_tiles + column tile, so that the
                               // blocks of one row tile run close together
};

DEVICE_POINTERS(project_arguments, a.centered, a.rotation, a.projected)

struct __align__(16) four
{ // one load or store
    float x[4];
};

// One thread's part of a slice on its way to shared memory.
template <int WORDS> struct slice_part {
    static constexpr uint32_t num_rows = tile_rows * slice / project_threads;
    static constexpr uint32_t num_weights = WORDS * word_columns * slice / project_threads;
    float rows[num_rows];
    float weights[num_weights];
};

// Input dimensions from `dim` on; 0 beyond rows, dimensions and outputs.
template <int WORDS>
__device__ __forceinline__ void load_slice(const project_arguments &a, uint32_t first_row,
                                           uint32_t first_column, uint32_t dim,
                                           slice_part<WORDS> &part)
{
    const uint32_t own_dim = dim + threadIdx.x % slice;
#pragma unroll
    for (uint32_t i = 0; i < part.num_rows; i++) {
        const uint32_t row = first_row + threadIdx.x / slice + i * (project_threads / slice);
        const bool is_there = row < a.num_rows && own_dim < a.dims;
        part.rows[i] = is_there ? a.centered[static_cast<size_t>(row) * a.dims + own_dim] : 0.0f;
    }
#pragma unroll
    for (uint32_t i = 0; i < part.num_weights; i++) {
        const uint32_t place = threadIdx.x + i * project_threads;
        const uint32_t column = first_column + place % (WORDS * word_columns);
        const uint32_t input = dim + place / (WORDS * word_columns);
        const bool is_there = column < a.padded_dims && input < a.dims;
        part.weights[i] =
            is_there ? a.rotation[static_cast<size_t>(input) * a.padded_dims + column] : 0.0f;
    }
}

// A buffer: rows [slice][row_stride], then weights [slice][WORDS * 32].
template <int WORDS>
__device__ __forceinline__ void put_slice(const slice_part<WORDS> &part, float *buffer)
{
    float *rows = buffer + threadIdx.x % slice * row_stride + threadIdx.x / slice;
    float *weights = buffer + slice * row_stride + threadIdx.x;
#pragma unroll
    for (uint32_t i = 0; i < part.num_rows; i++) rows[i * (project_threads / slice)] = part.rows[i];
#pragma unroll
    for (uint32_t i = 0; i < part.num_weights; i++) weights[i * project_threads] = part.weights[i];
}

template <int WORDS> using tile_sums = float[thread_rows][WORDS * 4];

// Adds one input dimension. rows, weights: of the buffer, at this thread's first.
template <int WORDS>
__device__ __forceinline__ void multiply(const float *rows, const float *weights,
                                         tile_sums<WORDS> &sums)
{
    const four low = *reinterpret_cast<const four *>(rows);
    const four high = *reinterpret_cast<const four *>(rows + 4);
#pragma unroll
    for (int word = 0; word < WORDS; word++) {
        const four weight = *reinterpret_cast<const four *>(weights + word * word_columns);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const float x = i < 4 ? low.x[i % 4] : high.x[i % 4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                sums[i][word * 4 + j] = __fmaf_rn(x, weight.x[j], sums[i][word * 4 + j]);
        }
    }
}

// A whole slice, or the `count` dimensions that are left: what is beyond must not be added, as even
// 0 * 0 would turn a sum of -0 into +0.
template <int WORDS>
__device__ __forceinline__ void multiply_slice(const float *buffer, uint32_t count,
                                               tile_sums<WORDS> &sums)
{
    const float *rows = buffer + threadIdx.x / column_threads * thread_rows;
    const float *weights = buffer + slice * row_stride + threadIdx.x % column_threads * 4;
    if (count >= slice) {
#pragma unroll
        for (uint32_t k = 0; k < slice; k++)
            multiply<WORDS>(rows + k * row_stride, weights + k * (WORDS * word_columns), sums);
    } else {
#pragma unroll 1
        for (uint32_t k = 0; k < count; k++)
            multiply<WORDS>(rows + k * row_stride, weights + k * (WORDS * word_columns), sums);
    }
}

template <int WORDS>
__device__ __forceinline__ void store_tile(const project_arguments &a, uint32_t first_row,
                                           uint32_t first_column, const tile_sums<WORDS> &sums)
{
#pragma unroll
    for (uint32_t i = 0; i < thread_rows; i++) {
        const uint32_t row = first_row + threadIdx.x / column_threads * thread_rows + i;
        if (row >= a.num_rows) return;
#pragma unroll
        for (int word = 0; word < WORDS; word++) {
            const uint32_t column = first_column + word * word_columns;
            if (column >= a.padded_dims) break;
            four value;
#pragma unroll
            for (int j = 0; j < 4; j++) value.x[j] = sums[i][word * 4 + j];
            *reinterpret_cast<four *>(a.projected + static_cast<size_t>(row) * a.padded_dims +
                                      column + threadIdx.x % column_threads * 4) = value;
        }
    }
}

template <int WORDS> constexpr uint32_t buffer_numbers = slice *(row_stride + WORDS * word_columns);

template <int WORDS>
__global__ void __launch_bounds__(project_threads)
    project_rows(const __grid_constant__ project_arguments a)
{
    DYNAMIC_SHARED(float, shared);
    const uint32_t first_row = blockIdx.x / a.num_column_tiles * tile_rows;
    const uint32_t first_column = blockIdx.x % a.num_column_tiles * (WORDS * word_columns);
    tile_sums<WORDS> sums = {};
    slice_part<WORDS> part;
    uint32_t buffer = 0; // where the current slice is, in numbers
    load_slice<WORDS>(a, first_row, first_column, 0, part);
    put_slice<WORDS>(part, shared);
    __syncthreads();
    for (uint32_t dim = 0; dim < a.dims; dim += slice) {
        const uint32_t other = buffer_numbers<WORDS> - buffer;
        const bool has_next = a.dims - dim > slice;
        if (has_next) load_slice<WORDS>(a, first_row, first_column, dim + slice, part);
        multiply_slice<WORDS>(shared + buffer, a.dims - dim, sums);
        if (has_next) put_slice<WORDS>(part, shared + other);
        __syncthreads();
        buffer = other;
    }
    store_tile<WORDS>(a, first_row, first_column, sums);
}

// cost: of a tile, in about the time that 8 rows by 4 outputs take; narrow tiles wait for shared
// memory.
struct project_kernel {
    uint32_t words, cost;
    size_t shared_bytes;
    void (*kernel)(project_arguments);
};

constexpr project_kernel project_kernels[] = {
    {3, 24, 2 * sizeof(float) * buffer_numbers<3>, project_rows<3>},
    {2, 17, 2 * sizeof(float) * buffer_numbers<2>, project_rows<2>},
    {1, 12, 2 * sizeof(float) * buffer_numbers<1>, project_rows<1>}};

uint32_t num_tiles(uint32_t words, const project_kernel &kernel)
{
    return (words + kernel.words - 1) / kernel.words;
}

const project_kernel &choose_kernel(uint32_t words)
{
    const project_kernel *best = &project_kernels[0];
    for (const project_kernel &k : project_kernels) {
        if (num_tiles(words, k) * k.cost < num_tiles(words, *best) * best->cost) best = &k;
    }
    return *best;
}

} // namespace
} // namespace bsw

extern "C" int bsw_device_saq_project(const struct bsw_saq_frame *frame, const float *centered,
                                      uint32_t num_rows, float *projected, bsw_stream stream)
{
    using namespace bsw;
    const bsw_code_layout &layout = frame->layout;
    if (num_rows > INT32_MAX || layout.padded_dims % word_columns != 0 || layout.dims < 1)
        return cudaErrorInvalidValue;
    if (num_rows == 0) return cudaSuccess;
    const project_kernel &chosen = choose_kernel(layout.padded_dims / word_columns);
    project_arguments a = {centered, frame->rotation,         projected,
                           num_rows, bsw_saq_row_dims(frame), layout.padded_dims,
                           0};
    a.num_column_tiles = num_tiles(layout.padded_dims / word_columns, chosen);
    const uint64_t blocks =
        (static_cast<uint64_t>(num_rows) + tile_rows - 1) / tile_rows * a.num_column_tiles;
    if (blocks > INT32_MAX) return cudaErrorInvalidValue;
    return launch(
        {dim3(static_cast<uint32_t>(blocks)), dim3(project_threads), chosen.shared_bytes, stream},
        chosen.kernel, a);
}
