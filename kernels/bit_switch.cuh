// SPDX-License-Identifier: Apache-2.0
// Products of single bits: d [16][8] s32 += how many ones a row of a [16][128] and a column of
// b [128][8] have in common, spread over a warp: lane 4*g + t has rows g and g + 8 of a and d, word
// t of them of a; of b word t of column g; of d columns 2*t and 2*t + 1. One instruction on devices
// of compute capability 8.0 to 9.0; later ones make it of many.
#ifndef BITSWEEP_KERNELS_BIT_SWITCH_CUH
#define BITSWEEP_KERNELS_BIT_SWITCH_CUH

#include "kernels/cuda_switch.cuh"

namespace bsw
{

#if defined(__CUDACC__)
__device__ __forceinline__ void mma_bits(int (&d)[4], const unsigned (&a)[2], unsigned b)
{
    asm volatile("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc "
                 "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b));
}
#else
inline void mma_bits(int (&d)[4], const unsigned (&a)[2], unsigned b,
                     emulation::call_site site = emulation::call_site::here())
{
    emulation::mma_bits(d, a, b, site);
}
#endif

} // namespace bsw

#endif
