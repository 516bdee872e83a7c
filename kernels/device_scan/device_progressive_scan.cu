// SPDX-License-Identifier: Apache-2.0
// The progressive scan on a GPU: for a tile the dots of the stage alone, all that they say of the
// full key decided on the accumulators, and the few pairs of row and query that remain finished one
// by one.
//
// With dot1 of the stage, S the row's scale, t its tail, b its bias, and s the query's scale, r its
// reach, L its limit as a float: a key that reaches L has, without any rounding,
//     dot1 + (r/s) (t/S) + (1/s) (b/S) - (L/s) (1/S) >= -e,    e = 2^-20 (M + |b| / (s S)),
// M the largest |dot| (shard/host/scan_stage.h, whose slack is twice this). The three terms are
// products of a number of the query and one of the row: a matrix product of rank 3. So they are
// computed for all pairs by one more step of the tensor cores, mma of bf16, in which every number
// is a sum of two bf16 and each term four products. Half of all of it is taken, since dot1 = c - 2
// * sum; and the accumulators start as 1.5 * 2^23 - c/2 - slack. There a float counts ones in its
// low bits: taken as an integer it is what the int8 products of the stage are then added to. In the
// end a pair goes on exactly if bit 22 has become 0. No instruction but the mma is spent on a pair,
// and 5 on four of them for that bit.
//
// Why no row is lost: with A = |r/s| T + |1/s| B + |L/s| R, the largest of t/S, |b|/S and 1/S in
// the tile, all halved,
// - numbers of a pair as two bf16 are off by at most 2^-16 each, the floats they come from by
//   2^-22: less than A * 2^-14 in all;
// - the device may cut each of the 12 products, and the sums of its up to four steps, to 23 bits
//   below the largest exponent, which is the start's: less than 16; the start's own rounding and
//   c odd: 1; that bit 22 tells "below" from "not below" and not from "above": 1;
// - e/2: less than 1 + A * 2^-20, as the launcher sees to M < 2^21.
// The slack is 24 + A * 2^-13, more than the sum. Nothing leaves the 2^22 ones to either side where
// bit 22 means that: |dot1|/2 < 2^20, and where A is not below 2^20, or no number, all pairs of the
// query and the tile go on (`wild`), as where its own number is too far for bf16. A row whose own
// numbers would make A so large for its tile - scale 0 or far below the others' - has zeros in
// place of them and goes on for every query, by one more product, 1 * -2^21; one that is masked has
// -1 there.
//
// Pairs that go on wait in a queue of their warp, from tile to tile, until there is one for each
// lane; then a lane sums all of its pair's products from the planes. Keys, compares and scores are
// those of the other scans.
#include <cmath>

#include "kernels/device_scan/key_terms.cuh"
#include "kernels/device_scan/matrix_tile.cuh"
#include "kernels/device_scan/progressive.cuh"

