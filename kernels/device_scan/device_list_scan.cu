// SPDX-License-Identifier: Apache-2.0
// Work items of lists as grouped products by dp4a and mma: a block an item. Few queries:
// few_list_scan.cuh, or few_scan.cuh where the tuning says so. Others it gathers by their number,
// then tile after tile as device_matrix_scan.cu has them. Limits are those that keys have to reach
// before anything is added, which the block finds once for each of its queries; sums are made for
// rows that pass alone.
#include "kernels/device_scan/device_list_scan.h"
#include "kernels/device_scan/few_list_scan.cuh"
#include "kernels/device_scan/few_scan.cuh"
#include "kernels/device_scan/matrix_scan.cuh"

namespace bsw
{
namespace
{

struct list_block;

struct list_arguments {
    typedef list_block block;
    scan_arguments scan; // its part is all bundles
    bsw_device_list_work work;
};
static_assert(sizeof(list_arguments) <= 4096, "more than a launch carries");

// A query in its list.
struct __align__(16) list_slot
{
    uint32_t number, limit; // limit: before anything is added
    float addition;
    uint32_t exists;
};

// As load_key_query and load_quick.
__device__ __forceinline__ key_query make_key(const list_arguments &a, const list_slot &slot)
{
    if (!slot.exists) return make_key_query(0, 0, middle + aside, 0);
    return key_query_of(float_limit(slot.limit), __ldg(a.scan.queries.scales + slot.number),
                        __ldg(a.scan.queries.constants + slot.number));
}

template <key_kind KIND>
__device__ __forceinline__ quick_query make_quick(const list_arguments &a, const list_slot &slot)
{
    if (!slot.exists) return {KIND == key_kind::integer ? INT32_MIN : 0, {infinite, 1.0f}};
    const int constant = __ldg(a.scan.queries.constants + slot.number);
    if (KIND == key_kind::integer) return {most_sum(constant, slot.limit), {}};
    return {constant,
            make_query_bound(float_limit(slot.limit), __ldg(a.scan.queries.scales + slot.number))};
}

// A work item.
struct list_block {
    bsw_device_list_item its;
    list_slot *slots; // [queries], shared memory
    uint32_t begin, end;

    template <class SHAPE>
    __device__ static __forceinline__ list_block make(const list_arguments &a, void *rest)
    {
        if (blockIdx.x >= count_items(a.work)) return {{}, nullptr, 0, 0};
        const bsw_device_list_item item = load_item(a.work, blockIdx.x);
        return {item, static_cast<list_slot *>(rest), item.first_bundle,
                item.first_bundle + item.num_bundles};
    }

    __device__ __forceinline__ uint32_t number(const list_arguments &a, uint32_t i) const
    {
        return i < its.num_slots ? __ldg(a.work.queries + its.first_slot + i) : UINT32_MAX;
    }

    __device__ __forceinline__ list_slot load_slot(const list_arguments &a, uint32_t i) const
    {
        list_slot slot = {0, UINT32_MAX, 0.0f, 0};
        if (i >= its.num_slots) return slot;
        slot.number = number(a, i);
        slot.limit = __ldg(a.scan.lists.limits + slot.number);
        slot.exists = 1;
        if (a.work.additions) {
            slot.addition = __ldg(a.work.additions + its.first_slot + i);
            slot.limit = bsw_limit_before(slot.limit, slot.addition);
        }
        return slot;
    }

    template <class SHAPE, key_kind KIND>
    __device__ __forceinline__ void load(const list_arguments &a, const scan_shared &shared) const
    {
        for (uint32_t i = threadIdx.x; i < SHAPE::queries; i += tuning.threads) {
            const list_slot slot = load_slot(a, i);
            slots[i] = slot;
            if (KIND == key_kind::small_float)
                shared.key_queries[i] = make_key(a, slot);
            else
                shared.quick[i] = make_quick<KIND>(a, slot);
        }
    }

