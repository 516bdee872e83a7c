// matrix_scan on Hopper (sm_90a): a warpgroup unpacks tiles of 128 documents to bytes in shared
// memory, others multiply them by queries, which they hold in registers, with wgmma.m64n128k32 s8
// by u8, and select on the accumulators. hopper_layout.cuh says where everything lies and why.
//
// Layouts of up to 256 padded dimensions, any segments and bits; others are the mma kernel's.
//
//   bundles --cp.async.bulk--> slots of a warp --unpack--> ring of tiles --wgmma--> sums --> lists
//
// The producers' side of it is in hopper_produce.cuh. The ring's stages have two mbarriers each:
// `full`, on which the producers' warps arrive when a tile and its bounds are written; `empty`, on
// which the consumers' warps arrive that have done with it. Tile t is in stage t mod num_stages;
// wait number t / num_stages of a stage waits for that phase of `full`, and for the one before of
// `empty` (none the first time). Products read shared memory through the async proxy: producers
// fence before they arrive, and consumers wait for their products before they arrive.
//
// Many queries: two consumers with 128 queries each. Few: one with 64, and two such blocks on a
// multiprocessor, so that there are producers for both.
//
// Of the eight sums that a thread has of a bundle and a query the least is compared with a bound
// that holds for all rows of the bundle (dot_bound.cuh); only where it is reached keys are
// compared, as in device_matrix_scan.cu. Sums are not indexed at run time: the rare way copies
// eight at a time to a place of the thread's own in shared memory. It calls no function, which
// would have ptxas wait after every wgmma.
#include "kernels/device_scan/device_tuning.h"
#include "kernels/device_scan/hopper_produce.cuh"

#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "for sm_90a alone"
#endif

