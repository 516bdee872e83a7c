// matrix_scan on Hopper (sm_90a): a warpgroup unpacks tiles of 128 documents to bytes in shared
// memory, two others multiply them by queries, which they hold in registers, with wgmma.m64n128k32
// s8 by u8, and select on the accumulators. hopper_layout.cuh says where everything lies and why.
//
// Layouts of up to 256 padded dimensions, any segments and bits; others are the mma kernel's.
//
//   bundles --cp.async--> slots of a warp --unpack--> ring of tiles --wgmma--> sums --> lists
//
// Slots belong to one warp of the producers, a bundle of each tile its own, so waiting for copies
// and a __syncwarp order them. The ring's stages have two mbarriers each: `full`, on which all
// producers arrive when a tile, its scales and biases are written; `empty`, on which the consumers
// arrive that have done with it. Tile t is in stage t mod num_stages; wait number t / num_stages of
// a stage waits for that phase of `full`, and for the one before of `empty` (none the first time).
// Products read shared memory through the async proxy: producers fence before they arrive, and
// consumers wait for their products before they arrive.
//
// Consumers have either the same documents (every tile, 64 or 128 queries each), or where there are
// few queries the same queries (every other tile, the same 64).
//
// Of the eight sums that a thread has of a bundle and a query the least is compared with a bound
// that holds for all rows of the bundle (dot_bound.cuh); only where it is reached keys are
// compared, as in device_matrix_scan.cu. Sums are not indexed at run time: the rare way copies
// eight at a time to a place of the thread's own in shared memory. It calls no function, which
// would have ptxas wait after every wgmma.
#include "kernels/device_scan/device_tuning.h"
#include "kernels/device_scan/hopper_shared.cuh"
#include "kernels/device_scan/hopper_unpack.cuh"

#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "for sm_90a alone"
#endif

