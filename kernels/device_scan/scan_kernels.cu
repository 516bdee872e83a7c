// SPDX-License-Identifier: Apache-2.0
// Which kernel of scan_kernels.h takes a batch.
#include "kernels/device_scan/scan_kernels.h"

#include "kernels/device_scan/scan_arguments.cuh"

namespace bsw
{
namespace
{

struct scan_functions {
    bool (*fits)(const bsw_code_layout &, uint32_t query_bits, uint32_t num_queries);
    cudaError_t (*scan)(scan_arguments, cudaStream_t);
};

#define HAS(x, ...)   {x##_fits, scan_##x},
#define LACKS(x, ...) {nullptr, nullptr},
#ifdef BITSWEEP_WITHOUT_HOPPER // no code for sm_90a
#define HAS_HOPPER LACKS
#else
#define HAS_HOPPER HAS
#endif
constexpr scan_functions functions[BSW_NUM_SCANS] = {BSW_COMMON_SCANS(HAS)
                                                         BSW_HOPPER_SCANS(HAS_HOPPER)};

bool is_above(uint32_t value, uint32_t most)
{
    return most > 0 && value > most;
}

bool fits(uint32_t number, const bsw_code_layout &layout, uint32_t query_bits, uint32_t num_queries)
{
    const bsw_scan_row &row = bsw_scan_rows[number];
    if (!functions[number].scan || (row.is_hopper && !is_hopper())) return false;
    if (is_above(layout.num_segments, row.most_segments) ||
        is_above(layout.padded_dims, row.most_dims) || is_above(num_queries, row.most_queries))
        return false;
    for (uint32_t s = 0; s < layout.num_segments; s++)
        if (is_above(layout.segments[s].bits, row.most_bits)) return false;
    return functions[number].fits(layout, query_bits, num_queries);
}

// Kernels of a family, and the one that fits anything.
struct scan_family {
    const bsw_scan_choice *choices;
    uint32_t last;
};

scan_family family_of(bsw_scan_family family)
{
    const bsw_device_tuning &own = *bsw_device_tuning_current();
    if (family == BSW_PLANE_SCANS) return {own.plane_scans, BSW_SCAN_BY_popcount};
    return {own.matrix_scans, BSW_SCAN_BY_mma};
}

uint32_t choose(const scan_family &family, const bsw_code_layout &layout, uint32_t query_bits,
                uint32_t num_queries)
{
    for (uint32_t i = 0; i < BSW_MOST_CHOICES; i++) {
        const bsw_scan_choice &choice = family.choices[i];
        if (choice.number < BSW_NUM_SCANS && num_queries <= choice.most_queries &&
            fits(choice.number, layout, query_bits, num_queries))
            return choice.number;
    }
    return family.last;
}

template <class T> T *behind(T *place, size_t by)
{
    return place ? place + by : nullptr;
}

// Queries first .. first + num - 1 of a batch, and their lists.
bsw_device_queries some_queries(const bsw_device_queries &all, uint32_t padded_dims, uint32_t first,
                                uint32_t num)
{
    bsw_device_queries out = all;
    out.num_queries = num;
    out.words = behind(all.words, static_cast<size_t>(first) * all.query_words);
    out.components = behind(all.components, static_cast<size_t>(first) * padded_dims);
    out.constants = behind(all.constants, first);
    out.scales = behind(all.scales, first);
    return out;
}

bsw_device_lists some_lists(const bsw_device_lists &all, uint32_t first, uint32_t num)
{
    bsw_device_lists out = all;
    const size_t slots = static_cast<size_t>(all.queues.num_blocks) * all.queues.length;
    out.num_queries = num;
    out.items = behind(all.items, static_cast<size_t>(first) * all.capacity);
    out.counts = behind(all.counts, first);
    out.limits = behind(all.limits, first);
    out.raised = behind(all.raised, first);
    out.queues.slots = behind(all.queues.slots, first * slots * BSW_QUEUE_THREADS);
    return out;
}

// How many of the queries the kernel takes: what is left beyond whole blocks of it waits if another
// one is to take it.
uint32_t queries_of(const scan_family &family, uint32_t number, const bsw_code_layout &layout,
                    const bsw_device_queries &left)
{
    const uint32_t block = bsw_scan_rows[number].block_queries;
    const uint32_t rest = block > 0 ? left.num_queries % block : 0;
    if (rest == 0 || rest == left.num_queries ||
        choose(family, layout, left.query_bits, rest) == number)
        return left.num_queries;
    return left.num_queries - rest;
}

bool is_empty(const bsw_device_part &part, const bsw_device_queries &queries)
{
    return part.first == part.last || queries.num_queries == 0;
}

int scan(const scan_family &family, const bsw_device_codes &codes, const bsw_device_part &part,
         const bsw_device_queries &queries, const bsw_device_lists &lists, bsw_stream stream)
{
    const bsw_code_layout &layout = codes.layout;
    if (!is_valid_scan(codes, part, queries, lists)) return cudaErrorInvalidValue;
    bsw_device_queries left = queries;
    bsw_device_lists own = lists;
    cudaError_t error = cudaSuccess;
    while (!error && !is_empty(part, left)) {
        const uint32_t number = choose(family, layout, left.query_bits, left.num_queries);
        const uint32_t num = queries_of(family, number, layout, left);
        error = functions[number].scan(
            make_scan_arguments(codes, part, some_queries(left, layout.padded_dims, 0, num),
                                some_lists(own, 0, num)),
            stream);
        own = some_lists(own, num, left.num_queries - num);
        left = some_queries(left, layout.padded_dims, num, left.num_queries - num);
    }
    return error;
}

} // namespace
} // namespace bsw

