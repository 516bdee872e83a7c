// SPDX-License-Identifier: Apache-2.0
// The progressive scan on Hopper (sm_90a): the first stage slice by slice, as
// device_matrix_slices_hopper.cu takes whole rows. Sums begin with the bound's terms
// (stage_terms.cuh); a pair whose sum has lost bit 22 goes on, waits in a queue of its warp, and is
// finished from the planes (pair_queue.cuh).
//
// Producers fetch and unpack the slices of the stage alone; with the first one come scales, biases
// and tails. Rows that are masked or not there have terms that no sum survives, so they cost
// nothing here but for wild queries, of which all pairs go on.
//
// Two consumers with 64 queries each, or with 128 where these fit.
#include "kernels/device_scan/hopper_select.cuh"
#include "kernels/device_scan/hopper_slice_products.cuh"
#include "kernels/device_scan/stage_terms.cuh"

#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "for sm_90a alone"
#endif

namespace bsw
{
namespace
{

// What a progressive scan takes. Rows do not go to queues of threads here.
bool is_valid_progressive_scan(const bsw_device_codes &codes, const bsw_device_stage &stage,
                               const bsw_device_part &part, const bsw_device_queries &queries,
                               const bsw_device_lists &lists)
{
    return is_valid_scan(codes, part, queries, lists) && !lists.queues.slots &&
           stage.dims % 32 == 0 && stage.dims >= 32 && stage.dims < codes.layout.padded_dims &&
           codes.scales && codes.tails && bsw_device_stage_fits(&codes.layout, queries.query_bits);
}

struct stage_arguments : slices_arguments {
    bsw_device_stage stage;
};
static_assert(sizeof(stage_arguments) <= 4096, "more than a launch carries");

DEVICE_POINTERS(stage_arguments, a.scan, a.stage)

struct stage_shared : slices_shared {
    stage_caps *tile_caps; // [term_places][tile_bundles]
    stage_caps *made_for;  // [consumer_threads / 32], of words and starts
};

template <class SHAPE> size_t shared_bytes_of(const stage_arguments &a)
{
    constexpr size_t warps = SHAPE::consumer_threads / 32;
    return a.num_stages * (SHAPE::tile_bytes + ring_barrier_bytes) +
           a.num_slices * slice_chunks * SHAPE::queries * 16 +
           term_places * (hopper_rows * sizeof(uint4) + tile_bundles * sizeof(stage_caps)) +
           SHAPE::queries * (2 * sizeof(key_pair) + sizeof(key_start) / 2) +
           warps * (sizeof(stage_caps) + queue_bytes) +
           tile_bundles * a.num_slots * (a.slot_words * sizeof(uint32_t) + 8);
}

// Every part but the barriers is a multiple of 16 bytes long.
template <class SHAPE>
__device__ __forceinline__ stage_shared divide_shared(const stage_arguments &a)
{
    constexpr uint32_t warps = SHAPE::consumer_threads / 32;
    DYNAMIC_SHARED(uint8_t, memory);
    stage_shared out = {};
    out.tiles = memory;
    out.queries = memory + a.num_stages * SHAPE::tile_bytes;
    out.terms =
        reinterpret_cast<uint4 *>(out.queries + a.num_slices * slice_chunks * SHAPE::queries * 16);
    out.tile_caps = reinterpret_cast<stage_caps *>(out.terms + term_places * hopper_rows);
    out.made_for = out.tile_caps + term_places * tile_bundles;
    out.words = reinterpret_cast<key_pair *>(out.made_for + warps);
    out.starts = reinterpret_cast<key_start *>(out.words + SHAPE::queries * 2);
    out.pairs = reinterpret_cast<pair *>(out.starts + SHAPE::queries / 2);
    out.waiting = reinterpret_cast<uint32_t *>(out.pairs + warps * queue_pairs);
    out.slots = out.waiting + warps;
    out.ring_barriers = shared_address(out.slots + tile_bundles * a.num_slots * a.slot_words);
    out.slot_barriers = out.ring_barriers + a.num_stages * ring_barrier_bytes;
    return out;
}

// ---- producers ----

// As scan_keys. The mask of the next tile's bundle is on its way while this one is made.
struct stage_keys {
    typedef stage_shared memory;
    struct state {
        stage_caps caps;
        uint32_t mask;
    };
    static constexpr uint32_t words = key_words + warp_rows / 2; // tails behind biases

