// Work items of lists as grouped products: a block an item, whose queries it gathers by their
// number, then tile after tile as device_matrix_scan.cu has them. Limits are those that keys have
// to reach before anything is added, which the block finds once for each of its queries; sums are
// made for rows that pass alone.
#include "kernels/device_scan/device_list_scan.h"
#include "kernels/device_scan/matrix_select.cuh"
#include "kernels/select/key_shift.h"

namespace bsw
{
namespace
{

struct list_arguments {
    scan_arguments scan; // its part is all bundles
    bsw_device_list_work work;
};
static_assert(sizeof(list_arguments) <= 4096, "more than a launch carries");

// A query in its list.
struct __align__(16) list_slot
{
    uint32_t query, limit; // limit: before anything is added
    bsw_addition addition;
    uint32_t exists;
};

struct list_shared : scan_shared {
    list_slot *slots; // [queries]
};

template <class SHAPE> __device__ __forceinline__ list_shared divide_list_shared(uint32_t num_words)
{
    list_shared out;
    static_cast<scan_shared &>(out) = divide_shared<SHAPE>(num_words);
    out.slots = reinterpret_cast<list_slot *>(out.queries + num_words * SHAPE::query_word_bytes);
    return out;
}

// ---- queries of an item ----

__device__ __forceinline__ list_slot load_slot(const list_arguments &a,
                                               const bsw_device_list_item &item, uint32_t i)
{
    list_slot slot = {0, UINT32_MAX, {0.0f}, 0};
    if (i >= item.num_slots) return slot;
    slot.query = __ldg(a.work.queries + item.first_slot + i);
    slot.limit = __ldg(a.scan.lists.limits + slot.query);
    slot.exists = 1;
    if (a.work.additions) {
        slot.addition.number = __ldg(a.work.additions + item.first_slot + i);
        slot.limit = bsw_limit_before(slot.limit, slot.addition, 1);
    }
    return slot;
}

// As load_key_query and load_quick.
template <key_kind KIND>
__device__ __forceinline__ quick_query make_quick(const list_arguments &a, const list_slot &slot)
{
    if (!slot.exists) return {KIND == key_kind::integer ? INT32_MIN : 0, {infinite, 1.0f}};
    const int constant = __ldg(a.scan.queries.constants + slot.query);
    if (KIND == key_kind::integer) return {most_sum(constant, slot.limit), {}};
    return {constant,
            make_query_bound(float_limit(slot.limit), __ldg(a.scan.queries.scales + slot.query))};
}

__device__ __forceinline__ key_query make_key(const list_arguments &a, const list_slot &slot)
{
    if (!slot.exists) return make_key_query(0, 0, middle + aside, 0);
    return key_query_of(float_limit(slot.limit), __ldg(a.scan.queries.scales + slot.query),
                        __ldg(a.scan.queries.constants + slot.query));
}

template <class SHAPE, key_kind KIND>
__device__ __forceinline__ void
load_slots(const list_arguments &a, const bsw_device_list_item &item, const list_shared &shared)
{
    for (uint32_t i = threadIdx.x; i < SHAPE::queries; i += tuning.threads) {
        const list_slot slot = load_slot(a, item, i);
        shared.slots[i] = slot;
        if (KIND == key_kind::small_float)
            shared.key_queries[i] = make_key(a, slot);
        else
            shared.quick[i] = make_quick<KIND>(a, slot);
    }
}

// As load_queries.
template <class SHAPE>
__device__ __forceinline__ void
gather_queries(const list_arguments &a, const bsw_device_list_item &item, uint32_t first_word,
               uint32_t num_words, const matrix_shared &shared)
{
    const uint32_t pieces = num_words * 2; // of 16 bytes, of one query
    for (uint32_t i = threadIdx.x; i < SHAPE::queries * pieces; i += tuning.threads) {
        const uint32_t own = i / pieces, piece = i % pieces;
        uint4 value = make_uint4(0, 0, 0, 0);
        if (own < item.num_slots) {
            const size_t query = __ldg(a.work.queries + item.first_slot + own);
            value = __ldg(reinterpret_cast<const uint4 *>(a.scan.queries.components +
                                                          query * a.scan.codes.layout.padded_dims +
                                                          first_word * word_bytes) +
                          piece);
        }
        store_query_piece<SHAPE>(shared, own, piece, value);
    }
}

// ---- tiles ----

template <key_kind KIND>
__device__ __forceinline__ thread_query query_of_slot(const list_arguments &a,
                                                      const list_slot &slot)
{
    if (!slot.exists) return {0, INT32_MIN, 0.0f, __uint_as_float(0x7fffffffu)};
    thread_query out = {__ldg(a.scan.queries.constants + slot.query), 0, 0.0f, 0.0f};
    if (KIND == key_kind::integer) {
        out.most_sum = most_sum(out.constant, slot.limit);
    } else {
        out.float_limit = float_limit(slot.limit);
        out.scale = __ldg(a.scan.queries.scales + slot.query);
    }
    return out;
}

// As select_tile of device_matrix_scan.cu.
template <class SHAPE, key_kind KIND>
__device__ __forceinline__ void select_tile(const list_arguments &a, uint32_t first_bundle,
                                            uint32_t end, uint32_t warp, uint32_t lane,
                                            accumulators<SHAPE> &acc, const list_shared &shared)
{
    const uint32_t first_row = warp / SHAPE::query_warps * (8 * SHAPE::row_tiles) + lane % 4 * 2;
    const uint32_t queries =
        KIND == key_kind::small_float
            ? find_below<SHAPE>(acc)
            : __reduce_or_sync(all_lanes,
                               find_queries<SHAPE, KIND>(warp, lane, first_row, acc, shared));
    if (queries == 0) return;
    const uint32_t valid = valid_rows<SHAPE>(a.scan, first_bundle, end, first_row);
#pragma unroll
    for (int i = 0; i < 2 * SHAPE::query_tiles; i++) {
        if (!(queries >> i & 1)) continue;
        const list_slot slot = shared.slots[query_of<SHAPE>(0, warp, lane, i / 2, i % 2)];
        const thread_query of = query_of_slot<KIND>(a, slot);
        int sums[2 * SHAPE::row_tiles];
        take_sums<SHAPE, KIND>(warp, lane, shared, acc, i / 2, i % 2, sums);
        const uint32_t hits = find_hits<SHAPE, KIND>(of, sums, shared, first_row) & valid;
        if (!__any_sync(all_lanes, hits != 0)) continue;
        keep_sums(sums);
        append_hits<SHAPE, KIND>(a.scan.lists, of, sums, shared, first_row, slot.query, hits,
                                 [&](uint32_t row, uint32_t score) {
                                     if (KIND != key_kind::integer && a.work.additions)
                                         score = bsw_score_add(score, slot.addition, 1);
                                     return pack_candidate(
                                         score,
                                         __ldg(a.work.rows + row_of(a.scan, first_bundle, row)));
                                 });
    }
}

// As scan_tile there.
template <class SHAPE, key_kind KIND>
__device__ __forceinline__ void scan_tile(const list_arguments &a, const bsw_device_list_item &item,
                                          uint32_t first_bundle, bool is_first,
                                          const list_shared &shared, row_caps &started)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t num_words = a.scan.codes.layout.padded_dims / 32;
    const uint32_t end = item.first_bundle + item.num_bundles;
    accumulators<SHAPE> acc;
    if (KIND != key_kind::small_float) acc = {};
    for (uint32_t word = 0; word < num_words; word += tuning.chunk_words) {
        const uint32_t words =
            num_words - word < tuning.chunk_words ? num_words - word : tuning.chunk_words;
        __syncthreads(); // everybody has done with what is in shared memory
        unpack_tile<SHAPE>(a.scan, first_bundle, end, word, words, shared);
        if (KIND == key_kind::small_float && word == 0)
            load_terms<SHAPE>(a.scan, first_bundle, end, is_first, shared);
        if (KIND == key_kind::any_float && word == 0)
            load_scales<SHAPE>(a.scan, first_bundle, end, shared);
        if (is_first && word == 0) load_slots<SHAPE, KIND>(a, item, shared);
        if (is_first || num_words > tuning.chunk_words)
            gather_queries<SHAPE>(a, item, word, words, shared);
        __syncthreads();
        if (KIND == key_kind::small_float && word == 0) {
            update_starts<SHAPE>(shared, started);
            begin_tile<SHAPE>(warp, lane, shared, acc);
        }
        multiply_tile<SHAPE>(shared, words, warp, lane, acc);
    }
    select_tile<SHAPE, KIND>(a, first_bundle, end, warp, lane, acc, shared);
}

template <class SHAPE, key_kind KIND>
__global__ void __launch_bounds__(tuning.threads, 2)
    scan_lists(const __grid_constant__ list_arguments a)
{
    const list_shared shared =
        divide_list_shared<SHAPE>(words_at_a_time(a.scan.codes.layout.padded_dims));
    const uint4 four = __ldg(reinterpret_cast<const uint4 *>(a.work.items + blockIdx.x));
    const bsw_device_list_item item = {four.x, four.y, four.z, four.w};
    row_caps started = {-1, -1}; // what starts of sums are for
    for (uint32_t i = 0; i < item.num_bundles; i += SHAPE::bundles)
        scan_tile<SHAPE, KIND>(a, item, item.first_bundle + i, i == 0, shared, started);
}

// ---- launches ----

struct list_kernel {
    uint32_t queries, bundles;          // of a tile
    void (*kernels[3])(list_arguments); // by key_kind
};

template <class SHAPE> constexpr list_kernel make_kernel()
{
    return {SHAPE::queries,
            SHAPE::bundles,
            {scan_lists<SHAPE, key_kind::integer>, scan_lists<SHAPE, key_kind::small_float>,
             scan_lists<SHAPE, key_kind::any_float>}};
}

constexpr list_kernel list_kernels[] = {make_kernel<few_queries>(), make_kernel<some_queries>(),
                                        make_kernel<many_queries>()};

static_assert(sizeof list_kernels / sizeof list_kernels[0] == BSW_MATRIX_TILES);
// bsw_device_list_tile_slots
static_assert(few_queries::queries == 16 && some_queries::queries == 64 &&
              many_queries::queries == 256);

// What is_valid_scan asks, but for the planes of queries, which are not read.
bool is_valid_list_scan(const bsw_device_codes &codes, const bsw_device_list_work &work,
                        uint32_t tile, const bsw_device_queries &queries,
                        const bsw_device_lists &lists)
{
    const bool has_keys = !codes.scales == !queries.scales && !codes.scales == !codes.biases;
    return tile < BSW_MATRIX_TILES && work.num_items <= INT32_MAX &&
           (codes.scales || !work.additions) && lists.num_queries == queries.num_queries &&
           queries.query_bits >= 1 && queries.query_bits <= BSW_MAX_QUERY_BITS &&
           !lists.queues.slots && has_keys &&
           static_cast<uint64_t>(codes.num_bundles) * warp_rows + lists.capacity <= UINT32_MAX;
}

} // namespace
} // namespace bsw

