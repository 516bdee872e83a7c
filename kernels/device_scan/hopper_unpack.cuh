// SPDX-License-Identifier: Apache-2.0
// From a slot's bit planes to the bytes of a tile, for device_matrix_scan_hopper.cu: once for
// layouts of one segment, whose bits and words the compiler knows, and once for all.
#ifndef BITSWEEP_KERNELS_HOPPER_UNPACK_CUH
#define BITSWEEP_KERNELS_HOPPER_UNPACK_CUH

#include "kernels/device_scan/device_key.cuh"
#include "kernels/device_scan/device_scan.h"
#include "kernels/device_scan/device_unpack.cuh"
#include "kernels/device_scan/hopper_layout.cuh"

namespace bsw
{

// A word of a lane's document. planes: the lane's place in the word's plane 0; the next plane is
// `stride` words further; place: of the document in the tile.
template <int BITS>
__device__ __forceinline__ void unpack_slot_word(const uint32_t *planes, uint32_t stride,
                                                 uint32_t word, uint8_t *place)
{
    uint32_t own[BITS], bytes[8];
#pragma unroll
    for (uint32_t j = 0; j < BITS; j++) own[j] = planes[j * stride];
    unpack_planes<BITS>(own, bytes);
    uint4 *to = reinterpret_cast<uint4 *>(place + word * tile_word_bytes);
    to[0] = make_uint4(bytes[0], bytes[1], bytes[2], bytes[3]);
    to[k_chunk_bytes / sizeof(uint4)] = make_uint4(bytes[4], bytes[5], bytes[6], bytes[7]);
}

template <int BITS, int WORDS> struct one_segment {
    // slot: of `bundles` bundles, segment after segment; `bundle` of them.
    __device__ static __forceinline__ void unpack(const bsw_code_layout &, const uint32_t *slot,
                                                  uint32_t, uint32_t bundle, uint8_t *place)
    {
        const uint32_t *planes = slot + bundle * (BITS * WORDS * warp_rows) + threadIdx.x % 32;
#pragma unroll
        for (uint32_t word = 0; word < WORDS; word++)
            unpack_slot_word<BITS>(planes + word * warp_rows, WORDS * warp_rows, word, place);
    }
};

template <int BITS>
__device__ __forceinline__ void unpack_segment(const uint32_t *planes, uint32_t words,
                                               uint8_t *place)
{
#pragma unroll 1
    for (uint32_t word = 0; word < words; word++, planes += warp_rows, place += tile_word_bytes)
        unpack_slot_word<BITS>(planes, words * warp_rows, 0, place);
}

struct any_segments {
    __device__ static __forceinline__ void unpack(const bsw_code_layout &layout,
                                                  const uint32_t *slot, uint32_t bundles,
                                                  uint32_t bundle, uint8_t *place)
    {
        slot += threadIdx.x % 32;
#pragma unroll 1
        for (uint32_t s = 0; s < layout.num_segments; s++) {
            const uint32_t words = layout.segments[s].words;
            const uint32_t all = layout.segments[s].bits * words * warp_rows;
#define CALL(BITS) unpack_segment<BITS>(slot + bundle * all, words, place)
            BSW_SWITCH_BITS(layout.segments[s].bits, CALL);
#undef CALL
            slot += bundles * all;
            place += words * tile_word_bytes;
        }
    }
};

} // namespace bsw

#endif
