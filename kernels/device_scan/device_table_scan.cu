// SPDX-License-Identifier: Apache-2.0
// Product codes by tables in shared memory: a block has some queries and some bundles, of a shard
// or of a list. It finds each table's largest number and so its power of two, makes the tables of
// all its queries in one pass over the codebooks, and then looks up 1024 rows at a time: a lane has
// four rows of a bundle, so that four bytes of a part's codes are one load.
#include "kernels/current_device.cuh"
#include "kernels/device_scan/device_key.cuh"
#include "kernels/device_scan/device_table_scan.h"
#include "kernels/device_scan/list_work.cuh"
#include "kernels/device_scan/table_numbers.cuh"
#include "kernels/device_scan/table_selection.cuh"
#include "kernels/select/key_shift.h"

namespace bsw
{
namespace
{

constexpr unsigned table_threads = BSW_DEVICE_TABLE_THREADS, lane_rows = 4;
constexpr unsigned warp_bundles = 32 * lane_rows / warp_rows;
static_assert(table_threads / 32 * warp_bundles == BSW_DEVICE_TABLE_BUNDLES);
constexpr uint32_t most_tiles = 64, waves = 4; // of a block; of blocks that run at a time

struct table_arguments {
    bsw_device_codes codes;
    bsw_device_tables tables;
    bsw_device_lists lists;
    bsw_device_part part;
    bsw_device_list_work work; // items NULL: the part is scanned
    number_format format;
    uint32_t num_bundles, chunk; // of the part; of a block
    uint32_t num_groups;         // of queries: block = chunk or item * num_groups + group
    uint32_t slice_parts, bundle_words;
};
static_assert(sizeof(table_arguments) <= 4096, "more than a launch carries");

struct __align__(16) table_slot
{
    uint32_t query, limit, exists;
    float addition, power, multiplier; // power: numbers are multiplied by it
    uint32_t largest;                  // of the numbers: bits
};
static_assert(BSW_DEVICE_TABLE_QUERIES * sizeof(table_slot) <= BSW_DEVICE_TABLE_ROOM);

// What a block does: bundles first .. end - 1, counted in the part or in the shard.
struct block_work {
    uint32_t first, end, group;
    bsw_device_list_item item; // with items
    const float *centroid;     // or NULL
};

__device__ __forceinline__ block_work work_of(const table_arguments &a)
{
    block_work out = {0, 0, blockIdx.x % a.num_groups, {0, 0, 0, 0}, nullptr};
    const uint32_t place = blockIdx.x / a.num_groups;
    if (!a.work.items) {
        out.first = place * a.chunk;
        out.end = a.num_bundles - out.first < a.chunk ? a.num_bundles : out.first + a.chunk;
        return out;
    }
    if (place >= count_items(a.work)) return out;
    out.item = load_item(a.work, place);
    out.first = out.item.first_bundle;
    out.end = out.first + out.item.num_bundles;
    if (a.tables.centroids && out.item.num_bundles > 0)
        out.centroid = a.tables.centroids +
                       static_cast<size_t>(__ldg(a.tables.lists + out.first)) * a.tables.stride;
    return out;
}

__device__ __forceinline__ table_slot load_slot(const table_arguments &a, const block_work &work,
                                                uint32_t i)
{
    table_slot slot = {0, UINT32_MAX, 0, 0.0f, 1.0f, 1.0f, 0};
    if (i >= (a.work.items ? work.item.num_slots : a.tables.num_queries)) return slot;
    const uint32_t place = work.item.first_slot + i;
    slot.query = a.work.items ? __ldg(a.work.queries + place) : i;
    if (a.tables.types && __ldg(a.tables.types + slot.query) != a.tables.type) return slot;
    slot.limit = __ldg(a.lists.limits + slot.query);
    slot.exists = 1;
    if (a.work.additions) slot.addition = __ldg(a.work.additions + place);
    slot.multiplier = a.tables.is_l2 && !a.tables.selection.are_counts ? -1.0f : 1.0f;
    return slot;
}

// ---- tables ----

// Numbers of an entry of a part, for each query.
template <int QUERIES>
__device__ __forceinline__ void table_numbers(const table_arguments &a, const table_slot *slots,
                                              const float *centroid, uint32_t part, uint32_t entry,
                                              float (&out)[QUERIES])
{
    const bsw_device_tables &t = a.tables;
    const float factor = t.is_l2 ? -2.0f : 1.0f;
    float list = t.is_l2 ? __ldg(t.norms + (static_cast<size_t>(part) << t.bits) + entry) : 0.0f,
          bases[QUERIES] = {};
#pragma unroll
    for (int q = 0; q < QUERIES; q++) out[q] = 0.0f;
    for (uint32_t d = part * t.part_dims; d < (part + 1) * t.part_dims; d++) {
        const float e = __ldg(t.entries + (static_cast<size_t>(d) << t.bits) + entry);
        const float c = centroid ? __ldg(centroid + d) : 0.0f;
        if (centroid) list = __fmaf_rn(2.0f * c, e, list);
#pragma unroll
        for (int q = 0; q < QUERIES; q++) {
            const float x = __ldg(t.queries + static_cast<size_t>(slots[q].query) * t.stride + d);
            const float difference = __fsub_rn(x, c);
            out[q] = __fmaf_rn(factor * x, e, out[q]);
            bases[q] = __fmaf_rn(difference, difference, bases[q]);
        }
    }
    if (!t.is_l2) return;
#pragma unroll
    for (int q = 0; q < QUERIES; q++) {
        const float sum = __fadd_rn(__fadd_rn(list, out[q]), bases[q]);
        out[q] = sum > 0.0f ? sum : 0.0f;
    }
}

template <int QUERIES>
__device__ __forceinline__ void find_largest(const table_arguments &a, const float *centroid,
                                             table_slot *slots)
{
    const uint32_t numbers = a.tables.parts << a.tables.bits, mask = (1u << a.tables.bits) - 1;
    uint32_t largest[QUERIES] = {};
    for (uint32_t i = threadIdx.x; i < numbers; i += table_threads) {
        float values[QUERIES];
        table_numbers<QUERIES>(a, slots, centroid, i >> a.tables.bits, i & mask, values);
#pragma unroll
        for (int q = 0; q < QUERIES; q++) {
            const uint32_t bits = __float_as_uint(values[q]) & 0x7fffffffu;
            largest[q] = bits > largest[q] ? bits : largest[q];
        }
    }
#pragma unroll
    for (int q = 0; q < QUERIES; q++) {
        const uint32_t most = __reduce_max_sync(all_lanes, largest[q]);
        if (threadIdx.x % 32 == 0) atomicMax(&slots[q].largest, most);
    }
}

template <int QUERIES>
__device__ __forceinline__ void scale_tables(const table_arguments &a, const float *centroid,
                                             table_slot *slots)
{
    find_largest<QUERIES>(a, centroid, slots);
    __syncthreads();
    if (threadIdx.x < QUERIES) {
        table_slot &slot = slots[threadIdx.x];
        const int exponent = table_exponent(a.tables.type, slot.largest);
        slot.power = power_of_two(exponent);
        slot.multiplier = a.tables.is_l2 ? -power_of_two(-exponent) : power_of_two(-exponent);
    }
    __syncthreads();
}

template <number_kind KIND, int QUERIES> struct table_of {
    typedef typename entry_of<number_bytes<KIND> * QUERIES>::type entry;
};

// Parts [first, first + num).
template <number_kind KIND, int QUERIES>
__device__ __forceinline__ void make_slice(const table_arguments &a, const float *centroid,
                                           const table_slot *slots, uint32_t first, uint32_t num,
                                           typename table_of<KIND, QUERIES>::entry *table)
{
    const uint32_t mask = (1u << a.tables.bits) - 1;
    for (uint32_t i = threadIdx.x; i < num << a.tables.bits; i += table_threads) {
        float values[QUERIES];
        uint32_t numbers[QUERIES];
        table_numbers<QUERIES>(a, slots, centroid, first + (i >> a.tables.bits), i & mask, values);
#pragma unroll
        for (int q = 0; q < QUERIES; q++)
            numbers[q] = encode_number<KIND>(a.format, __fmul_rn(values[q], slots[q].power));
        table[i] = make_entry<number_bytes<KIND>, QUERIES>(numbers);
    }
}

template <number_kind KIND, int BITS, int QUERIES, bool SELECTS>
__device__ __forceinline__ void make_parts(const table_arguments &a, const float *centroid,
                                           const table_slot *slots, uint32_t first, uint32_t num,
                                           typename table_of<KIND, QUERIES>::entry *table)
{
    if constexpr (SELECTS)
        make_selected_slice<BITS, QUERIES>(a.tables, centroid, slots, first, num, table);
    else
        make_slice<KIND, QUERIES>(a, centroid, slots, first, num, table);
}

// ---- look-ups ----

template <number_kind KIND, int QUERIES>
__device__ __forceinline__ void
look_up(const number_format &format, const typename table_of<KIND, QUERIES>::entry *part,
        uint32_t codes, uint32_t mask, float (&sums)[lane_rows][QUERIES])
{
#pragma unroll
    for (unsigned r = 0; r < lane_rows; r++) {
        const auto entry = load_counted(part + (codes >> 8 * r & mask));
#pragma unroll
        for (int q = 0; q < QUERIES; q++)
            sums[r][q] = __fadd_rn(
                sums[r][q], decode_number<KIND>(format, take_number<number_bytes<KIND>>(entry, q)));
    }
}

// Adds parts [first, first + num) for a lane's rows; codes: of byte 0 of its four.
template <number_kind KIND, int BITS, int QUERIES>
__device__ __forceinline__ void
add_slice(const number_format &format, const typename table_of<KIND, QUERIES>::entry *table,
          const uint32_t *codes, uint32_t first, uint32_t num, float (&sums)[lane_rows][QUERIES])
{
    constexpr uint32_t step = 32 / BITS; // parts of four bytes, of which padding is the last's
    for (uint32_t p = 0; p < num; p += step) {
        uint32_t words[4];
#pragma unroll
        for (uint32_t i = 0; i < 4; i++)
            words[i] = __ldg(codes + (static_cast<size_t>(first + p) * BITS / 8 + i) *
                                         (warp_rows / lane_rows));
#pragma unroll
        for (uint32_t i = 0; i < step; i++) {
            if (p + i >= num) break;
            look_up<KIND, QUERIES>(format, table + ((p + i) << BITS),
                                   BITS == 8 ? words[i] : words[i / 2] >> i % 2 * 4,
                                   (1u << BITS) - 1, sums);
        }
    }
}

// ---- selection ----

// Four rows of a lane, of one bundle: `place` is the first's, in the shard.
struct lane_place {
    uint32_t place, mask;
};

__device__ __forceinline__ lane_place place_of(const table_arguments &a, const block_work &work,
                                               uint32_t tile)
{
    const uint32_t lane = threadIdx.x % 32, row = lane % 8 * lane_rows;
    const uint32_t i = tile + threadIdx.x / 32 * warp_bundles + lane / 8;
    const uint32_t known = i < work.end ? i : work.end - 1;
    const uint32_t bundle = a.work.items ? known : a.part.first + known * a.part.step;
    const uint32_t mask = i < work.end ? __ldg(a.codes.masks + bundle) : 0;
    return {bundle * warp_rows + row, mask >> row & 15};
}

// Whether a selection ranks a row of such a score and sum; place: in the shard.
template <int BITS>
__device__ __forceinline__ bool is_ranked(const table_arguments &a, const float *centroid,
                                          uint32_t query, uint32_t score, float sum, uint32_t place)
{
    if (score <= BSW_SCORE_OF_MINUS_INFINITY) return false;
    if (sum != __ldg(a.tables.selection.nothing + query)) return true;
    const uint32_t *codes =
        a.codes.planes[0] + static_cast<size_t>(place / warp_rows) * a.bundle_words;
    return !a.tables.selection.are_counts && // these are whole numbers: only misses add up to that
           hits_something<BITS>(a.tables, query, centroid, reinterpret_cast<const uint8_t *>(codes),
                                place % warp_rows);
}

template <int BITS, int QUERIES, bool SELECTS>
__device__ __forceinline__ void select_rows(const table_arguments &a, const float *centroid,
                                            const lane_place &lane, const table_slot *slots,
                                            const float (&sums)[lane_rows][QUERIES])
{
#pragma unroll
    for (int q = 0; q < QUERIES; q++) {
        const table_slot slot = slots[q];
        uint32_t scores[lane_rows], passing = 0;
#pragma unroll
        for (unsigned r = 0; r < lane_rows; r++) {
            const float key = __fadd_rn(__fmul_rn(sums[r][q], slot.multiplier), 0.0f);
            scores[r] = score_of_float(__fadd_rn(__fadd_rn(key, slot.addition), 0.0f));
            passing |= (scores[r] >= slot.limit ? 1u : 0u) << r;
        }
        passing &= slot.exists ? lane.mask : 0;
#pragma unroll
        for (unsigned r = 0; SELECTS && r < lane_rows; r++) {
            if (passing >> r & 1 &&
                !is_ranked<BITS>(a, centroid, slot.query, scores[r], sums[r][q], lane.place + r))
                passing ^= 1u << r;
        }
        if (!__any_sync(all_lanes, passing != 0)) continue;
#pragma unroll
        for (unsigned r = 0; r < lane_rows; r++) {
            const bool passes = passing >> r & 1;
            uint32_t row = a.codes.first_row + lane.place + r;
            if (passes && a.work.items) row = __ldg(a.work.rows + lane.place + r);
            append_bundle(a.lists, slot.query, passes, pack_candidate(scores[r], row));
        }
    }
}

// ---- a block ----

template <number_kind KIND, int BITS, int QUERIES, bool SELECTS = false>
__global__ void __launch_bounds__(table_threads, 2)
    scan_tables(const __grid_constant__ table_arguments a)
{
    DYNAMIC_SHARED(unsigned char, shared);
    table_slot *slots = reinterpret_cast<table_slot *>(shared);
    auto *table =
        reinterpret_cast<typename table_of<KIND, QUERIES>::entry *>(shared + BSW_DEVICE_TABLE_ROOM);
    const block_work work = work_of(a);
    const uint32_t parts = a.tables.parts, slice = a.slice_parts;
    if (work.first >= work.end) return;
    if (a.work.items && work.group * QUERIES >= work.item.num_slots) return;
    const bool exists = threadIdx.x < QUERIES;
    if (exists) slots[threadIdx.x] = load_slot(a, work, work.group * QUERIES + threadIdx.x);
    if (__syncthreads_count(exists && slots[threadIdx.x].exists) == 0) return;
    if (KIND != number_kind::float32) scale_tables<QUERIES>(a, work.centroid, slots);
    if (slice >= parts) {
        make_parts<KIND, BITS, QUERIES, SELECTS>(a, work.centroid, slots, 0, parts, table);
        __syncthreads();
    }
    for (uint32_t tile = work.first; tile < work.end; tile += BSW_DEVICE_TABLE_BUNDLES) {
        const lane_place lane = place_of(a, work, tile);
        const bool is_busy = tile + threadIdx.x / 32 * warp_bundles < work.end; // of a warp
        const uint32_t *codes = a.codes.planes[0] +
                                static_cast<size_t>(lane.place / warp_rows) * a.bundle_words +
                                lane.place % warp_rows / lane_rows;
        float sums[lane_rows][QUERIES] = {};
        for (uint32_t p = 0; p < parts; p += slice) {
            const uint32_t num = parts - p < slice ? parts - p : slice;
            if (slice < parts) {
                __syncthreads(); // everybody has done with the slice before
                make_parts<KIND, BITS, QUERIES, SELECTS>(a, work.centroid, slots, p, num, table);
                __syncthreads();
            }
            if (is_busy) add_slice<KIND, BITS, QUERIES>(a.format, table, codes, p, num, sums);
        }
        if (is_busy) select_rows<BITS, QUERIES, SELECTS>(a, work.centroid, lane, slots, sums);
    }
}

// ---- launches ----

typedef void (*table_kernel)(table_arguments);

template <number_kind KIND, bool SELECTS = false>
table_kernel choose_kernel(uint32_t bits, uint32_t queries)
{
    if (bits == 8)
        return queries == 1   ? scan_tables<KIND, 8, 1, SELECTS>
               : queries == 2 ? scan_tables<KIND, 8, 2, SELECTS>
                              : scan_tables<KIND, 8, 4, SELECTS>;
    return queries == 1   ? scan_tables<KIND, 4, 1, SELECTS>
           : queries == 2 ? scan_tables<KIND, 4, 2, SELECTS>
                          : scan_tables<KIND, 4, 4, SELECTS>;
}

table_kernel kernel_of(const bsw_device_tables &tables, uint32_t queries)
{
    if (tables.selection.limits)
        return choose_kernel<number_kind::float32, true>(tables.bits, queries);
    if (tables.type == BSW_TABLE_FLOAT32)
        return choose_kernel<number_kind::float32>(tables.bits, queries);
    if (tables.type == BSW_TABLE_FLOAT16)
        return choose_kernel<number_kind::float16>(tables.bits, queries);
    if (tables.is_l2) return choose_kernel<number_kind::float8>(tables.bits, queries);
    return choose_kernel<number_kind::signed_float8>(tables.bits, queries);
}

bool is_valid_selection(const bsw_device_tables &tables)
{
    const bsw_device_selection &s = tables.selection;
    return !s.limits || (s.nothing && s.counts && tables.part_dims == 2 && !tables.types &&
                         tables.type == BSW_TABLE_FLOAT32);
}

bool is_valid_tables(const bsw_device_codes &codes, const bsw_device_tables &tables,
                     const bsw_device_lists &lists)
{
    const bool has_shape = (tables.bits == 4 || tables.bits == 8) && tables.parts >= 1 &&
                           tables.parts <= BSW_MAX_DIMS && tables.part_dims >= 1 &&
                           static_cast<uint64_t>(tables.parts) * tables.part_dims <= tables.stride;
    return has_shape && tables.type < BSW_NUM_TABLE_TYPES && codes.layout.num_segments == 1 &&
           codes.layout.segments[0].bits == 1 &&
           codes.layout.segments[0].dims == tables.parts * tables.bits &&
           lists.num_queries == tables.num_queries && !lists.queues.slots &&
           (!tables.centroids || (tables.is_l2 && tables.lists)) && is_valid_selection(tables) &&
           static_cast<uint64_t>(codes.num_bundles) * warp_rows + lists.capacity <= UINT32_MAX;
}

struct table_launch {
    table_arguments arguments;
    table_kernel kernel;
    launch_shape shape;
    uint32_t queries, resident; // of a block; blocks that run at a time
};

// All but the grid.
cudaError_t prepare_launch(const bsw_device_codes &codes, const bsw_device_tables &tables,
                           const bsw_device_lists &lists, bsw_stream stream, table_launch &out)
{
    device_traits device;
    cudaError_t error = get_device_traits(&device);
    if (error) return error;
    const bsw_device_table_shape shape =
        bsw_device_table_shape_of(tables.parts, tables.bits, tables.type, tables.num_queries,
                                  static_cast<size_t>(device.most_shared_bytes));
    out = {};
    out.arguments.codes = codes;
    out.arguments.tables = tables;
    out.arguments.lists = lists;
    out.arguments.format = format_of(tables.type, !tables.is_l2);
    out.arguments.slice_parts = shape.slice_parts;
    out.arguments.bundle_words =
        static_cast<uint32_t>(bsw_segment_bundle_words(&codes.layout.segments[0]));
    out.kernel = kernel_of(tables, shape.queries);
    out.queries = shape.queries;
    out.shape = {dim3(1), dim3(table_threads), shape.shared_bytes, stream};
    return count_resident_blocks(reinterpret_cast<const void *>(out.kernel), out.shape,
                                 &out.resident);
}

cudaError_t run_launch(table_launch &work, uint64_t num_places)
{
    const uint64_t blocks = num_places * work.arguments.num_groups;
    if (blocks > INT32_MAX) return cudaErrorInvalidValue;
    work.shape.grid = dim3(static_cast<unsigned>(blocks));
    return launch(work.shape, work.kernel, work.arguments);
}

uint32_t groups_of(uint32_t num_queries, uint32_t queries)
{
    return (num_queries + queries - 1) / queries;
}

} // namespace
} // namespace bsw

