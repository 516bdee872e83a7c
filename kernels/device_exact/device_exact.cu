// SPDX-License-Identifier: Apache-2.0
// All rows against all queries in float64: a warp takes 8 rows by 4 queries, whose 32 sums it holds
// in registers, every lane its share of the dimensions. The trees of the 32 sums are then one: at
// every level a lane hands half of its sums to the lane it is paired with, and lane i ends with the
// total of sum i, so that values are made and compared by all lanes at once.
//
// A block takes a bundle and walks through the queries: 4 warps share its rows and 4 its queries in
// the first cache, which for each step of 32 dimensions delivers 16 lines for 32 fused
// multiply-adds (64 operations for l2): about what float64 units take meanwhile.
#include "kernels/device_exact/exact_value.cuh"

namespace bsw
{
namespace
{

constexpr uint32_t tile_rows = 8, tile_queries = 4, num_sums = tile_rows * tile_queries;
constexpr uint32_t row_warps = warp_rows / tile_rows, query_warps = 4;
constexpr uint32_t exact_threads = row_warps * query_warps * warp_rows;
constexpr uint32_t step_queries = query_warps * tile_queries;
constexpr uint32_t exact_busy_blocks = 4; // of a multiprocessor
static_assert(num_sums == warp_rows, "a lane a sum");

struct exact_arguments {
    bsw_metric metric;
    bsw_device_exact_rows rows;
    bsw_device_raw_rows raw;
    bsw_device_part part;
    bsw_device_vectors queries;
    bsw_device_exact_lists lists;
    bsw_device_exact_gate gate;
    exact_shape shape;
};

DEVICE_POINTERS(exact_arguments, a.rows, a.raw, a.queries, a.lists, a.gate.num)

// sums[r * tile_queries + q]: this lane's of row r and query q. Queries beyond the last are read as
// the last, and dropped later.
template <class T, bool IS_L2>
__device__ __forceinline__ void sum_products(const exact_arguments &a, const T *rows,
                                             uint32_t first_query, uint32_t lane,
                                             double (&sums)[num_sums])
{
    const uint32_t dims = a.raw.dims, last = a.queries.num_queries - 1;
    const double *queries[tile_queries];
#pragma unroll
    for (uint32_t q = 0; q < tile_queries; q++)
        queries[q] = a.queries.numbers + static_cast<size_t>(min(first_query + q, last)) * dims;
#pragma unroll
    for (uint32_t s = 0; s < num_sums; s++) sums[s] = 0;
#pragma unroll 1
    for (uint32_t i = lane; i < dims; i += warp_rows) {
        double query[tile_queries];
#pragma unroll
        for (uint32_t q = 0; q < tile_queries; q++) query[q] = __ldg(queries[q] + i);
#pragma unroll
        for (uint32_t r = 0; r < tile_rows; r++) {
            const double x = load_number(rows + static_cast<size_t>(r) * dims + i);
#pragma unroll
            for (uint32_t q = 0; q < tile_queries; q++)
                sums[r * tile_queries + q] =
                    add_product<IS_L2>(x, query[q], sums[r * tile_queries + q]);
        }
    }
}

// One level of the trees: lanes HALF apart add up; the upper one goes on with the upper half of the
// sums.
template <uint32_t HALF>
__device__ __forceinline__ void fold(uint32_t lane, double (&sums)[num_sums])
{
    const bool is_upper = lane & HALF;
#pragma unroll
    for (uint32_t s = 0; s < HALF; s++) {
        const double kept = is_upper ? sums[s + HALF] : sums[s];
        const double given = is_upper ? sums[s] : sums[s + HALF];
        sums[s] = __dadd_rn(kept, __shfl_xor_sync(all_lanes, given, HALF));
    }
}

// Lane i's is the total of sums[i]: s[j] + s[j + h] for h = 16, 8, 4, 2, 1, in either order.
__device__ __forceinline__ double fold_sums(uint32_t lane, double (&sums)[num_sums])
{
    fold<16>(lane, sums);
    fold<8>(lane, sums);
    fold<4>(lane, sums);
    fold<2>(lane, sums);
    fold<1>(lane, sums);
    return sums[0];
}

__device__ __forceinline__ void append_sum(const exact_arguments &a, double sum, uint32_t place,
                                           uint32_t query)
{
    const uint64_t limit = __ldg(a.lists.limits + query);
    double row_norm = 0, query_norm = 0;
    if (bsw_has_unit_rows(a.metric)) {
        row_norm = __ldg(a.rows.norms + place);
        query_norm = __ldg(a.queries.norms + query);
        if (!may_reach(__double2float_rn(sum), about_inverse(__double2float_rn(row_norm)),
                       about_inverse(__double2float_rn(query_norm)),
                       __double2float_rn(exact_key(limit))))
            return;
    }
    const uint64_t score =
        exact_score(a.metric, bsw_refine_value(a.metric, bsw_refine_is_integer(a.raw.type), sum,
                                               row_norm, query_norm));
    if (score >= limit) append_pair(a.lists, query, score, a.rows.first_row + place);
}

template <class T, bool IS_L2>
__global__ void __launch_bounds__(exact_threads)
    scan_exact(const __grid_constant__ exact_arguments a)
{
    const uint32_t lane = threadIdx.x % warp_rows, warp = threadIdx.x / warp_rows;
    if (a.gate.num && *a.gate.num <= a.gate.most) return;
    const uint32_t bundle = a.part.first + blockIdx.x / a.shape.parts * a.part.step;
    const uint32_t first_place = bundle * warp_rows + warp / query_warps * tile_rows;
    const T *rows =
        static_cast<const T *>(a.raw.numbers) + static_cast<size_t>(first_place) * a.raw.dims;
    const uint32_t stride = a.shape.parts * step_queries;
    const uint32_t own_row = lane / tile_queries, own_query = lane % tile_queries;
    const uint32_t in_bundle = (first_place + own_row) % warp_rows;
    const bool is_valid = __ldg(a.rows.masks + bundle) >> in_bundle & 1;
    for (uint32_t first =
             blockIdx.x % a.shape.parts * step_queries + warp % query_warps * tile_queries;
         first < a.queries.num_queries; first += stride) {
        double sums[num_sums];
        sum_products<T, IS_L2>(a, rows, first, lane, sums);
        const double sum = fold_sums(lane, sums);
        if (is_valid && first + own_query < a.queries.num_queries)
            append_sum(a, sum, first_place + own_row, first + own_query);
        converge();
    }
}

// In the order of enum bsw_vector_type; l2 second.
void (*const exact_kernels[][2])(exact_arguments) = {
    {scan_exact<float, false>, scan_exact<float, true>},
    {scan_exact<half_number, false>, scan_exact<half_number, true>},
    {scan_exact<uint8_t, false>, scan_exact<uint8_t, true>},
    {scan_exact<int8_t, false>, scan_exact<int8_t, true>}};

} // namespace
} // namespace bsw

