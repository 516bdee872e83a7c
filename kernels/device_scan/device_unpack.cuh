// One word of a document's planes, 32 dimensions, to bytes: a tree that first joins planes to
// fields of 2 bits, then of 4, then of 8, all 32 dimensions at a time. About 0.8 instructions a
// byte at 3 bits; planes that a code does not have cost nothing.
#ifndef BITSWEEP_KERNELS_DEVICE_UNPACK_CUH
#define BITSWEEP_KERNELS_DEVICE_UNPACK_CUH

#include "common/codes/code_layout.h"
#include "kernels/cuda_switch.cuh"

namespace bsw
{

// Fields of `width` bits of even (odd: of odd) place, `high` above `low`.
template <int WIDTH>
__device__ __forceinline__ uint32_t join_fields(uint32_t high, uint32_t low, bool odd)
{
    const uint32_t even = WIDTH == 1 ? 0x55555555u : WIDTH == 2 ? 0x33333333u : 0x0f0f0f0fu;
    return odd ? (low >> WIDTH & even) | (high & ~even) : (low & even) | (high << WIDTH & ~even);
}

// planes[0] weighs most. bytes[r]: byte j is u of dimension 8*j + r.
template <int BITS>
__device__ __forceinline__ void unpack_planes(const uint32_t (&planes)[BITS], uint32_t (&bytes)[8])
{
    uint32_t of_weight[8];
#pragma unroll
    for (int b = 0; b < 8; b++) of_weight[b] = b < BITS ? planes[b < BITS ? BITS - 1 - b : 0] : 0;
    uint32_t pairs[4][2]; // [pair of weights][dimension mod 2]
#pragma unroll
    for (int p = 0; p < 8; p++)
        pairs[p / 2][p % 2] = join_fields<1>(of_weight[p / 2 * 2 + 1], of_weight[p / 2 * 2], p % 2);
    uint32_t nibbles[2][4]; // [four weights][dimension mod 4]
#pragma unroll
    for (int n = 0; n < 8; n++)
        nibbles[n / 4][n % 4] =
            join_fields<2>(pairs[n / 4 * 2 + 1][n % 2], pairs[n / 4 * 2][n % 2], n % 4 / 2);
#pragma unroll
    for (int r = 0; r < 8; r++)
        bytes[r] = join_fields<4>(nibbles[1][r % 4], nibbles[0][r % 4], r / 4);
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
