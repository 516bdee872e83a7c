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
// The producers' side of it is in hopper_produce.cuh. The ring's stages have two mbarriers each:
// `full`, on which the producers' warps arrive when a tile and its terms are written; `empty`, on
// which the consumers' warps arrive that have done with it. Tile t is in stage t mod num_stages;
// wait number t / num_stages of a stage waits for that phase of `full`, and for the one before of
// `empty` (none the first time). Products read shared memory through the async proxy: producers
// fence before they arrive, and consumers wait for their products before they arrive.
//
// Float keys of dots below 2^21 are compared by the products themselves, as in
// device_matrix_scan.cu: 16 mma of terms (key_terms.cuh) begin a warp's 16 x 128 sums, whose
// registers are those of mma. Other float keys, and integers, have a bound.
//
// Many queries: two consumers with 128 queries each. Few: one with 64, and two such blocks on a
// multiprocessor, so that there are producers for both.
#include "kernels/device_scan/device_tuning.h"
#include "kernels/device_scan/hopper_produce.cuh"
#include "kernels/device_scan/hopper_select.cuh"
#include "kernels/device_scan/hopper_slices.cuh"

#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "for sm_90a alone"
#endif

namespace bsw
{
namespace
{

// Queries of a block of 64 fill the rows g of all warps before the rows g + 8: up to 32 leave the
// second half of every thread's sums alone.
constexpr uint32_t half_queries = hopper_queries / 2;

__device__ __forceinline__ uint32_t query_of_row(uint32_t thread, uint32_t half)
{
    return thread / 32 * 8 + thread % 32 / 4 + half_queries * half;
}

// The thread's part of A: 0 for dimensions and queries that do not exist.
template <class SHAPE>
__device__ __forceinline__ void load_fragments(const scan_arguments &a, uint32_t first_query,
                                               unsigned (&fragments)[SHAPE::words][4])
{
    const uint32_t thread = threadIdx.x % group_threads, dims = a.codes.layout.padded_dims;
#pragma unroll
    for (uint32_t word = 0; word < SHAPE::words; word++) {
#pragma unroll
        for (uint32_t r = 0; r < 4; r++) {
            const uint32_t query = first_query + query_of_row(thread, r % 2);
            unsigned value = 0;
            if (query < a.queries.num_queries && word * hopper_word_dims < dims)
                value = __ldg(reinterpret_cast<const unsigned *>(
                    a.queries.components + static_cast<size_t>(query) * dims +
                    word * hopper_word_dims + fragment_k(thread, r)));
            fragments[word][r] = static_cast<unsigned>(opaque(static_cast<int>(value)));
        }
    }
}

template <class SHAPE>
__device__ __forceinline__ void multiply_tile(uint32_t tile,
                                              const unsigned (&fragments)[SHAPE::words][4],
                                              bool adds, int (&sums)[64])
{
    begin_products();
#pragma unroll
    for (uint32_t word = 0; word < SHAPE::words; word++)
        multiply_64x128(sums, fragments[word], tile_descriptor(tile, word), adds || word > 0);
}

// A tile and a consumer's block of 64 queries.
template <class SHAPE, key_kind KIND>
__device__ __forceinline__ void
scan_block(const hopper_arguments &a, const hopper_shared &shared, const block_work &work,
           const unsigned (&fragments)[SHAPE::words][4], const quick_query (&own)[2],
           const begun_with &with, uint32_t first_query, uint32_t tile, uint32_t stage,
           bool has_second)
{
    constexpr bool has_terms = KIND == key_kind::small_float;
    constexpr bool may_skip = SHAPE::consumers == 1 && SHAPE::words < 8; // else registers spill
    int sums[64];
    if (has_terms) begin_tile(with, sums);
    multiply_tile<SHAPE>(shared_address(shared.tiles + stage * SHAPE::tile_bytes), fragments,
                         has_terms, sums);
    finish_products(sums);
    const uint32_t parts =
        has_terms ? find_below(sums, !may_skip || has_second)
                  : find_parts<KIND, may_skip>(own, sums, shared.bounds + stage * tile_bundles,
                                               has_second);
    if (parts != 0)
        append_tile<KIND, half_queries>(a.scan, work, first_query, tile, sums,
                                        place_of_thread(shared, SHAPE::consumer_threads), parts,
                                        with);
}

template <class SHAPE, key_kind KIND>
__device__ __forceinline__ void consume(const hopper_arguments &a, const hopper_shared &shared,
                                        const block_work &work)
{
    constexpr bool has_terms = KIND == key_kind::small_float;
    const uint32_t consumer = threadIdx.x / group_threads;
    const uint32_t row = query_of_row(threadIdx.x % group_threads, 0);
    unsigned fragments[SHAPE::blocks][SHAPE::words][4];
    quick_query own[SHAPE::blocks][2] = {};
#pragma unroll
    for (int b = 0; b < SHAPE::blocks; b++) {
        const uint32_t query = first_of_block<SHAPE>(work.first_query, consumer, b);
        load_fragments<SHAPE>(a.scan, query, fragments[b]);
        if (has_terms) continue;
        own[b][0] = load_quick<KIND>(a.scan, query + row);
        own[b][1] = load_quick<KIND>(a.scan, query + row + half_queries);
    }
    if (has_terms && threadIdx.x % 32 == 0) shared.started[threadIdx.x / 32] = {-1, -1};
    __syncwarp();
    ring_place at = {0, 0};
    const uint32_t num_queries = a.scan.queries.num_queries;
    for (uint32_t tile = 0; tile < work.num_tiles; tile++, advance(at, a.num_stages)) {
        barrier_wait(full_barrier(shared, at.index), at.parity);
        if (has_terms)
            update_starts<SHAPE, half_queries>(
                a.scan, shared, shared.caps + at.index * tile_bundles,
                shared.started + threadIdx.x / 32, work.first_query, row);
#pragma unroll
        for (int b = 0; b < SHAPE::blocks; b++) {
            const uint32_t query = first_of_block<SHAPE>(work.first_query, consumer, b);
            begun_with with = {};
            if (has_terms) with = begun_with_of<SHAPE>(shared, at.index, b);
            if (query < num_queries) // the same for the whole warpgroup
                scan_block<SHAPE, KIND>(a, shared, work, fragments[b], own[b], with, query + row,
                                        tile, at.index, query + half_queries < num_queries);
        }
        __syncwarp(); // all lanes have read bounds or terms
        barrier_arrive(empty_barrier(shared, at.index), threadIdx.x % 32 == 0);
    }
}

template <class SHAPE, key_kind KIND>
__global__ void __launch_bounds__(SHAPE::threads, SHAPE::blocks_together)
    scan_hopper(const __grid_constant__ hopper_arguments a)
{
    const hopper_shared shared = divide_shared<SHAPE>(a);
    const block_work work = work_of_block(a.scan, SHAPE::queries);
    if (threadIdx.x == 0) init_barriers(shared, a.num_stages, a.num_slots, SHAPE::consumers);
    __syncthreads();
    if (threadIdx.x / group_threads == SHAPE::consumers)
        produce<SHAPE, KIND>(a, shared, work);
    else
        consume<SHAPE, KIND>(a, shared, work);
}

// ---- launch ----

struct hopper_kernel {
    uint32_t words, queries, consumers, threads, blocks_together;
    void (*kernels[3])(hopper_arguments); // by key_kind
};

template <class SHAPE> constexpr hopper_kernel make_kernel()
{
    return {SHAPE::words,
            SHAPE::queries,
            SHAPE::consumers,
            SHAPE::threads,
            SHAPE::blocks_together,
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
    while (few_kernels[i].words * hopper_word_dims < padded_dims) i++;
    return (has_few_queries ? few_kernels : many_kernels)[i];
}

uint32_t bundle_words_of(const bsw_code_layout &layout)
{
    size_t words = key_words;
    for (uint32_t s = 0; s < layout.num_segments; s++)
        words += bsw_segment_bundle_words(&layout.segments[s]);
    return static_cast<uint32_t>(words);
}

// As much as fits, of what is far ahead first; false if not even the least does.
bool fit_rings(const hopper_kernel &kernel, size_t most_bytes, hopper_arguments &a)
{
    static const uint32_t rings[][3] = {{4, 4, 4}, {4, 2, 4}, {3, 2, 4}, {4, 3, 2}, {3, 2, 2},
                                        {4, 2, 1}, {3, 2, 1}, {2, 2, 1}}; // stages, slots, bundles
    for (const uint32_t(&ring)[3] : rings) {
        a.num_stages = ring[0];
        a.num_slots = ring[1];
        a.slot_bundles = ring[2];
        if (shared_bytes_of(kernel.words, kernel.consumers, kernel.queries, a) <= most_bytes)
            return true;
    }
    return false;
}

// What a block has where as many are together on a multiprocessor, or else what it has alone.
// block_bytes: most of a block, less than what a multiprocessor has for it and the system.
bool choose_rings(const hopper_kernel &kernel, size_t block_bytes, hopper_arguments &a)
{
    const size_t of_system = 1024; // of every block
    return fit_rings(kernel, (block_bytes + of_system) / kernel.blocks_together - of_system, a) ||
           fit_rings(kernel, block_bytes, a);
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
    if (!choose_rings(chosen, static_cast<size_t>(device.most_shared_bytes), a))
        return cudaErrorInvalidConfiguration;
    auto kernel = chosen.kernels[static_cast<int>(choose_keys(a.scan))];
    launch_shape shape = {dim3(), dim3(chosen.threads),
                          shared_bytes_of(chosen.words, chosen.consumers, chosen.queries, a),
                          stream};
    error = plan_blocks(a.scan, {chosen.queries, tile_bundles, tuning.hopper}, kernel, shape);
    return error ? error : launch(shape, kernel, a);
}
