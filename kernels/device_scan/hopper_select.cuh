// SPDX-License-Identifier: Apache-2.0
// From the sums of the Hopper kernels to the lists.
//
// Sums of small float keys start with terms of keys (key_terms.cuh): one bit of each says whether
// its pair may pass. Otherwise, of the eight sums that a thread has of a bundle and a query the
// least is compared with a bound: a limit on integers, or for float keys one that holds for all
// rows of the bundle (dot_bound.cuh). Only where that finds something keys are compared, as in
// device_matrix_scan.cu. Sums are not indexed at run time: the rare way copies eight at a time to a
// place of the thread's own in shared memory. It calls no function, which would have ptxas wait
// after every wgmma.
#ifndef BITSWEEP_KERNELS_HOPPER_SELECT_CUH
#define BITSWEEP_KERNELS_HOPPER_SELECT_CUH

#include "kernels/device_scan/hopper_shared.cuh"

namespace bsw
{

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

// Which parts (bundle after bundle, two queries each) of the thread's sums may have one that
// passes, rows that do not exist or are masked included: a bit each. Of the halves FIRST .. LAST
// - 1, a query each.
template <key_kind KIND, uint32_t FIRST, uint32_t LAST>
__device__ __forceinline__ uint32_t find_parts(const quick_query (&own)[2], const int (&sums)[64],
                                               const bundle_bound *bounds)
{
    uint32_t parts = 0;
#pragma unroll
    for (uint32_t bundle = 0; bundle < tile_bundles; bundle++) {
        bundle_bound bound = {};
        if (KIND != key_kind::integer) bound = load_after_wait(bounds + bundle);
#pragma unroll
        for (uint32_t half = FIRST; half < LAST; half++) {
            const int least = least_sum(sums, bundle, half);
            if (may_pass<KIND>(own[half], least, bound)) parts |= 1u << (2 * bundle + half);
        }
    }
    return parts;
}

// The same for all lanes of the warp. MAY_SKIP: there may be no queries of the second half,
// has_second says so, the same for the warp.
template <key_kind KIND, bool MAY_SKIP>
__device__ __forceinline__ uint32_t find_parts(const quick_query (&own)[2], const int (&sums)[64],
                                               const bundle_bound *bounds, bool has_second)
{
    uint32_t found = find_parts < KIND, 0, MAY_SKIP ? 1 : 2 > (own, sums, bounds);
    if (MAY_SKIP && has_second) found |= find_parts<KIND, 1, 2>(own, sums, bounds);
    return __reduce_or_sync(all_lanes, found);
}

// A thread's place for a part's sums: pairs, those of all threads after each other, so that a pair
// leaves as it is in registers. Sum 2 * i + c: of the part's eight-column group i, column c of the
// thread's two.
struct rare_place {
    int *pairs;
    uint32_t stride; // from pair to pair, ints

    __device__ __forceinline__ int &operator[](uint32_t i) const
    {
        return pairs[i / 2 * stride + i % 2];
    }
};

__device__ __forceinline__ rare_place place_of_thread(const hopper_shared &shared,
                                                      uint32_t consumer_threads)
{
    return {shared.rare + threadIdx.x * 2, consumer_threads * 2};
}

__device__ __forceinline__ void copy_part(const int (&sums)[64], uint32_t part,
                                          const rare_place &place)
{
#pragma unroll
    for (uint32_t p = 0; p < 2 * tile_bundles; p++) {
        if (p != part) continue;
#pragma unroll
        for (uint32_t i = 0; i < rare_sums; i++)
            place[i] = sums[sum_register(p / 2 * 4 + i / 2, p % 2, i % 2)];
    }
}

// Where in its bundle, or in its 32 columns of the tile, sum i of a part is.
__device__ __forceinline__ uint32_t row_of_sum(uint32_t i)
{
    return sum_column(threadIdx.x, i / 2, i % 2);
}

// A bundle of a tile, as the rare way sees it. first_row: of the bundle in the codes.
struct rare_bundle {
    uint32_t first_row, mask;
};

// The row's scale and bias.
template <key_kind KIND>
__device__ __forceinline__ float2 load_keys(const scan_arguments &a, uint32_t row)
{
    if (KIND == key_kind::integer) return {0, 0};
    return {half_to_float(__ldg(a.codes.scales + row)), __ldg(a.codes.biases + row)};
}

// Finds the hits among `some` of the sums, a bit each, the same for the warp. QUERY: thread_query,
// or what else reaches<KIND> takes.
template <key_kind KIND, class QUERY>
__device__ __forceinline__ uint32_t find_hits(const scan_arguments &a, const QUERY &query,
                                              const rare_bundle &of, const rare_place &place,
                                              uint32_t some)
{
    uint32_t hits = 0;
#pragma unroll 1
    for (; some != 0; some &= some - 1) {
        const uint32_t i = static_cast<uint32_t>(__ffs(static_cast<int>(some)) - 1);
        if (!(of.mask >> row_of_sum(i) & 1)) continue;
        const float2 keys = load_keys<KIND>(a, of.first_row + row_of_sum(i));
        if (reaches<KIND>(query, place[i], keys.x, keys.y)) hits |= 1u << i;
    }
    return hits;
}

// Which queries a block has, by their places i in the scan:
//
//   count                              of them; places from there on have none
//   number(i)                          in the batch; none of the batch: there is none
//   quick<KIND>(i)                     as load_quick; keeps_quick: once, not for every tile
//   load_key_query(queries, i)         as that of key_terms.cuh
//   keys<KIND>(i)                      what reaches<KIND> takes
//   item<KIND>(query, row, score)      a candidate; query: what keys gave; row: in the codes
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

