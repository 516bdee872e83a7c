// SPDX-License-Identifier: Apache-2.0
// What the Hopper kernel has beyond other generations: mbarriers, bulk copies to shared memory,
// wgmma. PTX for sm_90a alone, or the emulator's bodies (tests/emulation/emulated_hopper.hpp),
// which run everything as late as the PTX manual allows.
//
// Places in shared memory are what PTX takes: 32 bits, from shared_address.
#ifndef BITSWEEP_KERNELS_HOPPER_SWITCH_CUH
#define BITSWEEP_KERNELS_HOPPER_SWITCH_CUH

#include "kernels/cuda_switch.cuh"

#if !defined(__CUDACC__)
#include "tests/emulation/emulated_hopper.hpp"
#endif

namespace bsw
{

#if defined(__CUDACC__)

__device__ __forceinline__ uint32_t shared_address(const void *place)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(place));
}

// ---- mbarriers: 8 bytes of shared memory each, 8-byte aligned ----

// By one thread; the others may use it after a __syncthreads.
__device__ __forceinline__ void barrier_init(uint32_t barrier, uint32_t arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}

// By threads for which `arrives`: releases what the thread has written before; the last of
// `arrivals` ends the phase.
__device__ __forceinline__ void barrier_arrive(uint32_t barrier, bool arrives)
{
    asm volatile("{\n"
                 ".reg .pred arrives;\n"
                 "setp.ne.b32 arrives, %1, 0;\n"
                 "@arrives mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];\n"
                 "}" ::"r"(barrier),
                 "r"(static_cast<int>(arrives))
                 : "memory");
}

// Arrives, and has the phase end only when copies that tell this barrier have brought `bytes`, too.
__device__ __forceinline__ void barrier_arrive_expecting(uint32_t barrier, uint32_t bytes)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
        "r"(bytes)
        : "memory");
}

// Until the phase of this parity has ended. Phases count from 0; of a barrier in its phase 0 that
// of parity 1 has ended.
__device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity)
{
    asm volatile("{\n"
                 ".reg .pred ended;\n"
                 "again_%=:\n"
                 "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 ended, [%0], %1;\n"
                 "@!ended bra again_%=;\n"
                 "}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

// ---- the async proxy: bulk copies and products ----

// `bytes` from global to shared memory, queued only: the barrier is told when they are there, and
// who has waited for its phase sees them. Both places and bytes are multiples of 16.
__device__ __forceinline__ void bulk_copy(uint32_t to_shared, const void *from_global,
                                          uint32_t bytes, uint32_t barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to_shared),
                 "l"(__cvta_generic_to_global(from_global)), "r"(bytes), "r"(barrier)
                 : "memory");
}

// What the thread has done with shared memory, barriers made among it, comes before products and
// copies that follow a barrier.
__device__ __forceinline__ void fence_for_async_accesses()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// ---- registers ----

// By a whole warpgroup, as all its warpgroups do: from what the launch gave each thread to so many,
// fewer or more. Who wants more waits until others have given as many.
template <int REGISTERS> __device__ __forceinline__ void give_registers()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(REGISTERS));
}

template <int REGISTERS> __device__ __forceinline__ void take_registers()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(REGISTERS));
}

// ---- wgmma ----

// Before the first multiply_64x128 of a group: registers are ready, and warps are whole, as wgmma
// wants them.
__device__ __forceinline__ void begin_products()
{
    __syncwarp();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// The 64 sums of a thread as operands that are read and written.
#define BSW_EIGHT_SUMS(d, i)                                                                    \
    "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3]), "+r"(d[i + 4]), "+r"(d[i + 5]), \
        "+r"(d[i + 6]), "+r"(d[i + 7])
#define BSW_SUMS(d)                                                                           \
    BSW_EIGHT_SUMS(d, 0), BSW_EIGHT_SUMS(d, 8), BSW_EIGHT_SUMS(d, 16), BSW_EIGHT_SUMS(d, 24), \
        BSW_EIGHT_SUMS(d, 32), BSW_EIGHT_SUMS(d, 40), BSW_EIGHT_SUMS(d, 48), BSW_EIGHT_SUMS(d, 56)

// d [64][128] s32 = a [64][32] s8 * b [32][128] u8, plus d if `adds`, by a warpgroup: queued only,
// d is not to be touched before finish_products. Registers as in hopper_layout.cuh.
__device__ __forceinline__ void multiply_64x128(int (&d)[64], const unsigned (&a)[4], uint64_t b,
                                                bool adds)
{
    asm volatile("{\n"
                 ".reg .pred adds;\n"
                 "setp.ne.b32 adds, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.u8 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                 "{%64, %65, %66, %67}, %68, adds;\n"
                 "}"
                 : BSW_SUMS(d)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(adds)));
}

// The same with a in shared memory.
__device__ __forceinline__ void multiply_64x128(int (&d)[64], uint64_t a, uint64_t b, bool adds)
{
    asm volatile("{\n"
                 ".reg .pred adds;\n"
                 "setp.ne.b32 adds, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.u8 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                 "%64, %65, adds;\n"
                 "}"
                 : BSW_SUMS(d)
                 : "l"(a), "l"(b), "r"(static_cast<int>(adds)));
}

// All that was queued is done. d is named here so that nothing that reads it is moved to before.
__device__ __forceinline__ void finish_products(int (&d)[64])
{
    asm volatile("wgmma.commit_group.sync.aligned;\n"
                 "wgmma.wait_group.sync.aligned 0;"
                 : BSW_SUMS(d)
                 :
                 : "memory");
}

#undef BSW_SUMS
#undef BSW_EIGHT_SUMS

// What another thread has written, seen through a barrier_wait.
template <class T> __device__ __forceinline__ T load_after_wait(const T *place)
{
    return *place;
}

__device__ __forceinline__ void load_matrices_after_wait(unsigned (&out)[4], const void *row)
{
    load_matrices(out, row);
}

#else

template <int REGISTERS> void give_registers()
{
}

template <int REGISTERS> void take_registers()
{
}

using emulation::barrier_arrive;
using emulation::barrier_arrive_expecting;
using emulation::barrier_init;
using emulation::barrier_wait;
using emulation::begin_products;
using emulation::bulk_copy;
using emulation::fence_for_async_accesses;
using emulation::finish_products;
using emulation::load_after_wait;
using emulation::load_matrices_after_wait;
using emulation::multiply_64x128;
using emulation::shared_address;

#endif

// How many lanes arrive for a warp. One is enough: __syncwarp orders what the others have stored
// before its arrival, which releases it. compute-sanitizer's racecheck does not follow that edge
// (as of 2026.4) and reports the stores of the other 31, so in the build of the check that runs
// under it alone all lanes arrive: there it is silent, and finds a store that really is unordered.
#ifdef BITSWEEP_ALL_LANES_ARRIVE
constexpr uint32_t warp_arrivals = 32;
#else
constexpr uint32_t warp_arrivals = 1;
#endif

// By a whole warp, once all of its lanes are here; of `arrivals` it is warp_arrivals.
__device__ __forceinline__ void barrier_arrive_warp(uint32_t barrier)
{
    __syncwarp();
    barrier_arrive(barrier, warp_arrivals == 32 || threadIdx.x % 32 == 0);
}

} // namespace bsw

#endif
