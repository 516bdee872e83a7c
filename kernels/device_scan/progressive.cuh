// SPDX-License-Identifier: Apache-2.0
// For device_progressive_slices_hopper.cu: which pairs of row and query go on after a first stage,
// queues in which they wait until there is one for each lane of a warp, and how they are finished.
#ifndef BITSWEEP_KERNELS_PROGRESSIVE_CUH
#define BITSWEEP_KERNELS_PROGRESSIVE_CUH

#include "kernels/device_scan/device_unpack.cuh"
#include "kernels/device_scan/scan_arguments.cuh"

namespace bsw
{

constexpr uint32_t queue_pairs = 64; // of a warp: fewer than 32 that wait and 32 that come

// What a progressive scan takes. Rows do not go to queues of threads here.
inline bool is_valid_progressive_scan(const bsw_device_codes &codes, const bsw_device_stage &stage,
                                      const bsw_device_part &part,
                                      const bsw_device_queries &queries,
                                      const bsw_device_lists &lists)
{
    return is_valid_scan(codes, part, queries, lists) && !lists.queues.slots &&
           stage.dims % 32 == 0 && stage.dims >= 32 && stage.dims < codes.layout.padded_dims &&
           codes.scales && codes.tails && bsw_device_stage_fits(&codes.layout, queries.query_bits);
}

// Bit 22 of four sums, that of sum i as bit 8 * i + place, 0 .. 7.
__device__ __forceinline__ uint32_t still_above_at(int first, int second, int third, int fourth,
                                                   int place)
{
    // It is bit 6 of the third byte.
    const uint32_t low =
        __byte_perm(static_cast<unsigned>(first), static_cast<unsigned>(second), 0x0062);
    const uint32_t high =
        __byte_perm(static_cast<unsigned>(third), static_cast<unsigned>(fourth), 0x0062);
    const uint32_t four = __byte_perm(low, high, 0x5410);
    const uint32_t moved =
        place < 6 ? four >> (place < 6 ? 6 - place : 0) : four << (place < 6 ? 0 : place - 6);
    return moved & 0x01010101u << place;
}

struct __align__(8) pair
{
    uint32_t place, query; // row in the codes, query in the batch
};

// A warp's queue; the same in all lanes.
struct pair_queue {
    pair *pairs; // [queue_pairs]
    uint32_t count;
};

// Pairs of lanes for which one goes on, to a queue that has room for as many.
__device__ __forceinline__ void push_pair(pair_queue &queue, bool goes_on, const pair &own)
{
    const uint32_t lanes = __ballot_sync(all_lanes, goes_on);
    const uint32_t before = lanes & ((1u << threadIdx.x % 32) - 1);
    if (goes_on) queue.pairs[queue.count + static_cast<uint32_t>(__popc(before))] = own;
    queue.count += static_cast<uint32_t>(__popc(lanes));
}

// The sum of u * q over all dimensions.
__device__ __forceinline__ int sum_pair(const scan_arguments &a, const pair &p)
{
    const uint32_t bundle = p.place / warp_rows, lane = p.place % warp_rows;
    const uint4 *components = reinterpret_cast<const uint4 *>(
        a.queries.components + static_cast<size_t>(p.query) * a.codes.layout.padded_dims);
    int sum = 0;
    for (uint32_t s = 0; s < a.codes.layout.num_segments; s++) {
        const uint32_t bits = a.codes.layout.segments[s].bits;
        const uint32_t words = a.codes.layout.segments[s].words;
        const uint32_t *planes =
            a.codes.planes[s] + static_cast<size_t>(bundle) * bits * words * warp_rows + lane;
        for (uint32_t word = 0; word < words; word++, planes += warp_rows, components += 2) {
            uint32_t bytes[8];
            unpack_word_of(bits, planes, words, bytes);
            const uint4 low = __ldg(components), high = __ldg(components + 1);
            const uint32_t q[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
            for (int r = 0; r < 8; r++) sum = dot_u8_s8(bytes[r], q[r], sum);
        }
    }
    return sum;
}

__device__ __forceinline__ void finish_pair(const scan_arguments &a, const pair &p)
{
    const int dot = __ldg(a.queries.constants + p.query) - 2 * sum_pair(a, p);
    const float key =
        float_key(__ldg(a.queries.scales + p.query), half_to_float(__ldg(a.codes.scales + p.place)),
                  __int2float_rn(dot), __ldg(a.codes.biases + p.place));
    if (!(key >= float_limit(__ldg(a.lists.limits + p.query)))) return;
    const uint32_t at = atomicAdd(&a.lists.counts[p.query], 1u);
    if (at < a.lists.capacity)
        a.lists.items[static_cast<size_t>(p.query) * a.lists.capacity + at] =
            pack_candidate(score_of_float(__fadd_rn(key, 0.0f)), a.codes.first_row + p.place);
}

// The first 32 pairs, or all that there are; the others move to the front.
__device__ __forceinline__ void finish_pairs(const scan_arguments &a, const bsw_device_stage &stage,
                                             pair_queue &queue)
{
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t done = queue.count < 32 ? queue.count : 32;
    __syncwarp(); // the pairs are there
    if (lane < done) finish_pair(a, queue.pairs[lane]);
    const bool moves = 32 + lane < queue.count;
    pair later = {0, 0};
    if (moves) later = queue.pairs[32 + lane];
    __syncwarp(); // everybody has read
    if (moves) queue.pairs[lane] = later;
    queue.count -= done;
    if (lane == 0)
        atomicAdd(reinterpret_cast<unsigned long long *>(stage.survivors),
                  static_cast<unsigned long long>(done));
}

} // namespace bsw

#endif
