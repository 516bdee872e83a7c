// SPDX-License-Identifier: Apache-2.0
// Products of rows of bytes with queries, and the rows that are kept of them: for scans of whole
// shards (gpu_byte_scan.cu) and of lists (gpu_byte_lists.cu).
//
// A warp takes a bundle by 16 or 64 queries through mma.m16n8k32, s8 by u8. Nothing is shared but
// the first cache: codes lie as columns of mma take them, and queries are laid out once a batch so
// that a lane's part of a tile is 16 bytes of 512 that a warp reads.
//
// A lane loads words of four bytes of rows 2*g and 2*g + 1 of half a bundle, which are column g of
// two tiles; so in their sums lane t of four that share a query has four rows that follow each
// other, 4*t to 4*t + 3.
//
// Sums begin with offset / factor rounded down, o. A key reaches its limit L if
//     factor * sum + offset + constant >= L,  so  sum + o >= (L - constant) / factor rounded down,
// as rounding down keeps the order and sum is whole. So one number a query is compared with the
// most of eight sums; where it may be reached, keys are made and compared as they are.
#ifndef BITSWEEP_KERNELS_GPU_BYTE_ROWS_CUH
#define BITSWEEP_KERNELS_GPU_BYTE_ROWS_CUH

#include "kernels/device_scan/matrix_keys.cuh"
#include "kernels/gpu_bytes/gpu_bytes.h"

namespace bsw
{

constexpr uint32_t byte_threads = 256, byte_warps = byte_threads / warp_rows;
constexpr uint32_t tile_queries = BSW_DEVICE_BYTE_TILE, step_dims = 32, step_words = step_dims / 4;
constexpr int halves = 2, row_tiles = 4; // of a bundle

// Tiles of queries of a warp, warps that take the same bundle, steps of a bundle that are loaded
// together.
template <int TILES_, uint32_t QUERY_WARPS_, int STEPS_> struct byte_shape {
    static constexpr int tiles = TILES_, steps = STEPS_;
    static constexpr uint32_t query_warps = QUERY_WARPS_, bundles = byte_warps / QUERY_WARPS_;
    static constexpr uint32_t warp_queries = TILES_ * tile_queries;
    static constexpr uint32_t queries = warp_queries * QUERY_WARPS_;
};

struct byte_arguments {
    scan_arguments scan;
    uint32_t factor;
};

// What a warp works for, its queries counted from 0, is said by WORK:
//   query(i)                        its number in the batch, UINT32_MAX where there is none
//   row(bundle, i)                  what a candidate says of row i of the bundle
//   load_operands(step, tile, out)  the lane's part of a tile of queries

// ---- products ----

template <class SHAPE> struct byte_sums {
    int sums[SHAPE::tiles][row_tiles][4];
};

// Rows that the lane has sums of: 16*h + 4*t + 2*c + j at tile 2*h + j, column c.
__device__ __forceinline__ uint32_t lane_row(uint32_t lane, int tile, int column)
{
    return static_cast<uint32_t>(tile / 2 * 16 + column * 2 + tile % 2) + lane % 4 * 4;
}

__device__ __forceinline__ int start_of(uint32_t bits, uint32_t factor)
{
    const int offset = static_cast<int>(bits);
    return factor == 2 ? offset >> 1 : offset;
}

template <class SHAPE>
__device__ __forceinline__ void begin_sums(const byte_arguments &a, uint32_t bundle, uint32_t lane,
                                           byte_sums<SHAPE> &out)
{
    const int32_t *offsets =
        a.scan.codes.offsets + static_cast<size_t>(bundle) * warp_rows + lane % 4 * 4;
#pragma unroll
    for (int h = 0; h < halves; h++) {
        const uint4 four = __ldg(reinterpret_cast<const uint4 *>(offsets + h * 16));
        const int starts[2][2] = {{start_of(four.x, a.factor), start_of(four.z, a.factor)},
                                  {start_of(four.y, a.factor), start_of(four.w, a.factor)}};
#pragma unroll
        for (int m = 0; m < SHAPE::tiles; m++) {
#pragma unroll
            for (int i = 0; i < 8; i++) out.sums[m][2 * h + i / 4][i % 4] = starts[i / 4][i % 2];
        }
    }
}

__device__ __forceinline__ uint2 load_pair(const uint32_t *place)
{
    return __ldg(reinterpret_cast<const uint2 *>(place));
}

// Columns of the bundle's tiles for one step; rows: the lane's words of its first half.
__device__ __forceinline__ void load_rows(const uint32_t *rows, uint32_t half_words,
                                          unsigned (&out)[row_tiles][2])
{
#pragma unroll
    for (int h = 0; h < halves; h++) {
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const uint2 pair =
                load_pair(rows + static_cast<uint32_t>(h) * half_words + k * (4 * 16));
            out[2 * h][k] = pair.x;
            out[2 * h + 1][k] = pair.y;
        }
    }
}

