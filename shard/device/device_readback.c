// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_readback.h"

#include <string.h>

size_t bsw_device_readback_bytes(const struct bsw_shard_shape *shape)
{
    uint32_t blocks = shape->num_blocks;
    return bsw_shard_block_bytes(shape, 0) *
           (blocks < BSW_READBACK_BLOCKS ? blocks : BSW_READBACK_BLOCKS);
}

uint32_t bsw_device_readback_most(const struct bsw_shard_shape *shape)
{
    size_t most = BSW_READBACK_BYTES / bsw_shard_block_bytes(shape, 0);
    return most < 1 ? 1 : most > UINT32_MAX ? UINT32_MAX : (uint32_t)most;
}

// Queues the copies of bundles [first, first + num_bundles), as a block has them.
static enum bsw_status send_for(struct bsw_device_engine *engine,
                                const struct bsw_device_shard *shard, size_t first,
                                size_t num_bundles, void *to, struct bsw_code_arrays *out,
                                struct bsw_error *err)
{
    const struct bsw_code_arrays there = bsw_device_code_arrays(&shard->resident);
    const struct bsw_shard_shape *shape = &shard->host->shape;
    const struct bsw_code_array_list list = bsw_code_arrays_list(shape);
    bsw_code_arrays_in_block(shape, to, num_bundles, out);
    out->row_digests = NULL;
    if (!there.tails) out->tails = NULL;
    for (size_t i = 0; i < list.count; i++) {
        const void *from = bsw_code_array_at(&there, &list.items[i], first);
        void *array = bsw_code_array_at(out, &list.items[i], 0);
        if (array)
            BSW_TRY(bsw_device_download(engine->device, BSW_QUEUE_COPY, array, from,
                                        num_bundles * list.items[i].bundle_bytes, err));
    }
    return BSW_OK;
}

enum bsw_status bsw_device_shard_fetch(struct bsw_device_engine *engine,
                                       const struct bsw_device_shard *shard, size_t bundle,
                                       struct bsw_resident_shard *out, struct bsw_error *err)
{
    *out = (struct bsw_resident_shard){
        .index = shard->host->index, .shape = shard->host->shape, .num_bundles = 1};
    if (shard->host->arrays.masks) {
        *out = bsw_resident_shard_bundle(shard->host, bundle);
        return BSW_OK;
    }
    BSW_TRY(send_for(engine, shard, bundle, 1, engine->readback, &out->arrays, err));
    return bsw_device_wait(engine->device, BSW_QUEUE_COPY, "codes from the device", err);
}

uint32_t bsw_device_shard_blocks(const struct bsw_device_shard *shard)
{
    uint32_t bundles = shard->host->shape.block_bundles;
    return (shard->resident.num_bundles + bundles - 1) / bundles;
}

// A block that came back.
struct returned_block {
    uint32_t block;
    size_t num_bundles; // of it that are on the device
    struct bsw_code_arrays arrays;
};

// Where only a part of the block is on the device the host has all of it.
static enum bsw_status check_returned(const struct bsw_device_shard *shard,
                                      const struct returned_block *returned, struct bsw_error *err)
{
    const struct bsw_resident_shard *host = shard->host;
    const struct bsw_shard_shape *shape = &host->shape;
    size_t first = (size_t)returned->block * shape->block_bundles;
    int is_whole = returned->num_bundles == bsw_shard_block_bundles(shape, returned->block);
    for (int part = 0; part <= BSW_PART_TAILS; part++) {
        if (part == BSW_PART_TAILS && !returned->arrays.tails) continue;
        enum bsw_code_part kind = (enum bsw_code_part)part;
        uint64_t expected = is_whole ? host->digests[returned->block].parts[part]
                                     : bsw_code_arrays_digest(shape, &host->arrays, first,
                                                              returned->num_bundles, kind);
        if (bsw_code_arrays_digest(shape, &returned->arrays, 0, returned->num_bundles, kind) !=
            expected) {
            return bsw_resident_shard_fail_block(host, returned->block, part, err);
        }
    }
    return BSW_OK;
}

static enum bsw_status check_group(struct bsw_device_engine *engine,
                                   const struct bsw_device_shard *shard, uint32_t first,
                                   uint32_t num_blocks, struct bsw_error *err)
{
    const struct bsw_shard_shape *shape = &shard->host->shape;
    struct returned_block returned[BSW_READBACK_BLOCKS];
    struct bsw_first_failure failure = {0};
    for (uint32_t i = 0; i < num_blocks; i++) {
        size_t bundle = (size_t)(first + i) * shape->block_bundles;
        size_t left = shard->resident.num_bundles - bundle,
               whole = bsw_shard_block_bundles(shape, first + i);
        returned[i] =
            (struct returned_block){.block = first + i, .num_bundles = left < whole ? left : whole};
        BSW_TRY(send_for(engine, shard, bundle, returned[i].num_bundles,
                         engine->readback + i * bsw_shard_block_bytes(shape, 0),
                         &returned[i].arrays, err));
    }
    BSW_TRY(bsw_device_wait(engine->device, BSW_QUEUE_COPY, "codes from the device", err));
#pragma omp parallel for schedule(static)
    for (uint32_t i = 0; i < num_blocks; i++) {
        struct bsw_error thread_error;
        enum bsw_status status = check_returned(shard, &returned[i], &thread_error);
        if (status != BSW_OK) bsw_first_failure_note(&failure, i, status, &thread_error);
    }
    return bsw_first_failure_report(&failure, err);
}

enum bsw_status bsw_device_shard_check(struct bsw_device_engine *engine,
                                       const struct bsw_device_shard *shard, uint32_t first,
                                       uint32_t num_blocks, struct bsw_error *err)
{
    uint32_t last = first + num_blocks, end = bsw_device_shard_blocks(shard);
    if (last > end) last = end;
    for (uint32_t block = first; block < last; block += BSW_READBACK_BLOCKS) {
        uint32_t left = last - block;
        BSW_TRY(check_group(engine, shard, block,
                            left < BSW_READBACK_BLOCKS ? left : BSW_READBACK_BLOCKS, err));
    }
    return BSW_OK;
}
