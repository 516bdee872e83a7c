// SPDX-License-Identifier: Apache-2.0
// What rbeGIR's queues keep, to the lists: a block of threads a block of queues and query. The
// scans fill them (put_in_queue of device_key.cuh): a queue takes a row by a maximum at each of its
// slots, so nothing lies between the products and the queues, and only rows that reach their
// query's limit come that far.
#include "kernels/device_scan/device_key.cuh"

namespace bsw
{
namespace
{

__global__ void __launch_bounds__(BSW_QUEUE_THREADS)
    take_queues(const __grid_constant__ bsw_device_lists lists, uint32_t num_blocks)
{
    const uint32_t query = blockIdx.x / num_blocks, block = blockIdx.x % num_blocks;
    unsigned long long *slot = slots_of(lists.queues, query, block) + threadIdx.x;
    for (uint32_t i = 0; i < lists.queues.length; i++, slot += BSW_QUEUE_THREADS) {
        const unsigned long long item = *slot;
        append_bundle(lists, query, item != 0, item);
        if (item != 0) *slot = 0;
    }
}

} // namespace
} // namespace bsw

extern "C" int bsw_device_row_queues_clear(const struct bsw_device_lists *lists, bsw_stream stream)
{
    const bsw_device_row_queues &queues = lists->queues;
    const size_t slots = static_cast<size_t>(lists->num_queries) * queues.num_blocks *
                         queues.length * BSW_QUEUE_THREADS;
    return cudaMemsetAsync(queues.slots, 0, slots * sizeof(uint64_t), stream);
}

extern "C" int bsw_device_row_queues_take(const struct bsw_device_lists *lists, uint32_t num_blocks,
                                          bsw_stream stream)
{
    const uint64_t blocks = static_cast<uint64_t>(num_blocks) * lists->num_queries;
    if (num_blocks > lists->queues.num_blocks || blocks > INT32_MAX) return cudaErrorInvalidValue;
    if (blocks == 0) return cudaSuccess;
    return bsw::launch({dim3(static_cast<unsigned>(blocks)), dim3(BSW_QUEUE_THREADS), 0, stream},
                       bsw::take_queues, *lists, num_blocks);
}
