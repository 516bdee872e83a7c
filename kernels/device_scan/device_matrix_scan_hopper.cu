// SPDX-License-Identifier: Apache-2.0
// matrix_scan on Hopper (sm_90a): a warpgroup unpacks tiles of 128 documents to bytes in shared
// memory, others multiply them by queries, which they hold in registers, with wgmma.m64n128k32 s8
// by u8, and select on the accumulators. hopper_layout.cuh says where everything lies and why.
//
// Layouts of up to 256 padded dimensions, any segments and bits; device_matrix_slices_hopper.cu has
// longer ones.
//
//   bundles --cp.async.bulk--> slots of a warp --unpack--> ring of tiles --wgmma--> sums --> lists
//
// The producers' side of it is in hopper_produce.cuh, the consumers' in hopper_scan.cuh. The ring's
// stages have two mbarriers each: `full`, on which the producers' warps arrive when a tile and its
// terms are written; `empty`, on which the consumers' warps arrive that have done with it. Tile t
// is in stage t mod num_stages; wait number t / num_stages of a stage waits for that phase of
// `full`, and for the one before of `empty` (none the first time). Products read shared memory
// through the async proxy: producers fence before they arrive, and consumers wait for their
// products before they arrive.
//
// Float keys of dots below 2^21 are compared by the products themselves, as in
// device_matrix_scan.cu: 16 mma of terms (key_terms.cuh) begin a warp's 16 x 128 sums, whose
// registers are those of mma. Other float keys, and integers, have a bound.
//
// Many queries: two consumers with 128 queries each. Few: one with 64, and two such blocks on a
// multiprocessor, so that there are producers for both.
#include "kernels/device_scan/hopper_scan.cuh"
#include "kernels/device_scan/hopper_slices.cuh"
#include "kernels/tuning/device_tuning.h"

#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "for sm_90a alone"
#endif

namespace bsw
{
namespace
{

template <class SHAPE, key_kind KIND>
__global__ void __launch_bounds__(SHAPE::threads, SHAPE::blocks_together)
    scan_hopper(const __grid_constant__ hopper_arguments a)
{
    const hopper_shared shared = divide_shared<SHAPE>(a);
    const block_work work = work_of_block(a.scan, SHAPE::queries);
    if (threadIdx.x == 0) init_barriers(shared, a.num_stages, a.num_slots, SHAPE::consumers);
    __syncthreads();
    if (threadIdx.x / group_threads == SHAPE::consumers) {
        produce<SHAPE, KIND>(a, shared, work);
    } else {
        ring_place at = {0, 0};
        const batch_queries queries = {a.scan, a.scan.queries.num_queries};
        consume_tiles<SHAPE, KIND>(a, shared, queries, work, at);
    }
}

// ---- launch ----

struct hopper_kernel {
    hopper_block block;
    void (*kernels[3])(hopper_arguments); // by key_kind
};

template <class SHAPE> constexpr hopper_kernel make_kernel()
{
    return {make_hopper_block<SHAPE>(),
            {scan_hopper<SHAPE, key_kind::integer>, scan_hopper<SHAPE, key_kind::small_float>,
             scan_hopper<SHAPE, key_kind::any_float>}};
}

// The last is as wide as layouts may be. Under the emulator two are enough, for compiling takes
// long.
#if defined(__CUDACC__)
#define FOR_WIDTHS(KERNEL) KERNEL(2), KERNEL(3), KERNEL(4), KERNEL(6), KERNEL(8)
#else
#define FOR_WIDTHS(KERNEL) KERNEL(3), KERNEL(8)
#endif
#define FEW_QUERIES(WORDS)  make_kernel<hopper_shape<WORDS, 1, 1>>()
#define MANY_QUERIES(WORDS) make_kernel<hopper_shape<WORDS, 2, 2>>()
constexpr hopper_kernel few_kernels[] = {FOR_WIDTHS(FEW_QUERIES)};
constexpr hopper_kernel many_kernels[] = {FOR_WIDTHS(MANY_QUERIES)};
static_assert(most_dims == 8 * hopper_word_dims, "what the widest takes");

const hopper_kernel &choose_kernel(uint32_t padded_dims, bool has_few_queries)
{
    uint32_t i = 0;
    while (few_kernels[i].block.words * hopper_word_dims < padded_dims) i++;
    return (has_few_queries ? few_kernels : many_kernels)[i];
}

} // namespace
} // namespace bsw

extern "C" int bsw_device_has_hopper(const struct bsw_code_layout *layout)
{
    bsw::hopper_slice slices[bsw::most_slices];
    const bool fits =
        layout->padded_dims <= bsw::most_dims ||
        bsw::cut_slices(*layout, layout->padded_dims / bsw::hopper_word_dims, slices) > 0;
    return fits && bsw::is_hopper();
}

extern "C" int bsw_device_matrix_scan_hopper(const struct bsw_device_codes *codes,
                                             const struct bsw_device_part *part,
                                             const struct bsw_device_queries *queries,
                                             const struct bsw_device_lists *lists,
                                             bsw_stream stream)
{
    using namespace bsw;
    if (!is_valid_scan(*codes, *part, *queries, *lists) || !is_aligned(*codes) ||
        !bsw_device_has_hopper(&codes->layout))
        return cudaErrorInvalidValue;
    if (part->first == part->last || queries->num_queries == 0) return cudaSuccess;
    if (codes->layout.padded_dims > most_dims)
        return scan_slices(make_scan_arguments(*codes, *part, *queries, *lists), stream);
    const bsw_device_tuning &tuning = *bsw_device_tuning_current();
    const hopper_kernel &chosen =
        choose_kernel(codes->layout.padded_dims, queries->num_queries <= tuning.hopper_few_queries);
    hopper_arguments a = {make_scan_arguments(*codes, *part, *queries, *lists), 0, 0, 0,
                          bundle_words_of(codes->layout)};
    device_traits device;
    cudaError_t error = get_device_traits(&device);
    if (error) return error;
    const hopper_block &block = chosen.block;
    if (!choose_rings(block, static_cast<size_t>(device.most_shared_bytes), 0, a))
        return cudaErrorInvalidConfiguration;
    auto kernel = chosen.kernels[static_cast<int>(choose_keys(a.scan))];
    launch_shape shape = {dim3(), dim3(block.threads),
                          shared_bytes_of(block.words, block.consumers, block.queries, a), stream};
    error = plan_blocks(a.scan, {block.queries, tile_bundles, tuning.hopper}, kernel, shape);
    return error ? error : launch(shape, kernel, a);
}
