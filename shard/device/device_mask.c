// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_mask.h"

#include "common/base/memory.h"

static enum bsw_status wait(struct bsw_device_engine *engine, struct bsw_error *err)
{
    BSW_TRY(bsw_device_wait(engine->device, BSW_QUEUE_SCAN, "masks of rows", err));
    return bsw_device_wait(engine->device, BSW_QUEUE_COPY, "masks of rows", err);
}

// What the codes' masks are, from the device where the host has them no more.
static enum bsw_status allocate(struct bsw_device_engine *engine,
                                const struct bsw_device_shard *shard, struct bsw_error *err)
{
    struct bsw_device_mask *mask = shard->mask;
    size_t bytes = shard->num_bundles * sizeof(uint32_t),
           resident = shard->resident.num_bundles * sizeof(uint32_t);
    if (mask->joined) return BSW_OK;
    if (!shard->host->arrays.masks) {
        BSW_TRY(bsw_device_allocate_host(engine->device, bytes, "masks of rows", &mask->own, err));
        BSW_TRY(bsw_device_download(engine->device, BSW_QUEUE_SCAN, mask->own,
                                    shard->resident.masks, resident, err));
    }
    if (resident > 0)
        BSW_TRY(bsw_device_allocate(engine->device, resident, "masks of rows", &mask->memory, err));
    return bsw_device_allocate_host(engine->device, bytes, "masks of rows", &mask->joined, err);
}

static enum bsw_status send(struct bsw_device_engine *engine, const struct bsw_device_shard *shard,
                            struct bsw_error *err)
{
    struct bsw_device_mask *mask = shard->mask;
    const uint32_t *own = mask->own ? mask->own : shard->host->arrays.masks;
    for (size_t b = 0; b < shard->num_bundles; b++)
        mask->joined[b] = own[b] & mask->rows->bundles[b];
    mask->version = mask->rows->version;
    if (shard->resident.num_bundles == 0) return BSW_OK;
    return bsw_device_upload(engine->device, BSW_QUEUE_SCAN, mask->memory.data, mask->joined,
                             shard->resident.num_bundles * sizeof(uint32_t), err);
}

enum bsw_status bsw_device_mask_set(struct bsw_device_engine *engine,
                                    const struct bsw_device_shard *shard,
                                    const struct bsw_row_mask *rows, struct bsw_error *err)
{
    struct bsw_device_mask *mask = shard->mask;
    if (!mask || shard->num_bundles == 0) return BSW_OK;
    mask->rows = NULL;
    if (!rows) return BSW_OK;
    if (rows->version != mask->version) {
        mask->version = 0;
        BSW_TRY(allocate(engine, shard, err));
        BSW_TRY(wait(engine, err));
        mask->rows = rows;
        return send(engine, shard, err);
    }
    mask->rows = rows;
    return BSW_OK;
}

void bsw_device_mask_free(struct bsw_device_engine *engine, struct bsw_device_mask *mask)
{
    if (!mask) return;
    bsw_device_free(engine->device, &mask->memory);
    bsw_device_free_host(engine->device, &mask->joined);
    bsw_device_free_host(engine->device, &mask->own);
}

static int is_masked(const struct bsw_device_shard *shard)
{
    return shard->mask && shard->mask->rows;
}

struct bsw_device_codes bsw_device_masked_codes(const struct bsw_device_shard *shard)
{
    struct bsw_device_codes codes = shard->resident;
    if (is_masked(shard)) codes.masks = (const uint32_t *)(const void *)shard->mask->memory.data;
    return codes;
}

enum bsw_status bsw_device_mask_copied(struct bsw_device_engine *engine,
                                       const struct bsw_device_shard *shard, size_t first,
                                       size_t num_bundles, size_t to,
                                       const struct bsw_device_codes *codes, struct bsw_error *err)
{
    if (!is_masked(shard)) return BSW_OK;
    return bsw_device_upload(engine->device, BSW_QUEUE_COPY,
                             (uint32_t *)(uintptr_t)codes->masks + to, shard->mask->joined + first,
                             num_bundles * sizeof(uint32_t), err);
}

uint64_t bsw_device_masked_rows(const struct bsw_device_shard *shard)
{
    return is_masked(shard) ? shard->mask->rows->num_rows : shard->host->shape.num_rows;
}

uint64_t bsw_device_masked_list_rows(const struct bsw_device_shard *shard, uint32_t list)
{
    const struct bsw_list_order *order = &shard->host->order;
    const uint32_t *first = order->first_bundles + list;
    return is_masked(shard) ? bsw_row_mask_count(shard->mask->rows, first[0], first[1] - first[0])
                            : bsw_list_num_rows(order, list);
}
