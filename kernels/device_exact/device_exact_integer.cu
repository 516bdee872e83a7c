// SPDX-License-Identifier: Apache-2.0
// All rows against all queries in int32, for rows and queries of one integer type: a warp takes a
// bundle by 16 or 64 queries through mma.m16n8k32, s8 by u8.
//
// The order of dimensions is free in an exact sum: of every 32 bytes lane t of a group takes 8 t ..
// 8 t + 7 at once, for rows and queries alike. Nothing is shared but the first cache: 8 warps, two
// of queries by four of bundles, walk through the queries side by side.
#include "kernels/device_exact/exact_value.cuh"

namespace bsw
{
namespace
{

constexpr uint32_t mma_queries = 16, mma_rows = 8, mma_dims = 32;
constexpr uint32_t bundle_tiles = warp_rows / mma_rows;
constexpr uint32_t bundle_warps = 4, query_warps = 2;
constexpr uint32_t integer_threads = bundle_warps * query_warps * warp_rows;
constexpr uint32_t integer_busy_blocks = 4; // of a multiprocessor
constexpr uint32_t many = 4;                // tiles of 16 queries of a warp, where there are many
static_assert(mma_dims == BSW_DEVICE_PACKED_DIMS, "a step is what vectors are padded to");

struct integer_arguments {
    bsw_metric metric;
    bsw_device_exact_rows rows;
    bsw_device_packed packed_rows;
    bsw_device_part part;
    bsw_device_packed packed_queries;
    const double *query_norms;
    bsw_device_exact_lists lists;
    exact_shape shape;
};

struct pack_arguments {
    bsw_metric metric;
    bsw_device_raw_rows rows;
    uint32_t flip;   // what bytes are xored with
    int32_t factor;  // of the sum of numbers: what the other side's shift costs
    uint32_t padded; // dims
    uint8_t *bytes;
    bsw_device_packed_term *terms;
};

DEVICE_POINTERS(integer_arguments, a.rows, a.packed_rows, a.packed_queries, a.lists, a.query_norms)
DEVICE_POINTERS(pack_arguments, a.rows, a.bytes, a.terms)

// ---- packing ----

// A warp a vector. Padding is 0 on both sides.
__global__ void __launch_bounds__(integer_threads)
    pack_vectors(const __grid_constant__ pack_arguments a)
{
    const uint32_t lane = threadIdx.x % warp_rows;
    const size_t row =
        static_cast<size_t>(blockIdx.x) * (integer_threads / warp_rows) + threadIdx.x / warp_rows;
    if (row >= a.rows.num_rows) return;
    const uint8_t *from = static_cast<const uint8_t *>(a.rows.numbers) + row * a.rows.dims;
    uint8_t *to = a.bytes + row * a.padded;
    int sum = 0, squares = 0;
    for (uint32_t i = lane; i < a.padded; i += warp_rows) {
        const uint32_t byte = i < a.rows.dims ? __ldg(from + i) : 0;
        to[i] = static_cast<uint8_t>(i < a.rows.dims ? byte ^ a.flip : 0);
        const int number =
            a.rows.type == BSW_VECTOR_INT8 ? static_cast<int8_t>(byte) : static_cast<int>(byte);
        sum += number;
        squares += number * number;
    }
    const unsigned norm = __reduce_add_sync(all_lanes, static_cast<unsigned>(squares));
    const unsigned offset =
        __reduce_add_sync(all_lanes, static_cast<unsigned>(sum)) * static_cast<unsigned>(a.factor);
    if (lane == 0) // l2: xx - 2xq + qq
        a.terms[row] = {bsw_has_row_norms(a.metric) ? norm - 2 * offset : offset,
                        about_inverse(__int2float_rn(static_cast<int>(norm)))};
}

// ---- the scan ----

__device__ __forceinline__ uint2 load_bytes(const uint8_t *place)
{
    return __ldg(reinterpret_cast<const uint2 *>(place));
}

__device__ __forceinline__ uint2 load_step(const uint8_t *base, uint32_t step)
{
    return load_bytes(base + static_cast<size_t>(step) * mma_dims);
}

// dots[m][n]: queries of tile m, rows of tile n, as mma_s8_u8 has them. rows: the lane's bytes of
// the bundle's row g; queries: where its bytes of its queries are, in steps of 32 from `base`, as
// numbers that take half the registers of pointers.
template <uint32_t TILES>
__device__ __forceinline__ void multiply(uint32_t padded, const uint8_t *rows, const uint8_t *base,
                                         const uint32_t (&queries)[2 * TILES],
                                         int (&dots)[TILES][bundle_tiles][4])
{
    const size_t next_tile = static_cast<size_t>(mma_rows) * padded;
#pragma unroll
    for (uint32_t m = 0; m < TILES; m++) {
#pragma unroll
        for (uint32_t n = 0; n < bundle_tiles; n++) {
#pragma unroll
            for (int k = 0; k < 4; k++) dots[m][n][k] = 0;
        }
    }
#pragma unroll 1
    for (uint32_t step = 0; step < padded / mma_dims; step++) {
        unsigned documents[bundle_tiles][2];
#pragma unroll
        for (uint32_t n = 0; n < bundle_tiles; n++) {
            const uint2 pair = load_bytes(rows + n * next_tile + step * mma_dims);
            documents[n][0] = pair.x;
            documents[n][1] = pair.y;
        }
#pragma unroll
        for (uint32_t m = 0; m < TILES; m++) {
            const uint2 low = load_step(base, queries[2 * m] + step);
            const uint2 high = load_step(base, queries[2 * m + 1] + step);
            const unsigned operand[4] = {low.x, high.x, low.y, high.y};
#pragma unroll
            for (uint32_t n = 0; n < bundle_tiles; n++)
                mma_s8_u8(dots[m][n], operand, documents[n]);
        }
    }
}

__device__ __forceinline__ bsw_device_packed_term load_term(const bsw_device_packed_term *place)
{
    const uint2 both = __ldg(reinterpret_cast<const uint2 *>(place));
    return {both.x, __uint_as_float(both.y)};
}

// What rules out almost all sums of a query.
struct query_limit {
    uint64_t score;
    float key;     // of the score, about
    int least_sum; // that reaches it, or a little less: ip
    int most_sum;  // l2
};

__device__ __forceinline__ query_limit load_limit(const integer_arguments &a, uint32_t query)
{
    const uint64_t score = __ldg(a.lists.limits + query);
    const double key = exact_key(score);
    query_limit out = {score, __double2float_rn(key), INT32_MIN, INT32_MAX};
    const double most = 2147483646.0;
    if (key > most) {
        out.least_sum = INT32_MAX;
        out.most_sum = INT32_MIN;
    } else if (key >= -most) { // NaN, which all reach, is not
        out.least_sum = __double2int_rn(key) - 1;
        out.most_sum = -out.least_sum;
    }
    return out;
}

// The value of an exact sum, which int32 holds.
__device__ __forceinline__ void append_sum(const integer_arguments &a, int sum, float inverse_row,
                                           float inverse_query, uint32_t place, uint32_t query,
                                           const query_limit &limit)
{
    double row_norm = 0, query_norm = 0;
    if (bsw_has_unit_rows(a.metric)) {
        if (!may_reach(__int2float_rn(sum), inverse_row, inverse_query, limit.key)) return;
        row_norm = __ldg(a.rows.norms + place);
        query_norm = __ldg(a.query_norms + query);
    } else if (bsw_has_row_norms(a.metric) ? sum > limit.most_sum : sum < limit.least_sum) {
        return;
    }
    const uint64_t score = exact_score(
        a.metric, bsw_refine_value(a.metric, true, __int2double_rn(sum), row_norm, query_norm));
    if (score >= limit.score) append_pair(a.lists, query, score, a.rows.first_row + place);
}

// Half-tile HALF of the queries, of which the lane has one, with the lane's rows.
template <uint32_t TILES, uint32_t HALF>
__device__ __forceinline__ void append_half(const integer_arguments &a, uint32_t bundle,
                                            uint32_t query, uint32_t lane, uint32_t mask,
                                            const bsw_device_packed_term (&rows)[2 * bundle_tiles],
                                            const int (&dots)[TILES][bundle_tiles][4])
{
    const unsigned factor = bsw_has_row_norms(a.metric) ? 0u - 2u : 1u;
    const query_limit limit = load_limit(a, query);
    const bsw_device_packed_term own = load_term(a.packed_queries.terms + query);
#pragma unroll
    for (uint32_t i = 0; i < 2 * bundle_tiles; i++) {
        const uint32_t in_bundle = i / 2 * mma_rows + lane % 4 * 2 + i % 2;
        const unsigned product = static_cast<unsigned>(dots[HALF / 2][i / 2][HALF % 2 * 2 + i % 2]);
        const int sum = static_cast<int>(factor * product + rows[i].term + own.term);
        if (mask >> in_bundle & 1)
            append_sum(a, sum, rows[i].inverse, own.inverse, bundle * warp_rows + in_bundle, query,
                       limit);
    }
}

template <uint32_t TILES, uint32_t HALF>
__device__ __forceinline__ void append_from(const integer_arguments &a, uint32_t bundle,
                                            uint32_t first_query, uint32_t lane, uint32_t mask,
                                            const bsw_device_packed_term (&rows)[2 * bundle_tiles],
                                            const int (&dots)[TILES][bundle_tiles][4])
{
    const uint32_t query = first_query + HALF * mma_rows + lane / 4;
    if (query < a.lists.num_queries)
        append_half<TILES, HALF>(a, bundle, query, lane, mask, rows, dots);
    if constexpr (HALF + 1 < 2 * TILES)
        append_from<TILES, HALF + 1>(a, bundle, first_query, lane, mask, rows, dots);
}

// The terms of rows are loaded anew for every step of queries: there are no registers to keep them
// beside the products.
template <uint32_t TILES>
__device__ __forceinline__ void append_dots(const integer_arguments &a, uint32_t bundle,
                                            uint32_t first_query, uint32_t lane,
                                            const int (&dots)[TILES][bundle_tiles][4])
{
    const uint32_t own_bundle = static_cast<uint32_t>(opaque(static_cast<int>(bundle)));
    bsw_device_packed_term rows[2 * bundle_tiles];
#pragma unroll
    for (uint32_t i = 0; i < 2 * bundle_tiles; i++)
        rows[i] = load_term(a.packed_rows.terms + own_bundle * warp_rows + i / 2 * mma_rows +
                            lane % 4 * 2 + i % 2);
    append_from<TILES, 0>(a, own_bundle, first_query, lane, __ldg(a.rows.masks + own_bundle), rows,
                          dots);
}

template <uint32_t TILES>
__global__ void __launch_bounds__(integer_threads, 2)
    scan_integers(const __grid_constant__ integer_arguments a)
{
    const uint32_t lane = threadIdx.x % warp_rows, warp = threadIdx.x / warp_rows;
    const uint32_t padded = a.packed_rows.padded_dims, own_byte = lane % 4 * 8;
    const uint32_t i = blockIdx.x / a.shape.parts * bundle_warps + warp / query_warps;
    const uint32_t warp_queries = TILES * mma_queries;
    const uint32_t stride = a.shape.parts * query_warps * warp_queries;
    if (i >= a.shape.num_bundles) return;
    const uint32_t bundle = a.part.first + i * a.part.step;
    const uint8_t *rows = a.packed_rows.bytes +
                          (static_cast<size_t>(bundle) * warp_rows + lane / 4) * padded + own_byte;
    for (uint32_t first =
             (blockIdx.x % a.shape.parts * query_warps + warp % query_warps) * warp_queries;
         first < a.lists.num_queries; first += stride) {
        uint32_t queries[2 * TILES];
#pragma unroll
        for (uint32_t half = 0; half < 2 * TILES; half++) {
            const uint32_t query = min(first + half * mma_rows + lane / 4, a.lists.num_queries - 1);
            queries[half] = query * (padded / mma_dims);
        }
        int dots[TILES][bundle_tiles][4];
        multiply<TILES>(padded, rows, a.packed_queries.bytes + own_byte, queries, dots);
        append_dots<TILES>(a, bundle, first, lane, dots);
        converge();
    }
}

} // namespace
} // namespace bsw

