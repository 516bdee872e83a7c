// matrix_scan on a GPU: tiles of documents unpacked to bytes in shared memory once for all queries
// of a block, mma.m16n8k32 with queries s8 as rows and documents u8 as columns, selection on the
// accumulators.
//
// The order of dimensions inside a word is that of the unpacked bytes, on both sides, so that no
// byte is moved for it (device_scan.h, device order).
//
// Float keys of dots below 2^21 are compared by the products themselves: one more step tells of
// every sum, by one bit, whether its pair may pass (key_terms.cuh). Otherwise the least of the
// eight sums that a lane has of a bundle and a query is compared with a bound that holds for all
// rows of the bundle (dot_bound.cuh). Where anything may pass in a warp, rows are found by
// comparing keys as they are (exact: dots become floats by adding them into the mantissa of 1.5 *
// 2^23, for conversions are scarce); scores are made for rows that pass alone.
#include "kernels/device_scan/matrix_select.cuh"

namespace bsw
{
namespace
{

// Limits are what they are when the launch begins.
template <class SHAPE, key_kind KIND>
__device__ __forceinline__ void load_block_queries(const scan_arguments &a, uint32_t first_query,
                                                   const scan_shared &shared)
{
    for (uint32_t i = threadIdx.x; i < SHAPE::queries; i += tuning.threads) {
        if (KIND == key_kind::small_float)
            shared.key_queries[i] = load_key_query(a, first_query + i);
        else
            shared.quick[i] = load_quick<KIND>(a, first_query + i);
    }
}

template <class SHAPE, key_kind KIND>
__device__ __forceinline__ void
select_tile(const scan_arguments &a, uint32_t first_query, uint32_t first_bundle, uint32_t end,
            uint32_t warp, uint32_t lane, accumulators<SHAPE> &acc, const scan_shared &shared)
{
    const uint32_t first_row = warp / SHAPE::query_warps * (8 * SHAPE::row_tiles) + lane % 4 * 2;
    const uint32_t queries =
        KIND == key_kind::small_float
            ? find_below<SHAPE>(acc)
            : __reduce_or_sync(all_lanes,
                               find_queries<SHAPE, KIND>(warp, lane, first_row, acc, shared));
    if (queries == 0) return;
    const uint32_t valid = valid_rows<SHAPE>(a, first_bundle, end, first_row);
#pragma unroll
    for (int i = 0; i < 2 * SHAPE::query_tiles; i++) {
        if (!(queries >> i & 1)) continue;
        const uint32_t query = query_of<SHAPE>(first_query, warp, lane, i / 2, i % 2);
        const thread_query of = load_query<KIND>(a, query);
        int sums[2 * SHAPE::row_tiles];
        take_sums<SHAPE, KIND>(warp, lane, shared, acc, i / 2, i % 2, sums);
        const uint32_t hits = find_hits<SHAPE, KIND>(of, sums, shared, first_row) & valid;
        if (!__any_sync(all_lanes, hits != 0)) continue;
        keep_sums(sums);
        append_hits<SHAPE, KIND>(
            a.lists, of, sums, shared, first_row, query, hits, [&](uint32_t row, uint32_t score) {
                return pack_candidate(score, a.codes.first_row + row_of(a, first_bundle, row));
            });
    }
}

// One tile: its words chunk by chunk, then the selection.
template <class SHAPE, key_kind KIND>
__device__ __forceinline__ void scan_tile(const scan_arguments &a, uint32_t first_query,
                                          uint32_t first_bundle, uint32_t end, bool is_first,
                                          const scan_shared &shared, row_caps &started)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t num_words = a.codes.layout.padded_dims / 32;
    accumulators<SHAPE> acc;
    if (KIND != key_kind::small_float) acc = {};
    for (uint32_t word = 0; word < num_words; word += tuning.chunk_words) {
        const uint32_t words =
            num_words - word < tuning.chunk_words ? num_words - word : tuning.chunk_words;
        __syncthreads(); // everybody has done with what is in shared memory
        unpack_tile<SHAPE>(a, first_bundle, end, word, words, shared);
        if (KIND == key_kind::small_float && word == 0)
            load_terms<SHAPE>(a, first_bundle, end, is_first, shared);
        if (KIND == key_kind::any_float && word == 0)
            load_scales<SHAPE>(a, first_bundle, end, shared);
        if (is_first && word == 0) load_block_queries<SHAPE, KIND>(a, first_query, shared);
        if (is_first || num_words > tuning.chunk_words)
            load_queries<SHAPE>(a, first_query, word, words, shared);
        __syncthreads();
        if (KIND == key_kind::small_float && word == 0) {
            update_starts<SHAPE>(shared, started);
            begin_tile<SHAPE>(warp, lane, shared, acc);
        }
        multiply_tile<SHAPE>(shared, words, warp, lane, acc);
    }
    select_tile<SHAPE, KIND>(a, first_query, first_bundle, end, warp, lane, acc, shared);
}

template <class SHAPE, key_kind KIND>
__global__ void __launch_bounds__(tuning.threads, 2)
    scan_matrix(const __grid_constant__ scan_arguments a)
{
    const scan_shared shared = divide_shared<SHAPE>(words_at_a_time(a.codes.layout.padded_dims));
    const uint32_t first_query = blockIdx.x % a.num_groups * SHAPE::queries;
    const uint32_t begin = blockIdx.x / a.num_groups * a.chunk;
    const uint32_t end = a.num_bundles - begin < a.chunk ? a.num_bundles : begin + a.chunk;
    row_caps started = {-1, -1}; // what starts of sums are for
    for (uint32_t bundle = begin; bundle < end; bundle += SHAPE::bundles)
        scan_tile<SHAPE, KIND>(a, first_query, bundle, end, bundle == begin, shared, started);
}

struct matrix_kernel {
    uint32_t queries, bundles;          // of a tile
    void (*kernels[3])(scan_arguments); // by key_kind
};

template <class SHAPE> constexpr matrix_kernel make_kernel()
{
    return {SHAPE::queries,
            SHAPE::bundles,
            {scan_matrix<SHAPE, key_kind::integer>, scan_matrix<SHAPE, key_kind::small_float>,
             scan_matrix<SHAPE, key_kind::any_float>}};
}

constexpr matrix_kernel matrix_kernels[] = {make_kernel<few_queries>(), make_kernel<some_queries>(),
                                            make_kernel<many_queries>()};

static_assert(sizeof matrix_kernels / sizeof matrix_kernels[0] == BSW_MATRIX_TILES);

} // namespace
} // namespace bsw

