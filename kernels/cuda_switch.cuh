// SPDX-License-Identifier: Apache-2.0
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

// For the emulator: the members of `a`, an argument of kernels, that point into device memory or
// are themselves such arguments. What a kernel is given must be so.
#define DEVICE_POINTERS(type, ...)
#else
#include "tests/emulation/cuda_emulator.hpp"
#endif

#include <atomic>

#include "common/codes/half.h"

namespace bsw
{

inline std::atomic<uint64_t> num_launches; // of this process (bsw_device_launches)

struct launch_shape {
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream;
};

// Queues kernel<<<...>>>(arguments...); more than 48 KB of dynamic shared memory only after
// count_resident_blocks (current_device.cuh).
template <class... P, class... A>
cudaError_t launch(const launch_shape &shape, void (*kernel)(P...), A &&...arguments)
{
    num_launches.fetch_add(1, std::memory_order_relaxed);
#if defined(__CUDACC__)
    kernel<<<shape.grid, shape.block, shape.shared_bytes, shape.stream>>>(
        static_cast<P>(arguments)...);
    return cudaGetLastError();
#else
    return emulation::launch({shape.grid, shape.block, shape.shared_bytes}, shape.stream, kernel,
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

// 2^exponent, -126 .. 127.
__device__ __forceinline__ float power_of_two(int exponent)
{
    return __uint_as_float(static_cast<uint32_t>(exponent + 127) << 23);
}

// The nearest half, ties to even; from 65520 on infinity.
__device__ __forceinline__ uint16_t float_to_half(float value)
{
#if defined(__CUDACC__)
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
#else
    return emulation::float_to_half(value);
#endif
}

// Two units off at most, for values of halves, which no scaling is needed for.
__device__ __forceinline__ float reciprocal(float value)
{
#if defined(__CUDACC__)
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(value));
    return inverse;
#else
    return __fdividef(1.0f, value);
#endif
}

// What is there, in shared memory: a load whose bank conflicts the emulator counts when it is asked
// to (emulated_banks.hpp). All lanes that are left make as many of them.
template <class T> __device__ __forceinline__ T load_counted(const T *place)
{
#if !defined(__CUDACC__)
    emulation::note_shared_load(place, sizeof(T));
#endif
    return *place;
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

// What is there while other threads change it by atomics: no older than what the thread has seen.
__device__ __forceinline__ unsigned long long load_relaxed(const unsigned long long *place)
{
#if defined(__CUDACC__)
    unsigned long long value;
    asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(value) : "l"(place) : "memory");
    return value;
#else
    return __atomic_load_n(place, __ATOMIC_RELAXED);
#endif
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

// The same of a u8 and b s8.
__device__ __forceinline__ void mma_u8_s8(int (&d)[4], const unsigned (&a)[4],
                                          const unsigned (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 "
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

inline void mma_u8_s8(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                      emulation::call_site site = emulation::call_site::here())
{
    emulation::mma_u8_s8(d, a, b, site);
}
#endif

// Copies of 16 or 4 bytes from global to shared memory, aligned to as much on both sides, that go
// on beside the thread. commit ends a group of them, which may be empty; wait<N> returns when all
// of the thread's groups but the last N are there, for this thread: others see them after a
// barrier. Before memory is copied to again, a barrier after its last use. load_matrices: row is
// that of matrix lane / 8, row lane % 8, of 16 bytes, 16-byte aligned in shared memory; out[j] of
// lane 4 * g + t has bytes 4 * t .. 4 * t + 3 of row g of matrix j. All 32 lanes call it.
#if defined(__CUDACC__)
__device__ __forceinline__ unsigned to_shared_address(const void *place)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(place));
}

__device__ __forceinline__ void cp_async_16(void *to_shared, const void *from_global)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :
                 : "r"(to_shared_address(to_shared)), "l"(__cvta_generic_to_global(from_global))
                 : "memory");
}

__device__ __forceinline__ void cp_async_4(void *to_shared, const void *from_global)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                 :
                 : "r"(to_shared_address(to_shared)), "l"(__cvta_generic_to_global(from_global))
                 : "memory");
}

