// SPDX-License-Identifier: Apache-2.0
// Layouts of more than 256 padded dimensions in slices, for device_matrix_slices_hopper.cu, and
// first stages of the progressive scan, for device_progressive_slices_hopper.cu: how they are cut,
// how both are launched, and the producers.
//
// A slice is up to 128 dimensions of one segment. A warp of the producers has bundles that follow
// each other, one of each tile, and takes their slices one after another: a slot of its own has
// one, its planes side by side, each fetched by one bulk copy of a lane of its own. A stage of the
// ring is a slice of a tile; where a slice is shorter, the queries are 0. One slice of a bundle
// brings scales and biases, too: the first, where its terms begin the sums, or the last, where they
// are compared with its bound.
//
// Terms of a tile are wanted until all is done with its sums, so there are two places for them, of
// even and odd tiles. That of tile t is free: its producers have waited until stage t * num_slices
// - num_stages of all that ever were is empty, hence all before it, and num_stages is no more than
// num_slices + 1 (fit_rings), so that these have the last one of tile t - 2.
#ifndef BITSWEEP_KERNELS_HOPPER_SLICES_CUH
#define BITSWEEP_KERNELS_HOPPER_SLICES_CUH

#include <algorithm>

#include "kernels/device_scan/device_tuning.h"
#include "kernels/device_scan/hopper_produce.cuh"

namespace bsw
{

constexpr uint32_t slice_words = 4, most_slices = 8;
constexpr uint32_t most_slice_stages = 4, term_places = 2;

// Words first .. first + words - 1 of a segment; padded: the first of them among all words.
struct hopper_slice {
    uint32_t segment, first, words, padded;
};

struct slices_arguments {
    scan_arguments scan;
    uint32_t num_slices, num_stages, num_slots; // slots of a producers' warp; both >= 2
    uint32_t slot_words;                        // of a slice's planes, and scales and biases
    hopper_slice slices[most_slices];
};
static_assert(sizeof(slices_arguments) <= 4096, "more than a launch carries");

DEVICE_POINTERS(slices_arguments, a.scan)

// Slices of the first num_words words: how many; 0 where they are more than most_slices.
inline uint32_t cut_slices(const bsw_code_layout &layout, uint32_t num_words,
                           hopper_slice (&slices)[most_slices])
{
    uint32_t num = 0;
    for (uint32_t s = 0; s < layout.num_segments; s++) {
        const bsw_segment &segment = layout.segments[s];
        for (uint32_t first = 0; first < segment.words; first += slice_words) {
            const uint32_t padded = segment.padded_dim / hopper_word_dims + first;
            if (padded >= num_words) return num;
            if (num == most_slices) return 0;
            const uint32_t left = std::min(segment.words - first, num_words - padded);
            slices[num++] = {s, first, left < slice_words ? left : slice_words, padded};
        }
    }
    return num;
}

// Words of a slot: of the largest slice's planes, and what KEYS (below) brings.
inline uint32_t slot_words_of(const slices_arguments &a, uint32_t words_of_keys)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < a.num_slices; i++)
        most = std::max(most, a.scan.codes.layout.segments[a.slices[i].segment].bits *
                                  a.slices[i].words * warp_rows);
    return most + words_of_keys;
}

// As much as fits; false if not even the least does. shared_bytes: of a block.
template <class ARGUMENTS>
bool fit_rings(size_t (*shared_bytes)(const ARGUMENTS &), size_t most_bytes, ARGUMENTS &a)
{
    static const uint32_t rings[][2] = {
        {most_slice_stages, 8}, {3, 8}, {4, 4}, {3, 4}, {3, 2}, {2, 8}, {2, 4}, {2, 2}};
    for (const uint32_t(&ring)[2] : rings) { // stages, slots
        a.num_stages = ring[0];
        a.num_slots = ring[1];
        if (ring[0] <= a.num_slices + 1 && shared_bytes(a) <= most_bytes) return true;
    }
    return false;
}

// What is compiled for a block of so many queries; ARGUMENTS: slices_arguments or more.
template <class ARGUMENTS> struct slices_kernel {
    uint32_t queries, threads;
    size_t (*shared_bytes)(const ARGUMENTS &);
    void (*kernel)(ARGUMENTS);
};