DEVICE_POINTERS(bsw_device_selection, a.limits, a.nothing, a.counts)
DEVICE_POINTERS(bsw_device_tables, a.entries, a.norms, a.queries, a.types, a.centroids, a.lists,
                a.selection)
DEVICE_POINTERS(bsw::table_arguments, a.codes, a.tables, a.lists, a.work)

extern "C" int bsw_device_table_scan(const struct bsw_device_codes *codes,
                                     const struct bsw_device_part *part,
                                     const struct bsw_device_tables *tables,
                                     const struct bsw_device_lists *lists, bsw_stream stream)
{
    using namespace bsw;
    table_launch work;
    if (part->step < 1 || part->first > part->last || part->last > codes->num_bundles ||
        !is_valid_tables(*codes, *tables, *lists))
        return cudaErrorInvalidValue;
    if (part->first == part->last || tables->num_queries == 0) return cudaSuccess;
    cudaError_t error = prepare_launch(*codes, *tables, *lists, stream, work);
    if (error) return error;
    table_arguments &a = work.arguments;
    a.tables.centroids = nullptr;
    a.part = *part;
    a.num_bundles = (part->last - part->first - 1) / part->step + 1;
    a.num_groups = groups_of(tables->num_queries, work.queries);
    const uint64_t tiles = (a.num_bundles - 1) / BSW_DEVICE_TABLE_BUNDLES + 1;
    uint64_t own = tiles * a.num_groups / (static_cast<uint64_t>(work.resident) * waves);
    own = own < 1 ? 1 : own > most_tiles ? most_tiles : own;
    a.chunk = static_cast<uint32_t>(own) * BSW_DEVICE_TABLE_BUNDLES;
    return run_launch(work, (tiles + own - 1) / own);
}