__device__ __forceinline__ void cp_async_commit()
{
    asm volatile("cp.async.commit_group;" : : : "memory");
}

template <int N> __device__ __forceinline__ void cp_async_wait()
{
    asm volatile("cp.async.wait_group %0;" : : "n"(N) : "memory");
}

__device__ __forceinline__ void load_matrices(unsigned (&out)[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(to_shared_address(row))
                 : "memory");
}
#else
inline void cp_async_16(void *to_shared, const void *from_global,
                        emulation::call_site site = emulation::call_site::here())
{
    emulation::cp_async<uint4>(to_shared, from_global, site);
}

inline void cp_async_4(void *to_shared, const void *from_global,
                       emulation::call_site site = emulation::call_site::here())
{
    emulation::cp_async<unsigned>(to_shared, from_global, site);
}

inline void cp_async_commit()
{
    emulation::commit_copies();
}

template <int N> void cp_async_wait()
{
    emulation::cp_async_wait(N);
}

inline void load_matrices(unsigned (&out)[4], const void *row,
                          emulation::call_site site = emulation::call_site::here())
{
    emulation::load_matrices(out, row, site);
}
#endif

// d [16][8] f32 += a [16][16] f16 * b [16][8] f16, spread over a warp as above, halves where there
// are two bytes. Products are exact; how their sum is rounded is the device's.
#if defined(__CUDACC__)
__device__ __forceinline__ void mma_f16(float (&d)[4], const unsigned (&a)[4],
                                        const unsigned (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#else
inline void mma_f16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                    emulation::call_site site = emulation::call_site::here())
{
    emulation::mma_f16(d, a, b, site);
}
#endif

// d [16][8] f32 = c + a [16][8] bf16 * b [8][8] bf16, spread over a warp as above: two bf16 where
// there are four bytes. Products are exact; how their sum is rounded is the device's.
#if defined(__CUDACC__)
__device__ __forceinline__ void mma_bf16_short(float (&d)[4], const unsigned (&a)[2], unsigned b,
                                               const float (&c)[4])
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}
#else
inline void mma_bf16_short(float (&d)[4], const unsigned (&a)[2], unsigned b, const float (&c)[4],
                           emulation::call_site site = emulation::call_site::here())
{
    const unsigned rows[4] = {a[0], a[1], 0, 0}, columns[2] = {b, 0};
    emulation::mma_bf16(d, rows, columns, c, site);
}
#endif

// Bits of a where the mask's are 1, else of b: one instruction.
__device__ __forceinline__ unsigned choose_bits(unsigned mask, unsigned a, unsigned b)
{
#if defined(__CUDACC__)
    unsigned value;
    asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(value) : "r"(mask), "r"(a), "r"(b));
    return value;
#else
    return (a & mask) | (b & ~mask);
#endif
}

// Bits that are 1 in all three, one instruction: compilers do not make it of a long row of ANDs.
__device__ __forceinline__ unsigned and_bits(unsigned a, unsigned b, unsigned c)
{
#if defined(__CUDACC__)
    unsigned value;
    asm("lop3.b32 %0, %1, %2, %3, 0x80;" : "=r"(value) : "r"(a), "r"(b), "r"(c));
    return value;
#else
    return a & b & c;
#endif
}

// sum + the products of four u8 with four s8.
__device__ __forceinline__ int dot_u8_s8(unsigned u, unsigned q, int sum)
{
#if defined(__CUDACC__)
    asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(u), "r"(q));
#else
    for (int i = 0; i < 4; i++)
        sum += static_cast<uint8_t>(u >> 8 * i) * static_cast<int8_t>(q >> 8 * i);
#endif
    return sum;
}

} // namespace bsw

#endif
