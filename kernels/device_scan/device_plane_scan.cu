// SPDX-License-Identifier: Apache-2.0
// plane_scan on a GPU by popcounts: a warp takes a bundle, a lane a document; the planes of a group
// of queries lie in shared memory, so that codes are read once for the group.
//
// Popcounts are the scarce units (16 a clock and multiprocessor against 64 logical operations), so
// words are taken three at a time through a carry-save adder: popc(a) + popc(b) + popc(c) =
// popc(a ^ b ^ c) + 2 * popc(majority(a, b, c)), two popcounts for three words. Even so the scan of
// 96 dimensions, 3 x 4 bits, is bound by them from about the second query on; batches belong to the
// matrix scan.
#include "kernels/device_scan/device_tuning.h"
#include "kernels/device_scan/scan_arguments.cuh"

namespace bsw
{
namespace
{

// What is compiled; device_tuning.h has what is chosen at a launch.
constexpr struct {
    uint32_t threads; // of a block
} tuning = {256};

constexpr uint32_t block_warps = tuning.threads / warp_rows;

// Sum over a query's planes of a plane's distance, by weight. The compiler unrolls for one query
// alone: groups, which only a scan by planes that was asked for has, have work enough for the loop
// not to matter, and unrolled took two thirds of the time that this file takes to compile.
template <int GROUP, typename DISTANCE>
__device__ __forceinline__ uint32_t weigh_planes(const uint32_t *plane, uint32_t query_bits,
                                                 uint32_t words, const DISTANCE &distance_of)
{
    uint32_t distance = 0;
    if (GROUP == 1) {
        for (uint32_t i = 0; i < query_bits; i++, plane += words)
            distance = 2 * distance + distance_of(plane);
    } else {
#pragma unroll 1
        for (uint32_t i = 0; i < query_bits; i++, plane += words)
            distance = 2 * distance + distance_of(plane);
    }
    return distance;
}

// Sum over plane pairs of weighted distances for three words of one document. words: of the
// segment; plane: the query's first of these words, query_bits planes.
template <int GROUP, int BITS>
__device__ __forceinline__ uint32_t distance_of_three(const uint32_t (&codes)[3][BITS],
                                                      const uint32_t *plane, uint32_t query_bits,
                                                      uint32_t words)
{
    return weigh_planes<GROUP>(plane, query_bits, words, [&](const uint32_t *q) {
        uint32_t weighted = 0;
#pragma unroll
        for (int j = 0; j < BITS; j++) {
            const uint32_t a = codes[0][j] ^ q[0], b = codes[1][j] ^ q[1], c = codes[2][j] ^ q[2];
            const uint32_t ones = a ^ b ^ c, twos = (a & b) | (a & c) | (b & c);
            weighted = 2 * (weighted + static_cast<uint32_t>(__popc(twos))) +
                       static_cast<uint32_t>(__popc(ones));
        }
        return weighted;
    });
}

template <int GROUP, int BITS>
__device__ __forceinline__ uint32_t distance_of_one(const uint32_t (&codes)[BITS],
                                                    const uint32_t *plane, uint32_t query_bits,
                                                    uint32_t words)
{
    return weigh_planes<GROUP>(plane, query_bits, words, [&](const uint32_t *q) {
        uint32_t weighted = 0;
#pragma unroll
        for (int j = 0; j < BITS; j++)
            weighted = 2 * weighted + static_cast<uint32_t>(__popc(codes[j] ^ q[0]));
        return weighted;
    });
}

// Adds one segment. codes: the lane's word 0 of plane 0; query: the segment's planes of query 0 of
// the group, those of the next query_words further.
template <int GROUP, int BITS>
__device__ __forceinline__ void add_segment(const uint32_t *codes, const uint32_t *query,
                                            uint32_t query_bits, uint32_t query_words,
                                            uint32_t words, uint32_t (&distances)[GROUP])
{
    uint32_t w = 0;
    for (; w + 3 <= words; w += 3) {
        uint32_t three[3][BITS];
#pragma unroll
        for (int j = 0; j < BITS; j++) {
#pragma unroll
            for (int k = 0; k < 3; k++)
                three[k][j] = __ldg(codes + (static_cast<size_t>(j) * words + w + k) * warp_rows);
        }
#pragma unroll
        for (int k = 0; k < GROUP; k++)
            distances[k] += distance_of_three<GROUP, BITS>(three, query + k * query_words + w,
                                                           query_bits, words);
    }
    for (; w < words; w++) {
        uint32_t one[BITS];
#pragma unroll
        for (int j = 0; j < BITS; j++)
            one[j] = __ldg(codes + (static_cast<size_t>(j) * words + w) * warp_rows);
#pragma unroll
        for (int k = 0; k < GROUP; k++)
            distances[k] +=
                distance_of_one<GROUP, BITS>(one, query + k * query_words + w, query_bits, words);
    }
}

template <int GROUP>
__device__ __forceinline__ void
add_segment_of(uint32_t bits, const uint32_t *codes, const uint32_t *query, uint32_t query_bits,
               uint32_t query_words, uint32_t words, uint32_t (&distances)[GROUP])
{
#define CALL(BITS) add_segment<GROUP, BITS>(codes, query, query_bits, query_words, words, distances)
    BSW_SWITCH_BITS(bits, CALL);
#undef CALL
}

template <int GROUP>
__device__ __forceinline__ void find_distances(const scan_arguments &a, const uint32_t *query,
                                               uint32_t bundle, uint32_t lane,
                                               uint32_t (&distances)[GROUP])
{
    const uint32_t query_bits = a.queries.query_bits;
#pragma unroll
    for (int k = 0; k < GROUP; k++) distances[k] = 0;
    for (uint32_t s = 0; s < a.codes.layout.num_segments; s++) {
        const uint32_t bits = a.codes.layout.segments[s].bits;
        const uint32_t words = a.codes.layout.segments[s].words;
        const uint32_t *codes =
            a.codes.planes[s] + static_cast<size_t>(bundle) * bits * words * warp_rows + lane;
        add_segment_of<GROUP>(bits, codes, query, query_bits, a.queries.query_words, words,
                              distances);
        query += query_bits * words;
    }
}

// Shared memory: planes [GROUP][query_words], then limits and scales [GROUP].
template <int GROUP>
__device__ __forceinline__ void load_group(const scan_arguments &a, uint32_t first_query,
                                           uint32_t *shared)
{
    const uint32_t words = GROUP * a.queries.query_words;
    const size_t from = static_cast<size_t>(first_query) * a.queries.query_words;
    const size_t end = static_cast<size_t>(a.queries.num_queries) * a.queries.query_words;
    for (uint32_t i = threadIdx.x; i < words; i += tuning.threads)
        shared[i] = from + i < end ? __ldg(a.queries.words + from + i) : 0;
    const uint32_t query = first_query + threadIdx.x;
    if (threadIdx.x < GROUP && query < a.queries.num_queries) {
        shared[words + threadIdx.x] = __ldg(a.lists.limits + query);
        const float scale = a.queries.scales ? __ldg(a.queries.scales + query) : 0.0f;
        shared[words + GROUP + threadIdx.x] = __float_as_uint(scale);
    }
}

// The bundle's rows that reach their limits, to the lists.
template <int GROUP>
__device__ __forceinline__ void append_group(const scan_arguments &a, uint32_t first_query,
                                             const uint32_t *limits, uint32_t bundle, uint32_t lane,
                                             const uint32_t (&distances)[GROUP])
{
    const bool is_valid = a.codes.masks[bundle] >> lane & 1;
    const uint32_t place = bundle * warp_rows + lane, row = a.codes.first_row + place;
    float scale = 0, bias = 0;
    if (a.codes.scales) {
        scale = half_to_float(__ldg(a.codes.scales + place));
        bias = __ldg(a.codes.biases + place);
    }
#pragma unroll
    for (int k = 0; k < GROUP; k++) {
        if (first_query + k >= a.queries.num_queries) break;
        const int dot = a.dot_limit - 2 * static_cast<int>(distances[k]);
        uint32_t score = score_of_integer(dot);
        if (a.codes.scales) {
            const float query_scale = __uint_as_float(limits[GROUP + k]);
            score = score_of_float(
                __fadd_rn(float_key(query_scale, scale, __int2float_rn(dot), bias), 0.0f));
        }
        const bool passes = is_valid && score >= limits[k];
        const uint64_t item = pack_candidate(score, row);
        if (!a.lists.queues.slots)
            append_bundle(a.lists, first_query + k, passes, item);
        else if (passes)
            put_in_queue(a.lists.queues, first_query + k, item);
    }
}

template <int GROUP>
__global__ void __launch_bounds__(tuning.threads)
    scan_planes(const __grid_constant__ scan_arguments a)
{
    DYNAMIC_SHARED(uint32_t, shared);
    const uint32_t first_query = blockIdx.x % a.num_groups * GROUP;
    load_group<GROUP>(a, first_query, shared);
    __syncthreads();
    const uint32_t lane = threadIdx.x % warp_rows, warp = threadIdx.x / warp_rows;
    const uint32_t begin = blockIdx.x / a.num_groups * a.chunk;
    const uint32_t end = a.num_bundles - begin < a.chunk ? a.num_bundles : begin + a.chunk;
    for (uint32_t i = begin + warp; i < end; i += block_warps) {
        const uint32_t bundle = bundle_of(a, i);
        uint32_t distances[GROUP];
        find_distances<GROUP>(a, shared, bundle, lane, distances);
        append_group<GROUP>(a, first_query, shared + GROUP * a.queries.query_words, bundle, lane,
                            distances);
    }
}

struct plane_kernel {
    uint32_t group;
    void (*kernel)(scan_arguments);
};

constexpr plane_kernel plane_kernels[] = {
    {8, scan_planes<8>}, {4, scan_planes<4>}, {2, scan_planes<2>}, {1, scan_planes<1>}};

size_t shared_bytes(uint32_t group, uint32_t query_words)
{
    return (static_cast<size_t>(query_words) + 2) * group * sizeof(uint32_t);
}

// The largest group that is not half empty and fits.
const plane_kernel &choose_kernel(const bsw_device_queries &queries, uint32_t group_bytes)
{
    for (const plane_kernel &k : plane_kernels) {
        if (k.group == 1 || (k.group < 2 * queries.num_queries &&
                             shared_bytes(k.group, queries.query_words) <= group_bytes))
            return k;
    }
    return plane_kernels[0]; // the loop has returned
}

} // namespace

bool popcount_fits(const bsw_code_layout &, uint32_t, uint32_t)
{
    return true;
}

cudaError_t scan_popcount(scan_arguments a, cudaStream_t stream)
{
    const bsw_device_tuning &own = *bsw_device_tuning_current();
    const plane_kernel &chosen = choose_kernel(a.queries, own.plane_group_bytes);
    launch_shape shape = {dim3(), dim3(tuning.threads),
                          shared_bytes(chosen.group, a.queries.query_words), stream};
    cudaError_t error =
        plan_blocks(a, {chosen.group, block_warps, own.plane}, chosen.kernel, shape);
    return error ? error : launch(shape, chosen.kernel, a);
}

} // namespace bsw