// By kernels[1], of more queries, where there are more than those of kernels[0] and its shared
// memory fits. Arguments are valid but for rings and blocks, there are rows and queries.
template <class ARGUMENTS>
cudaError_t launch_slices(const slices_kernel<ARGUMENTS> (&kernels)[2], ARGUMENTS &a,
                          cudaStream_t stream)
{
    device_traits device;
    cudaError_t error = get_device_traits(&device);
    if (error) return error;
    const size_t most_bytes = static_cast<size_t>(device.most_shared_bytes);
    const bool is_whole = a.scan.queries.num_queries > kernels[0].queries &&
                          fit_rings(kernels[1].shared_bytes, most_bytes, a);
    const slices_kernel<ARGUMENTS> &chosen = kernels[is_whole];
    if (!fit_rings(chosen.shared_bytes, most_bytes, a)) return cudaErrorInvalidConfiguration;
    launch_shape shape = {dim3(), dim3(chosen.threads), chosen.shared_bytes(a), stream};
    error = plan_blocks(a.scan, {chosen.queries, tile_bundles, bsw_device_tuning_current()->hopper},
                        chosen.kernel, shape);
    return error ? error : launch(shape, chosen.kernel, a);
}

// ---- producers ----

// A slice of a bundle of the part.
struct slice_place {
    uint32_t bundle, slice;
};

__device__ __forceinline__ void advance(slice_place &at, uint32_t num_slices)
{
    if (++at.slice < num_slices) return;
    at.slice = 0;
    at.bundle++;
}

// What comes with a tile beside its slices: KEYS::words of it in a slot, behind the planes, for the
// slice that has keys; `memory`: what a block's shared memory is taken for; `state`: of a warp.
// Here those of the scan in full.
template <key_kind KIND> struct scan_keys {
    typedef hopper_shared memory;
    typedef row_caps state;
    static constexpr uint32_t words = key_words;

    __device__ static __forceinline__ state begin(const slices_arguments &, const warp_work &)
    {
        return {0, 0};
    }

    __device__ static __forceinline__ bool are_in(const slices_arguments &a, uint32_t slice)
    {
        if (KIND == key_kind::small_float) return slice == 0;
        return KIND == key_kind::any_float && slice + 1 == a.num_slices;
    }

    // By a warp. bundle: in the codes; to: address.
    __device__ static __forceinline__ void fetch(const slices_arguments &a, size_t bundle,
                                                 uint32_t to, uint32_t barrier)
    {
        const uint32_t lane = threadIdx.x % 32;
        if (lane == 0)
            bulk_copy(to, a.scan.codes.scales + bundle * warp_rows, warp_rows * 2, barrier);
        if (lane == 1)
            bulk_copy(to + warp_rows * 2, a.scan.codes.biases + bundle * warp_rows, warp_rows * 4,
                      barrier);
    }

    // What goes with the bundle, of the part, that is in a slot: of small float keys terms to one
    // of their places, else the bound to the slice's stage.
    __device__ static __forceinline__ void make(const slices_arguments &, const memory &shared,
                                                const uint32_t *keys, const warp_work &own,
                                                uint32_t bundle, uint32_t stage, state &caps)
    {
        const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x % group_threads / 32;
        const float scale = half_to_float(reinterpret_cast<const uint16_t *>(keys)[lane]);
        const float bias = __uint_as_float(keys[warp_rows / 2 + lane]);
        if (KIND == key_kind::small_float) { // of masked rows, too
            const uint4 terms = make_row_terms(scale, bias, true, caps);
            store_terms(shared, (bundle - own.first) % term_places, terms, caps);
        } else {
            const bundle_bound bound = make_bundle_bound(scale, bias);
            if (lane == 0) shared.bounds[stage * tile_bundles + warp] = bound;
        }
    }

    // For a tile in which the warp has no bundle.
    __device__ static __forceinline__ void make_none(const memory &shared, uint32_t tile)
    {
        if (KIND == key_kind::small_float) store_no_terms(shared, tile % term_places);
    }
};

