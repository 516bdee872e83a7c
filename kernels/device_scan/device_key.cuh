// SPDX-License-Identifier: Apache-2.0
// Keys, scores and appends, shared by the scans: kernels/select/select.h and
// common/codes/metric.h for device code. Each operation is rounded as written there.
#ifndef BITSWEEP_KERNELS_DEVICE_KEY_CUH
#define BITSWEEP_KERNELS_DEVICE_KEY_CUH

#include "kernels/cuda_switch.cuh"
#include "kernels/device_scan/device_scan.h"
#include "kernels/select/select.h"

namespace bsw
{

constexpr unsigned warp_rows = BSW_BUNDLE_ROWS; // a bundle is a warp's
constexpr unsigned all_lanes = 0xffffffffu;

__device__ __forceinline__ uint32_t score_of_float(float key)
{
    uint32_t bits = __float_as_uint(key);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ uint32_t score_of_integer(int key)
{
    return static_cast<uint32_t>(key) ^ 0x80000000u;
}

// What a dot must reach so that its score reaches the limit.
__device__ __forceinline__ int integer_limit(uint32_t limit)
{
    return static_cast<int>(limit ^ 0x80000000u);
}

// What a key must reach so that its score reaches the limit; NaN, which none does, above that of
// infinity (bsw_float_limit of kernels/select/select_quick.h).
__device__ __forceinline__ float float_limit(uint32_t limit)
{
    const uint32_t score_of_minus_infinity = 0x007fffffu;
    uint32_t bits = limit >> 31 ? limit & 0x7fffffffu : ~limit;
    return __uint_as_float(limit <= score_of_minus_infinity ? 0xff800000u : bits);
}

// Without the final + 0.0f, which changes no comparison.
__device__ __forceinline__ float float_key(float query_scale, float scale, float dot, float bias)
{
    return __fmaf_rn(query_scale, __fmul_rn(scale, dot), bias);
}

__device__ __forceinline__ uint64_t pack_candidate(uint32_t score, uint32_t row)
{
    return static_cast<uint64_t>(score) << 32 | static_cast<uint32_t>(~row);
}

// Where queues of a query's block are: BSW_QUEUE_THREADS slots a place of the queues.
__device__ __forceinline__ unsigned long long *slots_of(const bsw_device_row_queues &queues,
                                                        uint32_t query, uint32_t block)
{
    const size_t before = static_cast<size_t>(query) * queues.num_blocks + block;
    return reinterpret_cast<unsigned long long *>(queues.slots) +
           before * queues.length * BSW_QUEUE_THREADS;
}

// A candidate into its thread's queue: of each pair the better stays, the other sinks on. Every
// slot passes on all that it was given but the best, so what a queue holds in the end does not
// depend on the order, and slots only grow: what falls short of the last can be left out.
__device__ __forceinline__ void put_in_queue(const bsw_device_row_queues &queues, uint32_t query,
                                             unsigned long long item)
{
    const uint32_t row = ~static_cast<uint32_t>(item);
    const uint32_t block = row / BSW_QUEUE_THREADS / queues.items - queues.first_block;
    unsigned long long *slot = slots_of(queues, query, block) + row % BSW_QUEUE_THREADS;
    if (load_relaxed(slot + (queues.length - 1) * BSW_QUEUE_THREADS) > item) return;
    for (uint32_t i = 0; i < queues.length && item != 0; i++, slot += BSW_QUEUE_THREADS) {
        const unsigned long long other = atomicMax(slot, item);
        item = other < item ? other : item;
    }
}

// One bundle's rows that pass, a lane each, to one query's list: one atomicAdd.
__device__ __forceinline__ void append_bundle(const bsw_device_lists &lists, uint32_t query,
                                              bool passes, uint64_t item)
{
    const unsigned lanes = __ballot_sync(all_lanes, passes);
    if (lanes == 0) return;
    const unsigned lane = threadIdx.x % warp_rows;
    const int leader = __ffs(static_cast<int>(lanes)) - 1;
    uint32_t at = 0;
    if (lane == static_cast<unsigned>(leader))
        at = atomicAdd(&lists.counts[query], static_cast<uint32_t>(__popc(lanes)));
    at = __shfl_sync(all_lanes, at, leader) +
         static_cast<uint32_t>(__popc(lanes & ((1u << lane) - 1)));
    if (passes && at < lists.capacity)
        lists.items[static_cast<size_t>(query) * lists.capacity + at] = item;
}

} // namespace bsw

DEVICE_POINTERS(bsw_device_codes, a.planes, a.scales, a.biases, a.masks, a.tails, a.offsets)
DEVICE_POINTERS(bsw_device_queries, a.words, a.components, a.constants, a.scales)
DEVICE_POINTERS(bsw_device_stage, a.constants, a.reaches, a.survivors)
DEVICE_POINTERS(bsw_device_lists, a.items, a.counts, a.limits, a.queues.slots, a.overflowed,
                a.raised, a.hits)

#endif
