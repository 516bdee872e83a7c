// SPDX-License-Identifier: Apache-2.0
// The progressive scan on Hopper (sm_90a): the first stage slice by slice, as
// device_matrix_slices_hopper.cu takes whole rows. Sums begin with the bound's terms
// (stage_terms.cuh); a pair whose sum has lost bit 22 goes on, waits in a queue of its warp, and is
// finished from the planes (progressive.cuh).
//
// Producers fetch and unpack the slices of the stage alone; with the first one come scales, biases
// and tails. Rows that are masked or not there have terms that no sum survives, so they cost
// nothing here but for wild queries, of which all pairs go on: hence masks beside the terms.
//
// Two consumers with 64 queries each, or with 128 where these fit.
#include "kernels/device_scan/hopper_select.cuh"
#include "kernels/device_scan/hopper_slice_products.cuh"
#include "kernels/device_scan/progressive.cuh"
#include "kernels/device_scan/stage_terms.cuh"

#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "for sm_90a alone"
#endif

namespace bsw
{
namespace
{

struct stage_arguments : slices_arguments {
    bsw_device_stage stage;
};
static_assert(sizeof(stage_arguments) <= 4096, "more than a launch carries");

DEVICE_POINTERS(stage_arguments, a.scan, a.stage)

struct stage_shared : slices_shared {
    stage_caps *tile_caps; // [term_places][tile_bundles]
    stage_caps *made_for;  // [consumer_threads / 32], of words and starts
    uint32_t *masks;       // [term_places][tile_bundles]
    pair *pairs;           // [consumer_threads / 32][queue_pairs]
    uint32_t *waiting;     // [consumer_threads / 32], of those
};

template <class SHAPE> size_t shared_bytes_of(const stage_arguments &a)
{
    constexpr size_t warps = SHAPE::consumer_threads / 32;
    return a.num_stages * (SHAPE::tile_bytes + ring_barrier_bytes) +
           a.num_slices * slice_chunks * SHAPE::queries * 16 +
           term_places * (hopper_rows * sizeof(uint4) +
                          tile_bundles * (sizeof(stage_caps) + sizeof(uint32_t))) +
           SHAPE::queries * (2 * sizeof(key_pair) + sizeof(key_start) / 2) +
           warps * (sizeof(stage_caps) + queue_pairs * sizeof(pair) + sizeof(uint32_t)) +
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
    out.masks = reinterpret_cast<uint32_t *>(out.pairs + warps * queue_pairs);
    out.waiting = out.masks + term_places * tile_bundles;
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
                                                 const uint4 &terms, const stage_caps &caps,
                                                 uint32_t mask)
    {
        const uint32_t row = threadIdx.x % group_threads;
        shared.terms[place * hopper_rows + row] = terms;
        if (row % warp_rows != 0) return;
        shared.tile_caps[place * tile_bundles + row / warp_rows] = caps;
        shared.masks[place * tile_bundles + row / warp_rows] = mask;
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
        store(shared, (bundle - own.first) % term_places, terms, state.caps, mask);
    }