    __device__ __forceinline__ list_slot query(const list_arguments &, uint32_t i) const
    {
        return slots[i];
    }

    template <key_kind KIND>
    __device__ __forceinline__ thread_query keys(const list_arguments &a,
                                                 const list_slot &slot) const
    {
        if (!slot.exists) return {0, INT32_MIN, 0.0f, __uint_as_float(0x7fffffffu)};
        thread_query out = {__ldg(a.scan.queries.constants + slot.number), 0, 0.0f, 0.0f};
        if (KIND == key_kind::integer) {
            out.most_sum = most_sum(out.constant, slot.limit);
        } else {
            out.float_limit = float_limit(slot.limit);
            out.scale = __ldg(a.scan.queries.scales + slot.number);
        }
        return out;
    }

    template <key_kind KIND>
    __device__ __forceinline__ uint64_t item(const list_arguments &a, const list_slot &slot,
                                             uint32_t row, uint32_t score) const
    {
        if (KIND != key_kind::integer && a.work.additions)
            score = bsw_score_add(score, slot.addition);
        return pack_candidate(score, __ldg(a.work.rows + row));
    }
};

// bsw_device_list_tile_slots
static_assert(few_slots == 8 && few_queries::queries == 16 && some_queries::queries == 64 &&
              many_queries::queries == 256 && BSW_LIST_TILES == BSW_MATRIX_TILES + 1);

// Rows too long for it take the narrowest tile.
bool has_few(uint32_t tile, const bsw_code_layout &layout)
{
    return tile == 0 && few_shared_bytes(layout.padded_dims) <= few_tuning.most_shared;
}

cudaError_t launch_few(const list_arguments &a, bsw_stream stream)
{
    const launch_shape shape = {dim3(a.work.num_items), dim3(few_tuning.threads),
                                few_shared_bytes(a.scan.codes.layout.padded_dims), stream};
    return launch(shape, few_kernels<list_arguments>[static_cast<int>(choose_keys(a.scan))], a);
}

// ---- documents unpacked in registers ----

template <class SHAPE>
__global__ void __launch_bounds__(few::tuning.threads, SHAPE::least_blocks < 2 ? 1 : 2)
    scan_few_items(const __grid_constant__ list_arguments a)
{
    if (blockIdx.x >= count_items(a.work)) return;
    const few::item own = {a.scan, a.work, load_item(a.work, blockIdx.x)};
    const bsw_device_list_item &at = own.its;
    few::scan_documents<SHAPE>(a.scan, own,
                               {at.first_bundle + threadIdx.x / 32,
                                at.first_bundle + at.num_bundles, few::tuning.threads / warp_rows});
}

template <int QUERIES>
constexpr void (*register_kernels[3])(list_arguments) = {
    scan_few_items<few::few_shape<QUERIES, 0, key_kind::integer>>,
    scan_few_items<few::few_shape<QUERIES, 0, key_kind::small_float>>,
    scan_few_items<few::few_shape<QUERIES, 0, key_kind::any_float>>};

// Queries of the tiles that may take it.
static_assert(BSW_FEW_LIST_TILES == 2, "8 and 16 queries");

size_t register_bytes(uint32_t tile, const bsw_code_layout &layout)
{
    return few::shared_bytes(tile == 0 ? 8 : 16, layout.padded_dims);
}

cudaError_t launch_registers(const list_arguments &a, uint32_t tile, bsw_stream stream)
{
    const launch_shape shape = {dim3(a.work.num_items), dim3(few::tuning.threads),
                                register_bytes(tile, a.scan.codes.layout), stream};
    const auto &kernels = tile == 0 ? register_kernels<8> : register_kernels<16>;
    return launch(shape, kernels[static_cast<int>(choose_keys(a.scan))], a);
}

cudaError_t launch_tiles(const list_arguments &a, uint32_t tile, bsw_stream stream)
{
    const auto &chosen = matrix_kernels<list_arguments>[tile];
    const size_t bytes =
        select_shared_bytes(chosen.queries, chosen.bundles, a.scan.codes.layout.padded_dims) +
        chosen.queries * sizeof(list_slot);
    auto kernel = chosen.kernels[static_cast<int>(choose_keys(a.scan))];
    const launch_shape shape = {dim3(a.work.num_items), dim3(tuning.threads), bytes, stream};
    uint32_t resident; // the runtime has to be told of so much shared memory
    cudaError_t error =
        count_resident_blocks(reinterpret_cast<const void *>(kernel), shape, &resident);
    return error ? error : launch(shape, kernel, a);
}

} // namespace
} // namespace bsw

