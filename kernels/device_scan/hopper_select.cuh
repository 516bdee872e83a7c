// SPDX-License-Identifier: Apache-2.0
// From the sums of the Hopper kernels to the lists.
//
// Sums of small float keys start with terms of keys (key_terms.cuh): one bit of each says whether
// its pair may pass. Otherwise, of the eight sums that a thread has of a bundle and a query the
// least is compared with a bound: a limit on integers, or for float keys one that holds for all
// rows of the bundle (dot_bound.cuh). Only where that finds something in a warp each sum is looked
// at, and pairs that may pass go to the warp's queue (pair_queue.cuh). Sums are not indexed at run
// time. No function is called, which would have ptxas wait after every wgmma.
#ifndef BITSWEEP_KERNELS_HOPPER_SELECT_CUH
#define BITSWEEP_KERNELS_HOPPER_SELECT_CUH

#include "kernels/device_scan/hopper_shared.cuh"

namespace bsw
{

// ---- sums that have bounds ----

// The least of the thread's eight sums of a bundle and a query.
__device__ __forceinline__ int least_sum(const int (&sums)[64], uint32_t bundle, uint32_t half)
{
    const uint32_t n = bundle * 4;
    int least = min(sums[sum_register(n, half, 0)], sums[sum_register(n, half, 1)]);
#pragma unroll
    for (uint32_t i = 1; i < 4; i++)
        least = __vimin3_s32(least, sums[sum_register(n + i, half, 0)],
                             sums[sum_register(n + i, half, 1)]);
    return least;
}

// Whether one of the thread's sums may pass, rows that do not exist or are masked included; of the
// halves FIRST .. LAST - 1, a query each.
template <key_kind KIND, uint32_t FIRST, uint32_t LAST>
__device__ __forceinline__ bool any_within(const quick_query (&own)[2], const int (&sums)[64],
                                           const bundle_bound *bounds)
{
    bool any = false;
#pragma unroll
    for (uint32_t bundle = 0; bundle < tile_bundles; bundle++) {
        bundle_bound bound = {};
        if (KIND != key_kind::integer) bound = load_after_wait(bounds + bundle);
#pragma unroll
        for (uint32_t half = FIRST; half < LAST; half++)
            any |= may_pass<KIND>(own[half], least_sum(sums, bundle, half), bound);
    }
    return any;
}

template <key_kind KIND>
__device__ __forceinline__ bool any_within(const quick_query (&own)[2], const int (&sums)[64],
                                           const bundle_bound *bounds, bool has_second)
{
    const bool first = any_within<KIND, 0, 1>(own, sums, bounds);
    return has_second ? first | any_within<KIND, 1, 2>(own, sums, bounds) : first;
}

// Which of the thread's pairs in a tile and a block of 64 queries may pass. Bit 8 * i + n of word
// w: register i of four of the eight-column group 8 * w + n.
struct tile_hits {
    uint32_t words[2];
};

template <key_kind KIND>
__device__ __forceinline__ tile_hits find_within(const quick_query (&own)[2], const int (&sums)[64],
                                                 const bundle_bound *bounds)
{
    tile_hits out = {};
#pragma unroll
    for (uint32_t n = 0; n < 16; n++) {
        bundle_bound bound = {};
        if (KIND != key_kind::integer) bound = load_after_wait(bounds + n / 4);
#pragma unroll
        for (uint32_t i = 0; i < 4; i++)
            if (may_pass<KIND>(own[i / 2], sums[4 * n + i], bound))
                out.words[n / 8] |= 1u << (8 * i + n % 8);
    }
    return out;
}

// Which queries a block has, by their places i in the scan:
//
//   count                              of them; places from there on have none
//   number(i)                          in the batch; none of the batch: there is none
//   quick<KIND>(i)                     as load_quick; keeps_quick: once, not for every tile
//   load_key_query(queries, i)         as that of key_terms.cuh
//   slot(i)                            what pairs have of it (pair_queue.cuh)
//
// Here all of a batch.
struct batch_queries {
    const scan_arguments &a;
    uint32_t count;

    __device__ __forceinline__ uint32_t number(uint32_t i) const
    {
        return i;
    }

    static constexpr bool keeps_quick = true;

    template <key_kind KIND> __device__ __forceinline__ quick_query quick(uint32_t i) const
    {
        return load_quick<KIND>(a, i);
    }