extern "C" int bsw_device_pack(enum bsw_metric metric, const struct bsw_device_raw_rows *rows,
                               int as_queries, uint8_t *bytes, struct bsw_device_packed_term *terms,
                               bsw_stream stream)
{
    using namespace bsw;
    const bool is_int8 = rows->type == BSW_VECTOR_INT8;
    if ((!is_int8 && rows->type != BSW_VECTOR_UINT8) || rows->dims < 1 ||
        rows->dims > BSW_DEVICE_INTEGER_MAX_DIMS)
        return cudaErrorInvalidValue;
    if (rows->num_rows == 0) return cudaSuccess;
    // Bytes that the other side moved by 128 cost this side 128 times its sum.
    const bool is_flipped = is_int8 != (as_queries != 0);
    const int32_t factor = is_flipped ? 0 : is_int8 ? -128 : 128;
    const pack_arguments a = {
        metric, *rows, is_flipped ? 0x80u : 0u, factor, bsw_device_packed_dims(rows->dims),
        bytes,  terms};
    const uint32_t warps = integer_threads / warp_rows;
    const uint32_t blocks = rows->num_rows / warps + (rows->num_rows % warps != 0);
    return launch({dim3(blocks), dim3(integer_threads), 0, stream}, pack_vectors, a);
}

