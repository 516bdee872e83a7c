// SPDX-License-Identifier: Apache-2.0
// Product codes on a GPU: the nearest entry of each part of a codebook. A block has 128 rows and a
// byte of their codes; its four warps share the entries, a lane has four rows, and 8 entries go
// through registers at once. Every distance is one fma chain, as the CPU has it. Bound by
// multiply-adds: part_dims + 3 instructions for an entry and a row.
#include "kernels/cuda_switch.cuh"
#include "kernels/device_encode/device_encode.h"

namespace bsw
{
namespace
{

constexpr uint32_t code_threads = 128, code_warps = 4, tile_rows = 128;
constexpr uint32_t lane_rows = 4, block_entries = 8; // in registers: sums of both
constexpr uint32_t slice_dims = 32;                  // of a part, in shared memory at once
static_assert(lane_rows * 32 == tile_rows && code_threads == tile_rows, "a thread ends with a row");

struct code_arguments {
    const float *entries, *norms, *projected;
    uint32_t parts, part_dims, bits;
    uint32_t dims; // of projected rows; what parts have beyond is 0
    uint32_t num_rows, bundle_bytes;
    uint8_t *codes;
};

DEVICE_POINTERS(code_arguments, a.entries, a.norms, a.projected, a.codes)

struct __align__(16) entries4
{ // one load
    float x[4];
};

// A warp's share: entries [first, first + count) of a part.
struct warp_share {
    uint32_t part, first, count;
    bool is_there; // of 4 bits a byte may have one part
};

__device__ __forceinline__ warp_share find_share(const code_arguments &a)
{
    const uint32_t warp = threadIdx.x / 32, byte = blockIdx.x % a.bundle_bytes;
    const bool is_whole = a.bits == 8; // four warps for its part, else two for each of two
    warp_share out;
    out.part = is_whole ? byte : byte * 2 + warp / 2;
    out.first = is_whole ? warp * 64 : warp % 2 * 8;
    out.count = is_whole ? 64 : 8;
    out.is_there = out.part < a.parts;
    return out;
}

// Dimensions [dim, dim + slice_dims) of the byte's parts, times -2: shared [parts][slice][rows].
__device__ __forceinline__ void load_slice(const code_arguments &a, uint32_t dim, float *shared)
{
    const uint32_t row = blockIdx.x / a.bundle_bytes * tile_rows + threadIdx.x,
                   byte = blockIdx.x % a.bundle_bytes, both = 8 / a.bits;
    const uint32_t count = min(slice_dims, a.part_dims - dim);
    for (uint32_t p = 0; p < both; p++) {
        const uint32_t first = (byte * both + p) * a.part_dims + dim;
        for (uint32_t d = 0; d < count; d++) {
            const bool is_there =
                row < a.num_rows && byte * both + p < a.parts && first + d < a.dims;
            const float x =
                is_there ? a.projected[static_cast<size_t>(row) * a.dims + first + d] : 0.0f;
            shared[(p * slice_dims + d) * tile_rows + threadIdx.x] = __fmul_rn(-2.0f, x);
        }
    }
}

typedef float entry_sums[lane_rows][block_entries];

__device__ __forceinline__ void load_entries(const float *from, float (&out)[block_entries])
{
#pragma unroll
    for (uint32_t e = 0; e < block_entries; e += 4) {
        const entries4 four = *reinterpret_cast<const entries4 *>(from + e);
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) out[e + i] = four.x[i];
    }
}

// Adds `count` dimensions. rows: shared, at the lane's first; entries: at the block's first.
__device__ __forceinline__ void add_dims(const float *rows, const float *entries, size_t num,
                                         uint32_t count, entry_sums &sums)
{
#pragma unroll 4
    for (uint32_t d = 0; d < count; d++) {
        float own[block_entries];
        load_entries(entries + d * num, own);
#pragma unroll
        for (uint32_t r = 0; r < lane_rows; r++) {
            const float x = rows[d * tile_rows + r * 32];
#pragma unroll
            for (uint32_t e = 0; e < block_entries; e++)
                sums[r][e] = __fmaf_rn(x, own[e], sums[r][e]);
        }
    }
}

struct best_entries {
    float least[lane_rows];
    uint32_t entry[lane_rows];
};

// The first of equal ones; a NaN is never less.
__device__ __forceinline__ void keep_least(const entry_sums &sums, uint32_t first,
                                           best_entries &best)
{
#pragma unroll
    for (uint32_t r = 0; r < lane_rows; r++) {
#pragma unroll
        for (uint32_t e = 0; e < block_entries; e++) {
            const bool is_less = sums[r][e] < best.least[r];
            best.least[r] = is_less ? sums[r][e] : best.least[r];
            best.entry[r] = is_less ? first + e : best.entry[r];
        }
    }
}

// Through the entries of the warp. All warps take as many steps, as slices are everybody's.
__device__ __forceinline__ void find_least(const code_arguments &a, const warp_share &share,
                                           float *shared, best_entries &best)
{
    const size_t num = static_cast<size_t>(1) << a.bits;
    const bool is_kept = a.part_dims <= slice_dims; // one slice, there once and for all
    const uint32_t part = share.is_there ? share.part : 0;
    const float *rows =
        shared + (a.bits == 8 ? 0 : threadIdx.x / 64 * slice_dims * tile_rows) + threadIdx.x % 32;
    for (uint32_t first = share.first; first < share.first + share.count; first += block_entries) {
        entry_sums sums;
        float norms[block_entries];
        load_entries(a.norms + part * num + first, norms);
#pragma unroll
        for (uint32_t r = 0; r < lane_rows; r++) {
#pragma unroll
            for (uint32_t e = 0; e < block_entries; e++) sums[r][e] = norms[e];
        }
        for (uint32_t dim = 0; dim < a.part_dims; dim += slice_dims) {
            if (!is_kept || first == share.first) {
                __syncthreads();
                load_slice(a, dim, shared);
                __syncthreads();
            }
            add_dims(rows,
                     a.entries + (static_cast<size_t>(part) * a.part_dims + dim) * num + first, num,
                     min(slice_dims, a.part_dims - dim), sums);
        }
        keep_least(sums, first, best);
    }
}

// The warps' best [warps][rows] to the bytes of a thread's row.
__device__ __forceinline__ void store_code(const code_arguments &a, const float *least,
                                           const uint32_t *entries)
{
    const uint32_t row = blockIdx.x / a.bundle_bytes * tile_rows + threadIdx.x,
                   byte = blockIdx.x % a.bundle_bytes, both = 8 / a.bits;
    const uint32_t num_bundles = a.num_rows / BSW_BUNDLE_ROWS + (a.num_rows % BSW_BUNDLE_ROWS != 0);
    uint32_t code = 0;
    for (uint32_t p = 0; p < both; p++) {
        float own = INFINITY;
        uint32_t entry = 0;
        for (uint32_t w = p * (code_warps / both); w < (p + 1) * (code_warps / both); w++) {
            const bool is_less = least[w * tile_rows + threadIdx.x] < own;
            own = is_less ? least[w * tile_rows + threadIdx.x] : own;
            entry = is_less ? entries[w * tile_rows + threadIdx.x] : entry;
        }
        if (byte * both + p < a.parts) code |= entry << p * 4;
    }
    if (row / BSW_BUNDLE_ROWS >= num_bundles) return;
    a.codes[static_cast<size_t>(row / BSW_BUNDLE_ROWS) * a.bundle_bytes * BSW_BUNDLE_ROWS +
            byte * BSW_BUNDLE_ROWS + row % BSW_BUNDLE_ROWS] =
        static_cast<uint8_t>(row < a.num_rows ? code : 0);
}

__global__ void __launch_bounds__(code_threads, 5)
    find_codes(const __grid_constant__ code_arguments a)
{
    DYNAMIC_SHARED(float, shared); // slices, then the warps' best
    const warp_share share = find_share(a);
    best_entries best;
#pragma unroll
    for (uint32_t r = 0; r < lane_rows; r++) {
        best.least[r] = INFINITY;
        best.entry[r] = 0;
    }
    find_least(a, share, shared, best);
    __syncthreads();
    float *least = shared;
    uint32_t *entries = reinterpret_cast<uint32_t *>(shared + code_warps * tile_rows);
    const uint32_t place = threadIdx.x / 32 * tile_rows + threadIdx.x % 32;
#pragma unroll
    for (uint32_t r = 0; r < lane_rows; r++) {
        least[place + r * 32] = best.least[r];
        entries[place + r * 32] = best.entry[r];
    }
    __syncthreads();
    store_code(a, least, entries);
}

bool is_valid(const bsw_product_book &book, uint32_t num_rows, uint32_t bundle_bytes)
{
    return (book.bits == 8 || book.bits == 4) && book.parts >= 1 && book.part_dims >= 1 &&
           num_rows <= INT32_MAX && bundle_bytes >= bsw_product_code_bytes(book.parts, book.bits);
}

} // namespace
} // namespace bsw

extern "C" int bsw_device_product_codes(const struct bsw_product_book *book, const float *projected,
                                        uint32_t dims, uint32_t num_rows, uint32_t bundle_bytes,
                                        uint8_t *codes, bsw_stream stream)
{
    using namespace bsw;
    if (!is_valid(*book, num_rows, bundle_bytes)) return cudaErrorInvalidValue;
    if (num_rows == 0) return cudaSuccess;
    const code_arguments a = {book->entries, book->norms, projected, book->parts,  book->part_dims,
                              book->bits,    dims,        num_rows,  bundle_bytes, codes};
    const uint64_t blocks =
        (static_cast<uint64_t>(num_rows) + tile_rows - 1) / tile_rows * bundle_bytes;
    if (blocks > INT32_MAX) return cudaErrorInvalidValue;
    const uint32_t slice = min(slice_dims, book->part_dims);
    const size_t numbers = book->bits == 8 ? slice : slice_dims + slice, least = 2 * code_warps;
    return launch({dim3(static_cast<uint32_t>(blocks)), dim3(code_threads),
                   (numbers > least ? numbers : least) * tile_rows * sizeof(float), stream},
                  find_codes, a);
}