namespace bsw
{
namespace
{

// ---- producers ----

// The bundle's planes, segment after segment, then its scales and biases, on their way to the slot.
template <key_kind KIND>
__device__ __forceinline__ void fetch_bundle(const bsw_device_codes &codes, uint32_t bundle,
                                             uint32_t lane, uint32_t *slot)
{
    for (uint32_t s = 0; s < codes.layout.num_segments; s++) {
        const uint32_t words =
            codes.layout.segments[s].bits * codes.layout.segments[s].words * warp_rows;
        const uint32_t *from = codes.planes[s] + static_cast<size_t>(bundle) * words;
        for (uint32_t i = lane * 4; i < words; i += 32 * 4) cp_async_16(slot + i, from + i);
        slot += words;
    }
    if (KIND == key_kind::integer) return;
    const size_t row = static_cast<size_t>(bundle) * warp_rows;
    if (lane < warp_rows / 2) cp_async_4(slot + lane, codes.scales + row + lane * 2);
    cp_async_4(slot + warp_rows / 2 + lane, codes.biases + row + lane);
}

// keys: the slot's scales and biases.
__device__ __forceinline__ void store_keys(const uint32_t *keys, const hopper_shared &shared,
                                           uint32_t stage)
{
    const uint32_t lane = threadIdx.x % 32, row = threadIdx.x % group_threads;
    const uint32_t pair = keys[lane / 2];
    const float scale = half_to_float(static_cast<uint16_t>(lane % 2 ? pair >> 16 : pair));
    const float bias = __uint_as_float(keys[warp_rows / 2 + lane]);
    shared.scales[stage * hopper_rows + row] = scale;
    shared.biases[stage * hopper_rows + row] = bias;
    const bundle_bound bound = make_bundle_bound(scale, bias);
    if (lane == 0) shared.bounds[stage * tile_bundles + row / warp_rows] = bound;
}

// The warp's bundle of a tile. Where there is none, nobody writes: what is left there from earlier
// tiles is multiplied too, and the consumers mask its rows.
template <class SHAPE, key_kind KIND>
__device__ __forceinline__ void make_tile(const hopper_arguments &a, const hopper_shared &shared,
                                          const uint32_t *slot, uint32_t stage)
{
    const uint32_t lane = threadIdx.x % 32, row = threadIdx.x % group_threads;
    unpack_bundle(a.scan.codes.layout, slot, lane, row, shared.tiles + stage * SHAPE::tile_bytes);
    if (KIND != key_kind::integer) store_keys(slot + a.slot_words - slot_keys, shared, stage);
}

__device__ __forceinline__ void wait_for_slot(uint32_t num_slots)
{
    if (num_slots == 8)
        cp_async_wait<7>();
    else
        cp_async_wait<3>();
}

// Bundles [begin, end) of the part. A slot is filled num_slots - 1 tiles before it is read; every
// tile is a group of copies, also where there is nothing to copy.
template <class SHAPE, key_kind KIND>
__device__ __forceinline__ void produce(const hopper_arguments &a, const hopper_shared &shared,
                                        uint32_t begin, uint32_t end)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x % group_threads / 32;
    uint32_t *slots = shared.slots + warp * a.num_slots * a.slot_words;
    uint32_t ahead = begin + warp, slot_ahead = 0, slot = 0;
    auto fetch_next = [&] {
        if (ahead < end)
            fetch_bundle<KIND>(a.scan.codes, bundle_of(a.scan, ahead), lane,
                               slots + slot_ahead * a.slot_words);
        cp_async_commit();
        ahead += tile_bundles;
        if (++slot_ahead == a.num_slots) slot_ahead = 0;
    };
    for (uint32_t i = 0; i + 1 < a.num_slots; i++) fetch_next();
    ring_place at = {0, 0};
    for (uint32_t bundle = begin; bundle < end; bundle += tile_bundles) {
        __syncwarp(); // all lanes have read the slot that is filled now
        fetch_next();
        wait_for_slot(a.num_slots);
        __syncwarp(); // and what they have copied is there for all
        barrier_wait(shared.empty_barrier + at.stage * 8, at.parity ^ 1);
        if (bundle + warp < end)
            make_tile<SHAPE, KIND>(a, shared, slots + slot * a.slot_words, at.stage);
        fence_for_wgmma_reads();
        barrier_arrive(shared.full_barrier + at.stage * 8);
        advance(at, 1, a.num_stages);
        if (++slot == a.num_slots) slot = 0;
    }
}

// ---- consumers ----

// The first query of the consumer's block of 64.
template <class SHAPE>
__device__ __forceinline__ uint32_t first_of_block(uint32_t first_query, uint32_t consumer,
                                                   uint32_t block)
{
    return first_query +
           (SHAPE::is_split ? block : block * num_consumers + consumer) * hopper_queries;
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

// A bundle of a tile, as the rare way sees it. bundle: of the part; keys: of its first row.
struct rare_bundle {
    uint32_t bundle, mask;
    const float *scales, *biases;
};

template <key_kind KIND>
__device__ __forceinline__ float2 scale_and_bias(const rare_bundle &of, uint32_t row)
{
    if (KIND == key_kind::integer) return {0, 0};
    const float2 scale = load_after_wait(reinterpret_cast<const float2 *>(of.scales + row / 2 * 2));
    const float2 bias = load_after_wait(reinterpret_cast<const float2 *>(of.biases + row / 2 * 2));
    return {row % 2 ? scale.y : scale.x, row % 2 ? bias.y : bias.x};
}

template <key_kind KIND>
__device__ __forceinline__ uint32_t find_hits(const thread_query &query, const rare_bundle &of,
                                              const int *place)
{
    uint32_t hits = 0;
#pragma unroll 1
    for (uint32_t i = 0; i < rare_sums; i++) {
        const float2 keys = scale_and_bias<KIND>(of, row_of_sum(i));
        if ((of.mask >> row_of_sum(i) & 1) && reaches<KIND>(query, place[i], keys.x, keys.y))
            hits |= 1u << i;
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
    const uint32_t first_row = a.codes.first_row + bundle_of(a, of.bundle) * warp_rows;
#pragma unroll 1
    for (; hits != 0; hits &= hits - 1, at++) {
        const uint32_t i = static_cast<uint32_t>(__ffs(static_cast<int>(hits)) - 1);
        const float2 keys = scale_and_bias<KIND>(of, row_of_sum(i));
        const uint32_t score =
            score_of<KIND>(own.constant - 2 * place[i], own.scale, keys.x, keys.y);
        put_item(a.lists, query, at, pack_candidate(score, first_row + row_of_sum(i)));
    }
}

// first_query: of the thread's row 0; first_bundle: of the tile; parts: the same for the warp.
template <key_kind KIND>
__device__ __forceinline__ void append_tile(const scan_arguments &a, uint32_t first_query,
                                            const int (&sums)[64], uint32_t first_bundle,
                                            uint32_t end, const float *scales, const float *biases,
                                            int *place, uint32_t parts)
{
#pragma unroll 1
    for (; parts != 0; parts &= parts - 1) {
        const uint32_t part = static_cast<uint32_t>(__ffs(static_cast<int>(parts)) - 1);
        const uint32_t bundle = first_bundle + part / 2;
        rare_bundle of = {bundle, 0, scales + part / 2 * warp_rows, biases + part / 2 * warp_rows};
        if (bundle < end) of.mask = __ldg(a.codes.masks + bundle_of(a, bundle));
        copy_part(sums, part, place);
        const thread_query query = load_query<KIND>(a, first_query + 8 * (part % 2));
        const uint32_t hits = find_hits<KIND>(query, of, place);
        if (__any_sync(all_lanes, hits != 0))
            append_hits<KIND>(a, query, first_query + 8 * (part % 2), of, place, hits);
    }
}

// A tile and a consumer's block of 64 queries.
template <class SHAPE, key_kind KIND>
__device__ __forceinline__ void scan_block(const hopper_arguments &a, const hopper_shared &shared,
                                           const unsigned (&fragments)[SHAPE::words][4],
                                           const quick_query (&own)[2], uint32_t first_query,
                                           uint32_t first_bundle, uint32_t end, uint32_t stage)
{
    int sums[64];
    multiply_tile<SHAPE>(shared_address(shared.tiles + stage * SHAPE::tile_bytes), fragments, sums);
    finish_products(sums);
    const float *scales = shared.scales + stage * hopper_rows;
    const float *biases = shared.biases + stage * hopper_rows;
    const uint32_t found = find_parts<KIND>(own, sums, shared.bounds + stage * tile_bundles);
    const uint32_t parts = __reduce_or_sync(all_lanes, found);
    if (parts == 0) return;
    append_tile<KIND>(a.scan, first_query, sums, first_bundle, end, scales, biases,
                      shared.rare + threadIdx.x * rare_sums, parts);
}

template <class SHAPE, key_kind KIND>
__device__ __forceinline__ void consume(const hopper_arguments &a, const hopper_shared &shared,
                                        uint32_t first_query, uint32_t begin, uint32_t end)
{
    const uint32_t consumer = threadIdx.x / group_threads;
    const uint32_t row = fragment_row(threadIdx.x % group_threads, 0);
    unsigned fragments[SHAPE::blocks][SHAPE::words][4];
    quick_query own[SHAPE::blocks][2];
#pragma unroll
    for (int b = 0; b < SHAPE::blocks; b++) {
        const uint32_t query = first_of_block<SHAPE>(first_query, consumer, b);
        load_fragments<SHAPE>(a.scan, query, fragments[b]);
        own[b][0] = load_quick<KIND>(a.scan, query + row);
        own[b][1] = load_quick<KIND>(a.scan, query + row + 8);
    }
    const uint32_t first_tile = SHAPE::is_split ? consumer : 0;
    ring_place at = {first_tile, 0};
    for (uint32_t bundle = begin + first_tile * tile_bundles; bundle < end;
         bundle += SHAPE::step * tile_bundles) {
        barrier_wait(shared.full_barrier + at.stage * 8, at.parity);
#pragma unroll
        for (int b = 0; b < SHAPE::blocks; b++) {
            const uint32_t query = first_of_block<SHAPE>(first_query, consumer, b);
            if (query < a.scan.queries.num_queries) // the same for the whole warpgroup
                scan_block<SHAPE, KIND>(a, shared, fragments[b], own[b], query + row, bundle, end,
                                        at.stage);
        }
        barrier_arrive(shared.empty_barrier + at.stage * 8);
        advance(at, SHAPE::step, a.num_stages);
    }
}

template <class SHAPE, key_kind KIND>
__global__ void __launch_bounds__(block_threads, 1)
    scan_hopper(const __grid_constant__ hopper_arguments a)
{
    const hopper_shared shared = divide_shared<SHAPE>(a);
    if (threadIdx.x == 0) {
        for (uint32_t i = 0; i < a.num_stages; i++) {
            barrier_init(shared.full_barrier + i * 8, group_threads);
            barrier_init(shared.empty_barrier + i * 8, SHAPE::empty_arrivals);
        }
    }
    __syncthreads();
    const uint32_t first_query = blockIdx.x % a.scan.num_groups * SHAPE::queries;
    const uint32_t begin = blockIdx.x / a.scan.num_groups * a.scan.chunk;
    const uint32_t end =
        a.scan.num_bundles - begin < a.scan.chunk ? a.scan.num_bundles : begin + a.scan.chunk;
    if (threadIdx.x / group_threads == num_consumers)
        produce<SHAPE, KIND>(a, shared, begin, end);
    else
        consume<SHAPE, KIND>(a, shared, first_query, begin, end);
}

// ---- launch ----

struct hopper_kernel {
    uint32_t words, queries;
    void (*kernels[3])(hopper_arguments); // by key_kind
};

template <class SHAPE> constexpr hopper_kernel make_kernel()
{
    return {SHAPE::words,
            SHAPE::queries,
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
#define FEW_QUERIES(WORDS)  make_kernel<hopper_shape<WORDS, 1, true>>()
#define MANY_QUERIES(WORDS) make_kernel<hopper_shape<WORDS, 2, false>>()
constexpr hopper_kernel few_kernels[] = {FOR_WIDTHS(FEW_QUERIES)};
constexpr hopper_kernel many_kernels[] = {FOR_WIDTHS(MANY_QUERIES)};
static_assert(most_dims == 8 * hopper_word_dims, "what the widest takes");

const hopper_kernel &choose_kernel(uint32_t padded_dims, bool has_few_queries)
{
    uint32_t i = 0;
    while (few_kernels[i].words * hopper_word_dims < padded_dims) i++;
    return (has_few_queries ? few_kernels : many_kernels)[i];
}

uint32_t slot_words_of(const bsw_code_layout &layout)
{
    size_t words = slot_keys;
    for (uint32_t s = 0; s < layout.num_segments; s++)
        words += bsw_segment_bundle_words(&layout.segments[s]);
    return static_cast<uint32_t>(words);
}

// As many stages and slots as fit; false if not even the least do.
bool choose_rings(uint32_t words, size_t most_bytes, hopper_arguments &a)
{
    static const uint32_t rings[][2] = {{4, 8}, {4, 4}, {3, 4}, {2, 4}}; // stages, slots
    for (const uint32_t(&ring)[2] : rings) {
        a.num_stages = ring[0];
        a.num_slots = ring[1];
        if (shared_bytes_of(words, a) <= most_bytes) return true;
    }
    return false;
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
    if (!is_valid_scan(*codes, *part, *queries, *lists) || !bsw_device_has_hopper(&codes->layout))
        return cudaErrorInvalidValue;
    if (part->first == part->last || queries->num_queries == 0) return cudaSuccess;
    const bsw_device_tuning &tuning = *bsw_device_tuning_current();
    const hopper_kernel &chosen =
        choose_kernel(codes->layout.padded_dims, queries->num_queries <= tuning.hopper_few_queries);
    hopper_arguments a = {make_scan_arguments(*codes, *part, *queries, *lists), 0, 0,
                          slot_words_of(codes->layout)};
    device_traits device;
    cudaError_t error = get_device_traits(&device);
    if (error) return error;
    if (!choose_rings(chosen.words, static_cast<size_t>(device.most_shared_bytes), a))
        return cudaErrorInvalidConfiguration;
    auto kernel = chosen.kernels[static_cast<int>(choose_keys(a.scan))];
    launch_shape shape = {dim3(), dim3(block_threads), shared_bytes_of(chosen.words, a), stream};
    error = plan_blocks(a.scan, {chosen.queries, tile_bundles, tuning.hopper}, kernel, shape);
    return error ? error : launch(shape, kernel, a);
}
