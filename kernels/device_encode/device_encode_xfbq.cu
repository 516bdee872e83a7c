// SPDX-License-Identifier: Apache-2.0
// xfbq on a GPU: norms, factors, codes in one kernel. Bound by memory for floats: about 12 + 3 *
// bits instructions for 32 numbers; the second look at a row comes from the caches. Rows that were
// rotated have no norms left to find: theirs is the second half alone.
#include "kernels/device_encode/device_encode_rows.cuh"

namespace bsw
{
namespace
{

struct xfbq_arguments {
    const void *numbers;
    uint32_t num_rows, dims, stride, words, bits; // stride: numbers from row to row
    float scale;
    uint32_t *planes;
    uint8_t *faults;
};

DEVICE_POINTERS(xfbq_arguments, a.numbers, a.planes, a.faults)

template <int BITS, class T>
__device__ __forceinline__ void code_rows(const xfbq_arguments &a, const row_group &group,
                                          const float (&factors)[group_rows])
{
    const int end = 1 << (BITS - 1);
    const T *from = static_cast<const T *>(a.numbers) + static_cast<size_t>(group.first) * a.stride;
    uint32_t *planes = planes_of_group(a.planes, BITS, a.words, group);
    for (uint32_t word = 0; word < a.words; word++) {
        const uint32_t i = word * 32 + threadIdx.x % warp_lanes;
        T row[group_rows] = {};
        unsigned codes[group_rows];
#pragma unroll
        for (int r = 0; r < group_rows; r++) {
            if (group.good >> r & 1 && i < a.dims) row[r] = from[r * a.stride + i];
        }
#pragma unroll
        for (int r = 0; r < group_rows; r++) {
            const float scaled = __fmul_rn(__fmul_rn(to_float(row[r]), factors[r]), a.scale);
            const int f = clipped_floor(__fmul_rn(scaled, static_cast<float>(end)), end);
            const bool is_there = group.exists >> r & 1 && i < a.dims;
            codes[r] = is_there ? static_cast<unsigned>(end - 1 - f) : 0;
        }
        store_word<BITS>(codes, a.words, word, planes);
    }
}

template <class T>
__global__ void __launch_bounds__(encode_threads)
    encode_xfbq(const __grid_constant__ xfbq_arguments a)
{
    row_group group;
    if (!find_group(a.num_rows, &group)) return;
    const float factor =
        prepare_rows(static_cast<const T *>(a.numbers), a.dims, true, a.faults, group);
    float factors[group_rows];
#pragma unroll
    for (int r = 0; r < group_rows; r++) factors[r] = of_row(factor, r);
#define CALL(BITS) code_rows<BITS, T>(a, group, factors)
    BSW_SWITCH_BITS(a.bits, CALL);
#undef CALL
}

__global__ void __launch_bounds__(encode_threads)
    encode_xfbq_rotated(const __grid_constant__ xfbq_arguments a)
{
    row_group group;
    if (!find_group(a.num_rows, &group)) return;
    float factors[group_rows];
#pragma unroll
    for (int r = 0; r < group_rows; r++) factors[r] = 1.0f;
#define CALL(BITS) code_rows<BITS, float>(a, group, factors)
    BSW_SWITCH_BITS(a.bits, CALL);
#undef CALL
}

// In the order of enum bsw_vector_type.
void (*const kernels[])(xfbq_arguments) = {encode_xfbq<float>, encode_xfbq<half_bits>,
                                           encode_xfbq<uint8_t>, encode_xfbq<int8_t>};

} // namespace
} // namespace bsw

extern "C" int bsw_device_encode_xfbq(const struct bsw_device_raw_rows *rows, float scale,
                                      uint32_t bits, uint32_t *planes, uint8_t *faults,
                                      bsw_stream stream)
{
    using namespace bsw;
    if (!is_valid_source(*rows) || bits < 1 || bits > BSW_MAX_CODE_BITS)
        return cudaErrorInvalidValue;
    if (rows->num_rows == 0) return cudaSuccess;
    const xfbq_arguments a = {
        rows->numbers, rows->num_rows, rows->dims, rows->dims, (rows->dims + 31) / 32,
        bits,          scale,          planes,     faults};
    return launch({dim3(num_encode_blocks(rows->num_rows)), dim3(encode_threads), 0, stream},
                  kernels[rows->type], a);
}

extern "C" int bsw_device_encode_xfbq_rotated(const struct bsw_saq_frame *frame,
                                              const float *projected, uint32_t num_rows,
                                              float scale, uint32_t *planes, bsw_stream stream)
{
    using namespace bsw;
    const bsw_segment &segment = frame->layout.segments[0];
    if (frame->layout.num_segments != 1 || segment.bits < 1 || segment.bits > BSW_MAX_CODE_BITS ||
        num_rows > INT32_MAX)
        return cudaErrorInvalidValue;
    if (num_rows == 0) return cudaSuccess;
    const xfbq_arguments a = {projected,     num_rows,     segment.dims, frame->layout.padded_dims,
                              segment.words, segment.bits, scale,        planes,
                              nullptr};
    return launch({dim3(num_encode_blocks(num_rows)), dim3(encode_threads), 0, stream},
                  encode_xfbq_rotated, a);
}
