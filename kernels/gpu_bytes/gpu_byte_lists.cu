// SPDX-License-Identifier: Apache-2.0
// Work items of lists by rows of bytes (gpu_byte_rows.cuh): a block an item. Its queries lie
// anywhere in the batch, so that a lane gathers its part of their operands, four words for 16
// bytes of queries that follow each other; they come from the first cache.
#include "kernels/device_scan/list_work.cuh"
#include "kernels/gpu_bytes/gpu_byte_rows.cuh"

namespace bsw
{
namespace
{

typedef byte_shape<1, 1, 4> few_queries;  // 16 x 256 rows
typedef byte_shape<2, 2, 2> some_queries; // 64 x 128
typedef byte_shape<2, 8, 2> many_queries; // 256 x 32
static_assert(few_queries::queries == 16 && some_queries::queries == 64 &&
                  many_queries::queries == 256 && BSW_LIST_TILES == 4,
              "bsw_device_list_tile_slots");

struct list_arguments {
    byte_arguments bytes; // its part is all bundles
    bsw_device_list_work work;
};
static_assert(sizeof(list_arguments) <= 4096, "more than a launch carries");

struct item_work {
    const list_arguments &a;
    bsw_device_list_item its;
    uint32_t first_query;  // of the warp, in the item
    const uint32_t *words; // where the block's queries begin in their operands; shared

    __device__ __forceinline__ uint32_t query(uint32_t i) const
    {
        const uint32_t slot = first_query + i;
        return slot < its.num_slots ? __ldg(a.work.queries + its.first_slot + slot) : UINT32_MAX;
    }

    __device__ __forceinline__ uint32_t row(uint32_t bundle, uint32_t i) const
    {
        return __ldg(a.work.rows + static_cast<size_t>(bundle) * warp_rows + i);
    }

    // Words t and t + 4 of a query's step.
    __device__ __forceinline__ void load_words(uint32_t step, uint32_t i, unsigned &low,
                                               unsigned &high) const
    {
        const uint32_t word = words[first_query + i], lane = threadIdx.x % warp_rows;
        const uint32_t *from = reinterpret_cast<const uint32_t *>(a.bytes.scan.queries.components) +
                               word + (static_cast<size_t>(step) * warp_rows + lane % 4) * 4;
        low = word == UINT32_MAX ? 0 : __ldg(from);
        high = word == UINT32_MAX ? 0 : __ldg(from + 2);
    }

    __device__ __forceinline__ void load_operands(uint32_t step, int tile, unsigned (&out)[4]) const
    {
        const uint32_t i = static_cast<uint32_t>(tile) * tile_queries + threadIdx.x % warp_rows / 4;
        load_words(step, i, out[0], out[2]);
        load_words(step, i + 8, out[1], out[3]);
    }
};

// The first word of a query: [tiles][steps][32 lanes][4 words], of rows g and g + 8.
__device__ __forceinline__ uint32_t first_word(const list_arguments &a, uint32_t query)
{
    const uint32_t num_steps = a.bytes.scan.codes.layout.padded_dims / step_dims;
    return (query / tile_queries * num_steps * warp_rows + query % 8 * 4) * 4 +
           query % tile_queries / 8;
}

template <class SHAPE>
__global__ void __launch_bounds__(byte_threads, 2)
    scan_byte_items(const __grid_constant__ list_arguments a)
{
    DYNAMIC_SHARED(uint32_t, words); // [queries]
    if (blockIdx.x >= count_items(a.work)) return;
    const uint32_t lane = threadIdx.x % warp_rows, warp = threadIdx.x / warp_rows;
    const bsw_device_list_item item = load_item(a.work, blockIdx.x);
    for (uint32_t i = threadIdx.x; i < SHAPE::queries; i += byte_threads)
        words[i] = i < item.num_slots ? first_word(a, __ldg(a.work.queries + item.first_slot + i))
                                      : UINT32_MAX;
    __syncthreads();
    const uint32_t first_query = warp % SHAPE::query_warps * SHAPE::warp_queries;
    if (first_query >= item.num_slots) return;
    scan_bundles<SHAPE>(a.bytes, item_work{a, item, first_query, words},
                        item.first_bundle + warp / SHAPE::query_warps,
                        item.first_bundle + item.num_bundles, lane);
}

template <class SHAPE> cudaError_t launch_items(const list_arguments &a, bsw_stream stream)
{
    return launch(
        {dim3(a.work.num_items), dim3(byte_threads), SHAPE::queries * sizeof(uint32_t), stream},
        scan_byte_items<SHAPE>, a);
}

} // namespace
} // namespace bsw

DEVICE_POINTERS(bsw::list_arguments, a.bytes, a.work)

extern "C" int bsw_device_byte_list_scan(const struct bsw_device_codes *codes,
                                         const struct bsw_device_list_work *work, uint32_t tile,
                                         const struct bsw_device_queries *queries, int factor,
                                         const struct bsw_device_lists *lists, bsw_stream stream)
{
    using namespace bsw;
    const bsw_device_part all = {0, codes->num_bundles, 1};
    if (tile >= BSW_LIST_TILES || work->num_items > INT32_MAX || work->additions ||
        lists->queues.slots || !is_valid_byte_scan(*codes, all, *queries, factor, *lists) ||
        bsw_device_byte_operand_bytes(queries->num_queries, codes->layout.padded_dims) / 4 >=
            UINT32_MAX)
        return cudaErrorInvalidValue;
    if (work->num_items == 0 || queries->num_queries == 0) return cudaSuccess;
    const list_arguments a = {{{*codes, *queries, *lists, all, codes->num_bundles, 0, 0, 0},
                               static_cast<uint32_t>(factor)},
                              *work};
    if (tile < 2) return launch_items<few_queries>(a, stream);
    return tile == 2 ? launch_items<some_queries>(a, stream)
                     : launch_items<many_queries>(a, stream);
}
