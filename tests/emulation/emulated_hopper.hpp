// SPDX-License-Identifier: Apache-2.0
// mbarriers, bulk copies and wgmma for kernels/hopper_switch.cuh: what PTX lets run on its own here
// runs as late as it may, when it is waited for, so that a wait that is missing or that comes too
// early gives wrong results. Fences are not checked.
#ifndef BITSWEEP_EMULATION_EMULATED_HOPPER_HPP
#define BITSWEEP_EMULATION_EMULATED_HOPPER_HPP

#include "emulated_copies.hpp"
#include "emulated_thread.hpp"

namespace emulation
{

// Addresses of shared memory: bytes from the start of the launch's dynamic part, plus this, so that
// nobody takes 0 for granted.
constexpr unsigned shared_window = 1024;
unsigned shared_address(const void *place);

void barrier_init(unsigned barrier, unsigned arrivals);
void barrier_arrive(unsigned barrier, bool arrives, call_site site = call_site::here());
void barrier_arrive_expecting(unsigned barrier, unsigned bytes, call_site site = call_site::here());
void barrier_wait(unsigned barrier, unsigned parity, call_site site = call_site::here());

// The destination is junk from now on; the copy is made when somebody waits for the phase that it
// ends.
void bulk_copy(unsigned to, const void *from, unsigned bytes, unsigned barrier,
               call_site site = call_site::here());

inline void fence_for_async_accesses()
{
    may_yield();
}

// wgmma by the manual's words: a warpgroup is 128 threads that follow each other.
void begin_products(call_site site = call_site::here());
void multiply_64x128(int (&d)[64], const unsigned (&a)[4], uint64_t b, bool adds,
                     call_site site = call_site::here());
void multiply_64x128(int (&d)[64], uint64_t a, uint64_t b, bool adds,
                     call_site site = call_site::here());
void finish_products(int (&d)[64], call_site site = call_site::here());

// A read that an mbarrier orders, of which the race detector knows nothing. Nor does the optimiser
// move it to the caller, where it would be watched, as gcc does with a word.
template <class T>
__attribute__((no_sanitize("thread"), noinline)) inline T load_after_wait(const T *place)
{
    asm volatile("" : : : "memory");
    return *place;
}

inline void load_matrices_after_wait(unsigned (&out)[4], const void *row,
                                     call_site site = call_site::here())
{
    const int lane = own_lane();
    check_shared_place(row, 16, "ldmatrix", site);
    for (int j = 0; j < 4; j++) {
        const void *from = shuffle_value(~0u, row, 8 * j + lane / 4, site);
        out[j] = load_after_wait(static_cast<const unsigned *>(from) + lane % 4);
    }
}

} // namespace emulation

#endif
