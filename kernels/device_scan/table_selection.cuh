// SPDX-License-Identifier: Apache-2.0
// Entries within a radius, as tables of device_table_scan.cu are made and rows are chosen by them:
// the formulas of kernels/entries_within/entries_within.h for device code. Same bits.
//
// A warp, or half of one, has a part of the tables of all queries of its block, and a lane every
// 32nd entry of it, so that what is of query and part alone is computed once for eight entries. A
// block reads each entry once, in whole lines: entries themselves have no place in shared memory,
// what they become has.
#ifndef BITSWEEP_KERNELS_TABLE_SELECTION_CUH
#define BITSWEEP_KERNELS_TABLE_SELECTION_CUH

#include "kernels/cuda_switch.cuh"
#include "kernels/device_scan/device_key.cuh"
#include "kernels/device_scan/device_table_scan.h"
#include "kernels/device_scan/table_numbers.cuh"

namespace bsw
{

// One of a query and part. `bound`: the largest squared distance of a hit, or the least product;
// `inner`: the same of half the radius.
struct table_ray {
    float x, y, bound, inner;
};

__device__ __forceinline__ table_ray ray_of(const bsw_device_tables &t, uint32_t query,
                                            const float *centroid, uint32_t part)
{
    const float *own = t.queries + static_cast<size_t>(query) * t.stride + 2 * part;
    table_ray ray = {__ldg(own), __ldg(own + 1), 0.0f, 0.0f};
    if (centroid) {
        ray.x = __fsub_rn(ray.x, __ldg(centroid + 2 * part));
        ray.y = __fsub_rn(ray.y, __ldg(centroid + 2 * part + 1));
    }
    ray.bound = __ldg(t.selection.limits + static_cast<size_t>(query) * t.parts + part);
    ray.inner = __fmul_rn(ray.bound, 0.25f);
    if (t.is_l2) return ray;
    const float norm = __fmaf_rn(ray.y, ray.y, __fmul_rn(ray.x, ray.x));
    ray.bound = __fmul_rn(0.5f, __fsub_rn(norm, ray.bound));
    ray.inner = __fmul_rn(0.5f, __fsub_rn(norm, ray.inner));
    return ray;
}

__device__ __forceinline__ bool is_within(bool is_l2, float value, float bound)
{
    return is_l2 ? value <= bound : value >= bound;
}

__device__ __forceinline__ float entry_value(bool is_l2, const table_ray &ray, float x, float y)
{
    if (!is_l2) return __fmaf_rn(ray.y, y, __fmaf_rn(ray.x, x, 0.0f));
    const float dx = __fsub_rn(ray.x, x), dy = __fsub_rn(ray.y, y);
    return __fmaf_rn(dy, dy, __fmul_rn(dx, dx));
}

__device__ __forceinline__ float entry_at(const bsw_device_tables &t, uint32_t part, uint32_t axis,
                                          uint32_t entry)
{
    return __ldg(t.entries + (static_cast<size_t>(2 * part + axis) << t.bits) + entry);
}

// ---- tables ----

// A ray, and what numbers of full tables are made of beside: q'_p, times -2 under l2, and its
// squared distance from the centroid; and the number of a miss.
struct table_part {
    table_ray ray;
    float x, y, base, miss;
};

__device__ __forceinline__ table_part part_of(const bsw_device_tables &t, uint32_t query,
                                              const float *centroid, uint32_t part)
{
    const float *own = t.queries + static_cast<size_t>(query) * t.stride + 2 * part;
    const float factor = t.is_l2 ? -2.0f : 1.0f;
    const table_ray ray = ray_of(t, query, centroid, part);
    return {ray, factor * __ldg(own), factor * __ldg(own + 1),
            __fmaf_rn(ray.y, ray.y, __fmaf_rn(ray.x, ray.x, 0.0f)),
            t.selection.has_bound ? ray.bound : t.selection.miss};
}

// The number of an entry; list: what is of it and the list alone. Metric and mode are the kernel's
// own to choose once, not for each entry.
template <bool IS_L2, bool COUNTS>
__device__ __forceinline__ float selected_number(const bsw_device_tables &t, const table_part &part,
                                                 float list, float x, float y, bool *is_hit)
{
    const bsw_device_selection &s = t.selection;
    const float value = entry_value(IS_L2, part.ray, x, y),
                own = __fmaf_rn(part.y, y, __fmaf_rn(part.x, x, 0.0f)),
                sum = __fadd_rn(__fadd_rn(list, own), part.base);
    *is_hit = is_within(IS_L2, value, part.ray.bound);
    const float number = COUNTS       ? is_within(IS_L2, value, part.ray.inner) ? s.inner : s.ring
                         : !IS_L2     ? value
                         : sum > 0.0f ? sum
                                      : 0.0f;
    return *is_hit ? number : part.miss;
}

// Counts entries and hits of the tables of so many queries, all threads' hits together.
__device__ __forceinline__ void count_entries(const bsw_device_tables &t, uint32_t num_queries,
                                              uint32_t entries, uint32_t hits)
{
    typedef unsigned long long count; // what atomicAdd knows
    count *counts = reinterpret_cast<count *>(t.selection.counts);
    const uint32_t of_warp = __reduce_add_sync(all_lanes, hits);
    if (threadIdx.x % 32 == 0) atomicAdd(counts + 1, static_cast<count>(of_warp));
    if (threadIdx.x == 0) atomicAdd(counts, static_cast<count>(num_queries) * entries);
}

// Parts [first, first + num) of the tables of a block's slots; returns the thread's hits.
template <int BITS, int QUERIES, bool IS_L2, bool COUNTS, class SLOT>
__device__ __forceinline__ uint32_t make_selected_parts(const bsw_device_tables &t,
                                                        const float *centroid, const SLOT *slots,
                                                        uint32_t first, uint32_t num,
                                                        typename entry_of<4 * QUERIES>::type *table)
{
    constexpr uint32_t entries = 1u << BITS, lanes = entries < 32 ? entries : 32;
    uint32_t hits = 0;
    for (uint32_t p = threadIdx.x / lanes; p < num; p += blockDim.x / lanes) {
        table_part parts[QUERIES];
        uint32_t exists[QUERIES];
#pragma unroll
        for (int q = 0; q < QUERIES; q++) {
            parts[q] = part_of(t, slots[q].query, centroid, first + p);
            exists[q] = slots[q].exists;
        }
        const float c_x = centroid ? 2.0f * __ldg(centroid + 2 * (first + p)) : 0.0f,
                    c_y = centroid ? 2.0f * __ldg(centroid + 2 * (first + p) + 1) : 0.0f;
#pragma unroll(QUERIES == 4 ? 2 : 4)
        for (uint32_t e = threadIdx.x % lanes, i = 0; i < entries / lanes; i++, e += lanes) {
            const float x = entry_at(t, first + p, 0, e), y = entry_at(t, first + p, 1, e);
            const size_t place = (static_cast<size_t>(first + p) << BITS) + e;
            const float norm = IS_L2 && !COUNTS ? __ldg(t.norms + place) : 0.0f,
                        list = __fmaf_rn(c_y, y, __fmaf_rn(c_x, x, norm));
            uint32_t numbers[QUERIES];
#pragma unroll
            for (int q = 0; q < QUERIES; q++) {
                bool is_hit;
                numbers[q] = __float_as_uint(
                    selected_number<IS_L2, COUNTS>(t, parts[q], list, x, y, &is_hit));
                hits += is_hit ? exists[q] : 0;
            }
            table[(p << BITS) + e] = make_entry<4, QUERIES>(numbers);
        }
    }
    return hits;
}

template <int BITS, int QUERIES, class SLOT>
__device__ __forceinline__ void
make_selected_slice(const bsw_device_tables &t, const float *centroid, const SLOT *slots,
                    uint32_t first, uint32_t num, typename entry_of<4 * QUERIES>::type *table)
{
    uint32_t hits, num_queries = 0;
    for (int q = 0; q < QUERIES; q++) num_queries += slots[q].exists;
    if (t.is_l2 && t.selection.are_counts)
        hits =
            make_selected_parts<BITS, QUERIES, true, true>(t, centroid, slots, first, num, table);
    else if (t.is_l2)
        hits =
            make_selected_parts<BITS, QUERIES, true, false>(t, centroid, slots, first, num, table);
    else if (t.selection.are_counts)
        hits =
            make_selected_parts<BITS, QUERIES, false, true>(t, nullptr, slots, first, num, table);
    else
        hits =
            make_selected_parts<BITS, QUERIES, false, false>(t, nullptr, slots, first, num, table);
    count_entries(t, num_queries, num << BITS, hits);
}

// ---- rows ----

// Whether the row of a bundle hits anything; codes: of the bundle. What only rows are asked whose
// sum is that of misses alone.
template <int BITS>
__device__ __forceinline__ bool hits_something(const bsw_device_tables &t, uint32_t query,
                                               const float *centroid, const uint8_t *codes,
                                               uint32_t row)
{
    for (uint32_t p = 0; p < t.parts; p++) {
        const uint32_t byte = __ldg(codes + static_cast<size_t>(p * BITS / 8) * 32 + row);
        const uint32_t entry = BITS == 8 ? byte : byte >> p % 2 * 4 & 15u;
        const table_ray ray = ray_of(t, query, centroid, p);
        const float value =
            entry_value(t.is_l2, ray, entry_at(t, p, 0, entry), entry_at(t, p, 1, entry));
        if (is_within(t.is_l2, value, ray.bound)) return true;
    }
    return false;
}

} // namespace bsw

#endif
