// SPDX-License-Identifier: Apache-2.0
// Products of halves of all rows with all queries: a block takes 128 rows and walks through the
// queries, 128 at a time, with mma.m16n8k16; a warp has 64 rows by 32 queries in registers.
//
// Both come through shared memory, 32 dimensions a stage, three stages that cp.async fills while
// others are multiplied; the walk over stages goes on across tiles of queries, so that the next
// tile's first stages come while pairs of this one are compared. Of a stage every vector has four
// pieces of 16 bytes, whose places are swapped by the vector's number so that ldmatrix and cp.async
// meet no bank twice. 48 KB: two blocks fit a multiprocessor of every generation from 8.0 on.
#include "kernels/gpu_screen/half_arguments.cuh"

namespace bsw
{
namespace
{

constexpr uint32_t tile_rows = 128, tile_queries = 128, tile_bundles = tile_rows / warp_rows;
constexpr uint32_t row_warps = 2, query_warps = 4;
constexpr uint32_t screen_threads = row_warps * query_warps * warp_rows;
constexpr uint32_t screen_busy_blocks = 8; // of a multiprocessor
constexpr uint32_t stage_dims = BSW_HALF_DIMS, pieces = stage_dims / 8, num_stages = 3;
constexpr uint32_t vector_bytes = stage_dims * 2, stage_bytes = (tile_rows + tile_queries) * 64;
constexpr int warp_row_tiles = tile_rows / row_warps / 16; // of mma
constexpr int warp_query_tiles = tile_queries / query_warps / 8;
constexpr uint32_t own_pieces = tile_rows * pieces / screen_threads; // that a thread loads
static_assert(vector_bytes == 64 && pieces == 4 && tile_rows == tile_queries, "piece_at");

typedef float screen_sums[warp_row_tiles][warp_query_tiles][4];

// Where a piece of a vector lies among those of a stage's rows, or queries.
__device__ __forceinline__ uint32_t piece_at(uint32_t vector, uint32_t piece)
{
    return vector * vector_bytes + (piece ^ (vector / 2 % pieces)) * 16;
}

// The bundle that is number `i` of the part.
__device__ __forceinline__ uint32_t bundle_of(const screen_arguments &a, uint32_t i)
{
    return a.part.first + min(i, a.shape.num_bundles - 1) * a.part.step;
}

// The row at place `row` of a block's tile, which may be none.
__device__ __forceinline__ uint32_t row_of(const screen_arguments &a, uint32_t first_bundle,
                                           uint32_t row)
{
    return bundle_of(a, first_bundle + row / warp_rows) * warp_rows + row % warp_rows;
}

// A stage's place in the walk: tiles of queries, each by pieces of dimensions.
struct walk {
    uint32_t tile, stage;
};

__device__ __forceinline__ void advance(const screen_arguments &a, walk &at)
{
    if (++at.stage < a.half_rows.padded_dims / stage_dims) return;
    at.stage = 0;
    at.tile += a.shape.parts;
}

__device__ __forceinline__ bool is_over(const screen_arguments &a, const walk &at)
{
    return static_cast<uint64_t>(at.tile) * tile_queries >= a.queries.num_queries;
}

// rows: numbers of the thread's rows, from their piece on.
__device__ __forceinline__ void load_stage(const screen_arguments &a, const walk &at,
                                           const uint16_t *const (&rows)[own_pieces],
                                           unsigned char *to)
{
    const uint32_t last = a.queries.num_queries - 1, first_dim = at.stage * stage_dims;
#pragma unroll
    for (uint32_t i = 0; i < own_pieces; i++) {
        const uint32_t own = threadIdx.x + i * screen_threads;
        const uint32_t vector = own / pieces, piece = own % pieces;
        const uint32_t query = min(at.tile * tile_queries + vector, last);
        const uint16_t *numbers = a.half_queries.numbers +
                                  static_cast<size_t>(query) * a.half_queries.padded_dims +
                                  piece * 8;
        cp_async_16(to + piece_at(vector, piece), rows[i] + first_dim);
        cp_async_16(to + tile_rows * vector_bytes + piece_at(vector, piece), numbers + first_dim);
    }
}

// A stage's products, added to sums.
__device__ __forceinline__ void multiply_stage(const unsigned char *stage, uint32_t warp,
                                               uint32_t lane, screen_sums &sums)
{
    const unsigned char *queries = stage + tile_rows * vector_bytes;
    const uint32_t row = warp / query_warps * (16 * warp_row_tiles) + lane % 16;
    const uint32_t query = warp % query_warps * (8 * warp_query_tiles) + lane / 16 * 8 + lane % 8;
#pragma unroll
    for (uint32_t step = 0; step < stage_dims / 16; step++) {
        unsigned documents[warp_row_tiles][4];
#pragma unroll
        for (int m = 0; m < warp_row_tiles; m++)
            load_matrices(documents[m], stage + piece_at(row + static_cast<uint32_t>(m) * 16,
                                                         step * 2 + lane / 16));
#pragma unroll
        for (int n = 0; n < warp_query_tiles; n += 2) {
            unsigned both[4];
            load_matrices(both, queries + piece_at(query + static_cast<uint32_t>(n) * 8,
                                                   step * 2 + lane / 8 % 2));
#pragma unroll
            for (int m = 0; m < warp_row_tiles; m++) {
                mma_f16(sums[m][n], documents[m], {both[0], both[1]});
                mma_f16(sums[m][n + 1], documents[m], {both[2], both[3]});
            }
        }
    }
}

// ---- survivors ----

__device__ __forceinline__ bsw_half_row_term load_row_term(const screen_arguments &a,
                                                           uint32_t first_bundle, uint32_t row)
{
    const float2 both =
        __ldg(reinterpret_cast<const float2 *>(a.half_rows.terms + row_of(a, first_bundle, row)));
    const bool exists = first_bundle + row / warp_rows < a.shape.num_bundles;
    return {both.x, exists ? both.y : __uint_as_float(0x7fc00000u)};
}

__device__ __forceinline__ bsw_half_query_term load_query_term(const screen_arguments &a,
                                                               uint32_t query)
{
    if (query >= a.queries.num_queries) return {1.0f, __uint_as_float(0x7fc00000u)};
    const float2 both = __ldg(reinterpret_cast<const float2 *>(a.half_queries.terms + query));
    return {both.x, both.y};
}

// Bits of hits: sum c of tile m, n is bit c + 4 n of the m-th.
typedef uint32_t screen_hits[warp_row_tiles];

// Places of the lane's sums among the tile's rows and queries: c % 2 is a query, c / 2 eight rows.
__device__ __forceinline__ uint32_t own_row(uint32_t warp, uint32_t lane, uint32_t m, uint32_t c)
{
    return warp / query_warps * (16 * warp_row_tiles) + m * 16 + c / 2 * 8 + lane / 4;
}

__device__ __forceinline__ uint32_t own_query(uint32_t warp, uint32_t lane, uint32_t n, uint32_t c)
{
    return warp % query_warps * (8 * warp_query_tiles) + n * 8 + lane % 4 * 2 + c % 2;
}

__device__ __forceinline__ uint32_t find_hits(const screen_arguments &a, uint32_t first_bundle,
                                              uint32_t first_query, uint32_t warp, uint32_t lane,
                                              const screen_sums &sums, screen_hits &hits)
{
    bsw_half_query_term queries[2 * warp_query_tiles];
    uint32_t any = 0;
#pragma unroll
    for (uint32_t i = 0; i < 2 * warp_query_tiles; i++)
        queries[i] = load_query_term(a, first_query + own_query(warp, lane, i / 2, i % 2));
#pragma unroll
    for (uint32_t m = 0; m < warp_row_tiles; m++) {
        const bsw_half_row_term rows[2] = {
            load_row_term(a, first_bundle, own_row(warp, lane, m, 0)),
            load_row_term(a, first_bundle, own_row(warp, lane, m, 2))};
        hits[m] = 0;
#pragma unroll
        for (uint32_t i = 0; i < 4 * warp_query_tiles; i++) {
            const bsw_half_row_term &row = rows[i % 4 / 2];
            const bsw_half_query_term &query = queries[i / 4 * 2 + i % 2];
            const float sum = __fmul_rn(sums[m][i / 4][i % 4], row.scale);
            if (__fmaf_rn(row.bias, query.weight, sum) >= query.limit) hits[m] |= 1u << i;
        }
        any |= hits[m];
    }
    return any;
}

// Room for the warp's hits, of which the lane has `own`: where the lane's are.
__device__ __forceinline__ unsigned long long take_room(const screen_arguments &a, uint32_t lane,
                                                        uint32_t own)
{
    uint32_t until = own;
#pragma unroll
    for (uint32_t distance = 1; distance < warp_rows; distance *= 2) {
        const uint32_t before = __shfl_up_sync(all_lanes, until, distance);
        if (lane >= distance) until += before;
    }
    unsigned long long at = 0;
    if (lane == warp_rows - 1)
        at = atomicAdd(reinterpret_cast<unsigned long long *>(&a.survivors.counts->num),
                       static_cast<unsigned long long>(until));
    return __shfl_sync(all_lanes, at, warp_rows - 1) + until - own;
}

__device__ __forceinline__ void append_hits(const screen_arguments &a, uint32_t first_bundle,
                                            uint32_t first_query, uint32_t warp, uint32_t lane,
                                            const screen_hits &hits)
{
    uint32_t own = 0;
#pragma unroll
    for (uint32_t m = 0; m < warp_row_tiles; m++) own += static_cast<uint32_t>(__popc(hits[m]));
    unsigned long long at = take_room(a, lane, own);
#pragma unroll
    for (uint32_t m = 0; m < warp_row_tiles; m++) {
        for (uint32_t left = hits[m]; left; left &= left - 1, at++) {
            const uint32_t i = static_cast<uint32_t>(__ffs(static_cast<int>(left))) - 1;
            if (at >= a.survivors.capacity) return;
            a.survivors.pairs[at] = {first_query + own_query(warp, lane, i / 4, i % 4),
                                     row_of(a, first_bundle, own_row(warp, lane, m, i % 4))};
        }
    }
}

// ---- kernels ----

// Limits as products take them; counts begin anew.
__global__ void __launch_bounds__(screen_threads)
    begin_screen(const __grid_constant__ screen_arguments a)
{
    const uint32_t query = blockIdx.x * screen_threads + threadIdx.x;
    if (query == 0) {
        bsw_screen_counts *counts = a.survivors.counts;
        if (counts->num > a.survivors.capacity)
            counts->overflows++;
        else
            counts->valued += counts->num;
        counts->num = 0;
    }
    if (query >= a.queries.num_queries) return;
    bsw_half_query_term term = {1.0f, __uint_as_float(0xff800000u)};
    const float unit = a.half_queries.units[query];
    if (unit > 0.0f) {
        const double norm = a.queries.norms[query];
        const double worst = __uint_as_float(*a.half_queries.worst_error);
        const double balance =
            bsw_screen_half_balance(worst, a.half_queries.padded_dims, is_rounded(a.raw.type));
        term.weight = bsw_screen_half_weight(a.metric, norm, unit);
        term.limit =
            bsw_screen_half_limit(a.metric, norm, balance, term.weight, a.lists.limits[query]);
    }
    a.half_queries.terms[query] = term;
}

__global__ void __launch_bounds__(screen_threads, 2)
    screen_pairs(const __grid_constant__ screen_arguments a)
{
    DYNAMIC_SHARED(unsigned char, stages);
    const uint32_t lane = threadIdx.x % warp_rows, warp = threadIdx.x / warp_rows;
    const uint32_t first_bundle = blockIdx.x / a.shape.parts * tile_bundles;
    const uint16_t *rows[own_pieces];
#pragma unroll
    for (uint32_t i = 0; i < own_pieces; i++) {
        const uint32_t own = threadIdx.x + i * screen_threads;
        rows[i] =
            a.half_rows.numbers +
            static_cast<size_t>(row_of(a, first_bundle, own / pieces)) * a.half_rows.padded_dims +
            own % pieces * 8;
    }
    walk next = {blockIdx.x % a.shape.parts, 0}, at = next;
#pragma unroll
    for (uint32_t i = 0; i < num_stages - 1; i++) {
        if (!is_over(a, next)) load_stage(a, next, rows, stages + i * stage_bytes);
        cp_async_commit();
        advance(a, next);
    }
    screen_sums sums = {};
    for (uint32_t i = 0; !is_over(a, at); i = (i + 1) % num_stages) {
        cp_async_wait<num_stages - 2>();
        __syncthreads(); // all of stage i is there, and nobody reads the one before it any more
        if (!is_over(a, next))
            load_stage(a, next, rows, stages + (i + num_stages - 1) % num_stages * stage_bytes);
        cp_async_commit();
        advance(a, next);
        multiply_stage(stages + i * stage_bytes, warp, lane, sums);
        const uint32_t first_query = at.tile * tile_queries;
        advance(a, at);
        if (at.stage > 0) continue;
        screen_hits hits;
        const uint32_t any = find_hits(a, first_bundle, first_query, warp, lane, sums, hits);
        if (__any_sync(all_lanes, any != 0))
            append_hits(a, first_bundle, first_query, warp, lane, hits);
        converge();
#pragma unroll
        for (int s = 0; s < warp_row_tiles * warp_query_tiles * 4; s++)
            sums[s / (4 * warp_query_tiles)][s / 4 % warp_query_tiles][s % 4] = 0.0f;
    }
}

bool is_valid_screen(const screen_arguments &a)
{
    return is_valid_exact(a.rows, a.part, a.raw.dims, a.lists) && a.raw.type <= BSW_VECTOR_INT8 &&
           a.raw.dims <= BSW_MAX_DIMS && a.metric < BSW_METRIC_NUM &&
           a.half_rows.padded_dims == bsw_half_padded_dims(a.raw.dims) &&
           a.half_queries.padded_dims == a.half_rows.padded_dims &&
           a.queries.num_queries == a.lists.num_queries && a.queries.num_queries <= INT32_MAX;
}

} // namespace
} // namespace bsw

