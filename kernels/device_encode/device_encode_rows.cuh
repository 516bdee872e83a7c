// SPDX-License-Identifier: Apache-2.0
// What the encoders share: a warp takes 8 rows of a bundle, a lane every 32nd dimension of each.
//
// So rows are read in whole lines, a lane's sum is a lane of kernel_sums.h, and a ballot is a word
// of a plane. Four planes of 8 rows go out as one store of four whole sectors; no shared memory and
// no barrier is needed. What is read twice comes from the caches the second time.
#ifndef BITSWEEP_KERNELS_DEVICE_ENCODE_ROWS_CUH
#define BITSWEEP_KERNELS_DEVICE_ENCODE_ROWS_CUH

#include <cfloat>

#include "kernels/cuda_switch.cuh"
#include "kernels/device_encode/device_encode.h"
#include "kernels/encode/prepare_rows.h"

namespace bsw
{

constexpr int group_rows = 8;    // of a warp
constexpr int lanes_per_row = 4; // that hold a row's sum in the end
constexpr uint32_t encode_threads = 256;
constexpr uint32_t warp_lanes = 32;
constexpr uint32_t bundle_groups = BSW_BUNDLE_ROWS / group_rows;
constexpr unsigned every_lane = 0xffffffffu;

// ---- numbers of the source types ----

struct half_bits { // a float16 of a source
    uint16_t bits;
};

// sum_type: what squares are added up in. Those of bytes are exact in 32 bits up to 65536 of them,
// and so is every partial sum in float64: the same number, without float64.
template <class T> struct number_traits {
    typedef double sum_type;
};
template <> struct number_traits<uint8_t> {
    typedef unsigned sum_type;
};
template <> struct number_traits<int8_t> {
    typedef unsigned sum_type;
};
static_assert(static_cast<uint64_t>(BSW_MAX_DIMS) * 255 * 255 <= UINT32_MAX, "squares of bytes");

__device__ __forceinline__ float to_float(float x)
{
    return x;
}

__device__ __forceinline__ float to_float(half_bits x)
{
    return half_to_float(x.bits);
}

__device__ __forceinline__ float to_float(uint8_t x)
{
    return __int2float_rn(x);
}

__device__ __forceinline__ float to_float(int8_t x)
{
    return __int2float_rn(x);
}

__device__ __forceinline__ double add_square(double sum, float x)
{
    return __fma_rn(x, x, sum);
}

__device__ __forceinline__ double add_square(double sum, half_bits x)
{
    return add_square(sum, to_float(x));
}

__device__ __forceinline__ unsigned add_square(unsigned sum, int x)
{
    return sum + static_cast<unsigned>(x * x);
}

// ---- sums ----

__device__ __forceinline__ float add(float a, float b)
{
    return __fadd_rn(a, b);
}

__device__ __forceinline__ double add(double a, double b)
{
    return __dadd_rn(a, b);
}

__device__ __forceinline__ unsigned add(unsigned a, unsigned b)
{
    return a + b;
}

// One step of the tree: lanes that differ in bit ROWS * 4 of their number add up; each keeps the
// half of its 2 * ROWS rows that the bit says.
template <int ROWS, class T> __device__ __forceinline__ void tree_step(T (&sums)[group_rows])
{
    const int distance = ROWS * lanes_per_row;
    const bool is_upper = threadIdx.x & distance;
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const T keep = is_upper ? sums[i + ROWS] : sums[i];
        const T give = is_upper ? sums[i] : sums[i + ROWS];
        sums[i] = add(keep, __shfl_xor_sync(every_lane, give, distance));
    }
}

// The tree of kernel_sums.h over the lanes' sums of 8 rows; a lane returns that of row lane / 4.
// Sums of two numbers do not depend on their order, so it does not matter which lane adds.
template <class T> __device__ __forceinline__ T tree_sum(T (&sums)[group_rows])
{
    tree_step<4>(sums);
    tree_step<2>(sums);
    tree_step<1>(sums);
    T sum = add(sums[0], __shfl_xor_sync(every_lane, sums[0], 2));
    return add(sum, __shfl_xor_sync(every_lane, sum, 1));
}

// The value that lanes 4 * row .. 4 * row + 3 hold.
template <class T> __device__ __forceinline__ T of_row(T value, int row)
{
    return __shfl_sync(every_lane, value, row * lanes_per_row);
}

// Bit r: what the lanes of row r say.
__device__ __forceinline__ unsigned row_bits(bool value)
{
    const unsigned lanes = __ballot_sync(every_lane, value);
    unsigned bits = 0;
#pragma unroll
    for (int r = 0; r < group_rows; r++) bits |= (lanes >> (r * lanes_per_row) & 1) << r;
    return bits;
}

// ---- preparation ----

// The 8 rows of this warp.
struct row_group {
    uint32_t first;  // row
    unsigned exists; // bit r: row first + r is there
    unsigned good;   // bit r: and has no fault
};

