// SPDX-License-Identifier: Apache-2.0
// Where operands of wgmma.mma_async.m64n128k32.s32.s8.u8 lie, from the PTX manual's chapter on
// wgmma ("Register fragments" of .m64nNk32, "Canonical layouts", "Matrix descriptor format").
//
// A, [64][32] s8 of queries, in registers: thread t of the warpgroup, lane t % 32 of warp t / 32,
// has four registers of four bytes. Register r, byte i:
//     row 16 * warp + lane / 4 + 8 * (r % 2),  k 4 * (lane % 4) + i + 16 * (r / 2).
// D, [64][128] s32, 64 registers a thread. Register i:
//     row 16 * warp + lane / 4 + 8 * (i / 2 % 2),  column 8 * (i / 4) + 2 * (lane % 4) + i % 2.
// Both as those of mma.m16n8k32, a warp having 16 rows.
//
// B, [32][128] u8 of documents, in shared memory, K-major without swizzle. Canonical layout, in
// elements of a byte (T = 16): ((8, m), (T, 2k)) : ((1T, SBO), (1, LBO)). So 16 bytes of k of one
// column lie together; eight columns make a core matrix of 128 bytes without gaps; SBO bytes lead
// to the next eight columns, LBO bytes to the next 16 of k. An instruction reads two such 16; the
// next instruction's descriptor starts 2 * LBO further. Here the columns of one 16 of k lie without
// gaps too: SBO = 128, LBO = 16 bytes times the rows of a tile.
//
// A may be in shared memory instead, K-major too, in the same layout: rows of A where B has
// columns.
//
// Descriptor: bits 0-13 address, 16-29 LBO, 32-45 SBO, each as (x & 0x3ffff) >> 4; base offset
// (49-51) and swizzle (62-63) 0.
//
// k of both operands is the place of a dimension in device order (device_scan.h), in which
// components lie in memory and in which a word's bytes are unpacked: bytes[r] has places 4*r .. 4*r
// + 3 of the word's 32.
#ifndef BITSWEEP_KERNELS_HOPPER_LAYOUT_CUH
#define BITSWEEP_KERNELS_HOPPER_LAYOUT_CUH

#include "kernels/cuda_switch.cuh"

namespace bsw
{

constexpr uint32_t hopper_rows = 128;     // documents of a tile: columns of B and D
constexpr uint32_t hopper_queries = 64;   // of a block of queries: rows of A and D
constexpr uint32_t hopper_word_dims = 32; // k of an instruction, a word of a plane

constexpr uint32_t column_group_bytes = 8 * 16;      // SBO
constexpr uint32_t k_chunk_bytes = hopper_rows * 16; // LBO
constexpr uint32_t tile_word_bytes = 2 * k_chunk_bytes;

// Byte of a tile where 16 bytes of k of a document start; chunk counts 16s of k.
__host__ __device__ constexpr uint32_t tile_offset(uint32_t row, uint32_t chunk)
{
    return row / 8 * column_group_bytes + row % 8 * 16 + chunk * k_chunk_bytes;
}

// address: in shared memory, 16-byte aligned; leading: LBO, bytes.
__host__ __device__ constexpr uint64_t matrix_descriptor(uint32_t address, uint32_t leading)
{
    return static_cast<uint64_t>(address & 0x3ffff) >> 4 |
           static_cast<uint64_t>(leading >> 4) << 16 |
           static_cast<uint64_t>(column_group_bytes >> 4) << 32;
}

// word: which 32 of k; tile: address. Of a tile's words only the first one's address is cut to its
// bits: no tile goes beyond 2^18.
__host__ __device__ constexpr uint64_t tile_descriptor(uint32_t tile, uint32_t word)
{
    const uint64_t first = matrix_descriptor(tile, k_chunk_bytes);
    return first >> 32 << 32 | (static_cast<uint32_t>(first) + word * (tile_word_bytes >> 4));
}

// Row of A and D in registers of which (index / half) is `half`: A's register % 2, D's / 2 % 2.
__host__ __device__ constexpr uint32_t fragment_row(uint32_t thread, uint32_t half)
{
    return thread / 32 * 16 + thread % 32 / 4 + 8 * half;
}

// k of byte 0 of A's register.
__host__ __device__ constexpr uint32_t fragment_k(uint32_t thread, uint32_t reg)
{
    return thread % 4 * 4 + reg / 2 * 16;
}

// D's register of eight-column group n, row half, and column 2 * (lane % 4) + c of the group.
__host__ __device__ constexpr uint32_t sum_register(uint32_t n, uint32_t half, uint32_t c)
{
    return 4 * n + 2 * half + c;
}

__host__ __device__ constexpr uint32_t sum_column(uint32_t thread, uint32_t n, uint32_t c)
{
    return 8 * n + thread % 4 * 2 + c;
}

} // namespace bsw

#endif