namespace bsw
{
namespace
{

struct progressive_arguments {
    scan_arguments scan;
    bsw_device_stage stage;
};
static_assert(sizeof(progressive_arguments) <= 4096, "more than a launch carries");

DEVICE_POINTERS(progressive_arguments, a.scan, a.stage)

// Of three numbers of a row, or of a query, or the largest of some rows, and one more.
struct __align__(16) bound_terms
{
    float limit, reach, bias, more;
};

// Parts of the block's shared memory. The first word of a row or query holds its bound_terms.
struct progressive_shared {
    matrix_shared terms, stage; // the same, stage from the second word on
    bound_terms *queries;       // [queries] magnitudes; more: where accumulators start
    bound_terms *rows;          // [bundles] largest
    uint32_t *masks;            // [bundles]
    pair *pairs;                // [warps][queue_pairs]
};

template <class SHAPE> size_t progressive_shared_bytes(uint32_t stage_dims)
{
    return static_cast<size_t>(SHAPE::rows + SHAPE::queries) * word_bytes *
               (words_at_a_time(stage_dims) + 1) +
           (SHAPE::queries + SHAPE::bundles) * sizeof(bound_terms) +
           block_warps * queue_pairs * sizeof(pair) + SHAPE::bundles * sizeof(uint32_t);
}

template <class SHAPE>
__device__ __forceinline__ progressive_shared divide_memory(uint32_t stage_dims)
{
    DYNAMIC_SHARED(uint8_t, memory);
    const uint32_t words = words_at_a_time(stage_dims) + 1;
    uint8_t *queries = memory + words * SHAPE::row_word_bytes;
    bound_terms *terms = reinterpret_cast<bound_terms *>(queries + words * SHAPE::query_word_bytes);
    pair *pairs = reinterpret_cast<pair *>(terms + SHAPE::queries + SHAPE::bundles);
    return {{memory, queries},
            {memory + SHAPE::row_word_bytes, queries + SHAPE::query_word_bytes},
            terms,
            terms + SHAPE::queries,
            reinterpret_cast<uint32_t *>(pairs + block_warps * queue_pairs),
            pairs};
}

// ---- terms of queries and rows ----

// A query's high, low, high, low meets a row's high, high, low, low.
template <class SHAPE>
__device__ __forceinline__ void store_query_terms(const matrix_shared &shared, uint32_t query,
                                                  const bound_terms &t, uint32_t flag)
{
    const split limit = split_float(t.limit), reach = split_float(t.reach);
    const split bias = split_float(t.bias);
    const uint32_t x = limit.high >> 16 | limit.low, y = reach.high >> 16 | reach.low;
    const uint32_t z = bias.high >> 16 | bias.low;
    store_query_piece<SHAPE>(shared, query, 0, make_uint4(x, x, y, y));
    store_query_piece<SHAPE>(shared, query, 1, make_uint4(z, z, flag, 0));
}

template <class SHAPE>
__device__ __forceinline__ void store_row_terms(const matrix_shared &shared, uint32_t row,
                                                const bound_terms &t, uint32_t flag)
{
    const split limit = split_float(t.limit), reach = split_float(t.reach);
    const split bias = split_float(t.bias);
    uint4 *out = row_piece<SHAPE>(shared, row, 0);
    out[0] = make_uint4(limit.high >> 16 | limit.high, limit.low >> 16 | limit.low,
                        reach.high >> 16 | reach.high, reach.low >> 16 | reach.low);
    out[SHAPE::rows] = make_uint4(bias.high >> 16 | bias.high, bias.low >> 16 | bias.low, flag, 0);
}

// The terms have the signs that they are added to a sum with.
__device__ __forceinline__ bound_terms query_terms(const progressive_arguments &a, uint32_t query)
{
    const float limit = float_limit(__ldg(a.scan.lists.limits + query));
    const float scale = __ldg(a.scan.queries.scales + query);
    const float reach = __ldg(a.stage.reaches + query);
    const float start = __fadd_rn(middle, -__int2float_rn(__ldg(a.stage.constants + query) >> 1));
    if (limit != limit) return {0, 0, 0, __fadd_rn(start, aside)}; // no key reaches it
    if (!(scale >= 0x1p-80f && scale <= 0x1p80f))
        return {__uint_as_float(0x7f800000u), 0, 0, start};
    return {far_to_infinity(__fdiv_rn(__fmul_rn(0.5f, limit), scale)),
            far_to_infinity(__fdiv_rn(__fmul_rn(-0.5f, reach), scale)), __fdiv_rn(-0.5f, scale),
            start};
}

template <class SHAPE>
__device__ __forceinline__ void prepare_queries(const progressive_arguments &a,
                                                uint32_t first_query,
                                                const progressive_shared &shared)
{
    for (uint32_t i = threadIdx.x; i < SHAPE::queries; i += tuning.threads) {
        const bool exists = first_query + i < a.scan.queries.num_queries;
        bound_terms t = {0, 0, 0, middle + aside};
        if (exists) t = query_terms(a, first_query + i);
        store_query_terms<SHAPE>(shared.terms, i, t, exists ? aside_bf16 : 0);
        shared.queries[i] = {fabsf(t.limit), fabsf(t.reach), fabsf(t.bias), t.more};
    }
}

// A row's terms, and whether they are fit for the product.
__device__ __forceinline__ bool row_terms(const bsw_device_codes &codes, size_t place, bool exists,
                                          bound_terms &t)
{
    const float scale = exists ? half_to_float(__ldg(codes.scales + place)) : 0.0f;
    const bool is_scale = scale > 0 && scale <= BSW_HALF_MAX;
    const float most = most_of_warp(is_scale ? scale : 0.0f);
    if (!is_scale || scale < __fmul_rn(most, 0x1p-5f)) return false;
    t.limit = __fdiv_rn(1.0f, scale);
    t.reach = __fmul_rn(half_to_float(__ldg(codes.tails + place)), t.limit);
    t.bias = __fmul_rn(__ldg(codes.biases + place), t.limit);
    return t.reach < 0x1p60f && fabsf(t.bias) < 0x1p60f;
}

// A warp a bundle.
template <class SHAPE>
__device__ __forceinline__ void prepare_rows(const progressive_arguments &a, uint32_t first_bundle,
                                             uint32_t end, const progressive_shared &shared)
{
    const uint32_t lane = threadIdx.x % 32;
    for (uint32_t own = threadIdx.x / 32; own < SHAPE::bundles; own += block_warps) {
        const bool is_there = first_bundle + own < end;
        const uint32_t bundle = is_there ? bundle_of(a.scan, first_bundle + own) : 0;
        const uint32_t mask = is_there ? __ldg(a.scan.codes.masks + bundle) : 0;
        const bool exists = mask >> lane & 1;
        bound_terms t = {0, 0, 0, 0};
        const bool is_fit =
            row_terms(a.scan.codes, static_cast<size_t>(bundle) * warp_rows + lane, exists, t);
        if (!is_fit) t = {0, 0, 0, 0};
        store_row_terms<SHAPE>(shared.terms, own * warp_rows + lane, t,
                               is_fit   ? 0
                               : exists ? one_bf16
                                        : minus_one_bf16);
        const bound_terms most = {most_of_warp(t.limit), most_of_warp(t.reach),
                                  most_of_warp(fabsf(t.bias)), 0};
        if (lane > 0) continue;
        shared.rows[own] = most;
        shared.masks[own] = mask;
    }
}

// ---- the bound ----

// Where the lane's accumulators start; bit i of what is returned: query i/2, half i%2 is wild.
template <class SHAPE>
__device__ __forceinline__ uint32_t lane_starts(const progressive_shared &shared, uint32_t warp,
                                                uint32_t lane,
                                                float (&starts)[SHAPE::query_tiles][2])
{
    bound_terms most = shared.rows[0];
    for (uint32_t b = 1; b < SHAPE::bundles; b++) {
        most.limit = fmaxf(most.limit, shared.rows[b].limit);
        most.reach = fmaxf(most.reach, shared.rows[b].reach);
        most.bias = fmaxf(most.bias, shared.rows[b].bias);
    }
    uint32_t wild = 0;
#pragma unroll
    for (int i = 0; i < 2 * SHAPE::query_tiles; i++) {
        const bound_terms own = shared.queries[query_of<SHAPE>(0, warp, lane, i / 2, i % 2)];
        const float terms =
            __fmaf_rn(own.limit, most.limit,
                      __fmaf_rn(own.reach, most.reach, __fmul_rn(own.bias, most.bias)));
        wild |= terms < most_terms ? 0u : 1u << i;
        starts[i / 2][i % 2] = __fadd_rn(own.more, -__fmaf_rn(terms, 0x1p-13f, 24.0f));
    }
    return wild;
}

// The accumulators' first step.
template <class SHAPE>
__device__ __forceinline__ void
multiply_terms(const progressive_shared &shared, uint32_t warp, uint32_t lane,
               const float (&starts)[SHAPE::query_tiles][2], accumulators<SHAPE> &acc)
{
    unsigned q[SHAPE::query_tiles][4];
    load_query_operands<SHAPE>(shared.terms, 0, warp, lane, q);
#pragma unroll
    for (int n = 0; n < SHAPE::row_tiles; n += 2) {
        unsigned u[2][2];
        load_row_operands<SHAPE>(shared.terms, 0, warp, lane, n, u);
#pragma unroll
        for (int i = 0; i < 2 * SHAPE::query_tiles; i++) {
            const int m = i / 2;
            const float start[4] = {starts[m][0], starts[m][0], starts[m][1], starts[m][1]};
            float sums[4];
            mma_bf16(sums, q[m], u[i % 2], start);
#pragma unroll
            for (int j = 0; j < 4; j++) acc.sums[m][n + i % 2][j] = __float_as_int(sums[j]);
        }
    }
}

// Bit 8*i + n of hits[m]: accumulator i of the tile of queries m and of rows n goes on.
template <class SHAPE>
__device__ __forceinline__ void find_survivors(const accumulators<SHAPE> &acc, uint32_t wild,
                                               uint32_t (&hits)[SHAPE::query_tiles])
{
    const uint32_t all = 0x01010101u * ((1u << SHAPE::row_tiles) - 1);
#pragma unroll
    for (int m = 0; m < SHAPE::query_tiles; m++) {
        uint32_t stopped = 0;
#pragma unroll
        for (int n = 0; n < SHAPE::row_tiles; n++) {
            const int(&sums)[4] = acc.sums[m][n];
            stopped |= still_above_at(sums[0], sums[1], sums[2], sums[3], n);
        }
        hits[m] = ~stopped & all;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            if (wild >> (2 * m + half) & 1) hits[m] |= all & 0xffffu << (16 * half);
        }
    }
}

// ---- pairs that go on ----

// Each lane's next hit, if it has one and its row may be selected, to the queue.
template <class SHAPE>
__device__ __forceinline__ void push_hits(const scan_arguments &a, uint32_t first_query,
                                          uint32_t first_bundle, const progressive_shared &shared,
                                          uint32_t (&hits)[SHAPE::query_tiles], pair_queue &queue)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int m = SHAPE::query_tiles > 1 && hits[0] == 0 ? SHAPE::query_tiles - 1 : 0;
    const uint32_t own = m == 0 ? hits[0] : hits[SHAPE::query_tiles - 1];
    const uint32_t bit = own != 0 ? static_cast<uint32_t>(__ffs(static_cast<int>(own))) - 1 : 0;
    if (m == 0)
        hits[0] = own & (own - 1);
    else
        hits[SHAPE::query_tiles - 1] = own & (own - 1);
    const uint32_t row = warp / SHAPE::query_warps * (8 * SHAPE::row_tiles) + bit % 8 * 8 +
                         lane % 4 * 2 + bit / 8 % 2;
    const bool goes_on = own != 0 && (shared.masks[row / warp_rows] >> row % warp_rows & 1) != 0;
    const uint32_t place = bundle_of(a, first_bundle + row / warp_rows) * warp_rows;
    push_pair(queue, goes_on,
              {place + row % warp_rows,
               query_of<SHAPE>(first_query, warp, lane, m, static_cast<int>(bit / 16))});
}

