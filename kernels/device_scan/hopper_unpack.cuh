// From a slot's bit planes to the bytes of a tile, for device_matrix_scan_hopper.cu.
#ifndef BITSWEEP_KERNELS_HOPPER_UNPACK_CUH
#define BITSWEEP_KERNELS_HOPPER_UNPACK_CUH

#include "kernels/device_scan/device_key.cuh"
#include "kernels/device_scan/device_scan.h"
#include "kernels/device_scan/device_unpack.cuh"
#include "kernels/device_scan/hopper_layout.cuh"

namespace bsw
{

// planes: the lane's place in the word's plane 0; the next plane is `stride` words further.
template <int BITS>
__device__ __forceinline__ void unpack_slot(const uint32_t *planes, uint32_t stride,
                                            uint32_t (&bytes)[8])
{
    uint32_t own[BITS];
#pragma unroll
    for (int j = 0; j < BITS; j++) own[j] = planes[j * stride];
    unpack_planes<BITS>(own, bytes);
}

__device__ __forceinline__ void unpack_slot_of(uint32_t bits, const uint32_t *planes,
                                               uint32_t stride, uint32_t (&bytes)[8])
{
#define CALL(BITS) unpack_slot<BITS>(planes, stride, bytes)
    BSW_SWITCH_BITS(bits, CALL);
#undef CALL
}

// One document, of the lane: its words to the tile.
__device__ __forceinline__ void unpack_bundle(const bsw_code_layout &layout, const uint32_t *slot,
                                              uint32_t lane, uint32_t row, uint8_t *tile)
{
    uint32_t chunk = 0;
    for (uint32_t s = 0; s < layout.num_segments; s++) {
        const uint32_t bits = layout.segments[s].bits;
        const uint32_t stride = layout.segments[s].words * warp_rows;
        for (uint32_t at = lane; at < stride; at += warp_rows, chunk += 2) {
            uint32_t bytes[8];
            unpack_slot_of(bits, slot + at, stride, bytes);
            *reinterpret_cast<uint4 *>(tile + tile_offset(row, chunk)) =
                make_uint4(bytes[0], bytes[1], bytes[2], bytes[3]);
            *reinterpret_cast<uint4 *>(tile + tile_offset(row, chunk + 1)) =
                make_uint4(bytes[4], bytes[5], bytes[6], bytes[7]);
        }
        slot += bits * stride;
    }
}

} // namespace bsw

#endif
