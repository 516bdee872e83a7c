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
// Shapes, C x Q: so many consumers with so many queries each. 1 x 64: two such blocks on a
// multiprocessor, so that there are producers for both. What binds the others is the latency of a
// consumer's chain of waiting, terms, products and looking: three or four of them hide more of it
// than two, 3 x 128 the most and with the least unpacking a query. Kernels alone on an H200, 10^9
// rows of 96 x 3 bits, of 1,469 Top/s of cuBLAS: 2 x 128 796, 4 x 64 869, 3 x 128 976.
#include <iterator>

#include "kernels/device_scan/hopper_scan.cuh"

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
        if constexpr (SHAPE::moves_registers) give_registers<SHAPE::of_producers>();
        produce<SHAPE, KIND>(a, shared, work);
    } else {
        if constexpr (SHAPE::moves_registers) take_registers<SHAPE::of_consumers>();
        ring_place at = {0, 0};
        const batch_queries queries = {a.scan, a.scan.queries.num_queries};
        const batch_slots slots = {a.scan.codes.first_row};
        begin_queue(shared);
        consume_tiles<SHAPE, KIND>(a, shared, queries, slots, work, at);
        end_queue(shared, finish_of<KIND>(a.scan, slots));
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

// Widths of a shape, in words. 1 x 64 and 2 x 128 have the widest that layouts may be; of four
// consumers three words are the most that leaves registers, of three consumers four. Under the
// emulator few are compiled, which takes long.
#define WIDTH(WORDS, BLOCKS, CONSUMERS) make_kernel<hopper_shape<WORDS, BLOCKS, CONSUMERS>>()
#if defined(__CUDACC__)
#define ALL_WIDTHS(B, C) \
    WIDTH(2, B, C), WIDTH(3, B, C), WIDTH(4, B, C), WIDTH(6, B, C), WIDTH(8, B, C)
constexpr hopper_kernel of_3x128[] = {WIDTH(3, 2, 3), WIDTH(4, 2, 3)};
#else
#define ALL_WIDTHS(B, C) WIDTH(3, B, C), WIDTH(8, B, C)
constexpr hopper_kernel of_3x128[] = {WIDTH(3, 2, 3)};
#endif
constexpr hopper_kernel of_1x64[] = {ALL_WIDTHS(1, 1)}, of_2x128[] = {ALL_WIDTHS(2, 2)},
                        of_4x64[] = {WIDTH(3, 1, 4)};
static_assert(most_dims == 8 * hopper_word_dims, "what the widest takes");

// The narrowest that takes so many dimensions; NULL: none does, or 2 x 128 has a narrower one.
template <size_t N> const hopper_kernel *find(const hopper_kernel (&kernels)[N], uint32_t dims)
{
    const hopper_kernel *most = of_2x128, *own = kernels;
    while (most < std::end(of_2x128) && most->block.words * hopper_word_dims < dims) most++;
    while (own < std::end(kernels) && own->block.words * hopper_word_dims < dims) own++;
    if (own == std::end(kernels) || own->block.words > most->block.words) return nullptr;
    return own;
}

cudaError_t launch_by(const hopper_kernel &chosen, const scan_arguments &scan, cudaStream_t stream)
{
    if (!is_aligned(scan.codes)) return cudaErrorInvalidValue;
    hopper_arguments a = {scan, 0, 0, 0, bundle_words_of(scan.codes.layout)};
    device_traits device;
    cudaError_t error = get_device_traits(&device);
    if (error) return error;
    const hopper_block &block = chosen.block;
    if (!choose_rings(block, static_cast<size_t>(device.most_shared_bytes), 0, a))
        return cudaErrorInvalidConfiguration;
    auto kernel = chosen.kernels[static_cast<int>(choose_keys(a.scan))];
    launch_shape shape = {dim3(), dim3(block.threads),
                          shared_bytes_of(block.words, block.consumers, block.queries, a), stream};
    error = plan_blocks(a.scan, {block.queries, tile_bundles, bsw_device_tuning_current()->hopper},
                        kernel, shape);
    return error ? error : launch(shape, kernel, a);
}

} // namespace

#define DEFINE_SHAPE(shape)                                                         \
    bool hopper_##shape##_fits(const bsw_code_layout &layout, uint32_t, uint32_t)   \
    {                                                                               \
        return find(of_##shape, layout.padded_dims) != nullptr;                     \
    }                                                                               \
    cudaError_t scan_hopper_##shape(scan_arguments a, cudaStream_t stream)          \
    {                                                                               \
        return launch_by(*find(of_##shape, a.codes.layout.padded_dims), a, stream); \
    }
DEFINE_SHAPE(1x64)
DEFINE_SHAPE(2x128)
DEFINE_SHAPE(4x64)
DEFINE_SHAPE(3x128)

} // namespace bsw