namespace bsw
{
namespace
{

// The first query of the consumer's block of 64.
template <class SHAPE>
__device__ __forceinline__ uint32_t first_of_block(uint32_t first_query, uint32_t consumer,
                                                   uint32_t block)
{
    return first_query + (block * SHAPE::consumers + consumer) * hopper_queries;
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
            const uint32_t query = first_query + fragment_row(thread, r % 2);
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
__device__ __forceinline__ void
multiply_tile(uint32_t tile, const unsigned (&fragments)[SHAPE::words][4], int (&sums)[64])
{
    begin_products();
#pragma unroll
    for (uint32_t word = 0; word < SHAPE::words; word++)
        multiply_64x128(sums, fragments[word], tile_descriptor(tile, word), word > 0);
}

// The least of the thread's eight sums of a bundle and a query.
__device__ __forceinline__ int least_sum(const int (&sums)[64], uint32_t bundle, uint32_t half)
{
    const uint32_t n = bundle * 4;
    int least = min(sums[sum_register(n, half, 0)], sums[sum_register(n, half, 1)]);
#pragma unroll
    for (uint32_t i = 1; i < 4; i++)
        least = __vimin3_s32(least, sums[sum_register(n + i, half, 0)],
                             sums[sum_register(n + i, half, 1)]);
    return least;
}

// Which parts (bundle after bundle, two queries each) of the thread's sums may have one that
// passes, rows that do not exist or are masked included: a bit each.
template <key_kind KIND>
__device__ __forceinline__ uint32_t find_parts(const quick_query (&own)[2], const int (&sums)[64],
                                               const bundle_bound *bounds)
{
    uint32_t parts = 0;
#pragma unroll
    for (uint32_t bundle = 0; bundle < tile_bundles; bundle++) {
        bundle_bound bound = {};
        if (KIND != key_kind::integer) bound = load_after_wait(bounds + bundle);
#pragma unroll
        for (uint32_t half = 0; half < 2; half++) {
            const int least = least_sum(sums, bundle, half);
            if (may_pass<KIND>(own[half], least, bound)) parts |= 1u << (2 * bundle + half);
        }
    }
    return parts;
}

// Sum 2 * i + c of the place: of the part's eight-column group i, column c of the thread's two.
__device__ __forceinline__ void copy_part(const int (&sums)[64], uint32_t part, int *place)
{
#pragma unroll
    for (uint32_t p = 0; p < 2 * tile_bundles; p++) {
        if (p != part) continue;
#pragma unroll
        for (uint32_t i = 0; i < rare_sums; i++)
            place[i] = sums[sum_register(p / 2 * 4 + i / 2, p % 2, i % 2)];
    }
}

// Where in its bundle, or in its 32 columns of the tile, sum i of a part is.
__device__ __forceinline__ uint32_t row_of_sum(uint32_t i)
{
    return sum_column(threadIdx.x, i / 2, i % 2);
}

// A bundle of a tile, as the rare way sees it. first_row: of the bundle in the codes.
struct rare_bundle {
    uint32_t first_row, mask;
};

// The row's scale and bias.
template <key_kind KIND>
__device__ __forceinline__ float2 load_keys(const scan_arguments &a, uint32_t row)
{
    if (KIND == key_kind::integer) return {0, 0};
    return {half_to_float(__ldg(a.codes.scales + row)), __ldg(a.codes.biases + row)};
}

template <key_kind KIND>
__device__ __forceinline__ uint32_t find_hits(const scan_arguments &a, const thread_query &query,
                                              const rare_bundle &of, const int *place)
{
    uint32_t hits = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < rare_sums; i++) {
        if (!(of.mask >> row_of_sum(i) & 1)) continue;
        const float2 keys = load_keys<KIND>(a, of.first_row + row_of_sum(i));
        if (reaches<KIND>(query, place[i], keys.x, keys.y)) hits |= 1u << i;
    }
    return hits;
}

// Hits of the four lanes that share the query to its list, one atomicAdd.
template <key_kind KIND>
__device__ __forceinline__ void append_hits(const scan_arguments &a, const thread_query &own,
                                            uint32_t query, const rare_bundle &of, const int *place,
                                            uint32_t hits)
{
    uint32_t at = take_places(a.lists, query, static_cast<uint32_t>(__popc(hits)));
#pragma unroll 1
    for (; hits != 0; hits &= hits - 1, at++) {
        const uint32_t i = static_cast<uint32_t>(__ffs(static_cast<int>(hits)) - 1);
        const uint32_t row = of.first_row + row_of_sum(i);
        const float2 keys = load_keys<KIND>(a, row);
        const uint32_t score =
            score_of<KIND>(own.constant - 2 * place[i], own.scale, keys.x, keys.y);
        put_item(a.lists, query, at, pack_candidate(score, a.codes.first_row + row));
    }
}

// first_query: of the thread's row 0; parts: the same for the warp.
template <key_kind KIND>
__device__ __forceinline__ void append_tile(const scan_arguments &a, const block_work &work,
                                            uint32_t first_query, uint32_t tile,
                                            const int (&sums)[64], int *place, uint32_t parts)
{
#pragma unroll 1
    for (; parts != 0; parts &= parts - 1) {
        const uint32_t part = static_cast<uint32_t>(__ffs(static_cast<int>(parts)) - 1);
        const uint32_t i = work.begin + part / 2 * work.num_tiles + tile;
        if (i >= work.end) return; // nor are there any later ones
        const uint32_t bundle = bundle_of(a, i);
        const rare_bundle of = {bundle * warp_rows, __ldg(a.codes.masks + bundle)};
        copy_part(sums, part, place);
        const thread_query query = load_query<KIND>(a, first_query + 8 * (part % 2));
        const uint32_t hits = find_hits<KIND>(a, query, of, place);
        if (__any_sync(all_lanes, hits != 0))
            append_hits<KIND>(a, query, first_query + 8 * (part % 2), of, place, hits);
    }
}

// A tile and a consumer's block of 64 queries.
template <class SHAPE, key_kind KIND>
__device__ __forceinline__ void
scan_block(const hopper_arguments &a, const hopper_shared &shared, const block_work &work,
           const unsigned (&fragments)[SHAPE::words][4], const quick_query (&own)[2],
           uint32_t first_query, uint32_t tile, uint32_t stage)
{
    int sums[64];
    multiply_tile<SHAPE>(shared_address(shared.tiles + stage * SHAPE::tile_bytes), fragments, sums);
    finish_products(sums);
    const uint32_t found = find_parts<KIND>(own, sums, shared.bounds + stage * tile_bundles);
    const uint32_t parts = __reduce_or_sync(all_lanes, found);
    if (parts == 0) return;
    append_tile<KIND>(a.scan, work, first_query, tile, sums, shared.rare + threadIdx.x * rare_sums,
                      parts);
}

template <class SHAPE, key_kind KIND>
__device__ __forceinline__ void consume(const hopper_arguments &a, const hopper_shared &shared,
                                        const block_work &work)
{
    const uint32_t consumer = threadIdx.x / group_threads;
    const uint32_t row = fragment_row(threadIdx.x % group_threads, 0);
    unsigned fragments[SHAPE::blocks][SHAPE::words][4];
    quick_query own[SHAPE::blocks][2];
#pragma unroll
    for (int b = 0; b < SHAPE::blocks; b++) {
        const uint32_t query = first_of_block<SHAPE>(work.first_query, consumer, b);
        load_fragments<SHAPE>(a.scan, query, fragments[b]);
        own[b][0] = load_quick<KIND>(a.scan, query + row);
        own[b][1] = load_quick<KIND>(a.scan, query + row + 8);
    }
    ring_place at = {0, 0};
    for (uint32_t tile = 0; tile < work.num_tiles; tile++, advance(at, a.num_stages)) {
        barrier_wait(full_barrier(shared, at.index), at.parity);
#pragma unroll
        for (int b = 0; b < SHAPE::blocks; b++) {
            const uint32_t query = first_of_block<SHAPE>(work.first_query, consumer, b);
            if (query < a.scan.queries.num_queries) // the same for the whole warpgroup
                scan_block<SHAPE, KIND>(a, shared, work, fragments[b], own[b], query + row, tile,
                                        at.index);
        }
        __syncwarp(); // all lanes have read the bounds
        barrier_arrive(empty_barrier(shared, at.index), threadIdx.x % 32 == 0);
    }
}

template <class SHAPE> __device__ __forceinline__ block_work work_of_block(const scan_arguments &a)
{
    const uint32_t begin = blockIdx.x / a.num_groups * a.chunk;
    const uint32_t end = a.num_bundles - begin < a.chunk ? a.num_bundles : begin + a.chunk;
    return {blockIdx.x % a.num_groups * SHAPE::queries, begin, end,
            (end - begin + tile_bundles - 1) / tile_bundles};
}

// By one thread.
template <class SHAPE>
__device__ __forceinline__ void init_barriers(const hopper_arguments &a,
                                              const hopper_shared &shared)
{
    for (uint32_t i = 0; i < a.num_stages; i++) {
        barrier_init(full_barrier(shared, i), tile_bundles);
        barrier_init(empty_barrier(shared, i), SHAPE::consumer_threads / 32);
    }
    for (uint32_t i = 0; i < tile_bundles * a.num_slots; i++)
        barrier_init(shared.slot_barriers + i * 8, 1);
    fence_for_async_accesses(); // copies arrive on them
}

template <class SHAPE, key_kind KIND>
__global__ void __launch_bounds__(SHAPE::threads, SHAPE::blocks_together)
    scan_hopper(const __grid_constant__ hopper_arguments a)
{
    const hopper_shared shared = divide_shared<SHAPE>(a);
    const block_work work = work_of_block<SHAPE>(a.scan);
    if (threadIdx.x == 0) init_barriers<SHAPE>(a, shared);
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
        if (shared_bytes_of(kernel.words, kernel.consumers, a) <= most_bytes) return true;
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

// Whether pieces of all arrays start where bulk copies may.
bool is_aligned(const bsw_device_codes &codes)
{
    uintptr_t all =
        reinterpret_cast<uintptr_t>(codes.scales) | reinterpret_cast<uintptr_t>(codes.biases);
    for (uint32_t s = 0; s < codes.layout.num_segments; s++)
        all |= reinterpret_cast<uintptr_t>(codes.planes[s]);
    return all % 16 == 0;
}

bool is_hopper()
{
    device_traits device;
    return !get_device_traits(&device) && device.major == 9 && device.minor == 0;
}

} // namespace
} // namespace bsw

extern "C" int bsw_device_has_hopper(const struct bsw_code_layout *layout)
{
    return layout->padded_dims <= bsw::most_dims && bsw::is_hopper();
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
                          shared_bytes_of(chosen.words, chosen.consumers, a), stream};
    error = plan_blocks(a.scan, {chosen.queries, tile_bundles, tuning.hopper}, kernel, shape);
    return error ? error : launch(shape, kernel, a);
}