extern "C" int bsw_device_exact_integer_scan(
    enum bsw_metric metric, const struct bsw_device_exact_rows *rows,
    const struct bsw_device_packed *packed_rows, const struct bsw_device_part *part,
    const struct bsw_device_packed *packed_queries, const double *query_norms,
    const struct bsw_device_exact_lists *lists, bsw_stream stream)
{
    using namespace bsw;
    const uint32_t padded = packed_rows->padded_dims, num_queries = lists->num_queries;
    if (!is_valid_exact(*rows, *part, padded, *lists) || padded != packed_queries->padded_dims ||
        padded % mma_dims || padded > BSW_DEVICE_INTEGER_MAX_DIMS || metric >= BSW_METRIC_NUM ||
        static_cast<uint64_t>(num_queries) * (padded / mma_dims) > UINT32_MAX)
        return cudaErrorInvalidValue;
    if (part->first == part->last || num_queries == 0) return cudaSuccess;
    integer_arguments a = {metric,          *rows,       *packed_rows, *part,
                           *packed_queries, query_norms, *lists,       {0, 0}};
    const uint32_t tiles = num_queries > query_warps * mma_queries ? many : 1;
    uint32_t blocks = 0;
    cudaError_t error =
        plan_exact(*part, num_queries, bundle_warps, query_warps * tiles * mma_queries,
                   integer_busy_blocks, &a.shape, &blocks);
    if (error) return error;
    return launch({dim3(blocks), dim3(integer_threads), 0, stream},
                  tiles == many ? scan_integers<many> : scan_integers<1>, a);
}