extern "C" int bsw_device_matrix_scan_mma(const struct bsw_device_codes *codes,
                                          const struct bsw_device_part *part,
                                          const struct bsw_device_queries *queries,
                                          const struct bsw_device_lists *lists, bsw_stream stream)
{
    using namespace bsw;
    if (!is_valid_scan(*codes, *part, *queries, *lists)) return cudaErrorInvalidValue;
    if (part->first == part->last || queries->num_queries == 0) return cudaSuccess;
    const bsw_device_tuning &own = *bsw_device_tuning_current();
    const matrix_kernel &chosen = matrix_kernels[choose_tile(own, queries->num_queries)];
    scan_arguments a = make_scan_arguments(*codes, *part, *queries, *lists);
    const size_t bytes =
        select_shared_bytes(chosen.queries, chosen.bundles, codes->layout.padded_dims);
    auto kernel = chosen.kernels[static_cast<int>(choose_keys(a))];
    launch_shape shape = {dim3(), dim3(tuning.threads), bytes, stream};
    cudaError_t error = plan_blocks(a, {chosen.queries, chosen.bundles, own.matrix}, kernel, shape);
    return error ? error : launch(shape, kernel, a);
}

extern "C" int bsw_device_matrix_scan(const struct bsw_device_codes *codes,
                                      const struct bsw_device_part *part,
                                      const struct bsw_device_queries *queries,
                                      const struct bsw_device_lists *lists, bsw_stream stream)
{
    const bool is_hopper = bsw_device_tuning_current()->matrix_kernel == BSW_DEVICE_MATRIX_HOPPER &&
                           bsw_device_has_hopper(&codes->layout);
    return (is_hopper ? bsw_device_matrix_scan_hopper
                      : bsw_device_matrix_scan_mma)(codes, part, queries, lists, stream);
}

#ifdef BITSWEEP_WITHOUT_HOPPER // no code for sm_90a: no device is a Hopper GPU
extern "C" int bsw_device_has_hopper(const struct bsw_code_layout *)
{
    return 0;
}

extern "C" int bsw_device_matrix_scan_hopper(const struct bsw_device_codes *,
                                             const struct bsw_device_part *,
                                             const struct bsw_device_queries *,
                                             const struct bsw_device_lists *, bsw_stream)
{
    return cudaErrorInvalidValue;
}
#endif
