// SPDX-License-Identifier: Apache-2.0
// The scan of lists on Hopper (sm_90a), as device_matrix_scan_hopper.cu has it: up to 64 queries of
// an item by a block of one consumer, two on a multiprocessor, or up to 256 by one of two.
//
// A block takes items one after another, so that its producers go on to the next item, as far as
// the rings go, while consumers have to do with this one or with who looks at the next. Both sides
// go through the same items; the ring of tiles goes on from item to item, and so do the slots of a
// producers' warp. What a warp of the consumers knows of its queries, 16 of each block of 64, is
// its own: it finds them, and no other warp waits for it but for products of its warpgroup.
//
// Caps of rows (key_terms.cuh) begin anew with every item, for rows of lists differ in size; so do
// starts of sums, for queries do.
#include "kernels/device_scan/hopper_scan.cuh"
#include "kernels/device_scan/list_queries.cuh"

#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "for sm_90a alone"
#endif

namespace bsw
{
namespace
{

struct list_arguments {
    hopper_arguments hopper; // its part is all bundles
    bsw_device_list_work work;
    uint32_t found_at; // where found_shared is in shared memory, bytes
};
static_assert(sizeof(list_arguments) <= 4096, "more than a launch carries");

// An item that has no rows or no queries has no tiles.
__device__ __forceinline__ block_work work_of_item(const bsw_device_list_item &item)
{
    const uint32_t end = item.first_bundle + (item.num_slots > 0 ? item.num_bundles : 0);
    return {0, item.first_bundle, end, (end - item.first_bundle + tile_bundles - 1) / tile_bundles};
}

// ---- producers ----

__device__ __forceinline__ warp_work work_of_warp(const list_arguments &a,
                                                  const hopper_shared &shared,
                                                  const block_work &work)
{
    return work_of_warp(shared, work, a.hopper.num_slots,
                        a.hopper.slot_bundles * a.hopper.bundle_words);
}

// Where fetching has got to: in bundles `first` to own.last - 1 of the item.
struct fetch_place {
    uint32_t item, first;
    warp_work own;
};

// Fills the slot with the next bundles of this item or a later one, if there are any.
template <key_kind KIND>
__device__ __forceinline__ void fetch_next(const list_arguments &a, const hopper_shared &shared,
                                           fetch_place &ahead, uint32_t slot)
{
#pragma unroll 1
    while (ahead.first >= ahead.own.last) {
        if (ahead.item >= count_items(a.work)) return;
        ahead.own = work_of_warp(a, shared, work_of_item(load_item(a.work, ahead.item)));
        ahead.first = ahead.own.first;
        ahead.item += gridDim.x;
    }
    fetch<KIND>(a.hopper, ahead.own, ahead.first, slot);
    ahead.first += a.hopper.slot_bundles;
}

template <class SHAPE, class SEGMENTS, key_kind KIND>
__device__ __forceinline__ void produce_items(const list_arguments &a, const hopper_shared &shared)
{
    const uint32_t slot_words = a.hopper.slot_bundles * a.hopper.bundle_words;
    fetch_place ahead = {blockIdx.x, 0, {}};
    for (uint32_t i = 0; i < a.hopper.num_slots; i++) fetch_next<KIND>(a, shared, ahead, i);
    ring_place at = {0, 0}, slot = {0, 0};
#pragma unroll 1
    for (uint32_t i = blockIdx.x; i < count_items(a.work); i += gridDim.x) {
        const block_work work = work_of_item(load_item(a.work, i));
        const warp_work own = work_of_warp(a, shared, work);
        row_caps caps = {0, 0};
#pragma unroll 1
        for (uint32_t first = own.first; first < own.last; first += a.hopper.slot_bundles) {
            barrier_wait(own.slot_barriers + slot.index * 8, slot.parity);
            make_tiles<SHAPE, SEGMENTS, KIND>(a.hopper, shared, own.slots + slot.index * slot_words,
                                              min(own.last - first, a.hopper.slot_bundles), at,
                                              caps);
            fetch_next<KIND>(a, shared, ahead, slot.index);
            advance(slot, a.hopper.num_slots);
        }
        pass_stages<KIND == key_kind::small_float>(
            shared, at, own.first + work.num_tiles - own.last, a.hopper.num_stages);
    }
}

// ---- consumers ----

// What a warp has to do with now. In shared memory, for registers are full of sums and queries.
struct __align__(16) warp_item
{
    block_work work;
    uint32_t number; // of the item
    uint32_t first_slot, count;
    uint32_t unused;
};

// What a consumers' block has found, behind the rings.
template <class SHAPE> struct found_shared {
    list_query queries[SHAPE::queries];
    warp_item items[SHAPE::consumer_threads / 32];
};

// The warp's item.
__device__ __forceinline__ void find_item(const list_arguments &a, uint32_t number, warp_item *own)
{
    const bsw_device_list_item item = load_item(a.work, number);
    __syncwarp(); // all lanes have done with what it was
    if (threadIdx.x % 32 == 0) {
        own->work = work_of_item(item);
        own->number = number;
        own->first_slot = item.first_slot;
        own->count = item.num_slots;
    }
    __syncwarp();
}

// The warp's own queries of the item, 16 of each of the consumer's blocks of 64: a lane one.
template <class SHAPE, key_kind KIND>
__device__ __forceinline__ void find_queries(const list_arguments &a,
                                             const bsw_device_list_item &item, list_query *queries)
{
    static_assert(SHAPE::blocks <= 2, "a lane a query");
    const uint32_t lane = threadIdx.x % 32, block = lane / 16;
    if (block < SHAPE::blocks) {
        const uint32_t i =
            first_of_block<SHAPE>(0, threadIdx.x / group_threads, block) +
            query_of_row(threadIdx.x % group_threads / 32 * 32 + lane % 8 * 4, lane / 8 % 2);
        queries[i] = load_list_query<KIND>(a.hopper.scan, a.work, item, i);
    }
    __syncwarp();
}

template <class SHAPE, key_kind KIND>
__device__ __forceinline__ void consume_items(const list_arguments &a, const hopper_shared &shared,
                                              found_shared<SHAPE> *found)
{
    warp_item *own = found->items + threadIdx.x / 32;
    ring_place at = {0, 0};
    const item_slots slots = {a.work};
    if (blockIdx.x >= count_items(a.work)) return;
    begin_queue(shared);
    find_item(a, blockIdx.x, own);
#pragma unroll 1
    for (;;) {
        find_queries<SHAPE, KIND>(a, load_item(a.work, own->number), found->queries);
        const item_queries queries = {found->queries, own->first_slot, own->count};
        if (own->work.num_tiles > 0)
            consume_tiles<SHAPE, KIND>(a.hopper, shared, queries, slots, own->work, at);
        const uint32_t next = own->number + gridDim.x;
        if (next >= count_items(a.work)) break;
        find_item(a, next, own);
    }
    end_queue(shared, finish_of<KIND>(a.hopper.scan, slots));
}

template <class SHAPE, key_kind KIND>
__global__ void __launch_bounds__(SHAPE::threads, SHAPE::blocks_together)
    scan_lists_hopper(const __grid_constant__ list_arguments a)
{
    DYNAMIC_SHARED(uint8_t, memory);
    const hopper_shared shared = divide_shared<SHAPE>(a.hopper);
    if (threadIdx.x == 0)
        init_barriers(shared, a.hopper.num_stages, a.hopper.num_slots, SHAPE::consumers);
    __syncthreads();
    if (threadIdx.x / group_threads == SHAPE::consumers)
        with_segments<SHAPE>(a.hopper.scan.codes.layout, [&](auto segments) {
            produce_items<SHAPE, decltype(segments), KIND>(a, shared);
        });
    else
        consume_items<SHAPE, KIND>(a, shared,
                                   reinterpret_cast<found_shared<SHAPE> *>(memory + a.found_at));
}

// ---- launch ----

struct list_kernel {
    hopper_block block;
    size_t found_bytes;                 // found_shared
    void (*kernels[3])(list_arguments); // by key_kind
};

template <class SHAPE> constexpr list_kernel make_kernel()
{
    return {make_hopper_block<SHAPE>(),
            sizeof(found_shared<SHAPE>),
            {scan_lists_hopper<SHAPE, key_kind::integer>,
             scan_lists_hopper<SHAPE, key_kind::small_float>,
             scan_lists_hopper<SHAPE, key_kind::any_float>}};
}

// Fewer widths than device_matrix_scan_hopper.cu has, for compiling takes long: a word more than
// there is costs a sixth of a tile. Of the widest, two blocks of few queries do not fit on a
// multiprocessor, for registers.
constexpr list_kernel few_kernels[] = {
    make_kernel<hopper_shape<3, 1, 1>>(),
#if defined(__CUDACC__) // so long does it take that the emulator has one
    make_kernel<hopper_shape<4, 1, 1>>(),
#endif
};
constexpr list_kernel many_kernels[] = {
    make_kernel<hopper_shape<3, 2, 2>>(),
#if defined(__CUDACC__)
    make_kernel<hopper_shape<4, 2, 2>>(),
#endif
    make_kernel<hopper_shape<8, 2, 2>>(),
};
static_assert(most_dims == 8 * hopper_word_dims, "what the widest takes");

template <size_t N>
const list_kernel *find_kernel(const list_kernel (&kernels)[N], uint32_t num_words)
{
    for (const list_kernel &kernel : kernels) {
        if (kernel.block.words >= num_words) return &kernel;
    }
    return nullptr;
}

const list_kernel &choose_kernel(uint32_t padded_dims, uint32_t num_slots)
{
    const uint32_t num_words = padded_dims / hopper_word_dims;
    const list_kernel *few = find_kernel(few_kernels, num_words);
    return few && num_slots <= few->block.queries ? *few : *find_kernel(many_kernels, num_words);
}

cudaError_t launch_items(const list_kernel &chosen, list_arguments &a, bsw_stream stream)
{
    const hopper_block &block = chosen.block;
    device_traits device;
    cudaError_t error = get_device_traits(&device);
    if (error) return error;
    if (!choose_rings(block, static_cast<size_t>(device.most_shared_bytes), chosen.found_bytes,
                      a.hopper))
        return cudaErrorInvalidConfiguration;
    const size_t bytes = shared_bytes_of(block.words, block.consumers, block.queries, a.hopper);
    a.found_at = static_cast<uint32_t>(bytes);
    auto kernel = chosen.kernels[static_cast<int>(choose_keys(a.hopper.scan))];
    launch_shape shape = {dim3(), dim3(block.threads), bytes + chosen.found_bytes, stream};
    uint32_t resident;
    error = count_resident_blocks(reinterpret_cast<const void *>(kernel), shape, &resident);
    if (error) return error;
    const uint64_t blocks =
        static_cast<uint64_t>(resident) * bsw_device_tuning_current()->hopper.waves;
    shape.grid = dim3(a.work.num_items < blocks ? a.work.num_items : static_cast<unsigned>(blocks));
    return launch(shape, kernel, a);
}

} // namespace
} // namespace bsw

DEVICE_POINTERS(bsw::list_arguments, a.hopper, a.work)

extern "C" int bsw_device_has_hopper_lists(const struct bsw_code_layout *layout)
{
    return layout->padded_dims <= bsw::most_dims && bsw::is_hopper();
}

extern "C" int bsw_device_list_scan_hopper(const struct bsw_device_codes *codes,
                                           const struct bsw_device_list_work *work, uint32_t tile,
                                           const struct bsw_device_queries *queries,
                                           const struct bsw_device_lists *lists, bsw_stream stream)
{
    using namespace bsw;
    if (!is_valid_list_scan(*codes, *work, tile, *queries, *lists) || !is_aligned(*codes) ||
        !bsw_device_has_hopper_lists(&codes->layout))
        return cudaErrorInvalidValue;
    if (work->num_items == 0 || queries->num_queries == 0) return cudaSuccess;
    list_arguments a = {
        {make_list_arguments(*codes, *queries, *lists), 0, 0, 0, bundle_words_of(codes->layout)},
        *work,
        0};
    return launch_items(choose_kernel(codes->layout.padded_dims, bsw_device_list_tile_slots(tile)),
                        a, stream);
}