// False: this warp has no rows.
__device__ __forceinline__ bool find_group(uint32_t num_rows, row_group *group)
{
    const uint32_t warp = blockIdx.x * (encode_threads / warp_lanes) + threadIdx.x / warp_lanes;
    const uint32_t num_bundles = num_rows / BSW_BUNDLE_ROWS + (num_rows % BSW_BUNDLE_ROWS != 0);
    if (warp >= num_bundles * bundle_groups) return false;
    group->first = warp * group_rows;
    const uint32_t left = group->first < num_rows ? num_rows - group->first : 0;
    group->exists = left >= group_rows ? 0xffu : (1u << left) - 1;
    group->good = group->exists;
    return true;
}

// What prepare_rows says of a squared norm.
__device__ __forceinline__ unsigned fault_of(double norm, bool is_cosine)
{
    if (!(norm <= DBL_MAX)) return BSW_ROW_NOT_FINITE;
    if (norm > BSW_NORM_MAX) return BSW_ROW_TOO_LARGE;
    if (!is_cosine || norm >= BSW_NORM_MIN) return BSW_ROW_GOOD;
    return norm > 0 ? BSW_ROW_TOO_SMALL : BSW_ROW_ZERO;
}

// Judges the rows: sets group.good, writes faults and returns the factor of row lane / 4, 0 for a
// fault.
template <class T>
__device__ __forceinline__ float prepare_rows(const T *numbers, uint32_t dims, bool is_cosine,
                                              uint8_t *faults, row_group &group)
{
    typename number_traits<T>::sum_type sums[group_rows] = {};
    const T *from = numbers + static_cast<size_t>(group.first) * dims;
    const uint32_t lane = threadIdx.x % warp_lanes;
    for (uint32_t i = lane; i < dims; i += warp_lanes) {
        T row[group_rows] = {};
#pragma unroll
        for (int r = 0; r < group_rows; r++) {
            if (group.exists >> r & 1) row[r] = from[r * dims + i];
        }
#pragma unroll
        for (int r = 0; r < group_rows; r++) sums[r] = add_square(sums[r], row[r]);
    }
    const double norm = tree_sum(sums);
    const unsigned fault = fault_of(norm, is_cosine);
    const uint32_t row = lane / lanes_per_row;
    if (lane % lanes_per_row == 0 && group.exists >> row & 1)
        faults[group.first + row] = static_cast<uint8_t>(fault);
    group.good &= row_bits(fault == BSW_ROW_GOOD);
    if (fault != BSW_ROW_GOOD) return 0.0f;
    return is_cosine ? __double2float_rn(__ddiv_rn(1.0, __dsqrt_rn(norm))) : 1.0f;
}

// ---- codes ----

// floor(v) clipped to [-end, end - 1], a NaN to -end; end = 2^(bits-1).
__device__ __forceinline__ int clipped_floor(float v, int end)
{
    return __float2int_rd(fminf(fmaxf(v, static_cast<float>(-end)), static_cast<float>(end - 1)));
}

// Word `word` of the planes of 8 rows, of which a lane has one dimension. planes: of the bundle, at
// its word 0 and the group's first row.
template <int BITS>
__device__ __forceinline__ void store_word(const unsigned (&codes)[group_rows], uint32_t words,
                                           uint32_t word, uint32_t *planes)
{
    const uint32_t lane = threadIdx.x % warp_lanes, part = lane / group_rows;
    uint32_t mine[BITS] = {}; // of row lane % 8
#pragma unroll
    for (int r = 0; r < group_rows; r++) {
#pragma unroll
        for (int p = 0; p < BITS; p++) {
            const unsigned bits = __ballot_sync(every_lane, codes[r] >> (BITS - 1 - p) & 1);
            if (lane % group_rows == static_cast<uint32_t>(r)) mine[p] = bits;
        }
    }
#pragma unroll
    for (int first = 0; first < BITS; first += 4) { // planes, one for each 8 lanes
        uint32_t value = mine[first];
#pragma unroll
        for (int p = first + 1; p < first + 4 && p < BITS; p++) {
            if (part == static_cast<uint32_t>(p - first)) value = mine[p];
        }
        const uint32_t plane = static_cast<uint32_t>(first) + part;
        if (plane < BITS)
            planes[(static_cast<size_t>(plane) * words + word) * BSW_BUNDLE_ROWS +
                   lane % group_rows] = value;
    }
}

// Where the group's first row stands in the planes of a segment.
__device__ __forceinline__ uint32_t *planes_of_group(uint32_t *planes, uint32_t bits,
                                                     uint32_t words, const row_group &group)
{
    return planes +
           static_cast<size_t>(group.first / BSW_BUNDLE_ROWS) * bits * words * BSW_BUNDLE_ROWS +
           group.first % BSW_BUNDLE_ROWS;
}

// ---- launches ----

inline uint32_t num_encode_blocks(uint32_t num_rows)
{
    const uint32_t groups =
        (num_rows / BSW_BUNDLE_ROWS + (num_rows % BSW_BUNDLE_ROWS != 0)) * bundle_groups;
    const uint32_t block_groups = encode_threads / warp_lanes;
    return (groups + block_groups - 1) / block_groups;
}

inline bool is_valid_source(const bsw_device_raw_rows &rows)
{
    return rows.type <= BSW_VECTOR_INT8 && rows.dims >= 1 && rows.dims <= BSW_MAX_DIMS &&
           rows.num_rows <= INT32_MAX;
}

} // namespace bsw

#endif