DEVICE_POINTERS(bsw_device_list_work, a.items, a.queries, a.additions, a.rows)
DEVICE_POINTERS(bsw::list_arguments, a.scan, a.work)

extern "C" int bsw_device_list_scan(const struct bsw_device_codes *codes,
                                    const struct bsw_device_list_work *work, uint32_t tile,
                                    const struct bsw_device_queries *queries,
                                    const struct bsw_device_lists *lists, bsw_stream stream)
{
    using namespace bsw;
    if (!is_valid_list_scan(*codes, *work, tile, *queries, *lists)) return cudaErrorInvalidValue;
    if (work->num_items == 0 || queries->num_queries == 0) return cudaSuccess;
    const list_kernel &chosen = list_kernels[tile];
    const bsw_device_part part = {0, codes->num_bundles, 1};
    const list_arguments a = {make_scan_arguments(*codes, part, *queries, *lists), *work};
    const size_t bytes =
        select_shared_bytes(chosen.queries, chosen.bundles, codes->layout.padded_dims) +
        chosen.queries * sizeof(list_slot);
    auto kernel = chosen.kernels[static_cast<int>(choose_keys(a.scan))];
    const launch_shape shape = {dim3(work->num_items), dim3(tuning.threads), bytes, stream};
    uint32_t resident; // the runtime has to be told of so much shared memory
    cudaError_t error =
        count_resident_blocks(reinterpret_cast<const void *>(kernel), shape, &resident);
    return error ? error : launch(shape, kernel, a);
}
