// SPDX-License-Identifier: Apache-2.0
// The consumers' products of scans by slices (hopper_slices.cuh): the queries of a block stay in
// shared memory, whence wgmma takes them as well as the documents, and sums stay in registers over
// the slices of a tile.
#ifndef BITSWEEP_KERNELS_HOPPER_SLICE_PRODUCTS_CUH
#define BITSWEEP_KERNELS_HOPPER_SLICE_PRODUCTS_CUH

#include "kernels/device_scan/hopper_slices.cuh"

namespace bsw
{

constexpr uint32_t slice_chunks = slice_words * 2; // of 16 dimensions

struct slices_shared : hopper_shared {
    uint8_t *queries; // [num_slices][slice_chunks][SHAPE::queries][16]
};

// By all threads: 0 for dimensions and queries that do not exist.
template <class SHAPE>
__device__ __forceinline__ void load_queries(const slices_arguments &a, uint32_t first_query,
                                             uint8_t *queries)
{
    const uint32_t chunks = a.num_slices * slice_chunks;
    for (uint32_t i = threadIdx.x; i < chunks * SHAPE::queries; i += SHAPE::threads) {
        const uint32_t chunk = i / SHAPE::queries, query = first_query + i % SHAPE::queries;
        const hopper_slice &slice = a.slices[chunk / slice_chunks];
        const uint32_t word = chunk % slice_chunks / 2;
        uint4 value = make_uint4(0, 0, 0, 0);
        if (query < a.scan.queries.num_queries && word < slice.words)
            value = __ldg(reinterpret_cast<const uint4 *>(
                a.scan.queries.components +
                static_cast<size_t>(query) * a.scan.codes.layout.padded_dims +
                (slice.padded + word) * hopper_word_dims + chunk % 2 * 16));
        reinterpret_cast<uint4 *>(queries)[i] = value;
    }
    fence_for_async_accesses();
}

// Sums that nothing else sets before their tile is done: ptxas takes them for those of the tile
// before otherwise, which pairs then have no registers beside to be finished in.
__device__ __forceinline__ void clear_sums(int (&sums)[64])
{
#pragma unroll
    for (int i = 0; i < 64; i++) sums[i] = 0;
}

// queries: address of a block of 64 of them and the slice.
template <class SHAPE>
__device__ __forceinline__ void multiply_slice(uint32_t queries, uint32_t tile, bool adds,
                                               int (&sums)[64])
{
    constexpr uint32_t chunk_bytes = SHAPE::queries * 16;
    begin_products();
#pragma unroll
    for (uint32_t word = 0; word < slice_words; word++)
        multiply_64x128(sums, matrix_descriptor(queries + 2 * word * chunk_bytes, chunk_bytes),
                        tile_descriptor(tile, word), adds || word > 0);
    finish_products(sums);
}

__device__ __forceinline__ void release_stage(const hopper_shared &shared, ring_place &at,
                                              uint32_t num_stages)
{
    barrier_arrive_warp(empty_barrier(shared, at.index));
    advance(at, num_stages);
}

// The tile's slices; the last one's stage, which has the bounds, is not released. adds: to sums
// that have begun.
template <class SHAPE>
__device__ __forceinline__ void
multiply_slices(const slices_arguments &a, const slices_shared &shared, uint32_t num_blocks,
                bool adds, ring_place &at, int (&sums)[SHAPE::blocks][64])
{
    const uint32_t own =
        shared_address(shared.queries) + threadIdx.x / group_threads * hopper_queries * 16;
#pragma unroll 1
    for (uint32_t slice = 0; slice < a.num_slices; slice++) {
        if (slice > 0) release_stage(shared, at, a.num_stages);
        barrier_wait(full_barrier(shared, at.index), at.parity);
        const uint32_t queries = own + slice * slice_chunks * SHAPE::queries * 16;
#pragma unroll
        for (uint32_t b = 0; b < SHAPE::blocks; b++) {
            if (b < num_blocks)
                multiply_slice<SHAPE>(queries + b * SHAPE::consumers * hopper_queries * 16,
                                      shared_address(shared.tiles + at.index * SHAPE::tile_bytes),
                                      adds || slice > 0, sums[b]);
        }
    }
}

} // namespace bsw

#endif
