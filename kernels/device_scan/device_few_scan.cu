// SPDX-License-Identifier: Apache-2.0
// matrix_scan of up to 32 queries by few_scan.cuh: as many blocks as run at a time, whose warps
// take bundle after bundle.
#include "kernels/device_scan/few_scan.cuh"

namespace bsw
{
namespace
{

using namespace few;

template <class SHAPE>
__global__ void __launch_bounds__(few::tuning.threads, SHAPE::least_blocks)
    scan_few_documents(const __grid_constant__ scan_arguments a)
{
    const uint32_t warps = few::tuning.threads / warp_rows;
    scan_documents<SHAPE>(
        a, batch{a}, {blockIdx.x * warps + threadIdx.x / 32, a.num_bundles, gridDim.x * warps});
}

typedef void (*few_kernel)(scan_arguments);

// For codes of one segment, by bits; each costs a second of compiling or two.
template <int QUERIES>
constexpr few_kernel own_kernels[most_own_bits] = {
    scan_few_documents<few_shape<QUERIES, 1, key_kind::small_float>>,
    scan_few_documents<few_shape<QUERIES, 2, key_kind::small_float>>,
    scan_few_documents<few_shape<QUERIES, 3, key_kind::small_float>>,
    scan_few_documents<few_shape<QUERIES, 4, key_kind::small_float>>};

template <int QUERIES>
constexpr few_kernel any_kernels[3] = {
    scan_few_documents<few_shape<QUERIES, 0, key_kind::integer>>,
    scan_few_documents<few_shape<QUERIES, 0, key_kind::small_float>>,
    scan_few_documents<few_shape<QUERIES, 0, key_kind::any_float>>};

// For 96 dimensions of 3 bits, the shape that was measured: a step a bundle, known to the compiler.
template <int QUERIES>
constexpr few_kernel whole_kernel =
    scan_few_documents<few_shape<QUERIES, 3, key_kind::small_float, 3>>;

// HAS_OWN: the row of scan_kernels.h that has code of its own for some codes.
template <int QUERIES, bool HAS_OWN> few_kernel choose_kernel(const scan_arguments &a)
{
    const key_kind keys = choose_keys(a);
    const bsw_segment &first = a.codes.layout.segments[0];
    if (HAS_OWN && keys == key_kind::small_float)
        return first.bits == 3 && first.words == 3 ? whole_kernel<QUERIES>
                                                   : own_kernels<QUERIES>[first.bits - 1];
    return any_kernels<QUERIES>[static_cast<int>(keys)];
}

uint32_t tile_of(uint32_t num_queries)
{
    return num_queries <= 8 ? 8 : num_queries <= 16 ? 16 : most_queries;
}

template <bool HAS_OWN> cudaError_t scan_queries(const scan_arguments &a, cudaStream_t stream)
{
    const uint32_t tile = tile_of(a.queries.num_queries);
    few_kernel kernel = tile == 8    ? choose_kernel<8, HAS_OWN>(a)
                        : tile == 16 ? choose_kernel<16, HAS_OWN>(a)
                                     : choose_kernel<most_queries, HAS_OWN>(a);
    launch_shape shape = {dim3(), dim3(tuning.threads),
                          shared_bytes(tile, a.codes.layout.padded_dims), stream};
    uint32_t resident = 0;
    cudaError_t error =
        count_resident_blocks(reinterpret_cast<const void *>(kernel), shape, &resident);
    const uint32_t block_warps = tuning.threads / warp_rows;
    const uint32_t wanted = (a.num_bundles + block_warps - 1) / block_warps;
    shape.grid = dim3(wanted < resident ? wanted : resident);
    return error ? error : launch(shape, kernel, a);
}

} // namespace

bool few_fits(const bsw_code_layout &layout, uint32_t, uint32_t num_queries)
{
    return shared_bytes(tile_of(num_queries), layout.padded_dims) <= tuning.most_shared;
}

bool few_any_fits(const bsw_code_layout &layout, uint32_t query_bits, uint32_t num_queries)
{
    return few_fits(layout, query_bits, num_queries);
}

cudaError_t scan_few(scan_arguments a, cudaStream_t stream)
{
    return scan_queries<true>(a, stream);
}

cudaError_t scan_few_any(scan_arguments a, cudaStream_t stream)
{
    return scan_queries<false>(a, stream);
}

} // namespace bsw