    template <key_kind KIND> __device__ __forceinline__ thread_query keys(uint32_t i) const
    {
        return load_query<KIND>(a, i);
    }

    template <key_kind KIND>
    __device__ __forceinline__ uint64_t item(const thread_query &, uint32_t row,
                                             uint32_t score) const
    {
        return pack_candidate(score, a.codes.first_row + row);
    }
};

__device__ __forceinline__ key_query load_key_query(const batch_queries &queries, uint32_t i)
{
    return load_key_query(queries.a, i);
}

// Hits of the four lanes that share the query, number `own` of the block, to its list, one
// atomicAdd.
template <key_kind KIND, class QUERIES, class QUERY>
__device__ __forceinline__ void append_hits(const scan_arguments &a, const QUERIES &queries,
                                            const QUERY &query, uint32_t own, const rare_bundle &of,
                                            const rare_place &place, uint32_t hits)
{
    const uint32_t number = queries.number(own);
    uint32_t at = take_places(a.lists, number, static_cast<uint32_t>(__popc(hits)));
#pragma unroll 1
    for (; hits != 0; hits &= hits - 1, at++) {
        const uint32_t i = static_cast<uint32_t>(__ffs(static_cast<int>(hits)) - 1);
        const uint32_t row = of.first_row + row_of_sum(i);
        const float2 keys = load_keys<KIND>(a, row);
        const int dot = query.constant - 2 * place[i];
        const uint32_t score = score_of<KIND>(dot, query.scale, keys.x, keys.y);
        put_item(a.lists, number, at, queries.template item<KIND>(query, row, score));
    }
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

// Which of a part's sums may pass in some lane, the same for the warp: rarely more than one or two,
// and the keys of each row are fetched from memory.
__device__ __forceinline__ uint32_t sums_below(const rare_place &place)
{
    uint32_t below = 0;
#pragma unroll
    for (uint32_t i = 0; i < rare_sums; i++) {
        if (!(static_cast<uint32_t>(place[i]) & still_above)) below |= 1u << i;
    }
    return __reduce_or_sync(all_lanes, below);
}

// Takes the first step away from `some` of a part's sums, the same for the warp. One at a time:
// registers are full of other sums.
__device__ __forceinline__ void take_terms(const begun_with &with, uint32_t part, uint32_t some,
                                           const rare_place &place)
{
    const uint32_t *terms =
        reinterpret_cast<const uint32_t *>(with.terms + part / 2 * warp_rows) + threadIdx.x % 32;
    const key_pair words = *with.words;
    const key_start start = *with.start;
#pragma unroll 1
    for (; some != 0; some &= some - 1) {
        const uint32_t i = static_cast<uint32_t>(__ffs(static_cast<int>(some)) - 1);
        int begun[4];
        begin_sums(begun, words, load_after_wait(terms + i / 2 * 32), start);
        const int first = part % 2 ? begun[2] : begun[0], second = part % 2 ? begun[3] : begun[1];
        place[i] -= i % 2 ? second : first;
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

// Bits as in find_parts, the same for all lanes of the warp; so is has_second: whether there are
// queries of the second half.
__device__ __forceinline__ uint32_t find_below(const int (&sums)[64], bool has_second)
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
    if (!__any_sync(all_lanes, (and_bits(all[0], all[1], all[2]) & all[3]) == 0)) return 0;
    uint32_t parts = 0;
#pragma unroll
    for (uint32_t bundle = 0; bundle < tile_bundles; bundle++) {
        if (join_sums(sums, bundle, 0, still_above) == 0) parts |= 1u << (2 * bundle);
        if (has_second && join_sums(sums, bundle, 1, still_above) == 0) parts |= 2u << (2 * bundle);
    }
    return __reduce_or_sync(all_lanes, parts);
}

// ---- tiles ----

// first_query: of the thread's row 0, the other half's is DISTANCE further; parts: the same for the
// warp; with.terms: NULL where sums start with 0.
template <key_kind KIND, uint32_t DISTANCE, class QUERIES>
__device__ __forceinline__ void
append_tile(const scan_arguments &a, const QUERIES &queries, const block_work &work,
            uint32_t first_query, uint32_t tile, const int (&sums)[64], const rare_place &place,
            uint32_t parts, const begun_with &with)
{
#pragma unroll 1
    for (; parts != 0; parts &= parts - 1) {
        const uint32_t part = static_cast<uint32_t>(__ffs(static_cast<int>(parts)) - 1);
        const uint32_t i = work.begin + part / 2 * work.num_tiles + tile;
        if (i >= work.end) return; // nor are there any later ones
        const uint32_t bundle = bundle_of(a, i);
        const rare_bundle of = {bundle * warp_rows, __ldg(a.codes.masks + bundle)};
        copy_part(sums, part, place);
        const uint32_t some = with.terms ? sums_below(place) : (1u << rare_sums) - 1;
        if (with.terms) take_terms(with, part, some, place);
        const uint32_t own = first_query + DISTANCE * (part % 2);
        const auto query = queries.template keys<KIND>(own);
        const uint32_t hits = find_hits<KIND>(a, query, of, place, some);
        if (__any_sync(all_lanes, hits != 0))
            append_hits<KIND>(a, queries, query, own, of, place, hits);
    }
}

} // namespace bsw

#endif