// ---- tiles ----

// One tile: the bound's terms, the stage's words chunk by chunk, then what goes on.
template <class SHAPE>
__device__ __forceinline__ void scan_tile(const progressive_arguments &a, uint32_t first_query,
                                          uint32_t first_bundle, uint32_t end, bool is_first,
                                          const progressive_shared &shared, pair_queue &queue)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t num_words = a.stage.dims / 32;
    accumulators<SHAPE> acc;
    uint32_t wild = 0;
    for (uint32_t word = 0; word < num_words; word += tuning.chunk_words) {
        const uint32_t words =
            num_words - word < tuning.chunk_words ? num_words - word : tuning.chunk_words;
        __syncthreads(); // everybody has done with what is in shared memory
        if (word == 0) prepare_rows<SHAPE>(a, first_bundle, end, shared);
        unpack_tile<SHAPE>(a.scan, first_bundle, end, word, words, shared.stage);
        if (is_first || num_words > tuning.chunk_words)
            load_queries<SHAPE>(
                a.scan, [=](uint32_t i) { return first_query + i; }, word, words, shared.stage);
        __syncthreads();
        if (word == 0) {
            float starts[SHAPE::query_tiles][2];
            wild = lane_starts<SHAPE>(shared, warp, lane, starts);
            multiply_terms<SHAPE>(shared, warp, lane, starts, acc);
        }
#pragma unroll 1
        for (uint32_t i = 0; i < words; i++) multiply_word<SHAPE>(shared.stage, i, warp, lane, acc);
    }
    uint32_t hits[SHAPE::query_tiles];
    find_survivors<SHAPE>(acc, wild, hits);
    while (__any_sync(all_lanes, (hits[0] | hits[SHAPE::query_tiles - 1]) != 0)) {
        push_hits<SHAPE>(a.scan, first_query, first_bundle, shared, hits, queue);
        if (queue.count >= 32) finish_pairs(a.scan, a.stage, queue);
    }
}