extern "C" int bsw_device_screened_scan(
    enum bsw_metric metric, const struct bsw_device_exact_rows *rows,
    const struct bsw_device_raw_rows *raw, const struct bsw_half_rows *half_rows,
    const struct bsw_device_part *part, const struct bsw_device_vectors *queries,
    const struct bsw_half_queries *half_queries, const struct bsw_screen_survivors *survivors,
    const struct bsw_device_exact_lists *lists, bsw_stream stream)
{
    using namespace bsw;
    screen_arguments a = {metric,   *rows,         *raw,       *half_rows, *part,
                          *queries, *half_queries, *survivors, *lists,     {0, 0}};
    if (!is_valid_screen(a)) return cudaErrorInvalidValue;
    if (part->first == part->last || queries->num_queries == 0) return cudaSuccess;
    uint32_t blocks = 0;
    cudaError_t error = plan_exact(*part, queries->num_queries, tile_bundles, tile_queries,
                                   screen_busy_blocks, &a.shape, &blocks);
    if (error) return error;
    const uint32_t query_blocks = (queries->num_queries + screen_threads - 1) / screen_threads;
    error = launch({dim3(query_blocks), dim3(screen_threads), 0, stream}, begin_screen, a);
    if (error) return error;
    error = launch({dim3(blocks), dim3(screen_threads), num_stages * stage_bytes, stream},
                   screen_pairs, a);
    if (error) return error;
    error = launch_values(a, stream);
    if (error) return error;
    const bsw_device_exact_gate gate = {&survivors->counts->num, survivors->capacity};
    return bsw_device_exact_scan_if(metric, rows, raw, part, queries, lists, &gate, stream);
}
