// The one header that picks CUDA or the emulator (tests/emulation); every .cu includes it first.
//
// Rules that make one source serve both: launches through bsw::launch, dynamic shared memory
// through DYNAMIC_SHARED, __align__ and not alignas on shared variables, no static shared variables
// in templates, and inline PTX only in functions here, which have a host body too.
#ifndef BITSWEEP_KERNELS_CUDA_SWITCH_CUH
#define BITSWEEP_KERNELS_CUDA_SWITCH_CUH

#if defined(__CUDACC__)
#include <cuda_runtime.h>

#include <cstdint>

#define DYNAMIC_SHARED(type, name)                                      \
    extern __shared__ __align__(16) unsigned char bsw_dynamic_shared[]; \
    type *name = reinterpret_cast<type *>(bsw_dynamic_shared)
#else
#include "tests/emulation/cuda_emulator.hpp"
#endif

#include "common/half.h"

namespace bsw
{

struct launch_shape {
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream;
};

// Queues kernel<<<...>>>(arguments...); dynamic shared memory as much as the device has.
template <class... P, class... A>
cudaError_t launch(const launch_shape &shape, void (*kernel)(P...), A &&...arguments)
{
    if (shape.shared_bytes > 48 << 10) { // beyond that the runtime wants to be told
        cudaError_t error =
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(shape.shared_bytes));
        if (error) return error;
    }
#if defined(__CUDACC__)
    kernel<<<shape.grid, shape.block, shape.shared_bytes, shape.stream>>>(
        static_cast<P>(arguments)...);
    return cudaGetLastError();
#else
    return emulation::launch(shape.grid, shape.block, shape.shared_bytes, kernel,
                             static_cast<A &&>(arguments)...);
#endif
}

// Exact, subnormals too.
__device__ __forceinline__ float half_to_float(uint16_t half)
{
#if defined(__CUDACC__)
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
#else
    return bsw_half_to_float(half);
#endif
}

// The value itself, about which the compiler then knows nothing: what is computed from it is
// computed anew instead of being kept in registers since it was last needed.
__device__ __forceinline__ int opaque(int value)
{
#if defined(__CUDACC__)
    asm volatile("" : "+r"(value));
#endif
    return value;
}

// d [16][8] s32 += a [16][32] s8 * b [32][8] u8, spread over a warp: lane 4*g + t has rows g and
// g + 8 of a and d, column g of b, columns 2*t and 2*t + 1 of d; bytes 4*t .. 4*t + 3 of each half
// of the 32.
#if defined(__CUDACC__)
__device__ __forceinline__ void mma_s8_u8(int (&d)[4], const unsigned (&a)[4],
                                          const unsigned (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#else
inline void mma_s8_u8(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                      emulation::call_site site = emulation::call_site::here())
{
    emulation::mma_s8_u8(d, a, b, site);
}
#endif

} // namespace bsw

#endif
