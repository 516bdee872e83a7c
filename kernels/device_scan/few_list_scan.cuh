// SPDX-License-Identifier: Apache-2.0
// Work items of lists that few queries look at: a lane a row, whose words are unpacked in registers
// and multiplied by dp4a with each query there is, so that an item costs what its queries do.
// Nothing of a row passes shared memory, and tiles of a few bundles leave no warp without work.
// Keys are compared as they are, with what is added to them: 32 halvings a query, as
// device_list_scan.cu has them, would take longer than such an item.
#ifndef BITSWEEP_KERNELS_FEW_LIST_SCAN_CUH
#define BITSWEEP_KERNELS_FEW_LIST_SCAN_CUH

#include "kernels/device_scan/device_unpack.cuh"
#include "kernels/device_scan/list_work.cuh"
#include "kernels/device_scan/matrix_keys.cuh"
#include "kernels/select/key_shift.h"

namespace bsw
{

constexpr struct {
    uint32_t threads, least_blocks; // of a block; on a multiprocessor, for registers
    uint32_t most_shared;           // bytes that any launch may have
} few_tuning = {128, 8, 48 << 10};

constexpr uint32_t few_slots = 8; // bsw_device_list_tile_slots(0)
constexpr uint32_t few_word_pieces = few_slots * 2;

// A query in its list.
struct __align__(8) few_query
{
    thread_query keys;
    float addition;
    uint32_t number;
};

// Shared memory: the queries, then components, word after word, of each query two pieces of 16
// bytes.
constexpr uint32_t few_query_bytes = few_slots * sizeof(few_query);
static_assert(few_query_bytes % sizeof(uint4) == 0, "components are read 16 bytes at a time");

inline size_t few_shared_bytes(uint32_t padded_dims)
{
    return few_query_bytes +
           static_cast<size_t>(padded_dims) / 32 * few_word_pieces * sizeof(uint4);
}

template <key_kind KIND>
__device__ __forceinline__ few_query load_few_query(const scan_arguments &a,
                                                    const bsw_device_list_work &work, uint32_t slot)
{
    const uint32_t number = __ldg(work.queries + slot);
    return {load_query<KIND>(a, number), work.additions ? __ldg(work.additions + slot) : 0.0f,
            number};
}

// By all threads.
template <key_kind KIND>
__device__ __forceinline__ void
load_few_queries(const scan_arguments &a, const bsw_device_list_work &work,
                 const bsw_device_list_item &item, few_query *few, uint4 *components)
{
    const uint32_t padded_dims = a.codes.layout.padded_dims, pieces = padded_dims / 16;
    if (threadIdx.x < item.num_slots)
        few[threadIdx.x] = load_few_query<KIND>(a, work, item.first_slot + threadIdx.x);
    for (uint32_t i = threadIdx.x; i < item.num_slots * pieces; i += few_tuning.threads) {
        const uint32_t own = i / pieces, piece = i % pieces;
        const int8_t *query =
            a.queries.components +
            static_cast<size_t>(__ldg(work.queries + item.first_slot + own)) * padded_dims;
        components[piece / 2 * few_word_pieces + own * 2 + piece % 2] =
            __ldg(reinterpret_cast<const uint4 *>(query) + piece);
    }
}

// A word of the lane's row times that of each query.
__device__ __forceinline__ void multiply_few(const uint32_t (&bytes)[8], const uint4 *components,
                                             uint32_t num_queries, int (&sums)[few_slots])
{
#pragma unroll
    for (uint32_t q = 0; q < few_slots; q++) {
        if (q >= num_queries) break;
        const uint4 low = components[2 * q], high = components[2 * q + 1];
        const uint32_t own[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
        for (int r = 0; r < 8; r++) sums[q] = dot_u8_s8(bytes[r], own[r], sums[q]);
    }
}

// planes: the lane's place in the segment's first word of the bundle.
template <int BITS>
__device__ __forceinline__ void sum_few_words(const uint32_t *planes, uint32_t words,
                                              const uint4 *components, uint32_t num_queries,
                                              int (&sums)[few_slots])
{
#pragma unroll 1
    for (uint32_t word = 0; word < words; word++) {
        uint32_t bytes[8];
        unpack_word<BITS>(planes + word * warp_rows, words, bytes);
        multiply_few(bytes, components + word * few_word_pieces, num_queries, sums);
    }
}

__device__ __forceinline__ void sum_few(const bsw_device_codes &codes, uint32_t bundle,
                                        const uint4 *components, uint32_t num_queries,
                                        int (&sums)[few_slots])
{
#pragma unroll 1
    for (uint32_t s = 0; s < codes.layout.num_segments; s++) {
        const uint32_t bits = codes.layout.segments[s].bits, words = codes.layout.segments[s].words;
        const uint32_t *planes = codes.planes[s] +
                                 static_cast<size_t>(bundle) * bits * words * warp_rows +
                                 threadIdx.x % warp_rows;
#define CALL(BITS) sum_few_words<BITS>(planes, words, components, num_queries, sums)
        BSW_SWITCH_BITS(bits, CALL);
#undef CALL
        components += words * few_word_pieces;
    }
}

// The rows of a bundle whose keys, with what is added, reach the query's limit.
template <key_kind KIND>
__device__ __forceinline__ void select_few(const scan_arguments &a,
                                           const bsw_device_list_work &work, uint32_t bundle,
                                           const few_query &query, int sum, float scale, float bias)
{
    const thread_query &own = query.keys;
    const int dot = own.constant - 2 * sum;
    const bool passes = KIND == key_kind::integer
                            ? sum <= own.most_sum
                            : __fadd_rn(float_key(own.scale, scale, float_of_dot<KIND>(dot), bias),
                                        query.addition) >= own.float_limit;
    if (!__any_sync(all_lanes, passes)) return;
    const uint32_t lane = threadIdx.x % warp_rows, place = bundle * warp_rows + lane;
    const bool exists = (__ldg(a.codes.masks + bundle) >> lane & 1) != 0;
    uint32_t score = score_of<KIND>(dot, own.scale, scale, bias);
    if (KIND != key_kind::integer) score = bsw_score_add(score, query.addition);
    append_bundle(a.lists, query.number, passes && exists,
                  pack_candidate(score, exists ? __ldg(work.rows + place) : 0));
}

template <key_kind KIND>
__device__ __forceinline__ void
scan_few_bundle(const scan_arguments &a, const bsw_device_list_work &work, uint32_t bundle,
                uint32_t num_queries, const few_query *few, const uint4 *components)
{
    const uint32_t place = bundle * warp_rows + threadIdx.x % warp_rows;
    int sums[few_slots] = {};
    float scale = 0.0f, bias = 0.0f;
    if (KIND != key_kind::integer) {
        scale = half_to_float(__ldg(a.codes.scales + place));
        bias = __ldg(a.codes.biases + place);
    }
    sum_few(a.codes, bundle, components, num_queries, sums);
#pragma unroll
    for (uint32_t q = 0; q < few_slots; q++) {
        if (q >= num_queries) break;
        select_few<KIND>(a, work, bundle, few[q], sums[q], scale, bias);
    }
}

// A block an item of few_slots queries at most.
template <key_kind KIND, class ARGUMENTS>
__global__ void __launch_bounds__(few_tuning.threads, few_tuning.least_blocks)
    scan_few(const __grid_constant__ ARGUMENTS a)
{
    DYNAMIC_SHARED(unsigned char, shared);
    few_query *few = reinterpret_cast<few_query *>(shared);
    uint4 *components = reinterpret_cast<uint4 *>(shared + few_query_bytes);
    if (blockIdx.x >= count_items(a.work)) return;
    const bsw_device_list_item item = load_item(a.work, blockIdx.x);
    load_few_queries<KIND>(a.scan, a.work, item, few, components);
    __syncthreads();
#pragma unroll 1
    for (uint32_t i = threadIdx.x / 32; i < item.num_bundles; i += few_tuning.threads / 32)
        scan_few_bundle<KIND>(a.scan, a.work, item.first_bundle + i, item.num_slots, few,
                              components);
}

template <class ARGUMENTS>
constexpr void (*few_kernels[3])(ARGUMENTS) = {scan_few<key_kind::integer, ARGUMENTS>,
                                               scan_few<key_kind::small_float, ARGUMENTS>,
                                               scan_few<key_kind::any_float, ARGUMENTS>};

} // namespace bsw

#endif
