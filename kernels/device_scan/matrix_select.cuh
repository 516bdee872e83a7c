// SPDX-License-Identifier: Apache-2.0
// What the matrix scan's kernel (matrix_scan.cuh) selects by, whatever its queries are: where sums
// begin, which of them may pass, which do, and appends.
#ifndef BITSWEEP_KERNELS_MATRIX_SELECT_CUH
#define BITSWEEP_KERNELS_MATRIX_SELECT_CUH

#include "kernels/device_scan/dot_bound.cuh"
#include "kernels/device_scan/key_terms.cuh"
#include "kernels/device_scan/matrix_tile.cuh"

namespace bsw
{

// Parts of the block's shared memory.
struct scan_shared : matrix_shared {
    bundle_bound *bounds;   // [bundles]
    quick_query *quick;     // [queries]
    float *scales, *biases; // [rows]
    // Where sums start with terms of keys, in place of bounds and quick:
    row_caps *caps;         // [bundles]
    key_query *key_queries; // [queries]
    key_start *starts;      // [queries / 2], two that are 8 apart
    key_pair *words;        // [queries / 2][4]
    uint4 *terms;           // [rows]
};

// What is as long for every layout comes first, at places that the compiler knows.
template <class SHAPE> __device__ __forceinline__ scan_shared divide_shared(uint32_t num_words)
{
    DYNAMIC_SHARED(uint8_t, memory);
    scan_shared out;
    out.key_queries = reinterpret_cast<key_query *>(memory);
    out.quick = reinterpret_cast<quick_query *>(memory);
    out.starts = reinterpret_cast<key_start *>(out.key_queries + SHAPE::queries);
    out.words = reinterpret_cast<key_pair *>(out.starts + SHAPE::queries / 2);
    out.bounds = reinterpret_cast<bundle_bound *>(out.words + SHAPE::queries * 2);
    out.caps = reinterpret_cast<row_caps *>(out.bounds);
    out.terms = reinterpret_cast<uint4 *>(out.bounds + SHAPE::bundles);
    out.scales = reinterpret_cast<float *>(out.terms + SHAPE::rows);
    out.biases = out.scales + SHAPE::rows;
    out.rows = reinterpret_cast<uint8_t *>(out.biases + SHAPE::rows);
    out.queries = out.rows + num_words * SHAPE::row_word_bytes;
    return out;
}

// Bytes of a tile of so many queries and rows.
inline size_t select_shared_bytes(uint32_t queries, uint32_t bundles, uint32_t padded_dims)
{
    const uint32_t rows = bundles * warp_rows;
    return static_cast<size_t>(rows + queries) * word_bytes * words_at_a_time(padded_dims) +
           rows * (sizeof(uint4) + 2 * sizeof(float)) + bundles * sizeof(bundle_bound) +
           queries * (sizeof(key_query) + sizeof(key_start) / 2 + 2 * sizeof(key_pair));
}

// Where in the codes row i of the tile is.
__device__ __forceinline__ uint32_t row_of(const scan_arguments &a, uint32_t first_bundle,
                                           uint32_t i)
{
    const uint32_t first = static_cast<uint32_t>(opaque(static_cast<int>(first_bundle)));
    return bundle_of(a, first + i / warp_rows) * warp_rows + i % warp_rows;
}

template <class SHAPE>
__device__ __forceinline__ void load_scales(const scan_arguments &a, uint32_t first_bundle,
                                            uint32_t end, const scan_shared &shared)
{
    for (uint32_t i = threadIdx.x; i < SHAPE::rows; i += tuning.threads) {
        const bool exists = first_bundle + i / warp_rows < end;
        const size_t place = row_of(a, first_bundle, i);
        const float scale = exists ? half_to_float(__ldg(a.codes.scales + place)) : 0.0f;
        const float bias = exists ? __ldg(a.codes.biases + place) : 0.0f;
        shared.scales[i] = scale;
        shared.biases[i] = bias;
        const bundle_bound bound = make_bundle_bound(scale, bias); // whole warps come here
        if (i % warp_rows == 0) shared.bounds[i / warp_rows] = bound;
    }
}

// ---- sums that start with terms of keys ----

// A warp a bundle, the last ones first, as unpacking begins with the first. Rows that are masked
// are left out.
template <class SHAPE>
__device__ __forceinline__ void load_terms(const scan_arguments &a, uint32_t first_bundle,
                                           uint32_t end, bool is_first, const scan_shared &shared)
{
    static_assert(SHAPE::bundles <= block_warps, "one a warp, of each tile the same");
    const uint32_t lane = threadIdx.x % 32, own = block_warps - 1 - threadIdx.x / 32;
    if (own >= SHAPE::bundles) return;
    row_caps caps = {0, 0};
    if (!is_first) caps = shared.caps[own];
    const uint32_t bundle = bundle_of(a, first_bundle + own), i = own * warp_rows + lane;
    const bool is_there = first_bundle + own < end;
    const size_t place = static_cast<size_t>(bundle) * warp_rows + lane;
    const uint32_t mask = is_there ? __ldg(a.codes.masks + bundle) : 0;
    const float scale = is_there ? half_to_float(__ldg(a.codes.scales + place)) : 0.0f;
    const float bias = is_there ? __ldg(a.codes.biases + place) : 0.0f;
    shared.scales[i] = scale;
    shared.biases[i] = bias;
    shared.terms[i] = make_row_terms(scale, bias, mask >> lane & 1, caps);
    __syncwarp(); // all lanes have read the caps
    if (lane == 0) shared.caps[own] = caps;
}

// The tile's caps are seldom above those that starts were made for, by all threads alike.
template <class SHAPE>
__device__ __forceinline__ void update_starts(const scan_shared &shared, row_caps &started)
{
    row_caps caps = shared.caps[0];
#pragma unroll
    for (uint32_t b = 1; b < SHAPE::bundles; b++) caps = join_caps(caps, shared.caps[b]);
    if (caps.inverse <= started.inverse && caps.bias <= started.bias) return;
    started = join_caps(started, caps);
    for (uint32_t i = threadIdx.x; i < SHAPE::queries * 2; i += tuning.threads) {
        const key_query &first = shared.key_queries[i / 32 * 16 + i / 4 % 8];
        const key_query &second = (&first)[8];
        shared.words[i] = make_words(first, second, started, i % 4);
        if (i % 4 == 0) shared.starts[i / 4] = make_start(first, second, started);
    }
    __syncthreads();
}

// What the first step takes of the warp's queries: 16 from tile m on.
struct query_terms {
    key_pair words;
    key_start start;
};

template <class SHAPE>
__device__ __forceinline__ query_terms load_query_terms(uint32_t warp, uint32_t lane,
                                                        const scan_shared &shared, int m)
{
    const uint32_t pair =
        (warp % SHAPE::query_warps * SHAPE::query_tiles + static_cast<uint32_t>(m)) * 8 + lane / 4;
    return {shared.words[pair * 4 + lane % 4], shared.starts[pair]};
}

// ldmatrix takes four tiles of rows at a time and gives a lane word lane % 4 of the terms of row
// lane / 4 of each.
template <class SHAPE>
__device__ __forceinline__ void begin_tile(uint32_t warp, uint32_t lane, const scan_shared &shared,
                                           accumulators<SHAPE> &acc)
{
    constexpr uint32_t rows = 8 * SHAPE::row_tiles, together = rows < 32 ? rows : 32;
    const uint4 *first = shared.terms + warp / SHAPE::query_warps * rows + lane % together;
    query_terms queries[SHAPE::query_tiles];
#pragma unroll
    for (int m = 0; m < SHAPE::query_tiles; m++)
        queries[m] = load_query_terms<SHAPE>(warp, lane, shared, m);
#pragma unroll
    for (int n = 0; n < SHAPE::row_tiles; n += 4) {
        unsigned terms[4];
        load_matrices(terms, first + 8 * n);
#pragma unroll
        for (int i = 0; i < static_cast<int>(together / 8) * SHAPE::query_tiles; i++) {
            const int m = i % SHAPE::query_tiles, t = i / SHAPE::query_tiles;
            begin_sums(acc.sums[m][n + t], queries[m].words, terms[t], queries[m].start);
        }
    }
}

// Bits as in find_queries.
template <class SHAPE>
__device__ __forceinline__ uint32_t find_below(const accumulators<SHAPE> &acc)
{
    uint32_t above[2 * SHAPE::query_tiles], all = still_above;
#pragma unroll
    for (int i = 0; i < 2 * SHAPE::query_tiles; i++) {
        above[i] = still_above;
#pragma unroll
        for (int j = 0; j < 2 * SHAPE::row_tiles; j++)
            above[i] &= static_cast<uint32_t>(acc.sums[i / 2][j / 2][2 * (i % 2) + j % 2]);
        all &= above[i];
    }
    if (!__any_sync(all_lanes, all == 0)) return 0;
    uint32_t queries = 0;
#pragma unroll
    for (int i = 0; i < 2 * SHAPE::query_tiles; i++) {
        if (above[i] == 0) queries |= 1u << i;
    }
    return __reduce_or_sync(all_lanes, queries);
}

// ---- bounds of bundles ----

// The least of the lane's sums of one query and a bundle, of which a warp has four tiles of columns
// or fewer.
template <class SHAPE>
__device__ __forceinline__ int least_sum(const accumulators<SHAPE> &acc, int m, int half,
                                         int bundle)
{
    constexpr int tiles = SHAPE::row_tiles < 4 ? SHAPE::row_tiles : 4;
    int least = INT32_MAX;
#pragma unroll
    for (int i = 0; i < tiles; i++) {
        const int(&sums)[4] = acc.sums[m][bundle * 4 + i];
        least = min(least, min(sums[2 * half], sums[2 * half + 1]));
    }
    return least;
}

// Bit i: the lane's sums of query i/2, half i%2, may have one that passes, rows that do not exist
// or are masked included.
template <class SHAPE, key_kind KIND>
__device__ __forceinline__ uint32_t find_queries(uint32_t warp, uint32_t lane, uint32_t first_row,
                                                 const accumulators<SHAPE> &acc,
                                                 const scan_shared &shared)
{
    constexpr int num_bundles = SHAPE::row_tiles < 4 ? 1 : SHAPE::row_tiles / 4;
    uint32_t queries = 0;
#pragma unroll
    for (int i = 0; i < 2 * SHAPE::query_tiles; i++) {
        const quick_query own = shared.quick[query_of<SHAPE>(0, warp, lane, i / 2, i % 2)];
        bool passes = false;
#pragma unroll
        for (int bundle = 0; bundle < num_bundles; bundle++) {
            const int least = least_sum<SHAPE>(acc, i / 2, i % 2, bundle);
            bundle_bound bound = {};
            if (KIND != key_kind::integer)
                bound = shared.bounds[first_row / warp_rows + static_cast<uint32_t>(bundle)];
            passes |= may_pass<KIND>(own, least, bound);
        }
        if (passes) queries |= 1u << i;
    }
    return queries;
}

// The lane's sums of products alone of the query, half `half` of m: 2*n + c of row 8*n + c.
template <class SHAPE, key_kind KIND>
__device__ __forceinline__ void take_sums(uint32_t warp, uint32_t lane, const scan_shared &shared,
                                          const accumulators<SHAPE> &acc, int m, int half,
                                          int (&sums)[2 * SHAPE::row_tiles])
{
    const uint32_t *terms = reinterpret_cast<const uint32_t *>(
                                shared.terms + warp / SHAPE::query_warps * (8 * SHAPE::row_tiles)) +
                            lane;
    query_terms queries = {};
    if (KIND == key_kind::small_float) queries = load_query_terms<SHAPE>(warp, lane, shared, m);
#pragma unroll
    for (int n = 0; n < SHAPE::row_tiles; n++) {
        int begun[4] = {0, 0, 0, 0};
        if (KIND == key_kind::small_float)
            begin_sums(begun, queries.words, terms[32 * n], queries.start);
        sums[2 * n] = acc.sums[m][n][2 * half] - begun[2 * half];
        sums[2 * n + 1] = acc.sums[m][n][2 * half + 1] - begun[2 * half + 1];
    }
}

// Bits 2*n + c: the pair of the query and row 8*n + c reaches its limit.
template <class SHAPE, key_kind KIND>
__device__ __forceinline__ uint32_t find_hits(const thread_query &own,
                                              const int (&sums)[2 * SHAPE::row_tiles],
                                              const scan_shared &shared, uint32_t first_row)
{
    uint32_t hits = 0;
#pragma unroll
    for (int n = 0; n < SHAPE::row_tiles; n++) {
        float2 scale = {0, 0}, bias = {0, 0};
        if (KIND != key_kind::integer) {
            const uint32_t row = first_row + static_cast<uint32_t>(8 * n);
            scale = *reinterpret_cast<const float2 *>(shared.scales + row);
            bias = *reinterpret_cast<const float2 *>(shared.biases + row);
        }
        if (reaches<KIND>(own, sums[2 * n], scale.x, bias.x)) hits |= 1u << (2 * n);
        if (reaches<KIND>(own, sums[2 * n + 1], scale.y, bias.y)) hits |= 2u << (2 * n);
    }
    return hits;
}

// Which of the lane's rows may be selected: bits as in find_hits.
template <class SHAPE>
__device__ __forceinline__ uint32_t valid_rows(const scan_arguments &a, uint32_t first_bundle,
                                               uint32_t end, uint32_t first_row)
{
    uint32_t valid = 0;
#pragma unroll
    for (int n = 0; n < SHAPE::row_tiles; n++) {
        const uint32_t row = first_row + static_cast<uint32_t>(8 * n);
        const uint32_t bundle = first_bundle + row / warp_rows;
        const uint32_t mask = bundle < end ? __ldg(a.codes.masks + bundle_of(a, bundle)) : 0;
        valid |= (mask >> row % warp_rows & 3u) << (2 * n);
    }
    return valid;
}

// Sums stay what they are, but what find_hits made of them is not kept for the rare way: that would
// take twice the registers.
template <int N> __device__ __forceinline__ void keep_sums(int (&sums)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++) sums[i] = opaque(sums[i]);
}

