// SPDX-License-Identifier: Apache-2.0
// matrix_scan on Hopper (sm_90a) for layouts of more than 256 padded dimensions, embeddings of 384,
// 768 or 1,024 among them: tiles go round the ring slice by slice (hopper_slices.cuh), sums stay in
// registers over the slices of a tile, and the queries of a block stay in shared memory, whence
// wgmma takes them as well as the documents. Else as device_matrix_scan_hopper.cu: float keys of
// dots below 2^21 begin their sums with terms, others have a bound.
//
// Two consumers with 64 queries each, or with 128 where these fit.
#include "kernels/device_scan/hopper_select.cuh"
#include "kernels/device_scan/hopper_slice_products.cuh"

#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "for sm_90a alone"
#endif

namespace bsw
{
namespace
{

template <class SHAPE> size_t shared_bytes_of(const slices_arguments &a)
{
    const size_t stage =
        SHAPE::tile_bytes + tile_bundles * sizeof(bundle_bound) + ring_barrier_bytes;
    return a.num_slices * slice_chunks * SHAPE::queries * 16 + a.num_stages * stage +
           tile_bundles * a.num_slots * (a.slot_words * sizeof(uint32_t) + 8) +
           SHAPE::consumer_threads / 32 * queue_bytes +
           SHAPE::queries * (2 * sizeof(key_pair) + sizeof(key_start) / 2) +
           SHAPE::consumer_threads / 32 * sizeof(row_caps) +
           term_places * hopper_rows * sizeof(uint4);
}

template <class SHAPE>
__device__ __forceinline__ slices_shared divide_shared(const slices_arguments &a)
{
    DYNAMIC_SHARED(uint8_t, memory);
    slices_shared out;
    out.tiles = memory;
    out.queries = memory + a.num_stages * SHAPE::tile_bytes;
    out.bounds = reinterpret_cast<bundle_bound *>(out.queries + a.num_slices * slice_chunks *
                                                                    SHAPE::queries * 16);
    out.pairs = reinterpret_cast<pair *>(out.bounds + a.num_stages * tile_bundles);
    out.waiting =
        reinterpret_cast<uint32_t *>(out.pairs + SHAPE::consumer_threads / 32 * queue_pairs);
    out.caps = reinterpret_cast<row_caps *>(out.bounds);
    out.words = reinterpret_cast<key_pair *>(out.waiting + SHAPE::consumer_threads / 32);
    out.starts = reinterpret_cast<key_start *>(out.words + SHAPE::queries * 2);
    out.started = reinterpret_cast<row_caps *>(out.starts + SHAPE::queries / 2);
    out.terms = reinterpret_cast<uint4 *>(out.started + SHAPE::consumer_threads / 32);
    out.slots = reinterpret_cast<uint32_t *>(out.terms + term_places * hopper_rows);
    out.ring_barriers = shared_address(out.slots + tile_bundles * a.num_slots * a.slot_words);
    out.slot_barriers = out.ring_barriers + a.num_stages * ring_barrier_bytes;
    return out;
}

// What sums of the warpgroup's blocks begin with, once the tile's first slice is there.
template <class SHAPE>
__device__ __forceinline__ void
begin_slices(const slices_arguments &a, const slices_shared &shared, const block_work &work,
             uint32_t num_blocks, uint32_t row, uint32_t place, int (&sums)[SHAPE::blocks][64])
{
    update_starts<SHAPE, 8>(a.scan, shared, shared.caps + place * tile_bundles,
                            shared.started + threadIdx.x / 32, work.first_query, row);
#pragma unroll
    for (uint32_t b = 0; b < SHAPE::blocks; b++) {
        if (b < num_blocks)
            begin_tile(begun_with_of<SHAPE>(shared, place, b), sums[b]);
        else
            clear_sums(sums[b]);
    }
}

// Of a tile and a block of 64 queries.
template <key_kind KIND>
__device__ __forceinline__ tile_hits find_hits(const quick_query (&own)[2], const int (&sums)[64],
                                               const bundle_bound *bounds)
{
    constexpr bool has_terms = KIND == key_kind::small_float;
    const bool any = has_terms ? any_below(sums, true) : any_within<KIND>(own, sums, bounds, true);
    if (!__any_sync(all_lanes, any)) return {};
    return has_terms ? find_below(sums) : find_within<KIND>(own, sums, bounds);
}

template <class SHAPE, key_kind KIND>
__device__ __forceinline__ void consume_slices(const slices_arguments &a,
                                               const slices_shared &shared, const block_work &work)
{
    constexpr bool has_terms = KIND == key_kind::small_float;
    const uint32_t consumer = threadIdx.x / group_threads;
    const uint32_t row = fragment_row(threadIdx.x % group_threads, 0);
    quick_query own[SHAPE::blocks][2] = {};
    uint32_t num_blocks = 0; // that have queries, the same for the whole warpgroup
#pragma unroll
    for (int b = 0; b < SHAPE::blocks; b++) {
        const uint32_t query = first_of_block<SHAPE>(work.first_query, consumer, b);
        if (query < a.scan.queries.num_queries) num_blocks++;
        if (has_terms) continue;
        own[b][0] = load_quick<KIND>(a.scan, query + row);
        own[b][1] = load_quick<KIND>(a.scan, query + row + 8);
    }
    if (has_terms && threadIdx.x % 32 == 0) shared.started[threadIdx.x / 32] = {-1, -1};
    const batch_slots slots = {a.scan.codes.first_row};
    const auto finish = finish_of<KIND>(a.scan, slots);
    begin_queue(shared);
    ring_place at = {0, 0};
#pragma unroll 1
    for (uint32_t tile = 0; tile < work.num_tiles; tile++) {
        int sums[SHAPE::blocks][64];
        if (!has_terms) {
#pragma unroll
            for (int b = 0; b < SHAPE::blocks; b++) clear_sums(sums[b]);
        } else {
            barrier_wait(full_barrier(shared, at.index), at.parity);
            begin_slices<SHAPE>(a, shared, work, num_blocks, row, tile % term_places, sums);
        }
        multiply_slices<SHAPE>(a, shared, num_blocks, has_terms, at, sums);
        tile_hits hits[SHAPE::blocks] = {};
#pragma unroll
        for (int b = 0; b < SHAPE::blocks; b++) {
            if (b < static_cast<int>(num_blocks))
                hits[b] = find_hits<KIND>(own[b], sums[b], shared.bounds + at.index * tile_bundles);
        }
        queue_blocks<SHAPE>(a.scan, shared, work, row, tile, hits, finish);
        release_stage(shared, at, a.num_stages);
    }
    end_queue(shared, finish);
}

template <class SHAPE, key_kind KIND>
__global__ void __launch_bounds__(SHAPE::threads, 1)
    scan_hopper_slices(const __grid_constant__ slices_arguments a)
{
    const slices_shared shared = divide_shared<SHAPE>(a);
    const block_work work = work_of_block(a.scan, SHAPE::queries);
    if (threadIdx.x == 0) init_barriers(shared, a.num_stages, a.num_slots, SHAPE::consumers);
    load_queries<SHAPE>(a, work.first_query, shared.queries);
    __syncthreads();
    if (threadIdx.x / group_threads == SHAPE::consumers)
        produce_slices<SHAPE, scan_keys<KIND>>(a, shared, work);
    else
        consume_slices<SHAPE, KIND>(a, shared, work);
}

// ---- launch ----

template <class SHAPE, key_kind KIND> constexpr slices_kernel<slices_arguments> make_kernel()
{
    return {SHAPE::queries, SHAPE::threads, shared_bytes_of<SHAPE>,
            scan_hopper_slices<SHAPE, KIND>};
}

template <key_kind KIND>
constexpr slices_kernel<slices_arguments> kernels[2] = {
    make_kernel<hopper_shape<slice_words, 1, 2>, KIND>(),
    make_kernel<hopper_shape<slice_words, 2, 2>, KIND>()};

} // namespace

bool hopper_slices_fits(const bsw_code_layout &layout, uint32_t, uint32_t)
{
    hopper_slice slices[most_slices];
    return layout.padded_dims > most_dims && // others have kernels without slices
           cut_slices(layout, layout.padded_dims / hopper_word_dims, slices) > 0;
}

cudaError_t scan_hopper_slices(scan_arguments scan, cudaStream_t stream)
{
    if (!is_aligned(scan.codes)) return cudaErrorInvalidValue;
    slices_arguments a = {scan, 0, 0, 0, 0, {}};
    a.num_slices =
        cut_slices(scan.codes.layout, scan.codes.layout.padded_dims / hopper_word_dims, a.slices);
    a.slot_words = slot_words_of(a, key_words);
    switch (choose_keys(scan)) {
    case key_kind::integer:
        return launch_slices(kernels<key_kind::integer>, a, stream);
    case key_kind::small_float:
        return launch_slices(kernels<key_kind::small_float>, a, stream);
    default:
        return launch_slices(kernels<key_kind::any_float>, a, stream);
    }
}

} // namespace bsw