DEVICE_POINTERS(bsw::list_arguments, a.scan, a.work)

extern "C" int bsw_device_list_scan_mma(const struct bsw_device_codes *codes,
                                        const struct bsw_device_list_work *work, uint32_t tile,
                                        const struct bsw_device_queries *queries,
                                        const struct bsw_device_lists *lists, bsw_stream stream)
{
    using namespace bsw;
    if (!is_valid_list_scan(*codes, *work, tile, *queries, *lists)) return cudaErrorInvalidValue;
    if (work->num_items == 0 || queries->num_queries == 0) return cudaSuccess;
    const list_arguments a = {make_list_arguments(*codes, *queries, *lists), *work};
    if (has_few(tile, codes->layout)) return launch_few(a, stream);
    return launch_tiles(a, tile > 0 ? tile - 1 : 0, stream);
}

extern "C" int bsw_device_list_scan_few_fits(const struct bsw_code_layout *layout, uint32_t tile)
{
    return tile < BSW_FEW_LIST_TILES &&
           bsw::register_bytes(tile, *layout) <= bsw::few::tuning.most_shared;
}

extern "C" int bsw_device_list_scan_few(const struct bsw_device_codes *codes,
                                        const struct bsw_device_list_work *work, uint32_t tile,
                                        const struct bsw_device_queries *queries,
                                        const struct bsw_device_lists *lists, bsw_stream stream)
{
    using namespace bsw;
    if (!is_valid_list_scan(*codes, *work, tile, *queries, *lists) ||
        !bsw_device_list_scan_few_fits(&codes->layout, tile))
        return cudaErrorInvalidValue;
    if (work->num_items == 0 || queries->num_queries == 0) return cudaSuccess;
    return launch_registers({make_list_arguments(*codes, *queries, *lists), *work}, tile, stream);
}

extern "C" int bsw_device_list_scan(const struct bsw_device_codes *codes,
                                    const struct bsw_device_list_work *work, uint32_t tile,
                                    const struct bsw_device_queries *queries,
                                    const struct bsw_device_lists *lists, bsw_stream stream)
{
    const bsw_device_tuning *own = bsw_device_tuning_current();
    if (bsw_device_list_scan_few_fits(&codes->layout, tile) && own->few_lists[tile])
        return bsw_device_list_scan_few(codes, work, tile, queries, lists, stream);
    const bool is_hopper =
        bsw_device_lists_take_hopper(own, work->num_items, work->num_bundles, tile) &&
        bsw_device_has_hopper_lists(&codes->layout);
    return (is_hopper ? bsw_device_list_scan_hopper
                      : bsw_device_list_scan_mma)(codes, work, tile, queries, lists, stream);
}

#ifdef BITSWEEP_WITHOUT_HOPPER // no code for sm_90a: no device is a Hopper GPU
extern "C" int bsw_device_has_hopper_lists(const struct bsw_code_layout *)
{
    return 0;
}

extern "C" int bsw_device_list_scan_hopper(const struct bsw_device_codes *,
                                           const struct bsw_device_list_work *, uint32_t,
                                           const struct bsw_device_queries *,
                                           const struct bsw_device_lists *, bsw_stream)
{
    return cudaErrorInvalidValue;
}
#endif