extern "C" int bsw_device_table_list_scan(const struct bsw_device_codes *codes,
                                          const struct bsw_device_list_work *items, uint32_t tile,
                                          const struct bsw_device_tables *tables,
                                          const struct bsw_device_lists *lists, bsw_stream stream)
{
    using namespace bsw;
    table_launch work;
    if (tile >= BSW_LIST_TILES || items->num_items > INT32_MAX ||
        !is_valid_tables(*codes, *tables, *lists))
        return cudaErrorInvalidValue;
    if (items->num_items == 0 || tables->num_queries == 0) return cudaSuccess;
    cudaError_t error = prepare_launch(*codes, *tables, *lists, stream, work);
    if (error) return error;
    const uint32_t slots = bsw_device_list_tile_slots(tile),
                   most = slots < tables->num_queries ? slots : tables->num_queries;
    work.arguments.work = *items;
    work.arguments.num_groups = groups_of(most, work.queries);
    return run_launch(work, items->num_items);
}

extern "C" int bsw_device_table_blocks(const struct bsw_device_tables *tables, uint32_t *blocks)
{
    using namespace bsw;
    table_launch work;
    device_traits device;
    bsw_device_codes codes = {};
    codes.layout.num_segments = 1;
    cudaError_t error = prepare_launch(codes, *tables, {}, nullptr, work);
    if (!error) error = get_device_traits(&device);
    if (!error) *blocks = work.resident / static_cast<uint32_t>(device.multiprocessors);
    return error;
}