template <class SHAPE>
__global__ void __launch_bounds__(tuning.threads, 2)
    scan_progressively(const __grid_constant__ progressive_arguments a)
{
    const progressive_shared shared = divide_memory<SHAPE>(a.stage.dims);
    const uint32_t first_query = blockIdx.x % a.scan.num_groups * SHAPE::queries;
    const uint32_t begin = blockIdx.x / a.scan.num_groups * a.scan.chunk;
    const uint32_t end =
        a.scan.num_bundles - begin < a.scan.chunk ? a.scan.num_bundles : begin + a.scan.chunk;
    pair_queue queue = {shared.pairs + threadIdx.x / 32 * queue_pairs, 0};
    prepare_queries<SHAPE>(a, first_query, shared);
    for (uint32_t bundle = begin; bundle < end; bundle += SHAPE::bundles)
        scan_tile<SHAPE>(a, first_query, bundle, end, bundle == begin, shared, queue);
    if (queue.count > 0) finish_pairs(a.scan, a.stage, queue);
}

struct progressive_kernel {
    uint32_t queries, bundles; // of a tile
    void (*kernel)(progressive_arguments);
    size_t (*shared_bytes)(uint32_t stage_dims);
};

template <class SHAPE> constexpr progressive_kernel make_kernel()
{
    return {SHAPE::queries, SHAPE::bundles, scan_progressively<SHAPE>,
            progressive_shared_bytes<SHAPE>};
}

