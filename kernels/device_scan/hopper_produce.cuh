// SPDX-License-Identifier: Apache-2.0
// The producers of device_matrix_scan_hopper.cu: bundles from memory to tiles of bytes.
//
// A warp has bundles that follow each other, one of each tile. They come in slots of its own, a few
// bundles each, by bulk copies of one thread: the slot's mbarrier ends its phase when all bytes are
// there. Then its tiles are made one after another, each with what the consumers compare by: terms
// of its rows (key_terms.cuh), or bounds of bundles (dot_bound.cuh), those of a slot together. A
// slot is filled again behind the __syncwarp of its last tile, when all lanes have read it; their
// fence in front of that orders their reads before the copies, too.
#ifndef BITSWEEP_KERNELS_HOPPER_PRODUCE_CUH
#define BITSWEEP_KERNELS_HOPPER_PRODUCE_CUH

#include "kernels/device_scan/hopper_shared.cuh"
#include "kernels/device_scan/hopper_unpack.cuh"

namespace bsw
{

// What a warp of the producers has: bundles first .. last - 1 of the part.
struct warp_work {
    uint32_t first, last;
    uint32_t *slots;        // [num_slots][slot_bundles * bundle_words]
    uint32_t slot_barriers; // [num_slots], address
};

__device__ __forceinline__ warp_work work_of_warp(const hopper_shared &shared,
                                                  const block_work &work, uint32_t num_slots,
                                                  uint32_t slot_words)
{
    const uint32_t warp = threadIdx.x % group_threads / 32;
    const uint32_t first = min(work.begin + warp * work.num_tiles, work.end);
    return {first, min(first + work.num_tiles, work.end),
            shared.slots + warp * num_slots * slot_words,
            shared.slot_barriers + warp * num_slots * 8};
}

// ---- fetching, by one thread ----

// `count` bundles that follow each other in memory, from `bundle` on, as those of the slot from
// number i on. Every piece is a multiple of 64 bytes.
template <key_kind KIND>
__device__ __forceinline__ void copy_bundles(const hopper_arguments &a, uint32_t bundle,
                                             uint32_t count, uint32_t slot, uint32_t i,
                                             uint32_t barrier)
{
    const bsw_device_codes &codes = a.scan.codes;
#pragma unroll 1
    for (uint32_t s = 0; s < codes.layout.num_segments; s++) {
        const uint32_t words =
            codes.layout.segments[s].bits * codes.layout.segments[s].words * warp_rows;
        bulk_copy(slot + i * words * 4, codes.planes[s] + static_cast<size_t>(bundle) * words,
                  count * words * 4, barrier);
        slot += a.slot_bundles * words * 4;
    }
    if (KIND == key_kind::integer) return;
    const size_t row = static_cast<size_t>(bundle) * warp_rows;
    bulk_copy(slot + i * warp_rows * 2, codes.scales + row, count * warp_rows * 2, barrier);
    slot += a.slot_bundles * warp_rows * 2;
    bulk_copy(slot + i * warp_rows * 4, codes.biases + row, count * warp_rows * 4, barrier);
}

// Bundles of the part from `first` on, as many as the slot takes and the warp has.
template <key_kind KIND>
__device__ __forceinline__ void fetch(const hopper_arguments &a, const warp_work &own,
                                      uint32_t first, uint32_t slot)
{
    if (threadIdx.x % 32 != 0 || first >= own.last) return;
    const uint32_t count = min(own.last - first, a.slot_bundles);
    const uint32_t barrier = own.slot_barriers + slot * 8;
    const uint32_t to = shared_address(own.slots + slot * a.slot_bundles * a.bundle_words);
    const uint32_t keys = KIND == key_kind::integer ? key_words : 0; // that are not copied
    barrier_arrive_expecting(barrier, count * (a.bundle_words - keys) * 4);
    const uint32_t together = a.scan.part.step == 1 ? count : 1;
#pragma unroll 1
    for (uint32_t i = 0; i < count; i += together)
        copy_bundles<KIND>(a, bundle_of(a.scan, first + i), together, to, i, barrier);
}

// ---- tiles ----

// Where a slot's scales and biases are, of all its bundles.
struct slot_keys {
    const uint16_t *scales;
    const float *biases;
};

__device__ __forceinline__ slot_keys keys_of_slot(const hopper_arguments &a, const uint32_t *slot)
{
    const uint32_t *scales = slot + a.slot_bundles * (a.bundle_words - key_words);
    return {reinterpret_cast<const uint16_t *>(scales),
            reinterpret_cast<const float *>(scales + a.slot_bundles * (warp_rows / 2))};
}

// The bound of bundle lane / 8 of a slot; of a bundle that it does not have, anything.
__device__ __forceinline__ bundle_bound bound_in_slot(const hopper_arguments &a,
                                                      const uint32_t *slot)
{
    const uint32_t lane = threadIdx.x % 32;
    const slot_keys keys = keys_of_slot(a, slot);
    uint2 own_scales = {};
    float4 own_biases = {};
    if (lane / 8 < a.slot_bundles) {
        own_scales = reinterpret_cast<const uint2 *>(keys.scales)[lane];
        own_biases = reinterpret_cast<const float4 *>(keys.biases)[lane];
    }
    return make_four_bounds(own_scales, own_biases);
}

__device__ __forceinline__ void wait_for_stage(const hopper_shared &shared, const ring_place &at)
{
    barrier_wait(empty_barrier(shared, at.index), at.parity ^ 1);
}

// By a warp: what it has for the tile is in shared memory, for products, too.
__device__ __forceinline__ void finish_stage(const hopper_shared &shared, const ring_place &at)
{
    fence_for_async_accesses();
    barrier_arrive_warp(full_barrier(shared, at.index));
}

// The row's terms and, by one lane, caps of its bundle, to the tile's place.
__device__ __forceinline__ void store_terms(const hopper_shared &shared, uint32_t place,
                                            const uint4 &terms, const row_caps &caps)
{
    const uint32_t row = threadIdx.x % group_threads;
    shared.terms[place * hopper_rows + row] = terms;
    if (row % warp_rows == 0) shared.caps[place * tile_bundles + row / warp_rows] = caps;
}

// Stores terms of rows that are not there.
__device__ __forceinline__ void store_no_terms(const hopper_shared &shared, uint32_t place)
{
    store_terms(shared, place, make_uint4(0, 0, 0, minus_one_bf16), {0, 0});
}

// Passes over stages of the last tiles in which the warp may have no bundle. What is left there
// from earlier ones is multiplied, with terms of rows that are not there, and the consumers pass
// over what is found.
template <bool HAS_TERMS>
__device__ __forceinline__ void pass_stages(const hopper_shared &shared, ring_place &at,
                                            uint32_t count, uint32_t num_stages)
{
#pragma unroll 1
    for (uint32_t i = 0; i < count; i++, advance(at, num_stages)) {
        wait_for_stage(shared, at);
        if (HAS_TERMS) store_no_terms(shared, at.index);
        finish_stage(shared, at);
    }
}

// Tiles of the slot's `count` bundles.
template <class SHAPE, class SEGMENTS, key_kind KIND>
__device__ __forceinline__ void make_tiles(const hopper_arguments &a, const hopper_shared &shared,
                                           const uint32_t *slot, uint32_t count, ring_place &at,
                                           row_caps &caps)
{
    const uint32_t lane = threadIdx.x % 32, row = threadIdx.x % group_threads;
    const slot_keys keys = keys_of_slot(a, slot);
    bundle_bound bound = {};
    if (KIND == key_kind::any_float) bound = bound_in_slot(a, slot);
#pragma unroll 1
    for (uint32_t i = 0; i < count; i++, advance(at, a.num_stages)) {
        wait_for_stage(shared, at);
        SEGMENTS::unpack(a.scan.codes.layout, slot, a.slot_bundles, i,
                         shared.tiles + at.index * SHAPE::tile_bytes + tile_offset(row, 0));
        if (KIND == key_kind::small_float) { // of masked rows, too
            const uint32_t place = i * warp_rows + lane;
            const uint4 terms =
                make_row_terms(half_to_float(keys.scales[place]), keys.biases[place], true, caps);
            store_terms(shared, at.index, terms, caps);
        }
        if (KIND == key_kind::any_float && lane == 8 * i)
            shared.bounds[at.index * tile_bundles + row / warp_rows] = bound;
        finish_stage(shared, at);
    }
}

template <class SHAPE, class SEGMENTS, key_kind KIND>
__device__ __forceinline__ void produce_with(const hopper_arguments &a, const hopper_shared &shared,
                                             const block_work &work)
{
    const warp_work own = work_of_warp(shared, work, a.num_slots, a.slot_bundles * a.bundle_words);
    const uint32_t ahead = (a.num_slots - 1) * a.slot_bundles;
    for (uint32_t i = 0; i < a.num_slots; i++)
        fetch<KIND>(a, own, own.first + i * a.slot_bundles, i);
    ring_place at = {0, 0}, slot = {0, 0};
    row_caps caps = {0, 0};
#pragma unroll 1
    for (uint32_t first = own.first; first < own.last; first += a.slot_bundles) {
        barrier_wait(own.slot_barriers + slot.index * 8, slot.parity);
        make_tiles<SHAPE, SEGMENTS, KIND>(a, shared,
                                          own.slots + slot.index * a.slot_bundles * a.bundle_words,
                                          min(own.last - first, a.slot_bundles), at, caps);
        fetch<KIND>(a, own, first + ahead + a.slot_bundles, slot.index);
        advance(slot, a.num_slots);
    }
    pass_stages<KIND == key_kind::small_float>(shared, at, own.first + work.num_tiles - own.last,
                                               a.num_stages);
}

// call(segments): the code that knows the layout, if there is one.
template <class SHAPE, class CALL>
__device__ __forceinline__ void with_segments(const bsw_code_layout &layout, const CALL &call)
{
    const bool is_plain = layout.num_segments == 1 && layout.segments[0].words == SHAPE::words;
    switch (is_plain ? layout.segments[0].bits : 0) {
    case 1:
        call(one_segment<1, SHAPE::words>());
        break;
    case 2:
        call(one_segment<2, SHAPE::words>());
        break;
    case 3:
        call(one_segment<3, SHAPE::words>());
        break;
    case 4:
        call(one_segment<4, SHAPE::words>());
        break;
    default:
        call(any_segments());
    }
}

template <class SHAPE, key_kind KIND>
__device__ __forceinline__ void produce(const hopper_arguments &a, const hopper_shared &shared,
                                        const block_work &work)
{
    with_segments<SHAPE>(a.scan.codes.layout, [&](auto segments) {
        produce_with<SHAPE, decltype(segments), KIND>(a, shared, work);
    });
}

} // namespace bsw

#endif
