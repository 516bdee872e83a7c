// SPDX-License-Identifier: Apache-2.0
// Kernels that do one thing as fast as the machine can: read memory, multiply int8, float32 and
// float64, count bits.
#include "kernels/current_device.cuh"

#include "bench/device/device_bench.h"

namespace bsw
{
namespace
{

constexpr struct {
    uint32_t threads;         // of a block
    uint32_t read_blocks;     // of a multiprocessor
    uint32_t multiply_blocks; // 32 warps, so that each of the four parts has 8
    uint32_t popcount_blocks; // of multiply-adds too
} tuning = {256, 16, 4, 8};

constexpr int chains = 8; // sums of a thread that do not wait for each other
constexpr double operations_of_mma = 2.0 * 16 * 8 * 32;

__device__ __forceinline__ uint32_t mix(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

__device__ __forceinline__ size_t global_thread()
{
    return static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ __forceinline__ size_t num_threads()
{
    return static_cast<size_t>(gridDim.x) * blockDim.x;
}

__global__ void fill(uint32_t *words, size_t count, uint32_t seed)
{
    for (size_t i = global_thread(); i < count; i += num_threads())
        words[i] = mix(static_cast<uint32_t>(i) ^ seed);
}

__device__ __forceinline__ uint32_t fold(const uint4 &v)
{
    return v.x ^ v.y ^ v.z ^ v.w;
}

// What is read must be used, or nothing would be read.
__device__ __forceinline__ void use(uint32_t value, uint32_t *sink)
{
    if (value == 0x9e3779b9u) atomicAdd(sink, 1u);
}

__global__ void __launch_bounds__(tuning.threads)
    read_all(const uint4 *data, size_t count, uint32_t *sink)
{
    const size_t stride = num_threads();
    uint32_t sum = 0;
    size_t i = global_thread();
    for (; i + 3 * stride < count; i += 4 * stride) {
        const uint4 a = data[i], b = data[i + stride], c = data[i + 2 * stride],
                    d = data[i + 3 * stride];
        sum ^= fold(a) ^ fold(b) ^ fold(c) ^ fold(d);
    }
    for (; i < count; i += stride) sum ^= fold(data[i]);
    use(sum, sink);
}

// Operands are random: zeros would draw less power and keep a higher clock.
__global__ void __launch_bounds__(tuning.threads) multiply(uint32_t steps, uint32_t *sink)
{
    int sums[chains][4] = {};
    unsigned a[4], b[2];
    for (int i = 0; i < 4; i++) a[i] = mix(threadIdx.x * 4 + static_cast<uint32_t>(i));
    for (int i = 0; i < 2; i++) b[i] = mix(threadIdx.x * 4 + static_cast<uint32_t>(i) + 0x10000u);
    for (uint32_t step = 0; step < steps; step++) {
#pragma unroll
        for (int c = 0; c < chains; c++) mma_s8_u8(sums[c], a, b);
    }
    uint32_t sum = 0;
#pragma unroll
    for (int c = 0; c < chains; c++)
        for (int i = 0; i < 4; i++) sum ^= static_cast<uint32_t>(sums[c][i]);
    use(sum, sink);
}

__global__ void __launch_bounds__(tuning.threads) count_bits(uint32_t steps, uint32_t *sink)
{
    uint32_t sums[chains];
#pragma unroll
    for (int c = 0; c < chains; c++) sums[c] = mix(threadIdx.x * chains + static_cast<uint32_t>(c));
    for (uint32_t step = 0; step < steps; step++) {
#pragma unroll
        for (int c = 0; c < chains; c++)
            sums[c] += static_cast<uint32_t>(__popc(sums[c] ^ step * 0x9e3779b1u));
    }
    uint32_t sum = 0;
#pragma unroll
    for (int c = 0; c < chains; c++) sum ^= sums[c];
    use(sum, sink);
}

__device__ __forceinline__ float multiply_add(float a, float b, float c)
{
    return __fmaf_rn(a, b, c);
}

__device__ __forceinline__ double multiply_add(double a, double b, double c)
{
    return __fma_rn(a, b, c);
}

// The factor is below 1, so that sums stay where they are and no number is subnormal.
template <class NUMBER>
__global__ void __launch_bounds__(tuning.threads) add_products(uint32_t steps, uint32_t *sink)
{
    const NUMBER factor = static_cast<NUMBER>(mix(threadIdx.x) >> 16) / 65536;
    const NUMBER addend = factor + 1;
    NUMBER sums[chains], sum = 0;
#pragma unroll
    for (int c = 0; c < chains; c++) sums[c] = addend + static_cast<NUMBER>(c);
    for (uint32_t step = 0; step < steps; step++) {
#pragma unroll
        for (int c = 0; c < chains; c++) sums[c] = multiply_add(sums[c], factor, addend);
    }
#pragma unroll
    for (int c = 0; c < chains; c++) sum += sums[c];
    use(__float_as_uint(static_cast<float>(sum)), sink);
}

cudaError_t count_blocks(uint32_t of_multiprocessor, uint32_t *out)
{
    device_traits device;
    cudaError_t error = get_device_traits(&device);
    *out = static_cast<uint32_t>(device.multiprocessors) * of_multiprocessor;
    return error;
}

// Over blocks that all run at once.
template <class... P, class... A>
cudaError_t launch_all(uint32_t of_multiprocessor, bsw_stream stream, void (*kernel)(P...),
                       A... arguments)
{
    uint32_t blocks = 0;
    cudaError_t error = count_blocks(of_multiprocessor, &blocks);
    if (error) return error;
    return launch({dim3(blocks), dim3(tuning.threads), 0, stream}, kernel, arguments...);
}

struct steps_kernel {
    void (*run)(uint32_t steps, uint32_t *sink);
    uint32_t blocks;   // of a multiprocessor
    double operations; // of a thread and step
};

steps_kernel kernel_of(enum device_limit limit)
{
    switch (limit) {
    case DEVICE_LIMIT_MMA:
        return {multiply, tuning.multiply_blocks, operations_of_mma * chains / 32};
    case DEVICE_LIMIT_POPCOUNT:
        return {count_bits, tuning.popcount_blocks, chains};
    case DEVICE_LIMIT_FLOAT32:
        return {add_products<float>, tuning.popcount_blocks, 2 * chains};
    default:
        return {add_products<double>, tuning.popcount_blocks, 2 * chains};
    }
}

} // namespace
} // namespace bsw

extern "C" int device_bench_fill(void *memory, size_t bytes, uint64_t seed, bsw_stream stream)
{
    return bsw::launch_all(bsw::tuning.read_blocks, stream, bsw::fill,
                           static_cast<uint32_t *>(memory), bytes / sizeof(uint32_t),
                           static_cast<uint32_t>(seed));
}

extern "C" int device_bench_read(const void *memory, size_t bytes, uint32_t *sink,
                                 bsw_stream stream)
{
    return bsw::launch_all(bsw::tuning.read_blocks, stream, bsw::read_all,
                           static_cast<const uint4 *>(memory), bytes / sizeof(uint4), sink);
}

extern "C" int device_bench_run_steps(enum device_limit limit, uint64_t steps, uint32_t *sink,
                                      double *work, bsw_stream stream)
{
    const bsw::steps_kernel kernel = bsw::kernel_of(limit);
    uint32_t blocks = 0;
    cudaError_t error = bsw::count_blocks(kernel.blocks, &blocks);
    if (error) return error;
    *work = kernel.operations * static_cast<double>(steps) * blocks * bsw::tuning.threads;
    return bsw::launch({dim3(blocks), dim3(bsw::tuning.threads), 0, stream}, kernel.run,
                       static_cast<uint32_t>(steps), sink);
}
