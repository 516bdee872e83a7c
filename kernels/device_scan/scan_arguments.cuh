// SPDX-License-Identifier: Apache-2.0
// What both scans are launched with, and what both check.
#ifndef BITSWEEP_KERNELS_SCAN_ARGUMENTS_CUH
#define BITSWEEP_KERNELS_SCAN_ARGUMENTS_CUH

#include "kernels/current_device.cuh"
#include "kernels/device_scan/device_key.cuh"
#include "kernels/device_scan/device_tuning.h"
#include "kernels/device_scan/scan_kernels.h"

namespace bsw
{

// By value, in constant memory: below the 4 KB that a launch may carry.
struct scan_arguments {
    bsw_device_codes codes;
    bsw_device_queries queries;
    bsw_device_lists lists;
    bsw_device_part part;
    uint32_t num_bundles; // of the part; kernels count them from 0
    uint32_t num_groups;  // of queries: block = chunk * num_groups + group, so that the blocks of
                          // one chunk of codes run close together and share it in the cache
    uint32_t chunk;       // bundles of a block
    int32_t dot_limit;    // bsw_layout_dot_limit
};
static_assert(sizeof(scan_arguments) <= 4096, "more than a launch carries");

// Where in the codes the part's bundle i is.
__device__ __forceinline__ uint32_t bundle_of(const scan_arguments &a, uint32_t i)
{
    return a.part.first + i * a.part.step;
}

DEVICE_POINTERS(scan_arguments, a.codes, a.queries, a.lists)

inline uint32_t num_bundles_of(const bsw_device_part &part)
{
    return (part.last - part.first) / part.step + ((part.last - part.first) % part.step != 0);
}

// Whether all rows of the part, if it has any, belong to blocks that have room in the queues.
inline bool has_queues_for(const bsw_device_codes &codes, const bsw_device_part &part,
                           const bsw_device_row_queues &queues)
{
    if (queues.items < 1 || queues.length < 1) return false;
    if (part.first == part.last) return true;
    const uint64_t block_rows = static_cast<uint64_t>(queues.items) * BSW_QUEUE_THREADS;
    const uint64_t row = codes.first_row, rows = warp_rows;
    const uint64_t first = (row + part.first * rows) / block_rows;
    const uint64_t last = (row + part.last * rows - 1) / block_rows;
    return first >= queues.first_block && last - queues.first_block < queues.num_blocks;
}

inline bool is_valid_scan(const bsw_device_codes &codes, const bsw_device_part &part,
                          const bsw_device_queries &queries, const bsw_device_lists &lists)
{
    if (part.step < 1 || part.first > part.last || part.last > codes.num_bundles) return false;
    const uint64_t rows = static_cast<uint64_t>(num_bundles_of(part)) * warp_rows;
    if (lists.queues.slots && !has_queues_for(codes, part, lists.queues)) return false;
    const bool has_keys = !codes.scales == !queries.scales && !codes.scales == !codes.biases;
    return lists.num_queries == queries.num_queries && queries.query_bits >= 1 &&
           queries.query_bits <= BSW_MAX_QUERY_BITS &&
           queries.query_words == bsw_layout_query_words(&codes.layout, queries.query_bits) &&
           rows + lists.capacity <= UINT32_MAX && has_keys;
}

// Fills in everything but the shape of the launch.
inline scan_arguments make_scan_arguments(const bsw_device_codes &codes,
                                          const bsw_device_part &part,
                                          const bsw_device_queries &queries,
                                          const bsw_device_lists &lists)
{
    scan_arguments a = {codes, queries, lists, part, num_bundles_of(part), 0, 0, 0};
    a.dot_limit = static_cast<int32_t>(bsw_layout_dot_limit(&codes.layout, queries.query_bits));
    return a;
}

// What each kernel of scan_kernels.h gives: whether it takes such codes and so many queries, where
// its row says no more; and its launch, of arguments that are valid, of rows and queries that there
// are, and that fit.
#define BSW_DECLARE_SCAN(x, ...)                                                             \
    bool x##_fits(const bsw_code_layout &layout, uint32_t query_bits, uint32_t num_queries); \
    cudaError_t scan_##x(scan_arguments a, cudaStream_t stream);
BSW_COMMON_SCANS(BSW_DECLARE_SCAN)
BSW_HOPPER_SCANS(BSW_DECLARE_SCAN)

// Whether the current device is a Hopper GPU.
inline bool is_hopper()
{
    device_traits device;
    return !get_device_traits(&device) && device.major == 9 && device.minor == 0;
}

// How blocks share the work: a block takes a group of queries and a chunk of some steps of `step`
// bundles each.
struct block_plan {
    uint32_t group, step;
    bsw_device_division division;
};

// Sets groups and chunk, and the grid of the kernel's launch, whose shape is complete but for that.
template <class... P>
cudaError_t plan_blocks(scan_arguments &a, const block_plan &plan, void (*kernel)(P...),
                        launch_shape &shape)
{
    uint32_t resident = 0;
    cudaError_t error =
        count_resident_blocks(reinterpret_cast<const void *>(kernel), shape, &resident);
    if (error) return error;
    const uint64_t target = static_cast<uint64_t>(resident) * plan.division.waves;
    const uint64_t most_steps = plan.division.most_steps;
    a.num_groups = (a.queries.num_queries + plan.group - 1) / plan.group;
    const uint64_t steps =
        static_cast<uint64_t>(a.num_bundles) * a.num_groups / (plan.step * target);
    a.chunk = plan.step * static_cast<uint32_t>(steps < 1            ? 1
                                                : steps > most_steps ? most_steps
                                                                     : steps);
    const uint64_t blocks =
        static_cast<uint64_t>((a.num_bundles + a.chunk - 1) / a.chunk) * a.num_groups;
    shape.grid = dim3(static_cast<unsigned>(blocks));
    return blocks <= INT32_MAX ? cudaSuccess : cudaErrorInvalidValue;
}

} // namespace bsw

#endif
