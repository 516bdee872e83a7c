// SPDX-License-Identifier: Apache-2.0
// One word of a document's planes, 32 dimensions, to bytes: a tree that first joins planes to
// fields of 2 bits, then of 4, then of 8, all 32 dimensions at a time. About 0.8 instructions a
// byte at 3 bits; planes that a code does not have cost nothing. Compilers take such merges of bits
// apart if they see into them, hence choose_bits.
#ifndef BITSWEEP_KERNELS_DEVICE_UNPACK_CUH
#define BITSWEEP_KERNELS_DEVICE_UNPACK_CUH

#include "common/codes/code_layout.h"
#include "kernels/cuda_switch.cuh"

namespace bsw
{

// Fields of WIDTH bits of even (odd: of odd) place, `high` above `low`.
template <int WIDTH>
__device__ __forceinline__ uint32_t join_fields(uint32_t high, uint32_t low, bool odd)
{
    const uint32_t even = WIDTH == 1 ? 0x55555555u : WIDTH == 2 ? 0x33333333u : 0x0f0f0f0fu;
    return odd ? choose_bits(even, low >> WIDTH, high) : choose_bits(even, low, high << WIDTH);
}

// The same where nothing is above; what is left there is junk.
template <int WIDTH> __device__ __forceinline__ uint32_t take_fields(uint32_t low, bool odd)
{
    return odd ? low >> WIDTH : low;
}

// Four planes or fewer, the first of the least weight, to fields of 4 bits: fields[i] has dimension
// 4*j + i in field j, and junk in bits that there are no planes for.
template <int PLANES>
__device__ __forceinline__ void unpack_four(const uint32_t *of_weight, uint32_t (&fields)[4])
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const bool odd = i % 2, upper = i / 2;
        const uint32_t low = PLANES > 1 ? join_fields<1>(of_weight[1], of_weight[0], odd)
                                        : take_fields<1>(of_weight[0], odd);
        const uint32_t high = PLANES > 3 ? join_fields<1>(of_weight[3], of_weight[2], odd)
                                         : take_fields<1>(of_weight[2], odd);
        fields[i] = PLANES > 2 ? join_fields<2>(high, low, upper) : take_fields<2>(low, upper);
    }
}

// planes[0] weighs most. bytes[r]: byte j is u of dimension 8*j + r.
template <int BITS>
__device__ __forceinline__ void unpack_planes(const uint32_t (&planes)[BITS], uint32_t (&bytes)[8])
{
    constexpr int lower = BITS < 4 ? BITS : 4, upper = BITS < 5 ? 1 : BITS - 4;
    constexpr uint32_t byte_mask = 0x01010101u * ((1u << lower) - 1);
    constexpr uint32_t upper_mask = 0x11111111u * ((1u << upper) - 1);
    uint32_t of_weight[8], low[4], high[4];
#pragma unroll
    for (int b = 0; b < 8; b++) of_weight[b] = b < BITS ? planes[b < BITS ? BITS - 1 - b : 0] : 0;
    unpack_four<lower>(of_weight, low);
    if (BITS > 4) unpack_four<upper>(of_weight + 4, high);
#pragma unroll
    for (int r = 0; r < 8; r++) {
        const bool odd = r / 4;
        bytes[r] = BITS > 4 ? join_fields<4>(high[r % 4] & upper_mask, low[r % 4], odd)
                            : take_fields<4>(low[r % 4], odd) & byte_mask;
    }
}

// codes: the lane's place in the word's plane 0; the next plane is `words` bundle words further.
template <int BITS>
__device__ __forceinline__ void unpack_word(const uint32_t *codes, uint32_t words,
                                            uint32_t (&bytes)[8])
{
    uint32_t planes[BITS];
#pragma unroll
    for (int j = 0; j < BITS; j++) planes[j] = __ldg(codes + static_cast<size_t>(j) * words * 32);
    unpack_planes<BITS>(planes, bytes);
}

__device__ __forceinline__ void unpack_word_of(uint32_t bits, const uint32_t *codes, uint32_t words,
                                               uint32_t (&bytes)[8])
{
#define CALL(BITS) unpack_word<BITS>(codes, words, bytes)
    BSW_SWITCH_BITS(bits, CALL);
#undef CALL
}

} // namespace bsw

#endif
