// SPDX-License-Identifier: Apache-2.0
// Layouts of more than 256 padded dimensions in slices, for device_matrix_slices_hopper.cu: how
// they are cut, what is in shared memory, and the producers.
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
// num_slices + 1, so that these have the last one of tile t - 2.
#ifndef BITSWEEP_KERNELS_HOPPER_SLICES_CUH
#define BITSWEEP_KERNELS_HOPPER_SLICES_CUH

#include "kernels/device_scan/hopper_produce.cuh"

namespace bsw
{

constexpr uint32_t slice_words = 4, most_slices = 8;
constexpr uint32_t most_slice_stages = 4, term_places = 2;
static_assert(most_dims / (slice_words * hopper_word_dims) + 2 >= most_slice_stages,
              "slices of a layout of more than most_dims, and 1");

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

// How many; 0 where they are more than most_slices.
inline uint32_t cut_slices(const bsw_code_layout &layout, hopper_slice (&slices)[most_slices])
{
    uint32_t num = 0;
    for (uint32_t s = 0; s < layout.num_segments; s++) {
        const bsw_segment &segment = layout.segments[s];
        for (uint32_t first = 0; first < segment.words; first += slice_words) {
            if (num == most_slices) return 0;
            const uint32_t left = segment.words - first;
            slices[num++] = {s, first, left < slice_words ? left : slice_words,
                             segment.padded_dim / hopper_word_dims + first};
        }
    }
    return num;
}

// The scan of layouts that cut_slices takes; arguments are valid, there are rows and queries.
cudaError_t scan_slices(const scan_arguments &scan, cudaStream_t stream);

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

template <key_kind KIND>
__device__ __forceinline__ bool has_keys(const slices_arguments &a, uint32_t slice)
{
    if (KIND == key_kind::small_float) return slice == 0;
    return KIND == key_kind::any_float && slice + 1 == a.num_slices;
}

// By a warp, a lane a plane; lanes 0 and 1 scales and biases.
template <key_kind KIND>
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
                                              (has_keys<KIND>(a, at.slice) ? key_words * 4 : 0));
    if (lane < segment.bits)
        bulk_copy(to + lane * bytes,
                  a.scan.codes.planes[slice.segment] +
                      ((bundle * segment.bits + lane) * segment.words + slice.first) * warp_rows,
                  bytes, barrier);
    if (!has_keys<KIND>(a, at.slice)) return;
    const uint32_t keys = to + (a.slot_words - key_words) * 4;
    if (lane == 0)
        bulk_copy(keys, a.scan.codes.scales + bundle * warp_rows, warp_rows * 2, barrier);
    if (lane == 1)
        bulk_copy(keys + warp_rows * 2, a.scan.codes.biases + bundle * warp_rows, warp_rows * 4,
                  barrier);
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

// What goes with a bundle that the slot has a slice of: of small float keys terms to one of their
// places, else the bound to the slice's stage.
template <key_kind KIND>
__device__ __forceinline__ void make_keys(const hopper_shared &shared, const uint32_t *keys,
                                          uint32_t place, uint32_t stage, row_caps &caps)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x % group_threads / 32;
    const float scale = half_to_float(reinterpret_cast<const uint16_t *>(keys)[lane]);
    const float bias = __uint_as_float(keys[warp_rows / 2 + lane]);
    if (KIND == key_kind::small_float) { // of masked rows, too
        const uint4 terms = make_row_terms(scale, bias, true, caps);
        store_terms(shared, place, terms, caps);
    } else {
        const bundle_bound bound = make_bundle_bound(scale, bias);
        if (lane == 0) shared.bounds[stage * tile_bundles + warp] = bound;
    }
}

// The slice to its stage. tile: of those of the block.
template <class SHAPE, key_kind KIND>
__device__ __forceinline__ void make_slice(const slices_arguments &a, const hopper_shared &shared,
                                           const uint32_t *slot, uint32_t tile, uint32_t slice,
                                           uint32_t stage, row_caps &caps)
{
    const uint32_t lane = threadIdx.x % 32, row = threadIdx.x % group_threads;
    uint8_t *place = shared.tiles + stage * SHAPE::tile_bytes + tile_offset(row, 0);
#define CALL(BITS) unpack_slice<BITS>(slot + lane, a.slices[slice].words, place)
    BSW_SWITCH_BITS(a.scan.codes.layout.segments[a.slices[slice].segment].bits, CALL);
#undef CALL
    if (has_keys<KIND>(a, slice))
        make_keys<KIND>(shared, slot + a.slot_words - key_words, tile % term_places, stage, caps);
}

// Of the last tile the warp may have no bundle: as pass_stages.
template <key_kind KIND>
__device__ __forceinline__ void pass_tile(const slices_arguments &a, const hopper_shared &shared,
                                          uint32_t tile, ring_place &at)
{
#pragma unroll 1
    for (uint32_t slice = 0; slice < a.num_slices; slice++, advance(at, a.num_stages)) {
        wait_for_stage(shared, at);
        if (KIND == key_kind::small_float && slice == 0) store_no_terms(shared, tile % term_places);
        finish_stage(shared, at);
    }
}

template <class SHAPE, key_kind KIND>
__device__ __forceinline__ void produce_slices(const slices_arguments &a,
                                               const hopper_shared &shared, const block_work &work)
{
    const warp_work own = work_of_warp(shared, work, a.num_slots, a.slot_words);
    slice_place now = {own.first, 0}, ahead = now;
    ring_place at = {0, 0}, slot = {0, 0};
    row_caps caps = {0, 0};
#pragma unroll 1
    for (uint32_t i = 0; i < a.num_slots; i++, advance(ahead, a.num_slices))
        fetch_slice<KIND>(a, own, ahead, i);
#pragma unroll 1
    for (; now.bundle < own.last; advance(now, a.num_slices), advance(ahead, a.num_slices)) {
        barrier_wait(own.slot_barriers + slot.index * 8, slot.parity);
        wait_for_stage(shared, at);
        make_slice<SHAPE, KIND>(a, shared, own.slots + slot.index * a.slot_words,
                                now.bundle - own.first, now.slice, at.index, caps);
        finish_stage(shared, at);
        fetch_slice<KIND>(a, own, ahead, slot.index);
        advance(at, a.num_stages);
        advance(slot, a.num_slots);
    }
#pragma unroll 1
    for (uint32_t tile = own.last - own.first; tile < work.num_tiles; tile++)
        pass_tile<KIND>(a, shared, tile, at);
}

} // namespace bsw

#endif
