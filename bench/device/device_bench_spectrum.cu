// SPDX-License-Identifier: Apache-2.0
// Rows whose energies decay, made where they are coded, and what is stored of a code beside its
// planes. device_bench_spectrum.c has the same rows for queries on the host.
#include "kernels/cuda_switch.cuh"

#include "bench/device/device_bench.h"
#include "common/base/arithmetic.h"

namespace bsw
{
namespace
{

constexpr uint32_t threads = 256, warp_lanes = 32, most_blocks = 1 << 16;
constexpr uint32_t row_words = DEVICE_BENCH_SPECTRUM_DIMS / warp_lanes;

// Near enough to Gaussian: four numbers of 16 bits, less their mean.
__device__ __forceinline__ int sum_of_parts(uint64_t x)
{
    return static_cast<int>(x & 0xffffu) + static_cast<int>(x >> 16 & 0xffffu) +
           static_cast<int>(x >> 32 & 0xffffu) + static_cast<int>(x >> 48) - 131070;
}

__device__ __forceinline__ float mix_lanes(float value)
{
    const uint32_t lane = threadIdx.x % warp_lanes;
#pragma unroll
    for (uint32_t distance = 1; distance < warp_lanes; distance *= 2) {
        const float other = __shfl_xor_sync(UINT32_MAX, value, static_cast<int>(distance));
        value = lane & distance ? __fsub_rn(other, value) : __fadd_rn(value, other);
    }
    return value;
}

// A warp a row, a lane every 32nd number.
__global__ void __launch_bounds__(threads)
    make_spectrum(const __grid_constant__ device_bench_weights weights, uint64_t first_row,
                  uint32_t num_rows, float *projected)
{
    const uint32_t lane = threadIdx.x % warp_lanes, num_warps = gridDim.x * (threads / warp_lanes);
    float own[row_words];
#pragma unroll
    for (uint32_t w = 0; w < row_words; w++) own[w] = weights.weights[w * warp_lanes + lane];
    for (uint32_t row = (blockIdx.x * threads + threadIdx.x) / warp_lanes; row < num_rows;
         row += num_warps) {
        const uint64_t place = (first_row + row) * DEVICE_BENCH_SPECTRUM_DIMS + lane;
        float *to = projected + static_cast<size_t>(row) * DEVICE_BENCH_SPECTRUM_DIMS + lane;
#pragma unroll
        for (uint32_t w = 0; w < row_words; w++) {
            const int sum =
                sum_of_parts(bsw_hash2(DEVICE_BENCH_SPECTRUM_SEED, place + w * warp_lanes));
            to[w * warp_lanes] = mix_lanes(__fmul_rn(own[w], __int2float_rn(sum)));
        }
    }
}

// Halves of normal range, which scales here are in; smaller numbers become 0 or the least of them.
constexpr float least_half = 0x1p-14f;
constexpr uint32_t exponent_bias = (127 - 15) << 10;

__device__ __forceinline__ uint16_t half_nearest(float value)
{
    if (value < least_half) return 0;
    const uint32_t bits = __float_as_uint(value);
    return static_cast<uint16_t>(((bits + 0xfffu + (bits >> 13 & 1u)) >> 13) - exponent_bias);
}

__device__ __forceinline__ uint16_t half_up(float value)
{
    if (value <= 0.0f) return 0;
    if (value < least_half) value = least_half;
    return static_cast<uint16_t>(((__float_as_uint(value) + 0x1fffu) >> 13) - exponent_bias);
}

// Lanes of the last bundle without a row get zeros.
__global__ void __launch_bounds__(threads)
    store_affine(const __grid_constant__ device_bench_affine from, uint64_t first_row,
                 uint16_t *scales, uint16_t *tails, float *biases, uint32_t *masks)
{
    const uint32_t r = blockIdx.x * threads + threadIdx.x;
    const uint32_t end = (from.num_rows + BSW_BUNDLE_ROWS - 1) / BSW_BUNDLE_ROWS * BSW_BUNDLE_ROWS;
    if (r >= end) return;
    const bool is_there = r < from.num_rows;
    const uint64_t row = first_row + r;
    const uint16_t half = is_there ? half_nearest(__fmul_rn(from.scales[r], from.scale_unit)) : 0;
    float tail = 0.0f;
    if (is_there) {
        tail = __fmul_rn(half_to_float(half),
                         __fsqrt_rn(__int2float_rn(static_cast<int>(from.tails[r]))));
        tail = __fmul_rn(tail, from.tail_unit);
    }
    scales[row] = half;
    tails[row] = half_up(tail);
    biases[row] = is_there ? __fsub_rn(0.0f, from.norms[r]) : 0.0f;
    if (r % BSW_BUNDLE_ROWS > 0) return;
    const uint32_t left = from.num_rows - r;
    masks[row / BSW_BUNDLE_ROWS] = left >= BSW_BUNDLE_ROWS ? UINT32_MAX : (1u << left) - 1;
}

} // namespace
} // namespace bsw

extern "C" int device_bench_spectrum_rows(const struct device_bench_weights *weights,
                                          uint64_t first_row, uint32_t num_rows, float *projected,
                                          bsw_stream stream)
{
    using namespace bsw;
    const uint32_t blocks = (num_rows + threads / warp_lanes - 1) / (threads / warp_lanes);
    return launch({dim3(blocks < most_blocks ? blocks : most_blocks), dim3(threads), 0, stream},
                  make_spectrum, *weights, first_row, num_rows, projected);
}

extern "C" int device_bench_spectrum_store(const struct device_bench_affine *from,
                                           uint64_t first_row, const struct bsw_code_arrays *arrays,
                                           bsw_stream stream)
{
    using namespace bsw;
    const uint32_t blocks = (from->num_rows + threads - 1) / threads; // bundles divide a block
    return launch({dim3(blocks), dim3(threads), 0, stream}, store_affine, *from, first_row,
                  arrays->scales, arrays->tails, arrays->biases, arrays->masks);
}
