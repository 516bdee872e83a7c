// SPDX-License-Identifier: Apache-2.0
// Documents as rows of mma.m16n8k32, unpacked in registers: what lane 4*g + t multiplies of a word.
//
// The lane has the word's planes of four rows, as 16 bytes each. Of every row it needs the bits 4*j
// + t, fields of four bits with one a plane: planes rotated by amounts that are the lane's own, and
// joined. In device order (device_scan.h) the fields of even j are the four bytes of the lane in
// the product's first half, those of odd j the ones of its second.
#ifndef BITSWEEP_KERNELS_FEW_UNPACK_CUH
#define BITSWEEP_KERNELS_FEW_UNPACK_CUH

#include "kernels/cuda_switch.cuh"

namespace bsw
{

constexpr uint32_t field_planes = 4;

// The lane's rotations, by weight of a plane.
struct field_turns {
    uint32_t by[field_planes];
};

__device__ __forceinline__ field_turns make_turns(uint32_t t)
{
    return {{(0 - t) & 31, (1 - t) & 31, (2 - t) & 31, (3 - t) & 31}};
}

__device__ __forceinline__ uint32_t rotate_left(uint32_t value, uint32_t by)
{
    return __funnelshift_l(value, value, by);
}

// Fields of one row, planes[0] the one of least weight; bits that there is no plane for are junk.
template <int PLANES>
__device__ __forceinline__ uint32_t join_planes(const uint32_t (&planes)[PLANES],
                                                const field_turns &turns)
{
    uint32_t fields = rotate_left(planes[PLANES - 1], turns.by[PLANES - 1]);
#pragma unroll
    for (int i = PLANES - 2; i >= 0; i--)
        fields = choose_bits(0x11111111u << i, rotate_left(planes[i], turns.by[i]), fields);
    return fields;
}

// Fields of four bits of one row to what the product takes of it in either half.
struct field_bytes {
    uint32_t first, second;
};

template <int PLANES> __device__ __forceinline__ field_bytes bytes_of(uint32_t fields)
{
    constexpr uint32_t mask = 0x01010101u * ((1u << PLANES) - 1);
    return {fields & mask, fields >> 4 & mask};
}

// The same of codes of more than four bits: their upper planes are fields of their own.
__device__ __forceinline__ field_bytes bytes_of(uint32_t lower, uint32_t upper)
{
    return {choose_bits(0x0f0f0f0fu, lower, upper << 4),
            choose_bits(0x0f0f0f0fu, lower >> 4, upper)};
}

} // namespace bsw

#endif
