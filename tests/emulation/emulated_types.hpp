// SPDX-License-Identifier: Apache-2.0
// CUDA's keywords and small types for a host compiler.
#ifndef BITSWEEP_EMULATION_EMULATED_TYPES_HPP
#define BITSWEEP_EMULATION_EMULATED_TYPES_HPP

#include <cstdint>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMULATION_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define EMULATION_ASAN 1
#endif
#if !defined(EMULATION_ASAN)
#define EMULATION_ASAN 0
#endif

// __noinline__ must not be defined: libstdc++ uses the word.
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

// Shared variables are static: one block runs at a time. They lie in one section, which is filled
// with junk before each block; under ASan they do not, as variables of a named section have no red
// zones. The attribute has no effect on static variables of templates: kernels that are templates
// take dynamic shared memory.
#if EMULATION_ASAN
#define __shared__ static
#else
#define __shared__ static __attribute__((section("bsw_shared")))
#endif
#define DYNAMIC_SHARED(type, name) type *name = static_cast<type *>(::emulation::dynamic_shared())

struct alignas(8) uint2 {
    unsigned x, y;
};
struct uint3 {
    unsigned x, y, z;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};

inline uint2 make_uint2(unsigned x, unsigned y)
{
    return {x, y};
}

inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return {x, y, z, w};
}

// Values as in CUDA's headers.
enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorIllegalState = 401,
    cudaErrorNotReady = 600,
    cudaErrorLaunchFailure = 719,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureInvalidated = 901,
    cudaErrorStreamCaptureIsolation = 905,
    cudaErrorCapturedEvent = 907,
    cudaErrorStreamCaptureWrongThread = 908,
    cudaErrorGraphExecUpdateFailure = 910
};

struct CUstream_st;
typedef CUstream_st *cudaStream_t;

#endif
