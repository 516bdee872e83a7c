// SPDX-License-Identifier: Apache-2.0
// The consumers of device_matrix_scan_hopper.cu, which says how it works, and of
// device_list_scan_hopper.cu: queries in registers, tiles of the ring times these, what passes to
// the lists. And how much of the rings a block has.
#ifndef BITSWEEP_KERNELS_HOPPER_SCAN_CUH
#define BITSWEEP_KERNELS_HOPPER_SCAN_CUH

#include "kernels/device_scan/hopper_produce.cuh"
#include "kernels/device_scan/hopper_select.cuh"

namespace bsw
{

// Queries of a block of 64 fill the rows g of all warps before the rows g + 8: up to 32 leave the
// second half of every thread's sums alone.
constexpr uint32_t half_queries = hopper_queries / 2;

__device__ __forceinline__ uint32_t query_of_row(uint32_t thread, uint32_t half)
{
    return thread / 32 * 8 + thread % 32 / 4 + half_queries * half;
}

// The thread's part of A: 0 for dimensions and queries that do not exist.
template <class SHAPE, class QUERIES>
__device__ __forceinline__ void load_fragments(const scan_arguments &a, const QUERIES &queries,
                                               uint32_t first_query,
                                               unsigned (&fragments)[SHAPE::words][4])
{
    const uint32_t thread = threadIdx.x % group_threads, dims = a.codes.layout.padded_dims;
#pragma unroll
    for (uint32_t word = 0; word < SHAPE::words; word++) {
#pragma unroll
        for (uint32_t r = 0; r < 4; r++) {
            const uint32_t query = queries.number(first_query + query_of_row(thread, r % 2));
            unsigned value = 0;
            if (query < a.queries.num_queries && word * hopper_word_dims < dims)
                value = __ldg(reinterpret_cast<const unsigned *>(
                    a.queries.components + static_cast<size_t>(query) * dims +
                    word * hopper_word_dims + fragment_k(thread, r)));
            fragments[word][r] = static_cast<unsigned>(opaque(static_cast<int>(value)));
        }
    }
}

template <class SHAPE>
__device__ __forceinline__ void multiply_tile(uint32_t tile,
                                              const unsigned (&fragments)[SHAPE::words][4],
                                              bool adds, int (&sums)[64])
{
    begin_products();
#pragma unroll
    for (uint32_t word = 0; word < SHAPE::words; word++)
        multiply_64x128(sums, fragments[word], tile_descriptor(tile, word), adds || word > 0);
}

// A tile and a consumer's block of 64 queries.
template <class SHAPE, key_kind KIND, class QUERIES, class SLOTS>
__device__ __forceinline__ void
scan_block(const hopper_arguments &a, const hopper_shared &shared, const QUERIES &queries,
           const SLOTS &slots, const block_work &work, const unsigned (&fragments)[SHAPE::words][4],
           const quick_query (&own)[2], const begun_with &with, uint32_t first_query, uint32_t tile,
           uint32_t stage, bool has_second)
{
    constexpr bool has_terms = KIND == key_kind::small_float;
    constexpr bool may_skip = SHAPE::consumers == 1 && SHAPE::words < 8; // else registers spill
    int sums[64];
    if (has_terms) begin_tile(with, sums);
    multiply_tile<SHAPE>(shared_address(shared.tiles + stage * SHAPE::tile_bytes), fragments,
                         has_terms, sums);
    finish_products(sums);
    const bundle_bound *bounds = shared.bounds + stage * tile_bundles;
    const bool any = has_terms ? any_below(sums, !may_skip || has_second)
                               : any_within<KIND>(own, sums, bounds, !may_skip || has_second);
    if (!__any_sync(all_lanes, any)) return;
    const tile_hits hits = has_terms ? find_below(sums) : find_within<KIND>(own, sums, bounds);
    queue_hits<half_queries>(a.scan, shared, queries, work, first_query, tile, hits,
                             finish_of<KIND>(a.scan, slots));
}

// Loads a thread's two queries in a block of 64.
template <key_kind KIND, class QUERIES>
__device__ __forceinline__ void load_pair(const QUERIES &queries, uint32_t first,
                                          quick_query (&out)[2])
{
    out[0] = queries.template quick<KIND>(first);
    out[1] = queries.template quick<KIND>(first + half_queries);
}

// Tiles of the block's work, or of one item of it; at: of the first in the ring, in the end of the
// one that follows.
template <class SHAPE, key_kind KIND, class QUERIES, class SLOTS>
__device__ __forceinline__ void
consume_tiles(const hopper_arguments &a, const hopper_shared &shared, const QUERIES &queries,
              const SLOTS &slots, const block_work &work, ring_place &at)
{
    constexpr bool has_terms = KIND == key_kind::small_float;
    const uint32_t consumer = threadIdx.x / group_threads;
    const uint32_t row = query_of_row(threadIdx.x % group_threads, 0);
    unsigned fragments[SHAPE::blocks][SHAPE::words][4];
    quick_query own[SHAPE::blocks][2] = {};
#pragma unroll
    for (int b = 0; b < SHAPE::blocks; b++) {
        const uint32_t query = first_of_block<SHAPE>(work.first_query, consumer, b);
        load_fragments<SHAPE>(a.scan, queries, query, fragments[b]);
        if (!has_terms && QUERIES::keeps_quick) load_pair<KIND>(queries, query + row, own[b]);
    }
    if (has_terms && threadIdx.x % 32 == 0) shared.started[threadIdx.x / 32] = {-1, -1};
    __syncwarp();
    for (uint32_t tile = 0; tile < work.num_tiles; tile++, advance(at, a.num_stages)) {
        barrier_wait(full_barrier(shared, at.index), at.parity);
        if (has_terms)
            update_starts<SHAPE, half_queries>(
                queries, shared, shared.caps + at.index * tile_bundles,
                shared.started + threadIdx.x / 32, work.first_query, row);
#pragma unroll
        for (int b = 0; b < SHAPE::blocks; b++) {
            const uint32_t query = first_of_block<SHAPE>(work.first_query, consumer, b);
            begun_with with = {};
            if (has_terms) with = begun_with_of<SHAPE>(shared, at.index, b);
            if (!has_terms && !QUERIES::keeps_quick) load_pair<KIND>(queries, query + row, own[b]);
            if (query < queries.count) // the same for the whole warpgroup
                scan_block<SHAPE, KIND>(a, shared, queries, slots, work, fragments[b], own[b], with,
                                        query + row, tile, at.index,
                                        query + half_queries < queries.count);
        }
        barrier_arrive_warp(empty_barrier(shared, at.index)); // all have read bounds or terms
    }
}

// ---- launch ----

inline uint32_t bundle_words_of(const bsw_code_layout &layout)
{
    size_t words = key_words;
    for (uint32_t s = 0; s < layout.num_segments; s++)
        words += bsw_segment_bundle_words(&layout.segments[s]);
    return static_cast<uint32_t>(words);
}

// What is compiled of a kernel, and chosen by.
struct hopper_block {
    uint32_t words, queries, consumers, threads, blocks_together;
};

template <class SHAPE> constexpr hopper_block make_hopper_block()
{
    return {SHAPE::words, SHAPE::queries, SHAPE::consumers, SHAPE::threads, SHAPE::blocks_together};
}

// As much as fits, of what is far ahead first; false if not even the least does.
inline bool fit_rings(const hopper_block &block, size_t most_bytes, hopper_arguments &a)
{
    static const uint32_t rings[][3] = {{4, 4, 4}, {4, 2, 4}, {3, 2, 4}, {4, 3, 2}, {3, 2, 2},
                                        {4, 2, 1}, {3, 2, 1}, {2, 2, 1}}; // stages, slots, bundles
    for (const uint32_t(&ring)[3] : rings) {
        a.num_stages = ring[0];
        a.num_slots = ring[1];
        a.slot_bundles = ring[2];
        if (shared_bytes_of(block.words, block.consumers, block.queries, a) <= most_bytes)
            return true;
    }
    return false;
}

// What a block has where as many are together on a multiprocessor, or else what it has alone.
// block_bytes: most of a block, less than what a multiprocessor has for it and the system. beside:
// of these what a block has beside what shared_bytes_of counts.
inline bool choose_rings(const hopper_block &block, size_t block_bytes, size_t beside,
                         hopper_arguments &a)
{
    const size_t of_system = 1024; // of every block
    const size_t together = (block_bytes + of_system) / block.blocks_together - of_system;
    return fit_rings(block, together - beside, a) || fit_rings(block, block_bytes - beside, a);
}

} // namespace bsw

#endif