// By a warp, a lane a plane.
template <class KEYS>
__device__ __forceinline__ void fetch_slice(const slices_arguments &a, const warp_work &own,
                                            const slice_place &at, uint32_t slot)
{
    if (at.bundle >= own.last) return;
    const hopper_slice &slice = a.slices[at.slice];
    const bsw_segment &segment = a.scan.codes.layout.segments[slice.segment];
    const uint32_t lane = threadIdx.x % 32, barrier = own.slot_barriers + slot * 8;
    const uint32_t bytes = slice.words * warp_rows * 4;
    const uint32_t to = shared_address(own.slots + slot * a.slot_words);
    const size_t bundle = bundle_of(a.scan, at.bundle);
    if (lane == 0)
        barrier_arrive_expecting(barrier, segment.bits * bytes +
                                              (KEYS::are_in(a, at.slice) ? KEYS::words * 4 : 0));
    if (lane < segment.bits)
        bulk_copy(to + lane * bytes,
                  a.scan.codes.planes[slice.segment] +
                      ((bundle * segment.bits + lane) * segment.words + slice.first) * warp_rows,
                  bytes, barrier);
    if (KEYS::are_in(a, at.slice))
        KEYS::fetch(a, bundle, to + (a.slot_words - KEYS::words) * 4, barrier);
}

// A whole slice has no loop: its code knows where every word is.
template <int BITS>
__device__ __forceinline__ void unpack_slice(const uint32_t *planes, uint32_t words, uint8_t *place)
{
    if (words < slice_words) return unpack_segment<BITS>(planes, words, place);
#pragma unroll
    for (uint32_t word = 0; word < slice_words; word++)
        unpack_slot_word<BITS>(planes + word * warp_rows, slice_words * warp_rows, word, place);
}

// The slice to its stage.
template <class SHAPE, class KEYS>
__device__ __forceinline__ void
make_slice(const slices_arguments &a, const typename KEYS::memory &shared, const warp_work &own,
           const slice_place &now, const uint32_t *slot, uint32_t stage,
           typename KEYS::state &state)
{
    const uint32_t lane = threadIdx.x % 32, row = threadIdx.x % group_threads;
    uint8_t *place = shared.tiles + stage * SHAPE::tile_bytes + tile_offset(row, 0);
#define CALL(BITS) unpack_slice<BITS>(slot + lane, a.slices[now.slice].words, place)
    BSW_SWITCH_BITS(a.scan.codes.layout.segments[a.slices[now.slice].segment].bits, CALL);
#undef CALL
    if (KEYS::are_in(a, now.slice))
        KEYS::make(a, shared, slot + a.slot_words - KEYS::words, own, now.bundle, stage, state);
}

// Passes over the last tile, in which the warp may have no bundle: as pass_stages.
template <class KEYS>
__device__ __forceinline__ void pass_tile(const slices_arguments &a,
                                          const typename KEYS::memory &shared, uint32_t tile,
                                          ring_place &at)
{
#pragma unroll 1
    for (uint32_t slice = 0; slice < a.num_slices; slice++, advance(at, a.num_stages)) {
        wait_for_stage(shared, at);
        if (slice == 0) KEYS::make_none(shared, tile);
        finish_stage(shared, at);
    }
}

template <class SHAPE, class KEYS>
__device__ __forceinline__ void produce_slices(const slices_arguments &a,
                                               const typename KEYS::memory &shared,
                                               const block_work &work)
{
    const warp_work own = work_of_warp(shared, work, a.num_slots, a.slot_words);
    slice_place now = {own.first, 0}, ahead = now;
    ring_place at = {0, 0}, slot = {0, 0};
    typename KEYS::state state = KEYS::begin(a, own);
#pragma unroll 1
    for (uint32_t i = 0; i < a.num_slots; i++, advance(ahead, a.num_slices))
        fetch_slice<KEYS>(a, own, ahead, i);
#pragma unroll 1
    for (; now.bundle < own.last; advance(now, a.num_slices), advance(ahead, a.num_slices)) {
        barrier_wait(own.slot_barriers + slot.index * 8, slot.parity);
        wait_for_stage(shared, at);
        make_slice<SHAPE, KEYS>(a, shared, own, now, own.slots + slot.index * a.slot_words,
                                at.index, state);
        finish_stage(shared, at);
        fetch_slice<KEYS>(a, own, ahead, slot.index);
        advance(at, a.num_stages);
        advance(slot, a.num_slots);
    }
#pragma unroll 1
    for (uint32_t tile = own.last - own.first; tile < work.num_tiles; tile++)
        pass_tile<KEYS>(a, shared, tile, at);
}

} // namespace bsw

#endif