    __device__ static __forceinline__ uint32_t load_mask(const slices_arguments &a,
                                                         const warp_work &own, uint32_t bundle)
    {
        return bundle < own.last ? __ldg(a.scan.codes.masks + bundle_of(a.scan, bundle)) : 0;
    }

    __device__ static __forceinline__ state begin(const slices_arguments &a, const warp_work &own)
    {
        return {{0, 0, 0, 0}, load_mask(a, own, own.first)};
    }

    __device__ static __forceinline__ bool are_in(const slices_arguments &, uint32_t slice)
    {
        return slice == 0;
    }

    __device__ static __forceinline__ void fetch(const slices_arguments &a, size_t bundle,
                                                 uint32_t to, uint32_t barrier)
    {
        scan_keys<key_kind::small_float>::fetch(a, bundle, to, barrier);
        if (threadIdx.x % 32 == 2)
            bulk_copy(to + key_words * 4, a.scan.codes.tails + bundle * warp_rows, warp_rows * 2,
                      barrier);
    }

    // place: of the tile's terms.
    __device__ static __forceinline__ void store(const memory &shared, uint32_t place,
                                                 const uint4 &terms, const stage_caps &caps)
    {
        const uint32_t row = threadIdx.x % group_threads;
        shared.terms[place * hopper_rows + row] = terms;
        if (row % warp_rows == 0) shared.tile_caps[place * tile_bundles + row / warp_rows] = caps;
    }

    __device__ static __forceinline__ void make(const slices_arguments &a, const memory &shared,
                                                const uint32_t *keys, const warp_work &own,
                                                uint32_t bundle, uint32_t, state &state)
    {
        const uint32_t lane = threadIdx.x % 32, mask = state.mask;
        state.mask = load_mask(a, own, bundle + 1);
        const float scale = half_to_float(reinterpret_cast<const uint16_t *>(keys)[lane]);
        const float bias = __uint_as_float(keys[warp_rows / 2 + lane]);
        const float tail =
            half_to_float(reinterpret_cast<const uint16_t *>(keys + key_words)[lane]);
        const uint4 terms = make_stage_terms(scale, bias, tail, mask >> lane & 1, state.caps);
        store(shared, (bundle - own.first) % term_places, terms, state.caps);
    }

