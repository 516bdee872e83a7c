// SPDX-License-Identifier: Apache-2.0
// sq8 on a GPU: factors of rows, then their codes, in one kernel that looks at a row three times,
// the second and third time in the caches. Divisions round as the CPU's do; they and memory bind.
#include "kernels/device_encode/device_encode_rows.cuh"
#include "kernels/encode/sq8_codes.h"

namespace bsw
{
namespace
{

constexpr int sq8_bits = 8;

struct sq8_arguments {
    const void *numbers;
    uint32_t num_rows, dims;
    bool is_cosine, is_l2;
    bsw_device_sq8_codes codes;
};

DEVICE_POINTERS(sq8_arguments, a.numbers, a.codes.middles, a.codes.half_steps, a.codes.planes,
                a.codes.faults, a.codes.factors, a.codes.sums)

// Rows of a warp, and by what a lane's numbers are multiplied.
template <class T> struct sq8_rows {
    const T *numbers; // of the group's first row
    float factors[group_rows];
};

// x - middle of one dimension of all rows; of rows with a fault x is 0.
template <class T>
__device__ __forceinline__ void center(const sq8_arguments &a, const row_group &group,
                                       const sq8_rows<T> &rows, uint32_t i,
                                       float (&out)[group_rows])
{
    const float middle = a.codes.middles[i];
    T row[group_rows] = {};
#pragma unroll
    for (int r = 0; r < group_rows; r++) {
        if (group.good >> r & 1) row[r] = rows.numbers[r * a.dims + i];
    }
#pragma unroll
    for (int r = 0; r < group_rows; r++)
        out[r] = __fsub_rn(__fmul_rn(to_float(row[r]), rows.factors[r]), middle);
}

// The least half that is not below value, 2^-14 .. 32752.
__device__ __forceinline__ float half_up(float value)
{
    return __uint_as_float((__float_as_uint(value) + 0x1fffu) & ~0x1fffu);
}

// The largest of each row over the lanes; a lane returns that of row lane / 4.
__device__ __forceinline__ float largest_of_rows(const float (&values)[group_rows])
{
    float own = 0.0f;
#pragma unroll
    for (int r = 0; r < group_rows; r++) {
        float most = values[r];
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2)
            most = fmaxf(most, __shfl_xor_sync(every_lane, most, distance));
        if (threadIdx.x % warp_lanes / lanes_per_row == static_cast<uint32_t>(r)) own = most;
    }
    return own;
}

// Products with the middles, and the factor by which no component is clipped, of row lane / 4.
template <class T>
__device__ __forceinline__ float find_factor(const sq8_arguments &a, const row_group &group,
                                             const sq8_rows<T> &rows, float *mean_dot)
{
    float dots[group_rows] = {}, most[group_rows], o[group_rows];
#pragma unroll
    for (int r = 0; r < group_rows; r++) most[r] = BSW_SQ8_LEAST_FACTOR;
    for (uint32_t i = threadIdx.x % warp_lanes; i < a.dims; i += warp_lanes) {
        const float middle = a.codes.middles[i], step = __fmul_rn(a.codes.half_steps[i], 0x1p8f);
        center(a, group, rows, i, o);
#pragma unroll
        for (int r = 0; r < group_rows; r++) {
            dots[r] = __fmaf_rn(middle, o[r], dots[r]);
            most[r] = fmaxf(most[r], fabsf(__fdiv_rn(o[r], step)));
        }
    }
    *mean_dot = tree_sum(dots);
    const float largest = largest_of_rows(most);
    return largest < BSW_SQ8_MOST_FACTOR ? half_up(largest) : BSW_SQ8_MOST_FACTOR;
}

// Codes, and |factor * half steps * c|^2 of row lane / 4. divisors: factors of all rows.
template <class T>
__device__ __forceinline__ float code_rows(const sq8_arguments &a, const row_group &group,
                                           const sq8_rows<T> &rows,
                                           const float (&divisors)[group_rows])
{
    constexpr int end = 1 << (sq8_bits - 1);
    const uint32_t words = (a.dims + 31) / 32;
    float sums[group_rows] = {}, o[group_rows];
    uint32_t *planes = planes_of_group(a.codes.planes, sq8_bits, words, group);
    for (uint32_t word = 0; word < words; word++) {
        const uint32_t i = word * 32 + threadIdx.x % warp_lanes;
        const bool is_dim = i < a.dims;
        const float half_step = is_dim ? a.codes.half_steps[i] : 1.0f;
        unsigned codes[group_rows] = {};
        if (is_dim) center(a, group, rows, i, o);
#pragma unroll
        for (int r = 0; r < group_rows; r++) {
            if (!is_dim) continue;
            const float y = __fdiv_rn(__fdiv_rn(o[r], __fmul_rn(half_step, 0x1p8f)), divisors[r]);
            const int f = clipped_floor(__fmul_rn(y, static_cast<float>(end)), end);
            const float c = __fmul_rn(__fmul_rn(__int2float_rn(2 * f + 1), half_step), divisors[r]);
            sums[r] = __fmaf_rn(c, c, sums[r]);
            if (group.exists >> r & 1) codes[r] = static_cast<unsigned>(end - 1 - f);
        }
        store_word<sq8_bits>(codes, words, word, planes);
    }
    return tree_sum(sums);
}

template <class T>
__global__ void __launch_bounds__(encode_threads, 2)
    encode_sq8(const __grid_constant__ sq8_arguments a)
{
    row_group group;
    if (!find_group(a.num_rows, &group)) return;
    const T *numbers = static_cast<const T *>(a.numbers);
    const float factor = prepare_rows(numbers, a.dims, a.is_cosine, a.codes.faults, group);
    sq8_rows<T> rows;
    rows.numbers = numbers + static_cast<size_t>(group.first) * a.dims;
    float divisors[group_rows], mean_dot;
#pragma unroll
    for (int r = 0; r < group_rows; r++) rows.factors[r] = of_row(factor, r);
    const float divisor = find_factor(a, group, rows, &mean_dot);
#pragma unroll
    for (int r = 0; r < group_rows; r++) divisors[r] = of_row(divisor, r);
    const float norm = code_rows(a, group, rows, divisors);
    const uint32_t lane = threadIdx.x % warp_lanes, own = lane / lanes_per_row;
    if (lane % lanes_per_row != 0 || !(group.exists >> own & 1)) return;
    a.codes.factors[group.first + own] = divisor;
    a.codes.sums[group.first + own] = a.is_l2 ? norm : mean_dot;
}

// In the order of enum bsw_vector_type.
void (*const kernels[])(sq8_arguments) = {encode_sq8<float>, encode_sq8<half_bits>,
                                          encode_sq8<uint8_t>, encode_sq8<int8_t>};

} // namespace
} // namespace bsw

extern "C" int bsw_device_encode_sq8(const struct bsw_device_raw_rows *rows, enum bsw_metric metric,
                                     const struct bsw_device_sq8_codes *codes, bsw_stream stream)
{
    using namespace bsw;
    if (!is_valid_source(*rows)) return cudaErrorInvalidValue;
    if (rows->num_rows == 0) return cudaSuccess;
    const sq8_arguments a = {rows->numbers,
                             rows->num_rows,
                             rows->dims,
                             bsw_has_unit_rows(metric) != 0,
                             bsw_has_row_norms(metric) != 0,
                             *codes};
    return launch({dim3(num_encode_blocks(rows->num_rows)), dim3(encode_threads), 0, stream},
                  kernels[rows->type], a);
}
