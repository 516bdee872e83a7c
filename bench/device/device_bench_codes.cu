// Codes made where they are scanned: a hash of segment and place for every word, of the row for
// scale and bias. device_bench_codes.c has the same for one row on the host.
#include "kernels/cuda_switch.cuh"

#include "bench/device/device_bench.h"

namespace bsw
{
namespace
{

constexpr uint32_t threads = 256, most_blocks = 1 << 16;

// bsw_hash2 of common/base/integer_hash.h for device code.
__device__ __forceinline__ uint64_t hash(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

__device__ __forceinline__ uint64_t global_thread()
{
    return static_cast<uint64_t>(blockIdx.x) * threads + threadIdx.x;
}

__device__ __forceinline__ uint64_t num_threads()
{
    return static_cast<uint64_t>(gridDim.x) * threads;
}

// last_bits: of the last word of a row's plane that are not padding.
__global__ void make_planes(uint32_t *planes, uint64_t count, uint64_t seed, uint32_t words,
                            uint32_t last_bits)
{
    const uint64_t hashed_seed = hash(seed);
    for (uint64_t i = global_thread(); i < count; i += num_threads()) {
        const uint32_t word = static_cast<uint32_t>(hash(hashed_seed ^ i));
        const bool is_last = static_cast<uint32_t>(i / BSW_BUNDLE_ROWS % words) == words - 1;
        planes[i] = is_last ? word & last_bits : word;
    }
}

// Scales from 0.5 to 1, biases from -2 to 2: a dot of 96 dimensions and 3 x 4 bits is some 400.
__global__ void make_rows(uint16_t *scales, float *biases, uint32_t *masks, uint64_t num_bundles,
                          uint64_t num_rows)
{
    const uint64_t hashed_seed = hash(DEVICE_BENCH_ROW_SEED);
    for (uint64_t row = global_thread(); row < num_bundles * BSW_BUNDLE_ROWS;
         row += num_threads()) {
        const uint32_t bits = static_cast<uint32_t>(hash(hashed_seed ^ row));
        scales[row] = static_cast<uint16_t>(0x3800u | (bits & 0x3ffu));
        biases[row] =
            __fmul_rn(__int2float_rn(static_cast<int>(bits >> 10 & 0x3ffu) - 512), 1.0f / 256);
        if (row % BSW_BUNDLE_ROWS > 0) continue;
        const uint64_t left = row < num_rows ? num_rows - row : 0;
        masks[row / BSW_BUNDLE_ROWS] = left >= BSW_BUNDLE_ROWS ? UINT32_MAX : (1u << left) - 1;
    }
}

__global__ void make_floats(float *numbers, size_t count, uint64_t seed)
{
    const uint64_t hashed_seed = hash(seed);
    for (uint64_t i = global_thread(); i < count; i += num_threads())
        numbers[i] = __fmul_rn(__int2float_rn(static_cast<int>(hash(hashed_seed ^ i))), 0x1p-31f);
}

launch_shape shape_for(uint64_t count, bsw_stream stream)
{
    const uint64_t blocks = (count + threads - 1) / threads;
    return {dim3(static_cast<uint32_t>(blocks < most_blocks ? blocks : most_blocks)), dim3(threads),
            0, stream};
}

} // namespace
} // namespace bsw

extern "C" int device_bench_make_codes(const struct bsw_code_layout *layout,
                                       uint32_t *const *planes, uint16_t *scales, float *biases,
                                       uint32_t *masks, uint64_t num_bundles, uint64_t num_rows,
                                       bsw_stream stream)
{
    using namespace bsw;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const bsw_segment &segment = layout->segments[s];
        const uint64_t count = num_bundles * bsw_segment_bundle_words(&segment);
        const uint32_t rest = segment.dims % 32;
        cudaError_t error = launch(shape_for(count, stream), make_planes, planes[s], count,
                                   static_cast<uint64_t>(DEVICE_BENCH_WORD_SEED(s)), segment.words,
                                   rest > 0 ? (1u << rest) - 1 : UINT32_MAX);
        if (error) return error;
    }
    return launch(shape_for(num_bundles * BSW_BUNDLE_ROWS, stream), make_rows, scales, biases,
                  masks, num_bundles, num_rows);
}

extern "C" int device_bench_make_floats(float *numbers, size_t count, uint64_t seed,
                                        bsw_stream stream)
{
    return bsw::launch(bsw::shape_for(count, stream), bsw::make_floats, numbers, count, seed);
}