extern "C" int bsw_device_exact_scan_if(enum bsw_metric metric,
                                        const struct bsw_device_exact_rows *rows,
                                        const struct bsw_device_raw_rows *raw,
                                        const struct bsw_device_part *part,
                                        const struct bsw_device_vectors *queries,
                                        const struct bsw_device_exact_lists *lists,
                                        const struct bsw_device_exact_gate *gate, bsw_stream stream)
{
    using namespace bsw;
    if (!is_valid_exact(*rows, *part, raw->dims, *lists) || raw->type > BSW_VECTOR_INT8 ||
        metric >= BSW_METRIC_NUM || queries->num_queries != lists->num_queries ||
        queries->num_queries > INT32_MAX)
        return cudaErrorInvalidValue;
    if (part->first == part->last || queries->num_queries == 0) return cudaSuccess;
    exact_arguments a = {metric, *rows, *raw, *part, *queries, *lists, *gate, {0, 0}};
    uint32_t blocks = 0;
    cudaError_t error = plan_exact(*part, queries->num_queries, 1, step_queries, exact_busy_blocks,
                                   &a.shape, &blocks);
    if (error) return error;
    return launch({dim3(blocks), dim3(exact_threads), 0, stream},
                  exact_kernels[raw->type][bsw_has_row_norms(metric)], a);
}

extern "C" int bsw_device_exact_scan(enum bsw_metric metric,
                                     const struct bsw_device_exact_rows *rows,
                                     const struct bsw_device_raw_rows *raw,
                                     const struct bsw_device_part *part,
                                     const struct bsw_device_vectors *queries,
                                     const struct bsw_device_exact_lists *lists, bsw_stream stream)
{
    const bsw_device_exact_gate none = {nullptr, 0};
    return bsw_device_exact_scan_if(metric, rows, raw, part, queries, lists, &none, stream);
}