// One query's hits of a warp to its list: the four lanes that share the query, one atomicAdd.
// make_item(row of the tile, score): a candidate.
template <class SHAPE, key_kind KIND, class MAKE_ITEM>
__device__ __forceinline__ void
append_hits(const bsw_device_lists &lists, const thread_query &own,
            const int (&sums)[2 * SHAPE::row_tiles], const scan_shared &shared, uint32_t first_row,
            uint32_t query, uint32_t hits, const MAKE_ITEM &make_item)
{
    uint32_t at = take_places(lists, query, static_cast<uint32_t>(__popc(hits)));
#pragma unroll
    for (int n = 0; n < SHAPE::row_tiles; n++) {
#pragma unroll
        for (int c = 0; c < 2; c++) {
            if (!(hits >> (2 * n + c) & 1)) continue;
            const uint32_t row = first_row + static_cast<uint32_t>(8 * n + c);
            float scale = 0, bias = 0;
            if (KIND != key_kind::integer) {
                scale = shared.scales[row];
                bias = shared.biases[row];
            }
            const int dot = own.constant - 2 * sums[2 * n + c];
            put_item(lists, query, at++,
                     make_item(row, score_of<KIND>(dot, own.scale, scale, bias)));
        }
    }
}

} // namespace bsw

#endif
