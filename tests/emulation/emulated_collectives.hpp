// SPDX-License-Identifier: Apache-2.0
// Barriers and warp collectives. The lanes that a mask names meet; kind, mask and calling line are
// checked to be the same.
#ifndef BITSWEEP_EMULATION_EMULATED_COLLECTIVES_HPP
#define BITSWEEP_EMULATION_EMULATED_COLLECTIVES_HPP

#include "emulated_thread.hpp"

namespace emulation
{

enum class operation { sync_warp, shuffle, ballot, any, reduce, match, mma };
enum class reduction { add, max, bit_or };

// One lane's part in a warp collective; lies on that fibre's stack.
struct warp_operation {
    operation kind;
    unsigned mask;
    call_site site;
    uint64_t in, out;
    int source;           // of a shuffle: a lane
    const void *fragment; // of an mma: its operands and accumulators
    void *result;
};

// Run once, by the last lane to arrive, for the lanes of `live`.
typedef void (*finish_fn)(warp_operation **lanes, unsigned live);

void meet_warp(warp_operation &mine, finish_fn finish);
int meet_block(int predicate, call_site site); // how many predicates hold
unsigned vote(operation kind, unsigned mask, uint64_t value, call_site site);
unsigned match(unsigned mask, uint64_t value, call_site site);
uint64_t reduce(reduction which, unsigned mask, uint64_t value, call_site site);
uint64_t shuffle(unsigned mask, uint64_t value, int source, call_site site);

template <class T> uint64_t to_bits(T value)
{
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class T> T shuffle_value(unsigned mask, T value, int source, call_site site)
{
    uint64_t bits = shuffle(mask, to_bits(value), source, site);
    T out;
    __builtin_memcpy(&out, &bits, sizeof out);
    return out;
}

inline int own_lane()
{
    return static_cast<int>(current_thread->lane);
}

// d += a * b of one warp: mma.sync.m16n8k32, row by column, s8 by u8 to s32 (fragments as in the
// PTX manual).
void mma_s8_u8(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], call_site site);
// The same, u8 by s8.
void mma_u8_s8(int (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], call_site site);
// The same of mma.sync.m16n8k128 of single bits, and.popc.
void mma_bits(int (&d)[4], const unsigned (&a)[2], unsigned b, call_site site);
// d = c + a * b of mma.sync.m16n8k16, bf16 to f32, with the poorest sums of any device: all addends
// cut to 23 bits below the largest one's exponent.
void mma_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], const float (&c)[4],
              call_site site);
// The same of halves; d += a * b.
void mma_f16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], call_site site);

} // namespace emulation

#define EMULATED_SITE ::emulation::call_site site = ::emulation::call_site::here()

inline void __syncthreads(EMULATED_SITE)
{
    emulation::meet_block(0, site);
}

// A file compiled with this has no barriers: a fault of whole programs that tests are to notice.
#if defined(EMULATION_WITHOUT_BARRIERS)
#define __syncthreads() static_cast<void>(0)
#endif

inline int __syncthreads_count(int predicate, EMULATED_SITE)
{
    return emulation::meet_block(predicate, site);
}

inline void __syncwarp(unsigned mask = ~0u, EMULATED_SITE)
{
    emulation::vote(emulation::operation::sync_warp, mask, 0, site);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, EMULATED_SITE)
{
    return emulation::vote(emulation::operation::ballot, mask, predicate != 0, site);
}

inline int __any_sync(unsigned mask, int predicate, EMULATED_SITE)
{
    return static_cast<int>(emulation::vote(emulation::operation::any, mask, predicate != 0, site));
}

inline unsigned __reduce_add_sync(unsigned mask, unsigned value, EMULATED_SITE)
{
    return static_cast<unsigned>(emulation::reduce(emulation::reduction::add, mask, value, site));
}

inline unsigned __reduce_or_sync(unsigned mask, unsigned value, EMULATED_SITE)
{
    return static_cast<unsigned>(
        emulation::reduce(emulation::reduction::bit_or, mask, value, site));
}

inline unsigned __reduce_max_sync(unsigned mask, unsigned value, EMULATED_SITE)
{
    return static_cast<unsigned>(emulation::reduce(emulation::reduction::max, mask, value, site));
}

inline unsigned __match_any_sync(unsigned mask, unsigned value, EMULATED_SITE)
{
    return emulation::match(mask, value, site);
}

template <class T> T __shfl_sync(unsigned mask, T value, int source, int width = 32, EMULATED_SITE)
{
    int lane = emulation::own_lane();
    return emulation::shuffle_value(mask, value, (lane & -width) | (source & (width - 1)), site);
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int distance, int width = 32, EMULATED_SITE)
{
    int lane = emulation::own_lane(), source = lane ^ distance;
    if (source >= (lane & -width) + width) source = lane;
    return emulation::shuffle_value(mask, value, source, site);
}

template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32, EMULATED_SITE)
{
    int lane = emulation::own_lane(), source = lane - static_cast<int>(distance);
    if (source < (lane & -width)) source = lane;
    return emulation::shuffle_value(mask, value, source, site);
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32, EMULATED_SITE)
{
    int lane = emulation::own_lane(), source = lane + static_cast<int>(distance);
    if (source >= (lane & -width) + width) source = lane;
    return emulation::shuffle_value(mask, value, source, site);
}

#endif