    __device__ static __forceinline__ void make_none(const memory &shared, uint32_t tile)
    {
        store(shared, tile % term_places, make_uint4(0, 0, 0, minus_one_bf16), {0, 0, 0, 0});
    }
};

// ---- consumers ----

// Queries that do not exist have sums that nothing brings below.
__device__ __forceinline__ stage_query load_key_query(const stage_arguments &a, uint32_t query)
{
    if (query >= a.scan.queries.num_queries) return {{0, 0, 0, 0}, 0, 0, 0, middle + aside};
    return stage_query_of(float_limit(__ldg(a.scan.lists.limits + query)),
                          __ldg(a.scan.queries.scales + query), __ldg(a.stage.reaches + query),
                          __ldg(a.stage.constants + query));
}

template <class SHAPE>
__device__ __forceinline__ void
begin_stage(const stage_arguments &a, const stage_shared &shared, const block_work &work,
            uint32_t num_blocks, uint32_t row, uint32_t place, int (&sums)[SHAPE::blocks][64])
{
    update_starts<SHAPE, 8>(a, shared, shared.tile_caps + place * tile_bundles,
                            shared.made_for + threadIdx.x / 32, work.first_query, row);
#pragma unroll
    for (uint32_t b = 0; b < SHAPE::blocks; b++) {
        if (b < num_blocks)
            begin_tile(begun_with_of<SHAPE>(shared, place, b), sums[b]);
        else
            clear_sums(sums[b]);
    }
}

// Pairs of rows that the mask has are counted.
__device__ __forceinline__ auto finish_of(const stage_arguments &a)
{
    return [&a](bool has, const pair &own) {
        if (has)
            has = (__ldg(a.scan.codes.masks + own.place / warp_rows) >> own.place % warp_rows &
                   1) != 0;
        const int count = __popc(__ballot_sync(all_lanes, has));
        if (threadIdx.x % 32 == 0)
            atomicAdd(reinterpret_cast<unsigned long long *>(a.stage.survivors),
                      static_cast<unsigned long long>(count));
        finish_pair<key_kind::small_float>(a.scan, batch_slots{a.scan.codes.first_row}, has, own);
    };
}

template <class SHAPE>
__device__ __forceinline__ void consume_stage(const stage_arguments &a, const stage_shared &shared,
                                              const block_work &work)
{
    const uint32_t consumer = threadIdx.x / group_threads, warp = threadIdx.x / 32;
    const uint32_t row = fragment_row(threadIdx.x % group_threads, 0);
    uint32_t num_blocks = 0; // that have queries, the same for the whole warpgroup
#pragma unroll
    for (uint32_t b = 0; b < SHAPE::blocks; b++) {
        if (first_of_block<SHAPE>(work.first_query, consumer, b) < a.scan.queries.num_queries)
            num_blocks++;
    }
    if (threadIdx.x % 32 == 0) shared.made_for[warp] = {-1, -1, -1, 0};
    begin_queue(shared);
    ring_place at = {0, 0};
#pragma unroll 1
    for (uint32_t tile = 0; tile < work.num_tiles; tile++) {
        int sums[SHAPE::blocks][64];
        barrier_wait(full_barrier(shared, at.index), at.parity);
        begin_stage<SHAPE>(a, shared, work, num_blocks, row, tile % term_places, sums);
        multiply_slices<SHAPE>(a, shared, num_blocks, true, at, sums);
        tile_hits hits[SHAPE::blocks] = {};
#pragma unroll
        for (int b = 0; b < SHAPE::blocks; b++) {
            if (b < static_cast<int>(num_blocks) && __any_sync(all_lanes, any_below(sums[b], true)))
                hits[b] = find_below(sums[b]);
        }
        queue_blocks<SHAPE>(a.scan, shared, work, row, tile, hits, finish_of(a));
        release_stage(shared, at, a.num_stages);
    }
    end_queue(shared, finish_of(a));
}

template <class SHAPE>
__global__ void __launch_bounds__(SHAPE::threads, 1)
    scan_stage_slices(const __grid_constant__ stage_arguments a)
{
    const stage_shared shared = divide_shared<SHAPE>(a);
    const block_work work = work_of_block(a.scan, SHAPE::queries);
    if (threadIdx.x == 0) init_barriers(shared, a.num_stages, a.num_slots, SHAPE::consumers);
    load_queries<SHAPE>(a, work.first_query, shared.queries);
    __syncthreads();
    if (threadIdx.x / group_threads == SHAPE::consumers)
        produce_slices<SHAPE, stage_keys>(a, shared, work);
    else
        consume_stage<SHAPE>(a, shared, work);
}

// ---- launch ----

template <class SHAPE> constexpr slices_kernel<stage_arguments> make_kernel()
{
    return {SHAPE::queries, SHAPE::threads, shared_bytes_of<SHAPE>, scan_stage_slices<SHAPE>};
}

constexpr slices_kernel<stage_arguments> kernels[2] = {
    make_kernel<hopper_shape<slice_words, 1, 2>>(), make_kernel<hopper_shape<slice_words, 2, 2>>()};

} // namespace
} // namespace bsw

extern "C" int bsw_device_has_hopper_stage(const struct bsw_code_layout *layout,
                                           uint32_t stage_dims)
{
    bsw::hopper_slice slices[bsw::most_slices];
    return bsw::is_hopper() &&
           bsw::cut_slices(*layout, stage_dims / bsw::hopper_word_dims, slices) > 0;
}

extern "C" int bsw_device_progressive_scan_hopper(const struct bsw_device_codes *codes,
                                                  const struct bsw_device_stage *stage,
                                                  const struct bsw_device_part *part,
                                                  const struct bsw_device_queries *queries,
                                                  const struct bsw_device_lists *lists,
                                                  bsw_stream stream)
{
    using namespace bsw;
    if (!is_valid_progressive_scan(*codes, *stage, *part, *queries, *lists) ||
        !is_aligned(*codes) || reinterpret_cast<uintptr_t>(codes->tails) % 16 != 0 ||
        !bsw_device_has_hopper_stage(&codes->layout, stage->dims))
        return cudaErrorInvalidValue;
    if (part->first == part->last || queries->num_queries == 0) return cudaSuccess;
    stage_arguments a = {};
    a.scan = make_scan_arguments(*codes, *part, *queries, *lists);
    a.stage = *stage;
    a.num_slices = cut_slices(codes->layout, stage->dims / hopper_word_dims, a.slices);
    a.slot_words = slot_words_of(a, stage_keys::words);
    return launch_slices(kernels, a, stream);
}