extern "C" int bsw_device_scan_fits(uint32_t number, const struct bsw_code_layout *layout,
                                    uint32_t query_bits, uint32_t num_queries)
{
    return number < BSW_NUM_SCANS && bsw::fits(number, *layout, query_bits, num_queries);
}

extern "C" int bsw_device_scan_by(uint32_t number, const struct bsw_device_codes *codes,
                                  const struct bsw_device_part *part,
                                  const struct bsw_device_queries *queries,
                                  const struct bsw_device_lists *lists, bsw_stream stream)
{
    using namespace bsw;
    if (!is_valid_scan(*codes, *part, *queries, *lists) ||
        !bsw_device_scan_fits(number, &codes->layout, queries->query_bits, queries->num_queries))
        return cudaErrorInvalidValue;
    if (is_empty(*part, *queries)) return cudaSuccess;
    return functions[number].scan(make_scan_arguments(*codes, *part, *queries, *lists), stream);
}

extern "C" int bsw_device_plane_scan(const struct bsw_device_codes *codes,
                                     const struct bsw_device_part *part,
                                     const struct bsw_device_queries *queries,
                                     const struct bsw_device_lists *lists, bsw_stream stream)
{
    return bsw::scan(bsw::family_of(BSW_PLANE_SCANS), *codes, *part, *queries, *lists, stream);
}

extern "C" int bsw_device_matrix_scan(const struct bsw_device_codes *codes,
                                      const struct bsw_device_part *part,
                                      const struct bsw_device_queries *queries,
                                      const struct bsw_device_lists *lists, bsw_stream stream)
{
    return bsw::scan(bsw::family_of(BSW_MATRIX_SCANS), *codes, *part, *queries, *lists, stream);
}

extern "C" int bsw_device_takes_matrix(const struct bsw_code_layout *layout, uint32_t query_bits,
                                       uint32_t num_queries)
{
    using namespace bsw;
    const uint32_t from = bsw_device_tuning_current()->matrix_from_queries;
    if (num_queries >= from) return 1;
    if (from == UINT32_MAX) return 0;
    const uint32_t plane = choose(family_of(BSW_PLANE_SCANS), *layout, query_bits, num_queries);
    const uint32_t matrix = choose(family_of(BSW_MATRIX_SCANS), *layout, query_bits, num_queries);
    return plane == BSW_SCAN_BY_popcount &&
           (matrix == BSW_SCAN_BY_few || matrix == BSW_SCAN_BY_few_any);
}