    __device__ __forceinline__ uint32_t slot(uint32_t i) const
    {
        return i;
    }
};

__device__ __forceinline__ key_query load_key_query(const batch_queries &queries, uint32_t i)
{
    return load_key_query(queries.a, i);
}

// ---- sums that start with terms of keys ----

// What the first step takes of a tile and a block of 64 queries.
struct begun_with {
    const uint4 *terms; // [hopper_rows] of the tile; NULL: there was no such step
    const key_pair *words;
    const key_start *start;
};

// place: of the tile's terms and caps; block: of the thread's queries.
template <class SHAPE>
__device__ __forceinline__ begun_with begun_with_of(const hopper_shared &shared, uint32_t place,
                                                    uint32_t block)
{
    const uint32_t own = block * SHAPE::consumer_threads + threadIdx.x;
    return {shared.terms + place * hopper_rows, shared.words + own, shared.starts + own / 4};
}

// The caps of the tile, [tile_bundles], are seldom above those that the warp's words and starts
// were made for, `started`. row: of the thread's first query in a block of 64, its second is
// DISTANCE further. load_key_query(a, query) has what the terms want of a query.
template <class SHAPE, uint32_t DISTANCE, class ARGUMENTS, class CAPS>
__device__ __forceinline__ void update_starts(const ARGUMENTS &a, const hopper_shared &shared,
                                              const CAPS *of_tile, CAPS *started,
                                              uint32_t first_query, uint32_t row)
{
    CAPS caps = load_after_wait(of_tile);
#pragma unroll
    for (uint32_t b = 1; b < tile_bundles; b++)
        caps = join_caps(caps, load_after_wait(of_tile + b));
    if (are_within(caps, *started)) return;
    caps = join_caps(caps, *started);
    __syncwarp(); // all lanes have read what started was
    if (threadIdx.x % 32 == 0) *started = caps;
#pragma unroll 1
    for (uint32_t b = 0; b < SHAPE::blocks; b++) {
        const uint32_t query =
            first_of_block<SHAPE>(first_query, threadIdx.x / group_threads, b) + row;
        const uint32_t own = b * SHAPE::consumer_threads + threadIdx.x;
        const auto first = load_key_query(a, query), second = load_key_query(a, query + DISTANCE);
        shared.words[own] = make_words(first, second, caps, threadIdx.x % 4);
        if (threadIdx.x % 4 == 0) shared.starts[own / 4] = make_start(first, second, caps);
    }
    __syncwarp();
}

// A thread has four registers of the eight columns of D from 8 * n on, as with mma.
__device__ __forceinline__ void begin_tile(const begun_with &with, int (&sums)[64])
{
    const key_pair words = *with.words;
    const key_start start = *with.start;
#pragma unroll
    for (uint32_t bundle = 0; bundle < tile_bundles; bundle++) {
        unsigned terms[4];
        load_matrices_after_wait(terms, with.terms + bundle * warp_rows + threadIdx.x % 32);
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            int begun[4];
            begin_sums(begun, words, terms[i], start);
#pragma unroll
            for (uint32_t j = 0; j < 4; j++) sums[(bundle * 4 + i) * 4 + j] = begun[j];
        }
    }
}

// `all` and all of a bundle's sums of a half: bits that are 1 in every one.
__device__ __forceinline__ uint32_t join_sums(const int (&sums)[64], uint32_t bundle, uint32_t half,
                                              uint32_t all)
{
#pragma unroll
    for (uint32_t n = bundle * 4; n < bundle * 4 + 4; n++)
        all = and_bits(all, static_cast<uint32_t>(sums[sum_register(n, half, 0)]),
                       static_cast<uint32_t>(sums[sum_register(n, half, 1)]));
    return all;
}