template <class SHAPE, class WORK>
__device__ __forceinline__ void multiply_step(const WORK &work, uint32_t step,
                                              const unsigned (&rows)[row_tiles][2],
                                              byte_sums<SHAPE> &out)
{
#pragma unroll
    for (int m = 0; m < SHAPE::tiles; m++) {
        unsigned query[4];
        work.load_operands(step, m, query);
#pragma unroll
        for (int n = 0; n < row_tiles; n++) mma_s8_u8(out.sums[m][n], query, rows[n]);
    }
}

template <class SHAPE, class WORK>
__device__ __forceinline__ void multiply(const byte_arguments &a, const WORK &work, uint32_t bundle,
                                         uint32_t lane, byte_sums<SHAPE> &out)
{
    const uint32_t padded = a.scan.codes.layout.padded_dims, num_steps = padded / step_dims;
    const uint32_t half_words = padded / 4 * 16;
    const uint32_t *rows = a.scan.codes.planes[0] + static_cast<size_t>(bundle) * 2 * half_words +
                           lane % 4 * 16 + lane / 4 * 2;
#pragma unroll 1
    for (uint32_t step = 0; step < num_steps; step += SHAPE::steps) {
        unsigned loaded[SHAPE::steps][row_tiles][2] = {};
#pragma unroll
        for (uint32_t i = 0; i < SHAPE::steps; i++) {
            if (step + i < num_steps)
                load_rows(rows + (step + i) * (step_words * 16), half_words, loaded[i]);
        }
#pragma unroll
        for (uint32_t i = 0; i < SHAPE::steps; i++) {
            if (step + i < num_steps) multiply_step<SHAPE>(work, step + i, loaded[i], out);
        }
    }
}

// ---- selection ----

// What a sum, begun with the row's start, must be at least, or a little less.
__device__ __forceinline__ int least_sum(const byte_arguments &a, uint32_t query)
{
    if (query == UINT32_MAX) return INT32_MAX;
    const long long limit = integer_limit(__ldg(a.scan.lists.limits + query));
    const long long least =
        (limit - __ldg(a.scan.queries.constants + query)) >> (a.factor == 2 ? 1 : 0);
    return static_cast<int>(
        max(min(least, static_cast<long long>(INT32_MAX)), static_cast<long long>(INT32_MIN)));
}

// Bits of tile and column, 2*n + c, whose keys reach the query's limit. sums become keys.
__device__ __forceinline__ uint32_t find_keys(const byte_arguments &a, uint32_t bundle,
                                              uint32_t query, uint32_t lane, uint32_t mask,
                                              int (&sums)[2 * row_tiles])
{
    if (query == UINT32_MAX) return 0;
    const int limit = integer_limit(__ldg(a.scan.lists.limits + query));
    const unsigned constant = static_cast<unsigned>(__ldg(a.scan.queries.constants + query));
    const int32_t *offsets = a.scan.codes.offsets + static_cast<size_t>(bundle) * warp_rows;
    uint32_t hits = 0;
#pragma unroll
    for (int i = 0; i < 2 * row_tiles; i++) {
        const uint32_t row = lane_row(lane, i / 2, i % 2);
        const unsigned rest = static_cast<unsigned>(__ldg(offsets + row)) & (a.factor - 1);
        sums[i] = static_cast<int>(a.factor * static_cast<unsigned>(sums[i]) + rest + constant);
        if ((mask >> row & 1) && sums[i] >= limit) hits |= 1u << i;
    }
    return hits;
}