    __device__ static __forceinline__ void make_none(const memory &shared, uint32_t tile)
    {
        store(shared, tile % term_places, make_uint4(0, 0, 0, minus_one_bf16), {0, 0, 0, 0}, 0);
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
        if (b < num_blocks) begin_tile(begun_with_of<SHAPE>(shared, place, b), sums[b]);
    }
}

// Pairs of a thread that go on, of a tile. Bit 8 * i + n of word w of a block of queries: register
// i of four of the eight-column group 8 * w + n.
template <class SHAPE> struct stage_hits {
    static constexpr uint32_t num_words = 2 * SHAPE::blocks;
    uint32_t words[num_words];
};

__device__ __forceinline__ uint32_t find_hits(const int (&sums)[64], uint32_t word)
{
    uint32_t above = 0;
#pragma unroll
    for (uint32_t n = 0; n < 8; n++) {
        const uint32_t i = (8 * word + n) * 4;
        above |=
            still_above_at(sums[i], sums[i + 1], sums[i + 2], sums[i + 3], static_cast<int>(n));
    }
    return ~above;
}

// Whether there are any, the same for the warp.
template <class SHAPE> __device__ __forceinline__ bool has_hits(const stage_hits<SHAPE> &hits)
{
    uint32_t all = 0;
#pragma unroll
    for (uint32_t i = 0; i < hits.num_words; i++) all |= hits.words[i];
    return __any_sync(all_lanes, all != 0);
}

// Each lane's next hit, if it has one and its row may be selected, to the queue. row: of the
// thread's first query in a block of 64.
template <class SHAPE>
__device__ __forceinline__ void push_hits(const stage_arguments &a, const stage_shared &shared,
                                          const block_work &work, uint32_t row, uint32_t tile,
                                          stage_hits<SHAPE> &hits, pair_queue &queue)
{
    uint32_t own = 0, word = 0;
#pragma unroll
    for (uint32_t i = 0; i < hits.num_words; i++) {
        if (hits.words[i] == 0) continue;
        own = hits.words[i];
        word = i;
    }
#pragma unroll
    for (uint32_t i = 0; i < hits.num_words; i++) {
        if (i == word) hits.words[i] = own & (own - 1);
    }
    const uint32_t bit = own != 0 ? static_cast<uint32_t>(__ffs(static_cast<int>(own))) - 1 : 0;
    const uint32_t column = sum_column(threadIdx.x, word % 2 * 8 + bit % 8, bit / 8 % 2);
    const uint32_t bundle = column / warp_rows;
    const uint32_t mask =
        load_after_wait(shared.masks + tile % term_places * tile_bundles + bundle);
    const uint32_t first =
        bundle_of(a.scan, work.begin + bundle * work.num_tiles + tile) * warp_rows;
    const uint32_t query =
        first_of_block<SHAPE>(work.first_query, threadIdx.x / group_threads, word / 2) + row;
    push_pair(queue, own != 0 && (mask >> column % warp_rows & 1) != 0,
              {first + column % warp_rows, query + bit / 16 * 8});
}

// All that a tile has. How many wait is in shared memory from tile to tile: registers are full.
template <class SHAPE>
__device__ __forceinline__ void queue_hits(const stage_arguments &a, const stage_shared &shared,
                                           const block_work &work, uint32_t row, uint32_t tile,
                                           stage_hits<SHAPE> &hits)
{
    const uint32_t warp = threadIdx.x / 32;
    pair_queue queue = {shared.pairs + warp * queue_pairs, shared.waiting[warp]};
#pragma unroll 1
    do {
        push_hits(a, shared, work, row, tile, hits, queue);
        if (queue.count >= 32) finish_pairs(a.scan, a.stage, queue);
    } while (has_hits(hits));
    __syncwarp(); // all lanes have read how many waited
    if (threadIdx.x % 32 == 0) shared.waiting[warp] = queue.count;
    __syncwarp();
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
    if (threadIdx.x % 32 == 0) shared.waiting[warp] = 0;
    __syncwarp();
    ring_place at = {0, 0};
#pragma unroll 1
    for (uint32_t tile = 0; tile < work.num_tiles; tile++) {
        int sums[SHAPE::blocks][64];
        barrier_wait(full_barrier(shared, at.index), at.parity);
        begin_stage<SHAPE>(a, shared, work, num_blocks, row, tile % term_places, sums);
        multiply_slices<SHAPE>(a, shared, num_blocks, true, at, sums);
        stage_hits<SHAPE> hits = {};
#pragma unroll
        for (uint32_t i = 0; i < hits.num_words; i++) {
            if (i / 2 < num_blocks) hits.words[i] = find_hits(sums[i / 2], i % 2);
        }
        if (has_hits(hits)) queue_hits(a, shared, work, row, tile, hits);
        release_stage(shared, at, a.num_stages);
    }
    pair_queue queue = {shared.pairs + warp * queue_pairs, shared.waiting[warp]};
    if (queue.count > 0) finish_pairs(a.scan, a.stage, queue);
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
