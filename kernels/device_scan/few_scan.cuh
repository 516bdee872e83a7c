// SPDX-License-Identifier: Apache-2.0
// A scan by few queries: documents are the rows of mma.m16n8k32 and are unpacked in registers
// (few_unpack.cuh), so that none of a code passes shared memory. Reading binds it.
//
// A warp takes a bundle, in steps of a few words. A lane loads 16 bytes of every plane, four rows'
// words; the next step's are under way while rows are compared. In the sums of lane 4*g + t are
// those of rows 4*g to 4*g + 3 and of queries 2*t and 2*t + 1 of every eight.
//
// Up to eight queries, keys are compared as they are. More, if keys are floats of dots below 2^21,
// begin sums with terms of keys (key_terms.cuh), where rows and queries have changed places: a lane
// makes the terms of one row, and four lanes exchange theirs. Starts of sums follow the caps of the
// warp's own rows.
#ifndef BITSWEEP_KERNELS_FEW_SCAN_CUH
#define BITSWEEP_KERNELS_FEW_SCAN_CUH

#include "kernels/device_scan/few_steps.cuh"
#include "kernels/device_scan/list_queries.cuh"

namespace bsw
{

namespace few
{

// ---- queries ----

// A query, and what is added to its float keys.
struct few_query {
    thread_query keys;
    float addition;
};

// Which queries a scan has, by their places i: number(i), in the batch, none of it: there is none;
// load_key_query(queries, i), as that of key_terms.cuh; own<KIND>(i); row(place), a candidate's.
//
// All of a batch.
struct batch {
    const scan_arguments &a;
    static constexpr bool adds = false;

    __device__ __forceinline__ uint32_t number(uint32_t i) const
    {
        return i;
    }

    template <key_kind KIND> __device__ __forceinline__ few_query own(uint32_t i) const
    {
        return {load_query<KIND>(a, i), 0.0f};
    }

    __device__ __forceinline__ uint32_t row(uint32_t place) const
    {
        return a.codes.first_row + place;
    }
};

__device__ __forceinline__ key_query load_key_query(const batch &queries, uint32_t i)
{
    return load_key_query(queries.a, i);
}

// Those of a work item of lists.
struct item {
    const scan_arguments &a;
    const bsw_device_list_work &work;
    bsw_device_list_item its;
    static constexpr bool adds = true;

    __device__ __forceinline__ uint32_t number(uint32_t i) const
    {
        return i < its.num_slots ? __ldg(work.queries + its.first_slot + i) : UINT32_MAX;
    }

    template <key_kind KIND> __device__ __forceinline__ few_query own(uint32_t i) const
    {
        const bool has = work.additions && i < its.num_slots;
        return {load_query<KIND>(a, number(i)),
                has ? __ldg(work.additions + its.first_slot + i) : 0.0f};
    }

