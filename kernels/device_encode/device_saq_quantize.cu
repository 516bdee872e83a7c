// SPDX-License-Identifier: Apache-2.0
// The last step of saq on a GPU: projected rows to planes, norms, scales and tails. Bound by memory
// up to about 4 bits, then by instructions: three for each plane of 32 numbers.
#include "kernels/device_encode/device_encode_rows.cuh"

namespace bsw
{
namespace
{

// By value, in constant memory: below the 4 KB that a launch may carry.
struct quantize_arguments {
    bsw_saq_frame frame;
    bsw_device_saq_codes codes;
    const float *projected;
    uint32_t num_rows;
};
static_assert(sizeof(quantize_arguments) <= 4096, "more than a launch carries");

DEVICE_POINTERS(quantize_arguments, a.codes.planes, a.codes.norms, a.codes.scales, a.codes.tails,
                a.projected)

// A lane's number of each row; 0 where there is no row.
__device__ __forceinline__ void load_rows(const quantize_arguments &a, const row_group &group,
                                          uint32_t dim, float (&o)[group_rows])
{
    const uint32_t stride = a.frame.layout.padded_dims;
    const float *from = a.projected + static_cast<size_t>(group.first) * stride + dim;
#pragma unroll
    for (int r = 0; r < group_rows; r++) o[r] = group.exists >> r & 1 ? from[r * stride] : 0.0f;
}

// The squared norm of row lane / 4, segment after segment.
__device__ __forceinline__ float find_norm(const quantize_arguments &a, const row_group &group)
{
    float norm = 0.0f;
    for (uint32_t s = 0; s < a.frame.layout.num_segments; s++) {
        const bsw_segment &segment = a.frame.layout.segments[s];
        float sums[group_rows] = {}, o[group_rows];
        for (uint32_t word = 0; word < segment.words; word++) {
            load_rows(a, group, segment.padded_dim + word * 32 + threadIdx.x % warp_lanes, o);
#pragma unroll
            for (int r = 0; r < group_rows; r++) sums[r] = __fmaf_rn(o[r], o[r], sums[r]);
        }
        const float sum = tree_sum(sums);
        norm = s == 0 ? sum : __fadd_rn(norm, sum);
    }
    return norm;
}

// What coding a segment needs besides its rows.
struct segment_work {
    uint32_t words, dims, padded_dim;
    uint32_t stage_place; // dimensions from here on count for the tail
    float inverses[group_rows];
    uint32_t *planes; // of the group
};

// Codes one segment; returns e_s of row lane / 4. group.good: rows whose norm is not 0.
template <int BITS>
__device__ __forceinline__ float code_segment(const quantize_arguments &a, const row_group &group,
                                              const segment_work &work,
                                              unsigned (&tails)[group_rows])
{
    const int end = 1 << (BITS - 1);
    float sums[group_rows] = {}, o[group_rows];
    for (uint32_t word = 0; word < work.words; word++) {
        const uint32_t i = word * 32 + threadIdx.x % warp_lanes;
        unsigned codes[group_rows];
        load_rows(a, group, work.padded_dim + i, o);
#pragma unroll
        for (int r = 0; r < group_rows; r++) {
            const int f = clipped_floor(__fmul_rn(o[r], work.inverses[r]), end), c = 2 * f + 1;
            const bool is_there = group.good >> r & 1 && i < work.dims;
            sums[r] = __fmaf_rn(o[r], __int2float_rn(c), sums[r]);
            codes[r] = is_there ? static_cast<unsigned>(end - 1 - f) : 0;
            if (is_there && i >= work.stage_place) tails[r] += static_cast<unsigned>(c * c);
        }
        store_word<BITS>(codes, work.words, word, work.planes);
    }
    return tree_sum(sums);
}

__device__ __forceinline__ float code_segment_of(uint32_t bits, const quantize_arguments &a,
                                                 const row_group &group, const segment_work &work,
                                                 unsigned (&tails)[group_rows])
{
#define CALL(BITS) return code_segment<BITS>(a, group, work, tails)
    BSW_SWITCH_BITS(bits, CALL);
#undef CALL
}

// Codes all segments; returns the denominator of the scale of row lane / 4, whose rms is given.
__device__ __forceinline__ float code_segments(const quantize_arguments &a, const row_group &group,
                                               float rms, unsigned (&tails)[group_rows])
{
    float denominator = 0.0f;
    uint32_t place = 0; // of the segment's first dimension, without padding
    for (uint32_t s = 0; s < a.frame.layout.num_segments; s++) {
        const bsw_segment &segment = a.frame.layout.segments[s];
        const float step = a.frame.steps[s];
        const float inverse = __fdiv_rn(1.0f, __fmul_rn(__fmul_rn(2.0f, step), rms));
        segment_work work;
        work.words = segment.words;
        work.dims = segment.dims;
        work.padded_dim = segment.padded_dim;
        work.stage_place = a.frame.stage_dims > place ? a.frame.stage_dims - place : 0;
        work.planes = planes_of_group(a.codes.planes[s], segment.bits, segment.words, group);
#pragma unroll
        for (int r = 0; r < group_rows; r++) work.inverses[r] = of_row(inverse, r);
        const float e = code_segment_of(segment.bits, a, group, work, tails);
        denominator = __fmaf_rn(step, e, denominator);
        place += segment.dims;
    }
    return denominator;
}

__global__ void __launch_bounds__(encode_threads)
    quantize_rows(const __grid_constant__ quantize_arguments a)
{
    row_group group;
    if (!find_group(a.num_rows, &group)) return;
    const float norm = find_norm(a, group);
    const bool is_zero = norm < 0x1p-126f;
    group.good &= row_bits(!is_zero);
    const float rms =
        __fsqrt_rn(__fdiv_rn(norm, __int2float_rn(static_cast<int>(a.frame.layout.dims))));
    unsigned tails[group_rows] = {};
    const float denominator = code_segments(a, group, rms, tails);
    const unsigned tail = tree_sum(tails);
    const uint32_t lane = threadIdx.x % warp_lanes, own = lane / lanes_per_row;
    if (lane % lanes_per_row != 0 || !(group.exists >> own & 1)) return;
    float scale = __fdiv_rn(norm, denominator);
    if (bsw_has_row_norms(a.frame.metric)) scale = __fmul_rn(2.0f, scale);
    a.codes.norms[group.first + own] = is_zero ? 0.0f : norm;
    a.codes.scales[group.first + own] = is_zero ? 0.0f : scale;
    a.codes.tails[group.first + own] = tail;
}

} // namespace
} // namespace bsw

extern "C" int bsw_device_saq_quantize(const struct bsw_saq_frame *frame, const float *projected,
                                       uint32_t num_rows, const struct bsw_device_saq_codes *codes,
                                       bsw_stream stream)
{
    using namespace bsw;
    if (num_rows > INT32_MAX) return cudaErrorInvalidValue;
    if (num_rows == 0) return cudaSuccess;
    const quantize_arguments a = {*frame, *codes, projected, num_rows};
    return launch({dim3(num_encode_blocks(num_rows)), dim3(encode_threads), 0, stream},
                  quantize_rows, a);
}
