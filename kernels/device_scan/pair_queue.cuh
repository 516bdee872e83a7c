// SPDX-License-Identifier: Apache-2.0
// Pairs of row and query that may pass, of the Hopper scans. A hit is rare, and what decides it is
// a chain of latencies: of planes, keys, masks, an atomic that answers. So a warp that finds one
// only writes down which it is, into a queue in shared memory, and goes on. When there are 32, or
// the block has no more tiles, each lane takes one to its end: the dot from the planes by dp4a, the
// key, the list. 32 hits cost one such chain, some 3,000 clocks of a warp, where each cost one.
#ifndef BITSWEEP_KERNELS_PAIR_QUEUE_CUH
#define BITSWEEP_KERNELS_PAIR_QUEUE_CUH

#include "kernels/device_scan/device_unpack.cuh"
#include "kernels/device_scan/matrix_keys.cuh"

namespace bsw
{

constexpr uint32_t queue_pairs = 64; // of a warp: fewer than 32 that wait and 32 that come

struct __align__(8) pair
{
    uint32_t place, slot; // row in the codes; of the query: in the batch, or in a launch of items
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

// The first 32 pairs, or all that there are, to finish(whether the lane has one, the pair), which
// all lanes call; the others move to the front.
template <class FINISH>
__device__ __forceinline__ void take_pairs(pair_queue &queue, const FINISH &finish)
{
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t done = queue.count < 32 ? queue.count : 32;
    const bool moves = 32 + lane < queue.count;
    pair own = {0, 0}, later = {0, 0};
    __syncwarp(); // the pairs are there
    if (lane < done) own = queue.pairs[lane];
    if (moves) later = queue.pairs[32 + lane];
    __syncwarp(); // everybody has read
    if (moves) queue.pairs[lane] = later;
    queue.count -= done;
    finish(lane < done, own);
}

// ---- the end of a pair ----

// The sum of u * q over all dimensions.
__device__ __forceinline__ int sum_pair(const scan_arguments &a, uint32_t place, uint32_t query)
{
    const uint32_t bundle = place / warp_rows, lane = place % warp_rows;
    const uint4 *components = reinterpret_cast<const uint4 *>(
        a.queries.components + static_cast<size_t>(query) * a.codes.layout.padded_dims);
    int sum = 0;
#pragma unroll 1
    for (uint32_t s = 0; s < a.codes.layout.num_segments; s++) {
        const uint32_t bits = a.codes.layout.segments[s].bits;
        const uint32_t words = a.codes.layout.segments[s].words;
        const uint32_t *planes =
            a.codes.planes[s] + static_cast<size_t>(bundle) * bits * words * warp_rows + lane;
#pragma unroll 1
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

// Slots of a batch: its queries. Those of lists (list_queries.cuh) say the same.
struct batch_slots {
    uint32_t first_row; // of the codes

    __device__ __forceinline__ uint32_t number(uint32_t slot) const
    {
        return slot;
    }

    // What the pair's score is with what is added to it, and whether it reaches the limit.
    template <key_kind KIND>
    __device__ __forceinline__ bool ends(const thread_query &query, uint32_t, int sum, float scale,
                                         float bias, uint32_t &score) const
    {
        score = score_of<KIND>(query.constant - 2 * sum, query.scale, scale, bias);
        return reaches<KIND>(query, sum, scale, bias);
    }

    __device__ __forceinline__ uint32_t row(uint32_t place) const
    {
        return first_row + place;
    }
};

// Items of the lanes that have one, each to its query's list or queue; one atomicAdd a list.
__device__ __forceinline__ void append_lanes(const bsw_device_lists &lists, bool has,
                                             uint32_t query, uint64_t item)
{
    uint32_t at = 0;
    if (!lists.queues.slots) {
        const uint32_t same = __match_any_sync(all_lanes, has ? query : UINT32_MAX);
        const uint32_t lane = threadIdx.x % 32;
        const uint32_t leader = static_cast<uint32_t>(__ffs(static_cast<int>(same))) - 1;
        if (has && lane == leader)
            at = atomicAdd(&lists.counts[query], static_cast<uint32_t>(__popc(same)));
        at = __shfl_sync(all_lanes, at, static_cast<int>(leader)) +
             static_cast<uint32_t>(__popc(same & ((1u << lane) - 1)));
    }
    if (has) put_item(lists, query, at, item);
}

// By all lanes: those that have a pair append it if the mask has its row and it reaches its limit.
template <key_kind KIND, class SLOTS>
__device__ __forceinline__ void finish_pair(const scan_arguments &a, const SLOTS &slots, bool has,
                                            const pair &p)
{
    uint32_t query = 0;
    uint64_t item = 0;
    if (has) {
        float scale = 0, bias = 0;
        uint32_t score;
        query = slots.number(p.slot);
        const uint32_t mask = __ldg(a.codes.masks + p.place / warp_rows);
        if (KIND != key_kind::integer) {
            scale = half_to_float(__ldg(a.codes.scales + p.place));
            bias = __ldg(a.codes.biases + p.place);
        }
        const thread_query own = load_query<KIND>(a, query);
        has = slots.template ends<KIND>(own, p.slot, sum_pair(a, p.place, query), scale, bias,
                                        score) &&
              (mask >> p.place % warp_rows & 1) != 0;
        if (has) item = pack_candidate(score, slots.row(p.place));
    }
    append_lanes(a.lists, has, query, item);
}

} // namespace bsw

#endif
