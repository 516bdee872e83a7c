// SPDX-License-Identifier: Apache-2.0
// Queries of a work item of lists, as tiles that begin with terms or have bounds compare them
// (device_list_scan_hopper.cu): by what keys are at least before anything is added; pairs that may
// pass then by keys with what is added. And what launchers of lists check.
//
// Why no row is lost. A key k with the addition g reaches the limit L if k + g, rounded, does.
// A sum that rounds to L or more is at least L - e |L| - 2^-150, e = 2^-24 (dot_bound.cuh), so
//     k >= L - e |L| - 2^-150 - g >= round down(round down(L - 2 e |L| - 2^-140) - g).
// Where rounding down gives the largest number for what is beyond it, only k = infinity reaches L.
// A limit of infinity is reached from 2^128 - 2^103 on, which is more than the largest number less
// its part. That is some 2^-22 |L| too low at most, so that hardly a row more is looked at; exact
// limits, by 32 halvings each as device_list_scan.cu has them, would take longer than a tile.
#ifndef BITSWEEP_KERNELS_LIST_QUERIES_CUH
#define BITSWEEP_KERNELS_LIST_QUERIES_CUH

#include "kernels/device_scan/dot_bound.cuh"
#include "kernels/device_scan/key_terms.cuh"
#include "kernels/device_scan/list_work.cuh"
#include "kernels/select/key_shift.h"

namespace bsw
{

// A query in its list.
struct __align__(16) list_query
{
    uint32_t number;    // none of the batch: there is none
    int constant;       // of the query
    float scale, limit; // of the query, of float keys: as float_limit gives it
    float addition;
    int most_sum;      // of integer keys
    query_bound bound; // of any_float keys
};

// What keys are at least before the addition, NaN where no row passes.
__device__ __forceinline__ float least_key(const list_query &query)
{
    if (query.limit != query.limit) return query.limit;
    const float finite = fminf(query.limit, 0x1.fffffep127f);
    const float part = __fmaf_rn(fminf(fabsf(finite), 0x1.fffffep127f), 0x1p-23f, 0x1p-140f);
    return __fadd_rd(__fadd_rd(finite, -part), -query.addition);
}

template <key_kind KIND>
__device__ __forceinline__ list_query load_list_query(const scan_arguments &a,
                                                      const bsw_device_list_work &work,
                                                      const bsw_device_list_item &item, uint32_t i)
{
    list_query out = {UINT32_MAX,      0, 0.0f, __uint_as_float(0x7fffffffu), 0.0f, INT32_MIN,
                      {infinite, 1.0f}};
    if (i >= item.num_slots) return out;
    out.number = __ldg(work.queries + item.first_slot + i);
    if (work.additions) out.addition = __ldg(work.additions + item.first_slot + i);
    const thread_query query = load_query<KIND>(a, out.number);
    out.constant = query.constant;
    out.most_sum = query.most_sum;
    out.scale = query.scale;
    out.limit = query.float_limit;
    if (KIND == key_kind::any_float) out.bound = make_query_bound(least_key(out), out.scale);
    return out;
}

// Those of an item, as hopper_select.cuh wants queries; found: in shared memory.
struct item_queries {
    const list_query *found;
    const uint32_t &first_slot, &count;

    __device__ __forceinline__ uint32_t number(uint32_t i) const
    {
        return found[i].number;
    }

    static constexpr bool keeps_quick = false; // registers are full of sums and queries

    template <key_kind KIND> __device__ __forceinline__ quick_query quick(uint32_t i) const
    {
        return {KIND == key_kind::integer ? found[i].most_sum : found[i].constant, found[i].bound};
    }

    __device__ __forceinline__ uint32_t slot(uint32_t i) const
    {
        return first_slot + i;
    }
};

// Slots of all items of a launch, as pair_queue.cuh wants them.
struct item_slots {
    const bsw_device_list_work &work;

    __device__ __forceinline__ uint32_t number(uint32_t slot) const
    {
        return __ldg(work.queries + slot);
    }

    template <key_kind KIND>
    __device__ __forceinline__ bool ends(const thread_query &query, uint32_t slot, int sum,
                                         float scale, float bias, uint32_t &score) const
    {
        const int dot = query.constant - 2 * sum;
        score = score_of<KIND>(dot, query.scale, scale, bias);
        if (KIND == key_kind::integer) return sum <= query.most_sum;
        const float addition = work.additions ? __ldg(work.additions + slot) : 0.0f;
        score = bsw_score_add(score, addition);
        return __fadd_rn(float_key(query.scale, scale, float_of_dot<KIND>(dot), bias), addition) >=
               query.float_limit;
    }

    __device__ __forceinline__ uint32_t row(uint32_t place) const
    {
        return __ldg(work.rows + place);
    }
};

__device__ __forceinline__ key_query load_key_query(const item_queries &queries, uint32_t i)
{
    const list_query query = queries.found[i];
    return key_query_of(least_key(query), query.scale, query.constant);
}

// What is_valid_scan asks, but for the planes of queries, which are not read.
inline bool is_valid_list_scan(const bsw_device_codes &codes, const bsw_device_list_work &work,
                               uint32_t tile, const bsw_device_queries &queries,
                               const bsw_device_lists &lists)
{
    const bool has_keys = !codes.scales == !queries.scales && !codes.scales == !codes.biases;
    return tile < BSW_LIST_TILES && work.num_items <= INT32_MAX &&
           (codes.scales || !work.additions) && lists.num_queries == queries.num_queries &&
           queries.query_bits >= 1 && queries.query_bits <= BSW_MAX_QUERY_BITS &&
           !lists.queues.slots && has_keys &&
           static_cast<uint64_t>(codes.num_bundles) * warp_rows + lists.capacity <= UINT32_MAX;
}

inline scan_arguments make_list_arguments(const bsw_device_codes &codes,
                                          const bsw_device_queries &queries,
                                          const bsw_device_lists &lists)
{
    return make_scan_arguments(codes, {0, codes.num_bundles, 1}, queries, lists);
}

} // namespace bsw

#endif