constexpr progressive_kernel progressive_kernels[] = {
    make_kernel<few_queries>(), make_kernel<some_queries>(), make_kernel<many_queries>()};

static_assert(sizeof progressive_kernels / sizeof progressive_kernels[0] == BSW_MATRIX_TILES);

} // namespace
} // namespace bsw

extern "C" int bsw_device_progressive_scan_mma(const struct bsw_device_codes *codes,
                                               const struct bsw_device_stage *stage,
                                               const struct bsw_device_part *part,
                                               const struct bsw_device_queries *queries,
                                               const struct bsw_device_lists *lists,
                                               bsw_stream stream)
{
    using namespace bsw;
    if (!is_valid_progressive_scan(*codes, *stage, *part, *queries, *lists))
        return cudaErrorInvalidValue;
    if (part->first == part->last || queries->num_queries == 0) return cudaSuccess;
    const bsw_device_tuning &own = *bsw_device_tuning_current();
    const progressive_kernel &chosen = progressive_kernels[choose_tile(own, queries->num_queries)];
    progressive_arguments a = {make_scan_arguments(*codes, *part, *queries, *lists), *stage};
    launch_shape shape = {dim3(), dim3(tuning.threads), chosen.shared_bytes(stage->dims), stream};
    cudaError_t error =
        plan_blocks(a.scan, {chosen.queries, chosen.bundles, own.matrix}, chosen.kernel, shape);
    return error ? error : launch(shape, chosen.kernel, a);
}

extern "C" int bsw_device_progressive_scan(const struct bsw_device_codes *codes,
                                           const struct bsw_device_stage *stage,
                                           const struct bsw_device_part *part,
                                           const struct bsw_device_queries *queries,
                                           const struct bsw_device_lists *lists, bsw_stream stream)
{
    const bool is_hopper = bsw_device_tuning_current()->stage_kernel == BSW_DEVICE_MATRIX_HOPPER &&
                           codes->layout.padded_dims > BSW_LEAST_HOPPER_STAGE &&
                           bsw_device_has_hopper_stage(&codes->layout, stage->dims);
    return (is_hopper ? bsw_device_progressive_scan_hopper : bsw_device_progressive_scan_mma)(
        codes, stage, part, queries, lists, stream);
}

#ifdef BITSWEEP_WITHOUT_HOPPER // no code for sm_90a: no device is a Hopper GPU
extern "C" int bsw_device_has_hopper_stage(const struct bsw_code_layout *, uint32_t)
{
    return 0;
}

extern "C" int bsw_device_progressive_scan_hopper(const struct bsw_device_codes *,
                                                  const struct bsw_device_stage *,
                                                  const struct bsw_device_part *,
                                                  const struct bsw_device_queries *,
                                                  const struct bsw_device_lists *, bsw_stream)
{
    return cudaErrorInvalidValue;
}
#endif
