// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_row_queues.h"

#include "common/device/device_phase.h"
#include "kernels/gpu_select/gpu_select.h"
#include "kernels/select/select.h"

enum bsw_status bsw_device_row_queues_begin(struct bsw_device_list_run *run, struct bsw_error *err)
{
    run->lists.queues.first_block = 0;
    int code =
        bsw_device_row_queues_clear(&run->lists, bsw_device_stream(run->device, BSW_QUEUE_SCAN));
    return bsw_device_launched(run->device, code, "queues", err);
}

// As many blocks as there were before.
static uint32_t round_blocks(const struct bsw_device_list_run *run)
{
    const struct bsw_device_row_queues *queues = &run->lists.queues;
    if (queues->first_block == 0) return 1;
    return queues->first_block < queues->num_blocks ? queues->first_block : queues->num_blocks;
}

// The bundle at which the round under way ends.
static size_t round_end(const struct bsw_device_list_run *run, size_t shard_bundles)
{
    const struct bsw_device_row_queues *queues = &run->lists.queues;
    size_t block_bundles = (size_t)queues->items * (BSW_QUEUE_THREADS / BSW_BUNDLE_ROWS);
    size_t end = ((size_t)queues->first_block + round_blocks(run)) * block_bundles;
    return end < shard_bundles ? end : shard_bundles;
}

static enum bsw_status end_round(struct bsw_device_list_run *run, struct bsw_error *err)
{
    BSW_DEVICE_PHASE(CUT);
    bsw_device *device = run->device;
    uint32_t blocks = round_blocks(run);
    int code =
        bsw_device_row_queues_take(&run->lists, blocks, bsw_device_stream(device, BSW_QUEUE_SCAN));
    BSW_TRY(bsw_device_launched(device, code, "queues", err));
    code =
        bsw_device_cut(&run->lists, (uint32_t)run->keep, bsw_device_stream(device, BSW_QUEUE_SCAN));
    run->lists.queues.first_block += blocks;
    run->num_segments++;
    return bsw_device_launched(device, code, "cut", err);
}

enum bsw_status bsw_device_row_queues_scan(struct bsw_device_list_run *run, size_t num_bundles,
                                           size_t shard_bundles, bsw_device_scan_fn scan,
                                           void *context, struct bsw_error *err)
{
    size_t before = run->done, last = before + num_bundles;
    while (run->done < last) {
        size_t end = round_end(run, shard_bundles), to = end < last ? end : last;
        if (to - run->done > BSW_MOST_SEGMENT_BUNDLES) to = run->done + BSW_MOST_SEGMENT_BUNDLES;
        const struct bsw_device_part part = {(uint32_t)(run->done - before),
                                             (uint32_t)(to - before), 1};
        BSW_TRY(scan(context, &part, &run->lists, err));
        run->scanned += to - run->done;
        run->done = to;
        if (to == end) BSW_TRY(end_round(run, err));
    }
    if (last == shard_bundles)
        BSW_TRY(bsw_device_download(run->device, BSW_QUEUE_SCAN, run->counts, run->lists.counts,
                                    run->lists.num_queries * sizeof(uint32_t), err));
    return bsw_device_wait(run->device, BSW_QUEUE_SCAN, "scan", err);
}
