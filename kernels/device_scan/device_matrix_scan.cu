// SPDX-License-Identifier: Apache-2.0
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
#include "kernels/device_scan/matrix_scan.cuh"

namespace bsw
{
namespace
{

// A chunk of the part's bundles, and a group of queries.
struct chunk_block;

struct matrix_arguments {
    typedef chunk_block block;
    scan_arguments scan;
};

struct chunk_block {
    struct query_number {
        uint32_t number;
    };

    uint32_t first_query, begin, end;

    template <class SHAPE>
    __device__ static __forceinline__ chunk_block make(const matrix_arguments &arguments, void *)
    {
        const scan_arguments &a = arguments.scan;
        const uint32_t begin = blockIdx.x / a.num_groups * a.chunk;
        return {blockIdx.x % a.num_groups * SHAPE::queries, begin,
                a.num_bundles - begin < a.chunk ? a.num_bundles : begin + a.chunk};
    }

    // Limits are what they are when the launch begins.
    template <class SHAPE, key_kind KIND>
    __device__ __forceinline__ void load(const matrix_arguments &a, const scan_shared &shared) const
    {
        for (uint32_t i = threadIdx.x; i < SHAPE::queries; i += tuning.threads) {
            if (KIND == key_kind::small_float)
                shared.key_queries[i] = load_key_query(a.scan, first_query + i);
            else
                shared.quick[i] = load_quick<KIND>(a.scan, first_query + i);
        }
    }

    __device__ __forceinline__ uint32_t number(const matrix_arguments &, uint32_t i) const
    {
        return first_query + i;
    }

    __device__ __forceinline__ query_number query(const matrix_arguments &, uint32_t i) const
    {
        return {first_query + i};
    }

    template <key_kind KIND>
    __device__ __forceinline__ thread_query keys(const matrix_arguments &a,
                                                 const query_number &query) const
    {
        return load_query<KIND>(a.scan, query.number);
    }

    template <key_kind KIND>
    __device__ __forceinline__ uint64_t item(const matrix_arguments &a, const query_number &,
                                             uint32_t row, uint32_t score) const
    {
        return pack_candidate(score, a.scan.codes.first_row + row);
    }
};

// Kernels for codes that have one segment, where unpacking is much of the work.
template <class SHAPE, int BITS>
constexpr auto scan_bits = scan_matrix<SHAPE, key_kind::small_float, BITS, matrix_arguments>;

// By bits, from the first on. Each costs a second of compiling or two for every architecture; for
// 256 queries it would save 4 % of the instructions.
constexpr void (*few_kernels[])(matrix_arguments) = {
    scan_bits<few_queries, 1>, scan_bits<few_queries, 2>, scan_bits<few_queries, 3>,
    scan_bits<few_queries, 4>};
constexpr void (*some_kernels[])(matrix_arguments) = {scan_bits<some_queries, 3>,
                                                      scan_bits<some_queries, 4>};
constexpr uint32_t few_first = 1, some_first = 3, most_own_bits = 4;

auto choose_kernel(const matrix_kernel<matrix_arguments> &tile, const scan_arguments &a)
{
    const key_kind keys = choose_keys(a);
    const uint32_t bits = a.codes.layout.segments[0].bits;
    const bool may_be =
        keys == key_kind::small_float && a.codes.layout.num_segments == 1 && bits <= most_own_bits;
    if (may_be && tile.queries == few_queries::queries) return few_kernels[bits - few_first];
    if (may_be && tile.queries == some_queries::queries && bits >= some_first)
        return some_kernels[bits - some_first];
    return tile.kernels[static_cast<int>(keys)];
}

} // namespace

DEVICE_POINTERS(matrix_arguments, a.scan)

bool mma_fits(const bsw_code_layout &, uint32_t, uint32_t)
{
    return true;
}

cudaError_t scan_mma(scan_arguments scan, cudaStream_t stream)
{
    const bsw_device_tuning &own = *bsw_device_tuning_current();
    const auto &chosen =
        matrix_kernels<matrix_arguments>[choose_tile(own, scan.queries.num_queries)];
    matrix_arguments a = {scan};
    const size_t bytes =
        select_shared_bytes(chosen.queries, chosen.bundles, scan.codes.layout.padded_dims);
    auto kernel = choose_kernel(chosen, a.scan);
    launch_shape shape = {dim3(), dim3(tuning.threads), bytes, stream};
    cudaError_t error =
        plan_blocks(a.scan, {chosen.queries, chosen.bundles, own.matrix}, kernel, shape);
    return error ? error : launch(shape, kernel, a);
}

} // namespace bsw