    __device__ __forceinline__ uint32_t row(uint32_t place) const
    {
        return __ldg(work.rows + place);
    }
};

__device__ __forceinline__ key_query load_key_query(const item &queries, uint32_t i)
{
    const list_query own =
        load_list_query<key_kind::small_float>(queries.a, queries.work, queries.its, i);
    return key_query_of(least_key(own), own.scale, own.constant);
}

template <key_kind KIND, class QUERIES>
__device__ __forceinline__ bool reaches(const few_query &query, int sum, float scale, float bias)
{
    const thread_query &keys = query.keys;
    if (KIND == key_kind::integer || !QUERIES::adds) return reaches<KIND>(keys, sum, scale, bias);
    const float key =
        float_key(keys.scale, scale, float_of_dot<KIND>(keys.constant - 2 * sum), bias);
    return __fadd_rn(key, query.addition) >= keys.float_limit;
}

// What a lane compares sums with: queries 2*t and 2*t + 1 of each tile. With terms, starts of sums,
// and the lane's word of query g.
template <class SHAPE> struct lane_queries {
    few_query own[SHAPE::has_terms ? 1 : SHAPE::tiles][2];
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

template <class SHAPE, class QUERIES>
__device__ __forceinline__ lane_queries<SHAPE> make_lane_queries(const QUERIES &queries,
                                                                 const few_shared<SHAPE> &shared)
{
    lane_queries<SHAPE> out = {};
    if constexpr (SHAPE::has_terms) {
        make_starts<SHAPE>(shared, out);
    } else {
#pragma unroll
        for (int i = 0; i < 2 * SHAPE::tiles; i++)
            out.own[i / 2][i % 2] = queries.template own<SHAPE::kind>(
                static_cast<uint32_t>(i / 2 * 8 + i % 2) + threadIdx.x % row_lanes * 2);
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
template <class SHAPE, class QUERIES>
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
            passes |=
                reaches<SHAPE::kind, QUERIES>(queries.own[n][i % 2], sums.of[n][row / 2][i % 4],
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
template <key_kind KIND, class QUERIES>
__device__ __forceinline__ void append_column(const scan_arguments &a, const QUERIES &queries,
                                              uint32_t query, const int (&sums)[lane_rows],
                                              const row_keys &keys, uint32_t mask, uint32_t place)
{
    const few_query own = queries.template own<KIND>(query);
    uint32_t hits = 0;
#pragma unroll
    for (uint32_t r = 0; r < lane_rows; r++)
        if (reaches<KIND, QUERIES>(own, sums[r], keys.scales[r], keys.biases[r])) hits |= 1u << r;
    hits &= mask;
    if (!__any_sync(all_lanes, hits != 0)) return;
    const uint32_t number = queries.number(query);
    uint32_t at = take_column_places(a.lists, number, static_cast<uint32_t>(__popc(hits)));
#pragma unroll
    for (uint32_t r = 0; r < lane_rows; r++) {
        if (!(hits >> r & 1)) continue;
        uint32_t score = score_of<KIND>(own.keys.constant - 2 * sums[r], own.keys.scale,
                                        keys.scales[r], keys.biases[r]);
        if (QUERIES::adds && KIND != key_kind::integer) score = bsw_score_add(score, own.addition);
        put_item(a.lists, number, at++, pack_candidate(score, queries.row(place + r)));
    }
}

// The rare way. With terms they are taken off the sums, and rows' numbers fetched again.
template <class SHAPE, class QUERIES>
__device__ __forceinline__ void
append_bundle_rows(const scan_arguments &a, const QUERIES &own_queries, uint32_t bundle,
                   const few_sums<SHAPE> &sums, row_keys keys, const quad_terms &terms,
                   const lane_queries<SHAPE> &queries)
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
            append_column<SHAPE::kind>(a, own_queries,
                                       static_cast<uint32_t>(n * 8 + c) + lane % row_lanes * 2, own,
                                       keys, mask, place);
        }
    }
}

// ---- the scan ----

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

// By all threads of a block; work: the warp's.
template <class SHAPE, class QUERIES>
__device__ __forceinline__ void scan_documents(const scan_arguments &a, const QUERIES &own,
                                               const few_work &work)
{
    DYNAMIC_SHARED(unsigned char, memory);
    const few_shared<SHAPE> shared = {
        reinterpret_cast<key_query *>(memory),
        reinterpret_cast<uint2 *>(memory + SHAPE::queries * sizeof(key_query))};
    load_queries<SHAPE>(a, own, shared);
    lane_queries<SHAPE> queries = make_lane_queries<SHAPE>(own, shared);
    const field_turns turns = make_turns(threadIdx.x % row_lanes);
    few_place place = {work.first, 0, 0};
    if (place.bundle >= work.last) return;
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
        const few_place next = next_place<SHAPE>(a, work.step, place);
        const bool is_last = next.bundle >= work.last;
        if (!is_last) fetch<SHAPE>(a, next, codes);
        if (begins_bundle(next)) {
            const row_keys keys = keys_of<SHAPE>(rows);
            if (SHAPE::has_terms && !is_last) fetch_rows<SHAPE>(a, bundle_of(a, next.bundle), rows);
            if (__any_sync(all_lanes, may_pass<SHAPE, QUERIES>(sums, keys, queries)))
                append_bundle_rows<SHAPE>(a, own, bundle_of(a, place.bundle), sums, keys, terms,
                                          queries);
            if (is_last) return;
        }
        place = next;
    }
}

} // namespace few

} // namespace bsw

#endif