// What a warp may have to append of one query of each four lanes.
template <class WORK>
__device__ __forceinline__ void append_keys(const byte_arguments &a, const WORK &work,
                                            uint32_t bundle, uint32_t query, uint32_t lane,
                                            uint32_t mask, int (&sums)[2 * row_tiles])
{
    const uint32_t hits = find_keys(a, bundle, query, lane, mask, sums);
    if (!__any_sync(all_lanes, hits != 0)) return;
    uint32_t at = take_places(a.scan.lists, query, static_cast<uint32_t>(__popc(hits)));
#pragma unroll
    for (int i = 0; i < 2 * row_tiles; i++) {
        if (!(hits >> i & 1)) continue;
        const uint32_t row = work.row(bundle, lane_row(lane, i / 2, i % 2));
        put_item(a.scan.lists, query, at++, pack_candidate(score_of_integer(sums[i]), row));
    }
}

// least[i]: what sums of query 8 * i + lane / 4 of the warp must be at least.
template <class SHAPE, class WORK>
__device__ __forceinline__ void
select_rows(const byte_arguments &a, const WORK &work, uint32_t bundle, uint32_t lane,
            const int (&least)[2 * SHAPE::tiles], const byte_sums<SHAPE> &all)
{
    uint32_t passing = 0;
#pragma unroll
    for (int i = 0; i < 2 * SHAPE::tiles; i++) {
        int most = INT32_MIN;
#pragma unroll
        for (int j = 0; j < 2 * row_tiles; j++)
            most = max(most, all.sums[i / 2][j / 2][i % 2 * 2 + j % 2]);
        if (most >= least[i]) passing |= 1u << i;
    }
    if (!__any_sync(all_lanes, passing != 0)) return;
    passing = __reduce_or_sync(all_lanes, passing);
    const uint32_t mask = __ldg(a.scan.codes.masks + bundle);
#pragma unroll
    for (int i = 0; i < 2 * SHAPE::tiles; i++) {
        if (!(passing >> i & 1)) continue;
        int sums[2 * row_tiles];
#pragma unroll
        for (int j = 0; j < 2 * row_tiles; j++) sums[j] = all.sums[i / 2][j / 2][i % 2 * 2 + j % 2];
        append_keys(a, work, bundle, work.query(static_cast<uint32_t>(i) * 8 + lane / 4), lane,
                    mask, sums);
    }
}

// Bundles [begin, end) that are this warp's, `step` apart; a.scan.part says which those are.
template <class SHAPE, class WORK>
__device__ __forceinline__ void scan_bundles(const byte_arguments &a, const WORK &work,
                                             uint32_t begin, uint32_t end, uint32_t lane)
{
    int least[2 * SHAPE::tiles];
#pragma unroll
    for (int i = 0; i < 2 * SHAPE::tiles; i++)
        least[i] = least_sum(a, work.query(static_cast<uint32_t>(i) * 8 + lane / 4));
    for (uint32_t i = begin; i < end; i += SHAPE::bundles) {
        const uint32_t bundle = bundle_of(a.scan, i);
        byte_sums<SHAPE> all;
        begin_sums(a, bundle, lane, all);
        multiply(a, work, bundle, lane, all);
        select_rows<SHAPE>(a, work, bundle, lane, least, all);
        __syncwarp(); // for the next products
    }
}

// ---- launches ----

inline bool is_valid_byte_scan(const bsw_device_codes &codes, const bsw_device_part &part,
                               const bsw_device_queries &queries, int factor,
                               const bsw_device_lists &lists)
{
    if (part.step < 1 || part.first > part.last || part.last > codes.num_bundles) return false;
    const uint64_t rows = static_cast<uint64_t>(num_bundles_of(part)) * warp_rows;
    if (lists.queues.slots && !has_queues_for(codes, part, lists.queues)) return false;
    return codes.layout.num_segments == 1 && codes.layout.segments[0].bits == 8 && codes.offsets &&
           !codes.scales && (factor == 1 || factor == 2) &&
           lists.num_queries == queries.num_queries && rows + lists.capacity <= UINT32_MAX &&
           bsw_device_byte_operand_bytes(queries.num_queries, codes.layout.padded_dims) / 16 <=
               UINT32_MAX;
}

} // namespace bsw

DEVICE_POINTERS(bsw::byte_arguments, a.scan)

#endif
