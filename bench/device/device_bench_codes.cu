// SPDX-License-Identifier: Apache-2.0
// What cases measure with, made where it is used: codes that are a hash of segment and place for
// every word, of the row for scale and bias (device_bench_codes.c has the same for one row on the
// host); rows to encode; pairs to refine and queries to compare with.
#include "kernels/cuda_switch.cuh"

#include "bench/device/device_bench.h"
#include "common/base/arithmetic.h"
#include "common/codes/metric.h"
#include "kernels/device_exact/device_exact.h"

namespace bsw
{
namespace
{

constexpr uint32_t threads = 256, most_blocks = 1 << 16;

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
    for (uint64_t i = global_thread(); i < count; i += num_threads()) {
        const uint32_t word = static_cast<uint32_t>(bsw_hash2(seed, i));
        const bool is_last = static_cast<uint32_t>(i / BSW_BUNDLE_ROWS % words) == words - 1;
        planes[i] = is_last ? word & last_bits : word;
    }
}

// Scales from 0.5 to 1, biases from -2 to 2: a dot of 96 dimensions and 3 x 4 bits is some 400.
__global__ void make_rows(uint16_t *scales, float *biases, uint32_t *masks, uint64_t num_bundles,
                          uint64_t num_rows)
{
    for (uint64_t row = global_thread(); row < num_bundles * BSW_BUNDLE_ROWS;
         row += num_threads()) {
        const uint32_t bits = static_cast<uint32_t>(bsw_hash2(DEVICE_BENCH_ROW_SEED, row));
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
    for (uint64_t i = global_thread(); i < count; i += num_threads())
        numbers[i] = __fmul_rn(__int2float_rn(static_cast<int>(bsw_hash2(seed, i))), 0x1p-31f);
}

// Query after query, any rows.
__global__ void make_pairs(bsw_device_pair *pairs, uint64_t count, uint32_t num_queries,
                           uint32_t num_rows)
{
    for (uint64_t i = global_thread(); i < count; i += num_threads()) {
        const uint64_t part = bsw_hash(i) >> 32;
        pairs[i].query = static_cast<uint32_t>(i * num_queries / count);
        pairs[i].row = static_cast<uint32_t>(part * num_rows >> 32);
    }
}

__global__ void make_doubles(double *numbers, uint64_t count)
{
    for (uint64_t i = global_thread(); i < count; i += num_threads())
        numbers[i] = static_cast<double>(static_cast<int>(bsw_hash(~i) & 0xffu));
}

__global__ void make_items(uint64_t *items, uint32_t num_items, uint64_t count)
{
    for (uint64_t i = global_thread(); i < count; i += num_threads()) {
        const uint32_t list = static_cast<uint32_t>(i / num_items);
        const uint32_t row = static_cast<uint32_t>(i % num_items);
        items[i] = bsw_candidate_pack(
            static_cast<uint32_t>(bsw_hash2(DEVICE_BENCH_ITEM_SEED(list), row)), row);
    }
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
                                       const struct bsw_code_arrays *arrays, uint64_t num_bundles,
                                       uint64_t num_rows, bsw_stream stream)
{
    using namespace bsw;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const bsw_segment &segment = layout->segments[s];
        const uint64_t count = num_bundles * bsw_segment_bundle_words(&segment);
        const uint32_t rest = segment.dims % 32;
        cudaError_t error = launch(shape_for(count, stream), make_planes, arrays->planes[s], count,
                                   static_cast<uint64_t>(DEVICE_BENCH_WORD_SEED(s)), segment.words,
                                   rest > 0 ? (1u << rest) - 1 : UINT32_MAX);
        if (error) return error;
    }
    return launch(shape_for(num_bundles * BSW_BUNDLE_ROWS, stream), make_rows, arrays->scales,
                  arrays->biases, arrays->masks, num_bundles, num_rows);
}

extern "C" int device_bench_make_floats(float *numbers, size_t count, uint64_t seed,
                                        bsw_stream stream)
{
    return bsw::launch(bsw::shape_for(count, stream), bsw::make_floats, numbers, count, seed);
}

extern "C" int device_bench_make_pairs(struct bsw_device_pair *pairs, uint64_t count,
                                       uint32_t num_queries, uint32_t num_rows, bsw_stream stream)
{
    return bsw::launch(bsw::shape_for(count, stream), bsw::make_pairs, pairs, count, num_queries,
                       num_rows);
}

extern "C" int device_bench_make_doubles(double *numbers, uint64_t count, bsw_stream stream)
{
    return bsw::launch(bsw::shape_for(count, stream), bsw::make_doubles, numbers, count);
}

extern "C" int device_bench_make_items(uint64_t *items, uint32_t num_lists, uint32_t num_items,
                                       bsw_stream stream)
{
    const uint64_t count = static_cast<uint64_t>(num_lists) * num_items;
    return bsw::launch(bsw::shape_for(count, stream), bsw::make_items, items, num_items, count);
}
