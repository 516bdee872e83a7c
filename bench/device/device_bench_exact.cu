// Pairs to refine and queries to compare with, made where they are used.
#include "kernels/cuda_switch.cuh"

#include "bench/device/device_bench.h"
#include "kernels/device_exact/device_exact.h"

namespace bsw
{
namespace
{

constexpr uint32_t threads = 256, most_blocks = 1 << 14;

__device__ __forceinline__ uint64_t hash_place(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

__device__ __forceinline__ uint64_t global_place()
{
    return static_cast<uint64_t>(blockIdx.x) * threads + threadIdx.x;
}

__device__ __forceinline__ uint64_t num_places()
{
    return static_cast<uint64_t>(gridDim.x) * threads;
}

// Query after query, any rows.
__global__ void make_pairs(bsw_device_pair *pairs, uint64_t count, uint32_t num_queries,
                           uint32_t num_rows)
{
    for (uint64_t i = global_place(); i < count; i += num_places()) {
        const uint64_t part = hash_place(i) >> 32;
        pairs[i].query = static_cast<uint32_t>(i * num_queries / count);
        pairs[i].row = static_cast<uint32_t>(part * num_rows >> 32);
    }
}

__global__ void make_doubles(double *numbers, uint64_t count)
{
    for (uint64_t i = global_place(); i < count; i += num_places())
        numbers[i] = static_cast<double>(static_cast<int>(hash_place(~i) & 0xffu));
}

launch_shape shape_of(uint64_t count, bsw_stream stream)
{
    const uint64_t blocks = (count + threads - 1) / threads;
    return {dim3(static_cast<uint32_t>(blocks < most_blocks ? blocks : most_blocks)), dim3(threads),
            0, stream};
}

} // namespace
} // namespace bsw

extern "C" int device_bench_make_pairs(struct bsw_device_pair *pairs, uint64_t count,
                                       uint32_t num_queries, uint32_t num_rows, bsw_stream stream)
{
    return bsw::launch(bsw::shape_of(count, stream), bsw::make_pairs, pairs, count, num_queries,
                       num_rows);
}

extern "C" int device_bench_make_doubles(double *numbers, uint64_t count, bsw_stream stream)
{
    return bsw::launch(bsw::shape_of(count, stream), bsw::make_doubles, numbers, count);
}
