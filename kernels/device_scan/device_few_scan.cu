// SPDX-License-Identifier: Apache-2.0
// matrix_scan of up to 32 queries: documents are the rows of mma.m16n8k32 and are unpacked in
// registers (few_unpack.cuh), so that none of a code passes shared memory. Reading binds it.
//
// A warp takes a bundle, in steps of a few words. A lane loads 16 bytes of every plane, four rows'
// words; the next step's are under way while rows are compared. In the sums of lane 4*g + t are
// those of rows 4*g to 4*g + 3 and of queries 2*t and 2*t + 1 of every eight.
//
// Up to eight queries, keys are compared as they are. More, if keys are floats of dots below 2^21,
// begin sums with terms of keys (key_terms.cuh), where rows and queries have changed places: a lane
// makes the terms of one row, and four lanes exchange theirs. Starts of sums follow the caps of the
// warp's own rows.
#include "kernels/device_scan/few_steps.cuh"

namespace bsw
{
namespace
{

using namespace few;
// ---- queries ----

// What a lane compares sums with: queries 2*t and 2*t + 1 of each tile. With terms, starts of sums,
// and the lane's word of query g.
template <class SHAPE> struct lane_queries {
    thread_query own[SHAPE::has_terms ? 1 : SHAPE::tiles][2];
    unsigned words[SHAPE::tiles];
    float starts[SHAPE::tiles][2];
    row_caps caps; // what starts are for
};

template <class SHAPE>
__device__ __forceinline__ void make_starts(const few_shared<SHAPE> &shared,
                                            lane_queries<SHAPE> &queries)
{
    const uint32_t lane = threadIdx.x % 32, t = lane % row_lanes;
#pragma unroll
    for (int n = 0; n < SHAPE::tiles; n++) {
        const key_query &key = shared.keys[n * 8 + lane / row_lanes];
        queries.words[n] = is_wild(key, queries.caps) ? 0 : word_of(key, t);
#pragma unroll
        for (uint32_t c = 0; c < 2; c++)
            queries.starts[n][c] = make_start(shared.keys[n * 8 + 2 * t + c], queries.caps);
    }
}

template <class SHAPE>
__device__ __forceinline__ lane_queries<SHAPE> make_lane_queries(const scan_arguments &a,
                                                                 const few_shared<SHAPE> &shared)
{
    lane_queries<SHAPE> out = {};
    if constexpr (SHAPE::has_terms) {
        make_starts<SHAPE>(shared, out);
    } else {
#pragma unroll
        for (int i = 0; i < 2 * SHAPE::tiles; i++)
            out.own[i / 2][i % 2] = load_query<SHAPE::kind>(
                a, static_cast<uint32_t>(i / 2 * 8 + i % 2) + threadIdx.x % row_lanes * 2);
    }
    return out;
}
// ---- sums that start with terms of keys ----

// Four words of each of the quad's lanes: lane t gets word t of all.
__device__ __forceinline__ void transpose_quad(unsigned (&v)[4], uint32_t t)
{
#pragma unroll
    for (int step = 1; step < 4; step *= 2) {
        const bool is_upper = (t & static_cast<uint32_t>(step)) != 0;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int low = step == 1 ? 2 * i : i, high = low + step;
            const unsigned given = __shfl_xor_sync(all_lanes, is_upper ? v[low] : v[high], step);
            v[low] = is_upper ? given : v[low];
            v[high] = is_upper ? v[high] : given;
        }
    }
}

// What the first product takes of the lane's four rows.
struct quad_terms {
    unsigned rows[4];
};

template <class SHAPE>
__device__ __forceinline__ quad_terms make_terms(const few_rows &rows,
                                                 const few_shared<SHAPE> &shared,
                                                 lane_queries<SHAPE> &queries)
{
    const uint32_t lane = threadIdx.x % 32;
    row_caps caps = queries.caps;
    const uint4 own = make_row_terms(half_to_float(static_cast<uint16_t>(rows.scales[0])),
                                     rows.biases[0], rows.mask >> lane & 1, caps);
    if (!are_within(caps, queries.caps)) {
        queries.caps = caps;
        make_starts<SHAPE>(shared, queries);
    }
    quad_terms out = {{own.x, own.y, own.z, own.w}};
    transpose_quad(out.rows, lane % row_lanes);
    return out;
}

template <class SHAPE>
__device__ __forceinline__ void begin_tile(const quad_terms &terms,
                                           const lane_queries<SHAPE> &queries, int n, int m,
                                           int (&sums)[4])
{
    const float start[4] = {queries.starts[n][0], queries.starts[n][1], queries.starts[n][0],
                            queries.starts[n][1]};
    float begun[4];
    mma_bf16_short(begun, {terms.rows[2 * m], terms.rows[2 * m + 1]}, queries.words[n], start);
#pragma unroll
    for (int j = 0; j < 4; j++) sums[j] = __float_as_int(begun[j]);
}

// ---- selection ----

struct row_keys {
    float scales[lane_rows], biases[lane_rows];
};

template <class SHAPE> __device__ __forceinline__ row_keys keys_of(const few_rows &rows)
{
    row_keys out = {};
    if constexpr (SHAPE::kind != key_kind::integer && !SHAPE::has_terms) {
#pragma unroll
        for (int r = 0; r < static_cast<int>(lane_rows); r++) {
            out.scales[r] =
                half_to_float(static_cast<uint16_t>(rows.scales[r / 2] >> 16 * (r % 2)));
            out.biases[r] = rows.biases[r];
        }
    }
    return out;
}

// Whether bit 22 says so of a sum that started with terms.
template <class SHAPE> __device__ __forceinline__ bool is_below(const few_sums<SHAPE> &sums)
{
    uint32_t above = still_above;
#pragma unroll
    for (int i = 0; i < 4 * SHAPE::tiles; i++) {
        const int *own = sums.of[i / 4][i / 2 % 2] + i % 2 * 2;
        above = and_bits(above, static_cast<uint32_t>(own[0]), static_cast<uint32_t>(own[1]));
    }
    return above == 0;
}

// Whether any pair of the lane may pass; without terms rows that are masked, too.
template <class SHAPE>
__device__ __forceinline__ bool may_pass(const few_sums<SHAPE> &sums, const row_keys &keys,
                                         const lane_queries<SHAPE> &queries)
{
    if constexpr (SHAPE::has_terms) {
        return is_below<SHAPE>(sums);
    } else {
        bool passes = false;
#pragma unroll
        for (int i = 0; i < 8 * SHAPE::tiles; i++) {
            const int n = i / 8, row = i / 2 % 4;
            passes |= reaches<SHAPE::kind>(queries.own[n][i % 2], sums.of[n][row / 2][i % 4],
                                           keys.scales[row], keys.biases[row]);
        }
        return passes;
    }
}

// Places as take_places of matrix_keys.cuh has them, for the eight lanes that share a query here.
__device__ __forceinline__ uint32_t take_column_places(const bsw_device_lists &lists,
                                                       uint32_t query, uint32_t count)
{
    if (lists.queues.slots) return 0;
    const uint32_t lane = threadIdx.x % 32, last = 28 + lane % row_lanes;
    uint32_t through = count;
#pragma unroll
    for (uint32_t step = row_lanes; step < 32; step *= 2) {
        const uint32_t below = __shfl_up_sync(all_lanes, through, step);
        if (lane >= step) through += below;
    }
    uint32_t at = 0;
    if (lane == last && through > 0) at = atomicAdd(&lists.counts[query], through);
    return __shfl_sync(all_lanes, at, static_cast<int>(last)) + through - count;
}

// One query of each lane: of its four rows those that the mask has and that reach the limit.
template <key_kind KIND>
__device__ __forceinline__ void append_column(const scan_arguments &a, uint32_t query,
                                              const int (&sums)[lane_rows], const row_keys &keys,
                                              uint32_t mask, uint32_t first_row)
{
    const thread_query own = load_query<KIND>(a, query);
    uint32_t hits = 0;
#pragma unroll
    for (uint32_t r = 0; r < lane_rows; r++)
        if (reaches<KIND>(own, sums[r], keys.scales[r], keys.biases[r])) hits |= 1u << r;
    hits &= mask;
    if (!__any_sync(all_lanes, hits != 0)) return;
    uint32_t at = take_column_places(a.lists, query, static_cast<uint32_t>(__popc(hits)));
#pragma unroll
    for (uint32_t r = 0; r < lane_rows; r++) {
        if (!(hits >> r & 1)) continue;
        const uint32_t score =
            score_of<KIND>(own.constant - 2 * sums[r], own.scale, keys.scales[r], keys.biases[r]);
        put_item(a.lists, query, at++, pack_candidate(score, first_row + r));
    }
}

// The rare way. With terms they are taken off the sums, and rows' numbers fetched again.
template <class SHAPE>
__device__ __forceinline__ void
append_bundle_rows(const scan_arguments &a, uint32_t bundle, const few_sums<SHAPE> &sums,
                   row_keys keys, const quad_terms &terms, const lane_queries<SHAPE> &queries)
{
    const uint32_t lane = threadIdx.x % 32, row = lane / row_lanes * lane_rows;
    const uint32_t place = bundle * warp_rows + row, mask = __ldg(a.codes.masks + bundle) >> row;
    if (SHAPE::has_terms) {
#pragma unroll
        for (uint32_t r = 0; r < lane_rows; r++) {
            keys.scales[r] = half_to_float(__ldg(a.codes.scales + place + r));
            keys.biases[r] = __ldg(a.codes.biases + place + r);
        }
    }
#pragma unroll
    for (int n = 0; n < SHAPE::tiles; n++) {
        int begun[2][4] = {};
        if (SHAPE::has_terms) {
#pragma unroll
            for (int m = 0; m < 2; m++) begin_tile<SHAPE>(terms, queries, n, m, begun[m]);
        }
#pragma unroll
        for (int c = 0; c < 2; c++) {
            int own[lane_rows];
#pragma unroll
            for (int r = 0; r < static_cast<int>(lane_rows); r++)
                own[r] = sums.of[n][r / 2][r % 2 * 2 + c] - begun[r / 2][r % 2 * 2 + c];
            append_column<SHAPE::kind>(a, static_cast<uint32_t>(n * 8 + c) + lane % row_lanes * 2,
                                       own, keys, mask, a.codes.first_row + place);
        }
    }
}

// ---- the kernel ----

// Terms are needed at once, so that with them rows are fetched before.
template <class SHAPE>
__device__ __forceinline__ void
begin_bundle(const scan_arguments &a, const few_place &place, const few_shared<SHAPE> &shared,
             lane_queries<SHAPE> &queries, few_rows &rows, quad_terms &terms, few_sums<SHAPE> &sums)
{
    if (!SHAPE::has_terms) {
        sums = {};
        fetch_rows<SHAPE>(a, bundle_of(a, place.bundle), rows);
        return;
    }
    terms = make_terms<SHAPE>(rows, shared, queries);
#pragma unroll
    for (int i = 0; i < 2 * SHAPE::tiles; i++)
        begin_tile<SHAPE>(terms, queries, i / 2, i % 2, sums.of[i / 2][i % 2]);
}

template <class SHAPE>
__global__ void __launch_bounds__(tuning.threads, SHAPE::least_blocks)
    scan_few_documents(const __grid_constant__ scan_arguments a)
{
    DYNAMIC_SHARED(unsigned char, memory);
    const few_shared<SHAPE> shared = {
        reinterpret_cast<key_query *>(memory),
        reinterpret_cast<uint2 *>(memory + SHAPE::queries * sizeof(key_query))};
    load_queries<SHAPE>(a, shared);
    lane_queries<SHAPE> queries = make_lane_queries<SHAPE>(a, shared);
    const field_turns turns = make_turns(threadIdx.x % row_lanes);
    few_place place = {blockIdx.x * (tuning.threads / warp_rows) + threadIdx.x / 32, 0, 0};
    if (place.bundle >= a.num_bundles) return;
    few_codes<SHAPE> codes;
    few_rows rows = {};
    few_sums<SHAPE> sums;
    quad_terms terms = {};
    fetch<SHAPE>(a, place, codes);
    if (SHAPE::has_terms) fetch_rows<SHAPE>(a, bundle_of(a, place.bundle), rows);
#pragma unroll 1
    while (true) {
        if (begins_bundle(place)) begin_bundle<SHAPE>(a, place, shared, queries, rows, terms, sums);
        multiply_step<SHAPE>(a, place, codes, turns, shared, sums);
        const few_place next = next_place<SHAPE>(a, place);
        const bool is_last = next.bundle >= a.num_bundles;
        if (!is_last) fetch<SHAPE>(a, next, codes);
        if (begins_bundle(next)) {
            const row_keys keys = keys_of<SHAPE>(rows);
            if (SHAPE::has_terms && !is_last) fetch_rows<SHAPE>(a, bundle_of(a, next.bundle), rows);
            if (__any_sync(all_lanes, may_pass<SHAPE>(sums, keys, queries)))
                append_bundle_rows<SHAPE>(a, bundle_of(a, place.bundle), sums, keys, terms,
                                          queries);
            if (is_last) return;
        }
        place = next;
    }
}

typedef void (*few_kernel)(scan_arguments);

// For codes of one segment, by bits; each costs a second of compiling or two.
template <int QUERIES>
constexpr few_kernel own_kernels[most_own_bits] = {
    scan_few_documents<few_shape<QUERIES, 1, key_kind::small_float>>,
    scan_few_documents<few_shape<QUERIES, 2, key_kind::small_float>>,
    scan_few_documents<few_shape<QUERIES, 3, key_kind::small_float>>,
    scan_few_documents<few_shape<QUERIES, 4, key_kind::small_float>>};

template <int QUERIES>
constexpr few_kernel any_kernels[3] = {
    scan_few_documents<few_shape<QUERIES, 0, key_kind::integer>>,
    scan_few_documents<few_shape<QUERIES, 0, key_kind::small_float>>,
    scan_few_documents<few_shape<QUERIES, 0, key_kind::any_float>>};

// For 96 dimensions of 3 bits, the shape that was measured: a step a bundle, known to the compiler.
template <int QUERIES>
constexpr few_kernel whole_kernel =
    scan_few_documents<few_shape<QUERIES, 3, key_kind::small_float, 3>>;

// HAS_OWN: the row of scan_kernels.h that has code of its own for some codes.
template <int QUERIES, bool HAS_OWN> few_kernel choose_kernel(const scan_arguments &a)
{
    const key_kind keys = choose_keys(a);
    const bsw_segment &first = a.codes.layout.segments[0];
    if (HAS_OWN && keys == key_kind::small_float)
        return first.bits == 3 && first.words == 3 ? whole_kernel<QUERIES>
                                                   : own_kernels<QUERIES>[first.bits - 1];
    return any_kernels<QUERIES>[static_cast<int>(keys)];
}

uint32_t tile_of(uint32_t num_queries)
{
    return num_queries <= 8 ? 8 : num_queries <= 16 ? 16 : most_queries;
}

template <bool HAS_OWN> cudaError_t scan_queries(const scan_arguments &a, cudaStream_t stream)
{
    const uint32_t tile = tile_of(a.queries.num_queries);
    few_kernel kernel = tile == 8    ? choose_kernel<8, HAS_OWN>(a)
                        : tile == 16 ? choose_kernel<16, HAS_OWN>(a)
                                     : choose_kernel<most_queries, HAS_OWN>(a);
    launch_shape shape = {dim3(), dim3(tuning.threads),
                          shared_bytes(tile, a.codes.layout.padded_dims), stream};
    uint32_t resident = 0;
    cudaError_t error =
        count_resident_blocks(reinterpret_cast<const void *>(kernel), shape, &resident);
    const uint32_t block_warps = tuning.threads / warp_rows;
    const uint32_t wanted = (a.num_bundles + block_warps - 1) / block_warps;
    shape.grid = dim3(wanted < resident ? wanted : resident);
    return error ? error : launch(shape, kernel, a);
}

} // namespace

bool few_fits(const bsw_code_layout &layout, uint32_t, uint32_t num_queries)
{
    return shared_bytes(tile_of(num_queries), layout.padded_dims) <= tuning.most_shared;
}

bool few_any_fits(const bsw_code_layout &layout, uint32_t query_bits, uint32_t num_queries)
{
    return few_fits(layout, query_bits, num_queries);
}

cudaError_t scan_few(scan_arguments a, cudaStream_t stream)
{
    return scan_queries<true>(a, stream);
}

cudaError_t scan_few_any(scan_arguments a, cudaStream_t stream)
{
    return scan_queries<false>(a, stream);
}

} // namespace bsw
