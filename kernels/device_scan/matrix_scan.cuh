// SPDX-License-Identifier: Apache-2.0
// The matrix scan's kernel, whatever a block's queries are and wherever they come from:
// device_matrix_scan.cu, which says how it works, and device_list_scan.cu.
//
// ARGUMENTS of a launch have a scan_arguments `scan`, and a type `block`: what a block scans.
//
//   make<SHAPE>(a, rest)              rest: what there is of shared memory behind a tile's
//   begin, end                        bundles of the part, tile after tile
//   number(a, i)                      of its query i in the batch; none of the batch: there is none
//   load<SHAPE, KIND>(a, shared)      key_queries or quick of its queries, by all threads
//   query(a, i)                       query i, then: its `number`, and what else these take
//   keys<KIND>(a, query)              how it compares
//   item<KIND>(a, query, row, score)  a candidate; row: in the codes
#ifndef BITSWEEP_KERNELS_MATRIX_SCAN_CUH
#define BITSWEEP_KERNELS_MATRIX_SCAN_CUH

#include "kernels/device_scan/matrix_select.cuh"

namespace bsw
{

template <class SHAPE, key_kind KIND, class ARGUMENTS>
__device__ __forceinline__ void
select_tile(const ARGUMENTS &a, const typename ARGUMENTS::block &block, uint32_t first_bundle,
            uint32_t warp, uint32_t lane, accumulators<SHAPE> &acc, const scan_shared &shared)
{
    const uint32_t first_row = warp / SHAPE::query_warps * (8 * SHAPE::row_tiles) + lane % 4 * 2;
    const uint32_t queries =
        KIND == key_kind::small_float
            ? find_below<SHAPE>(acc)
            : __reduce_or_sync(all_lanes,
                               find_queries<SHAPE, KIND>(warp, lane, first_row, acc, shared));
    if (queries == 0) return;
    const uint32_t valid = valid_rows<SHAPE>(a.scan, first_bundle, block.end, first_row);
#pragma unroll
    for (int i = 0; i < 2 * SHAPE::query_tiles; i++) {
        if (!(queries >> i & 1)) continue;
        const auto query = block.query(a, query_of<SHAPE>(0, warp, lane, i / 2, i % 2));
        const thread_query of = block.template keys<KIND>(a, query);
        int sums[2 * SHAPE::row_tiles];
        take_sums<SHAPE, KIND>(warp, lane, shared, acc, i / 2, i % 2, sums);
        const uint32_t hits = find_hits<SHAPE, KIND>(of, sums, shared, first_row) & valid;
        if (!__any_sync(all_lanes, hits != 0)) continue;
        keep_sums(sums);
        append_hits<SHAPE, KIND>(a.scan.lists, of, sums, shared, first_row, query.number, hits,
                                 [&](uint32_t row, uint32_t score) {
                                     return block.template item<KIND>(
                                         a, query, row_of(a.scan, first_bundle, row), score);
                                 });
    }
}

// One tile: its words chunk by chunk, then the selection.
template <class SHAPE, key_kind KIND, int BITS, class ARGUMENTS>
__device__ __forceinline__ void
scan_tile(const ARGUMENTS &a, const typename ARGUMENTS::block &block, uint32_t first_bundle,
          const scan_shared &shared, row_caps &started)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t num_words = a.scan.codes.layout.padded_dims / 32;
    const bool is_first = first_bundle == block.begin;
    accumulators<SHAPE> acc;
    if (KIND != key_kind::small_float) acc = {};
    for (uint32_t word = 0; word < num_words; word += tuning.chunk_words) {
        const uint32_t words =
            num_words - word < tuning.chunk_words ? num_words - word : tuning.chunk_words;
        __syncthreads(); // everybody has done with what is in shared memory
        unpack_tile<SHAPE, BITS>(a.scan, first_bundle, block.end, word, words, shared);
        if (KIND == key_kind::small_float && word == 0)
            load_terms<SHAPE>(a.scan, first_bundle, block.end, is_first, shared);
        if (KIND == key_kind::any_float && word == 0)
            load_scales<SHAPE>(a.scan, first_bundle, block.end, shared);
        if (is_first && word == 0) block.template load<SHAPE, KIND>(a, shared);
        if (is_first || num_words > tuning.chunk_words)
            load_queries<SHAPE>(
                a.scan, [&](uint32_t i) { return block.number(a, i); }, word, words, shared);
        __syncthreads();
        if (KIND == key_kind::small_float && word == 0) {
            update_starts<SHAPE>(shared, started);
            begin_tile<SHAPE>(warp, lane, shared, acc);
        }
        multiply_tile<SHAPE, (BITS > 0)>(shared, words, warp, lane, acc);
    }
    select_tile<SHAPE, KIND>(a, block, first_bundle, warp, lane, acc, shared);
}

// BITS: of codes that have one segment, which take fewer instructions then; 0: of any codes.
template <class SHAPE, key_kind KIND, int BITS, class ARGUMENTS>
__global__ void __launch_bounds__(tuning.threads, 2)
    scan_matrix(const __grid_constant__ ARGUMENTS a)
{
    const uint32_t num_words = words_at_a_time(a.scan.codes.layout.padded_dims);
    const scan_shared shared = divide_shared<SHAPE>(num_words);
    const auto block = ARGUMENTS::block::template make<SHAPE>(
        a, shared.queries + num_words * SHAPE::query_word_bytes);
    row_caps started = {-1, -1}; // what starts of sums are for
    for (uint32_t bundle = block.begin; bundle < block.end; bundle += SHAPE::bundles)
        scan_tile<SHAPE, KIND, BITS>(a, block, bundle, shared, started);
}

template <class ARGUMENTS> struct matrix_kernel {
    uint32_t queries, bundles;     // of a tile
    void (*kernels[3])(ARGUMENTS); // by key_kind
};

template <class SHAPE, class ARGUMENTS> constexpr matrix_kernel<ARGUMENTS> make_matrix_kernel()
{
    return {SHAPE::queries,
            SHAPE::bundles,
            {scan_matrix<SHAPE, key_kind::integer, 0, ARGUMENTS>,
             scan_matrix<SHAPE, key_kind::small_float, 0, ARGUMENTS>,
             scan_matrix<SHAPE, key_kind::any_float, 0, ARGUMENTS>}};
}

template <class ARGUMENTS>
constexpr matrix_kernel<ARGUMENTS> matrix_kernels[BSW_MATRIX_TILES] = {
    make_matrix_kernel<few_queries, ARGUMENTS>(), make_matrix_kernel<some_queries, ARGUMENTS>(),
    make_matrix_kernel<many_queries, ARGUMENTS>()};

} // namespace bsw

#endif
