// SPDX-License-Identifier: Apache-2.0
// plane_scan of few queries on tensor cores that multiply bits: no popcounts, no unpacking.
//
// The sum of u * q over dimensions is one over bits: bit 2^i of u is a plane's, so a plane of
// weight 2^i needs 2^i * q, whose two's complement has a bit for each of 8 columns. A document's
// plane words are a row of ones and zeros, column c of an operand made of the query holds bit c of
// 2^i * q beside each plane word, and mma counts what row and column have in common. The sum is
// that of the counts times 2^c, the last one's negative. What has to be: bits of a code and of a
// query are 8 or fewer together.
//
// A lane loads 16 bytes: a plane word of four rows; the order of rows in a product is free. A warp
// takes four bundles at a time. In their accumulators four lanes share a row, a quarter of its
// columns each; two exchanges leave every lane with the sums of four rows, lane 4*g + t those of
// rows 4*g to 4*g + 3 of bundle t, whose scales and biases are one load each.
#include "kernels/bit_switch.cuh"
#include "kernels/device_scan/device_tuning.h"
#include "kernels/device_scan/matrix_keys.cuh"

namespace bsw
{
namespace
{

// What is compiled; device_tuning.h has what is chosen at a launch.
constexpr struct {
    uint32_t threads; // of a block
} tuning = {256};

constexpr uint32_t block_warps = tuning.threads / warp_rows;
constexpr uint32_t warp_bundles = 4, lane_rows = 4;
constexpr uint32_t row_lanes = 4;  // share a row's plane words
constexpr uint32_t step_words = 3; // plane words of a lane at a time: registers hold no more
constexpr int columns = 8;

// Blocks that a multiprocessor is to have: where mma of bits is not one instruction, they need too
// many registers for two.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr int least_blocks = 1;
#else
constexpr int least_blocks = 2;
#endif

// Lane t takes so many of a row's plane words of one segment ...
__host__ __device__ __forceinline__ uint32_t lane_words(uint32_t num_places)
{
    return (num_places + row_lanes - 1) / row_lanes;
}

// ... from this one on. What an earlier lane has too meets zeros.
__device__ __forceinline__ uint32_t first_place(uint32_t num_places, uint32_t t)
{
    const uint32_t own = lane_words(num_places);
    return min(t * own, num_places - own);
}

// ---- the query ----

// Bit `bit` of a word of components q = 2^Q - 1 - 2u in two's complement: q is odd, bit i below Q
// is that of ~u one place lower, and from Q on all are its sign, which is the top bit of u.
__device__ __forceinline__ uint32_t component_bits(const uint32_t *planes, uint32_t words,
                                                   uint32_t query_bits, int bit)
{
    if (bit <= 0) return bit < 0 ? 0 : ~0u;
    const uint32_t i = static_cast<uint32_t>(bit);
    return i >= query_bits ? __ldg(planes) : ~__ldg(planes + (query_bits - i) * words);
}

// Shared memory: operands [lane words][32], in the order of segments.
__device__ __forceinline__ void load_operands(const scan_arguments &a, uint32_t query,
                                              uint32_t *operands)
{
    const uint32_t query_bits = a.queries.query_bits;
    const uint32_t *planes = a.queries.words + static_cast<size_t>(query) * a.queries.query_words;
    for (uint32_t s = 0; s < a.codes.layout.num_segments; s++) {
        const bsw_segment &segment = a.codes.layout.segments[s];
        const uint32_t words = segment.words, places = segment.bits * words;
        const uint32_t own = lane_words(places);
        for (uint32_t i = threadIdx.x; i < own * warp_rows; i += tuning.threads) {
            const uint32_t t = i % row_lanes, column = i % warp_rows / row_lanes;
            const uint32_t place = first_place(places, t) + i / warp_rows;
            const int bit = static_cast<int>(column + place / words + 1 - segment.bits);
            operands[i] = place >= t * own
                              ? component_bits(planes + place % words, words, query_bits, bit)
                              : 0;
        }
        planes += query_bits * words;
        operands += own * warp_rows;
    }
}

// The dot of a row whose u are all 0: that of the largest components less twice the sum over
// dimensions of (2^B - 1) * u of the query. All 32 lanes call it.
__device__ __forceinline__ int find_constant(const scan_arguments &a, uint32_t query)
{
    const uint32_t query_bits = a.queries.query_bits;
    const uint32_t *planes = a.queries.words + static_cast<size_t>(query) * a.queries.query_words;
    uint32_t sum = 0;
    for (uint32_t s = 0; s < a.codes.layout.num_segments; s++) {
        const uint32_t words = a.codes.layout.segments[s].words;
        const uint32_t most = (1u << a.codes.layout.segments[s].bits) - 1;
        for (uint32_t i = threadIdx.x % warp_rows; i < query_bits * words; i += warp_rows)
            sum += (most * static_cast<uint32_t>(__popc(__ldg(planes + i))))
                   << (query_bits - 1 - i / words);
        planes += query_bits * words;
    }
    return a.dot_limit - 2 * static_cast<int>(__reduce_add_sync(all_lanes, sum));
}

// ---- products ----

// Counts of the lane's columns 2*t and 2*t + 1 for rows 4*g to 4*g + 3: tile h has rows 2*h and
// 2*h + 1 of those.
struct bit_counts {
    int tiles[2][4];
};

// So many plane words of each lane; all loads first, so that they are under way together.
template <uint32_t COUNT>
__device__ __forceinline__ void multiply_words(const uint32_t *const (&codes)[warp_bundles],
                                               const uint32_t *operands,
                                               bit_counts (&counts)[warp_bundles])
{
    uint4 rows[COUNT][warp_bundles];
#pragma unroll
    for (uint32_t i = 0; i < COUNT; i++) {
#pragma unroll
        for (uint32_t b = 0; b < warp_bundles; b++)
            rows[i][b] = __ldg(reinterpret_cast<const uint4 *>(codes[b] + i * warp_rows));
    }
#pragma unroll
    for (uint32_t i = 0; i < COUNT; i++) {
        const unsigned q = operands[i * warp_rows];
#pragma unroll
        for (uint32_t b = 0; b < warp_bundles; b++) {
            mma_bits(counts[b].tiles[0], {rows[i][b].x, rows[i][b].y}, q);
            mma_bits(counts[b].tiles[1], {rows[i][b].z, rows[i][b].w}, q);
        }
    }
}

// One segment. codes: the lane's rows in its first plane word.
__device__ __forceinline__ void multiply_segment(const uint32_t *(&codes)[warp_bundles],
                                                 uint32_t num_words, const uint32_t *operands,
                                                 bit_counts (&counts)[warp_bundles])
{
#pragma unroll 1
    for (; num_words >= step_words; num_words -= step_words) {
        multiply_words<step_words>(codes, operands, counts);
#pragma unroll
        for (uint32_t b = 0; b < warp_bundles; b++) codes[b] += step_words * warp_rows;
        operands += step_words * warp_rows;
    }
    if (num_words == 2)
        multiply_words<2>(codes, operands, counts);
    else if (num_words == 1)
        multiply_words<1>(codes, operands, counts);
}

__device__ __forceinline__ void multiply_bundles(const scan_arguments &a,
                                                 const uint32_t (&bundles)[warp_bundles],
                                                 const uint32_t *operands,
                                                 bit_counts (&counts)[warp_bundles])
{
    const uint32_t lane = threadIdx.x % warp_rows, row = lane / row_lanes * lane_rows;
    operands += lane;
#pragma unroll 1
    for (uint32_t s = 0; s < a.codes.layout.num_segments; s++) {
        const bsw_segment &segment = a.codes.layout.segments[s];
        const uint32_t places = segment.bits * segment.words, num_words = lane_words(places);
        const uint32_t *own =
            a.codes.planes[s] + first_place(places, lane % row_lanes) * warp_rows + row;
        const uint32_t *codes[warp_bundles];
#pragma unroll
        for (uint32_t b = 0; b < warp_bundles; b++)
            codes[b] = own + static_cast<size_t>(bundles[b]) * (places * warp_rows);
        multiply_segment(codes, num_words, operands, counts);
        operands += num_words * warp_rows;
    }
}

// The sums of lane 4*g + t: rows 4*g to 4*g + 3 of bundle t.
__device__ __forceinline__ void gather_sums(const bit_counts (&counts)[warp_bundles],
                                            int (&sums)[lane_rows])
{
    const uint32_t t = threadIdx.x % row_lanes;
    const int even = 1 << 2 * t, odd = t == row_lanes - 1 ? -(1 << (columns - 1)) : 2 << 2 * t;
    const bool upper = t & 2, last = t & 1;
#pragma unroll
    for (uint32_t r = 0; r < lane_rows; r++) {
        int parts[warp_bundles], pair[2];
#pragma unroll
        for (uint32_t b = 0; b < warp_bundles; b++)
            parts[b] = counts[b].tiles[r / 2][r % 2 * 2] * even +
                       counts[b].tiles[r / 2][r % 2 * 2 + 1] * odd;
#pragma unroll
        for (uint32_t i = 0; i < 2; i++)
            pair[i] = (upper ? parts[i + 2] : parts[i]) +
                      __shfl_xor_sync(all_lanes, upper ? parts[i] : parts[i + 2], 2);
        sums[r] =
            (last ? pair[1] : pair[0]) + __shfl_xor_sync(all_lanes, last ? pair[0] : pair[1], 1);
    }
}

// ---- selection ----

// The terms of the lane's four rows.
struct row_terms {
    float scales[lane_rows], biases[lane_rows];
};

template <key_kind KIND>
__device__ __forceinline__ row_terms load_terms(const bsw_device_codes &codes, uint32_t place)
{
    row_terms out = {};
    if (KIND == key_kind::integer) return out;
    const uint2 halves = __ldg(reinterpret_cast<const uint2 *>(codes.scales + place));
    const float4 biases = __ldg(reinterpret_cast<const float4 *>(codes.biases + place));
    out.scales[0] = half_to_float(static_cast<uint16_t>(halves.x));
    out.scales[1] = half_to_float(static_cast<uint16_t>(halves.x >> 16));
    out.scales[2] = half_to_float(static_cast<uint16_t>(halves.y));
    out.scales[3] = half_to_float(static_cast<uint16_t>(halves.y >> 16));
    out.biases[0] = biases.x;
    out.biases[1] = biases.y;
    out.biases[2] = biases.z;
    out.biases[3] = biases.w;
    return out;
}

// Rows that reach the limit, as far as their mask bits (bit r: row r of the lane) let them.
template <key_kind KIND>
__device__ __forceinline__ void append_rows(const scan_arguments &a, uint32_t query,
                                            const thread_query &own, uint32_t place, uint32_t mask,
                                            const int (&sums)[lane_rows], const row_terms &terms)
{
#pragma unroll
    for (uint32_t r = 0; r < lane_rows; r++) {
        const bool passes =
            reaches<KIND>(own, sums[r], terms.scales[r], terms.biases[r]) && (mask >> r & 1) != 0;
        const uint32_t score =
            score_of<KIND>(own.constant - 2 * sums[r], own.scale, terms.scales[r], terms.biases[r]);
        const uint64_t item = pack_candidate(score, a.codes.first_row + place + r);
        if (!a.lists.queues.slots)
            append_bundle(a.lists, query, passes, item);
        else if (passes)
            put_in_queue(a.lists.queues, query, item);
    }
}

// The part's bundles from `first` on, four or as many as there are before `end`.
template <key_kind KIND>
__device__ __forceinline__ void scan_bundles(const scan_arguments &a, uint32_t query,
                                             const thread_query &own, const uint32_t *operands,
                                             uint32_t first, uint32_t end)
{
    const uint32_t lane = threadIdx.x % warp_rows, t = lane % row_lanes;
    uint32_t bundles[warp_bundles];
#pragma unroll
    for (uint32_t b = 0; b < warp_bundles; b++) bundles[b] = bundle_of(a, min(first + b, end - 1));
    const uint32_t bundle = bundle_of(a, min(first + t, end - 1));
    const uint32_t row = lane / row_lanes * lane_rows, place = bundle * warp_rows + row;
    const row_terms terms = load_terms<KIND>(a.codes, place);
    bit_counts counts[warp_bundles] = {};
    multiply_bundles(a, bundles, operands, counts);
    int sums[lane_rows];
    gather_sums(counts, sums);
    bool passes = false;
#pragma unroll
    for (uint32_t r = 0; r < lane_rows; r++)
        passes |= reaches<KIND>(own, sums[r], terms.scales[r], terms.biases[r]);
    if (!__any_sync(all_lanes, passes)) return;
    const uint32_t mask = first + t < end ? __ldg(a.codes.masks + bundle) >> row : 0;
    append_rows<KIND>(a, query, own, place, mask, sums, terms);
}

template <key_kind KIND>
__global__ void __launch_bounds__(tuning.threads, least_blocks)
    scan_bits(const __grid_constant__ scan_arguments a)
{
    DYNAMIC_SHARED(uint32_t, operands);
    const uint32_t query = blockIdx.x % a.num_groups;
    load_operands(a, query, operands);
    const thread_query own = make_query<KIND>(a, query, find_constant(a, query));
    __syncthreads();
    const uint32_t begin = blockIdx.x / a.num_groups * a.chunk;
    const uint32_t end = a.num_bundles - begin < a.chunk ? a.num_bundles : begin + a.chunk;
    for (uint32_t i = begin + threadIdx.x / warp_rows * warp_bundles; i < end;
         i += block_warps * warp_bundles)
        scan_bundles<KIND>(a, query, own, operands, i, end);
}

size_t shared_bytes(const bsw_code_layout &layout)
{
    size_t words = 0;
    for (uint32_t s = 0; s < layout.num_segments; s++)
        words += lane_words(layout.segments[s].bits * layout.segments[s].words);
    return words * warp_rows * sizeof(uint32_t);
}

} // namespace

bool bit_fits(const bsw_code_layout &layout, uint32_t query_bits, uint32_t)
{
    for (uint32_t s = 0; s < layout.num_segments; s++)
        if (layout.segments[s].bits + query_bits > columns) return false;
    return shared_bytes(layout) <= 48 << 10;
}

cudaError_t scan_bit(scan_arguments a, cudaStream_t stream)
{
    auto kernel = choose_keys(a) == key_kind::integer ? scan_bits<key_kind::integer>
                                                      : scan_bits<key_kind::any_float>;
    launch_shape shape = {dim3(), dim3(tuning.threads), shared_bytes(a.codes.layout), stream};
    cudaError_t error = plan_blocks(
        a, {1, block_warps * warp_bundles, bsw_device_tuning_current()->plane}, kernel, shape);
    return error ? error : launch(shape, kernel, a);
}

} // namespace bsw