// Whether a sum of the thread says that its pair may pass. has_second: whether there are queries of
// the second half.
__device__ __forceinline__ bool any_below(const int (&sums)[64], bool has_second)
{
    uint32_t all[tile_bundles]; // four chains, for each step waits for the one before
#pragma unroll
    for (uint32_t bundle = 0; bundle < tile_bundles; bundle++)
        all[bundle] = join_sums(sums, bundle, 0, still_above);
    if (has_second) {
#pragma unroll
        for (uint32_t bundle = 0; bundle < tile_bundles; bundle++)
            all[bundle] = join_sums(sums, bundle, 1, all[bundle]);
    }
    return (and_bits(all[0], all[1], all[2]) & all[3]) == 0;
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

__device__ __forceinline__ tile_hits find_below(const int (&sums)[64])
{
    tile_hits out = {};
#pragma unroll
    for (uint32_t n = 0; n < 16; n++)
        out.words[n / 8] |= still_above_at(sums[4 * n], sums[4 * n + 1], sums[4 * n + 2],
                                           sums[4 * n + 3], static_cast<int>(n % 8));
    return {{~out.words[0], ~out.words[1]}};
}

// ---- from hits to queues ----

// What take_pairs calls.
template <key_kind KIND, class SLOTS>
__device__ __forceinline__ auto finish_of(const scan_arguments &a, const SLOTS &slots)
{
    return [&a, slots](bool has, const pair &own) { finish_pair<KIND>(a, slots, has, own); };
}

// Each lane's next hit, if it has one, to the queue. first_query: of the thread's row 0 of the
// block of 64, the other half's is DISTANCE further. Rows of bundles and queries that the block
// does not have are passed over.
template <uint32_t DISTANCE, class QUERIES>
__device__ __forceinline__ void push_hits(const scan_arguments &a, const QUERIES &queries,
                                          const block_work &work, uint32_t first_query,
                                          uint32_t tile, tile_hits &hits, pair_queue &queue)
{
    const bool is_second = hits.words[0] == 0;
    const uint32_t own = is_second ? hits.words[1] : hits.words[0];
    hits.words[1] = is_second ? own & (own - 1) : hits.words[1];
    hits.words[0] = is_second ? 0 : own & (own - 1);
    const uint32_t bit = own != 0 ? static_cast<uint32_t>(__ffs(static_cast<int>(own))) - 1 : 0;
    const uint32_t column = sum_column(threadIdx.x, (is_second ? 8 : 0) + bit % 8, bit / 8 % 2);
    const uint32_t bundle = work.begin + column / warp_rows * work.num_tiles + tile;
    const uint32_t query = first_query + bit / 16 * DISTANCE;
    push_pair(queue, own != 0 && bundle < work.end && query < queries.count,
              {bundle_of(a, bundle) * warp_rows + column % warp_rows, queries.slot(query)});
}

__device__ __forceinline__ void begin_queue(const hopper_shared &shared)
{
    if (threadIdx.x % 32 == 0) shared.waiting[threadIdx.x / 32] = 0;
    __syncwarp();
}

__device__ __forceinline__ pair_queue queue_of_warp(const hopper_shared &shared)
{
    const uint32_t warp = threadIdx.x / 32;
    return {shared.pairs + warp * queue_pairs, shared.waiting[warp]};
}

// All that a warp has of a tile and a block of 64; finish: as take_pairs has it. How many wait is
// in shared memory from tile to tile: registers are full.
template <uint32_t DISTANCE, class QUERIES, class FINISH>
__device__ __forceinline__ void queue_hits(const scan_arguments &a, const hopper_shared &shared,
                                           const QUERIES &queries, const block_work &work,
                                           uint32_t first_query, uint32_t tile, tile_hits hits,
                                           const FINISH &finish)
{
    pair_queue queue = queue_of_warp(shared);
#pragma unroll 1
    do {
        push_hits<DISTANCE>(a, queries, work, first_query, tile, hits, queue);
        if (queue.count >= 32) take_pairs(queue, finish);
    } while (__any_sync(all_lanes, (hits.words[0] | hits.words[1]) != 0));
    __syncwarp(); // all lanes have read how many waited
    if (threadIdx.x % 32 == 0) shared.waiting[threadIdx.x / 32] = queue.count;
    __syncwarp();
}

// The same of all blocks of a consumer, once their sums are done with: beside those of another
// block pairs have no registers to be finished in. row: of the thread's first query in a block.
template <class SHAPE, class FINISH>
__device__ __forceinline__ void queue_blocks(const scan_arguments &a, const hopper_shared &shared,
                                             const block_work &work, uint32_t row, uint32_t tile,
                                             const tile_hits (&hits)[SHAPE::blocks],
                                             const FINISH &finish)
{
    const batch_queries queries = {a, a.queries.num_queries};
#pragma unroll 1
    for (uint32_t b = 0; b < SHAPE::blocks; b++) {
        const tile_hits own = b == 0 ? hits[0] : hits[SHAPE::blocks - 1];
        if (!__any_sync(all_lanes, (own.words[0] | own.words[1]) != 0)) continue;
        const uint32_t first =
            first_of_block<SHAPE>(work.first_query, threadIdx.x / group_threads, b);
        queue_hits<8>(a, shared, queries, work, first + row, tile, own, finish);
    }
}

// What is left when there are no more tiles.
template <class FINISH>
__device__ __forceinline__ void end_queue(const hopper_shared &shared, const FINISH &finish)
{
    pair_queue queue = queue_of_warp(shared);
    if (queue.count > 0) take_pairs(queue, finish);
}

} // namespace bsw

#endif
