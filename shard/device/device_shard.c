// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_shard.h"

#include <string.h>

#include "common/base/memory.h"
#include "common/device/device_phase.h"
#include "kernels/device_scan/device_tuning.h"
#include "shard/device/device_gpu_items.h"
#include "shard/device/device_graph.h"
#include "shard/device/device_mask.h"
#include "shard/device/device_readback.h"
#include "shard/device/device_self_check.h"
#include "shard/device/device_tables.h"

// Answers of a group of queries come through memory that stays in place up to so many bytes, else
// block by block.
#define MOST_ANSWER_BYTES ((size_t)32 << 20)

// ---- what all shards share ----

// Room for blocks of the largest shard.
static enum bsw_status allocate_readback(struct bsw_device_engine *engine,
                                         const struct bsw_device_needs *needs,
                                         struct bsw_error *err)
{
    size_t most = 0;
    for (size_t i = 0; i < needs->num_shards; i++) {
        size_t bytes = bsw_device_readback_bytes(&needs->shapes[i]);
        most = bytes > most ? bytes : most;
    }
    return bsw_device_allocate_host(engine->device, most, "self-checks", &engine->readback, err);
}

static int has_graphs(const struct bsw_device_needs *needs)
{
    if (needs->graphs == BSW_GRAPHS_AUTO) return needs->tuning->has_graphs != 0;
    return needs->graphs == BSW_GRAPHS_ON;
}

static enum bsw_status allocate_engine(struct bsw_device_engine *engine,
                                       const struct bsw_device_needs *needs, struct bsw_error *err)
{
    const struct bsw_device_plan *plan = &engine->plan;
    bsw_device *device = engine->device;
    if (plan->group_queries == 0) return BSW_OK; // no shards
    BSW_TRY(bsw_device_allocate(device, plan->queries.bytes, "queries", &engine->queries, err));
    if (plan->list_bytes > 0) {
        BSW_TRY(bsw_device_allocate(device, plan->list_bytes, "work items", &engine->tables, err));
        BSW_TRY(bsw_device_allocate_host(device, plan->list_bytes, "work items",
                                         &engine->table_staging, err));
    }
    if (plan->gpu_lists.bytes > 0) {
        BSW_TRY(
            bsw_device_allocate(device, plan->gpu_lists.bytes, "lists", &engine->gpu_lists, err));
        BSW_TRY(bsw_device_allocate_host(device, sizeof *engine->list_totals, "counts",
                                         &engine->list_totals, err));
    }
    for (int i = 0; i < 2 && plan->block_bundles > 0; i++)
        BSW_TRY(bsw_device_allocate(device, plan->block_bytes, "block", &engine->blocks[i], err));
    BSW_TRY(bsw_device_allocate_host(device, plan->queries.upload_bytes, "queries",
                                     &engine->staging, err));
    if (plan->stage_dims > 0)
        BSW_TRY(
            bsw_device_allocate_host(device, sizeof(uint64_t), "counts", &engine->survivors, err));
    if (plan->selection.is_on)
        BSW_TRY(bsw_device_allocate_host(device, 2 * sizeof(uint64_t), "counts",
                                         &engine->entry_counts, err));
    BSW_TRY(bsw_device_allocate_host(
        device, bsw_device_lists_numbers(plan->group_queries) * sizeof(uint32_t), "counts",
        &engine->list_counts, err));
    size_t answer_bytes = plan->group_queries * plan->keep * sizeof(uint64_t);
    if (answer_bytes <= MOST_ANSWER_BYTES)
        BSW_TRY(
            bsw_device_allocate_host(device, answer_bytes, "candidates", &engine->answers, err));
    BSW_TRY(bsw_device_blocks_open(device, BSW_DEVICE_BLOCK_BYTES, &engine->transfer, err));
    BSW_TRY(bsw_device_book_load(engine, needs, err));
    if (has_graphs(needs)) BSW_TRY(bsw_device_graphs_open(engine, err));
    return allocate_readback(engine, needs, err);
}

enum bsw_status bsw_device_engine_open(bsw_device *device, const struct bsw_device_needs *asked,
                                       struct bsw_device_engine *out, struct bsw_error *err)
{
    struct bsw_device_needs needs = *asked;
    size_t free_bytes;
    *out = (struct bsw_device_engine){.device = device};
    BSW_TRY(bsw_device_free_bytes(device, &free_bytes, err));
    if (!needs.tuning) needs.tuning = bsw_device_tuning_current();
    enum bsw_status status = bsw_device_plan_make(&needs, free_bytes, &out->plan, err);
    if (status != BSW_OK) bsw_prefix(err, status, "%s: ", bsw_device_label(device));
    if (status == BSW_OK) status = allocate_engine(out, &needs, err);
    if (status != BSW_OK) bsw_device_engine_close(out);
    return status;
}

void bsw_device_engine_close(struct bsw_device_engine *engine)
{
    if (!engine->device) return;
    bsw_device_graphs_close(engine);
    bsw_device_free(engine->device, &engine->queries);
    bsw_device_free(engine->device, &engine->tables);
    bsw_device_free(engine->device, &engine->gpu_lists);
    bsw_device_free(engine->device, &engine->book);
    for (int i = 0; i < 2; i++) bsw_device_free(engine->device, &engine->blocks[i]);
    bsw_device_free_host(engine->device, &engine->staging);
    bsw_device_free_host(engine->device, &engine->table_staging);
    bsw_device_free_host(engine->device, &engine->list_counts);
    bsw_device_free_host(engine->device, &engine->answers);
    bsw_device_free_host(engine->device, &engine->survivors);
    bsw_device_free_host(engine->device, &engine->entry_counts);
    bsw_device_free_host(engine->device, &engine->list_totals);
    bsw_device_free_host(engine->device, &engine->readback);
    bsw_device_blocks_close(&engine->transfer);
    bsw_device_plan_deinit(&engine->plan);
    bsw_free(&engine->begun);
    bsw_list_groups_deinit(&engine->list_groups);
    bsw_buffer_deinit(&engine->lists_looked_at);
    bsw_buffer_deinit(&engine->block_numbers);
    bsw_buffer_deinit(&engine->block_runs);
    for (int i = 0; i < 2; i++) bsw_buffer_deinit(&engine->block_orders[i]);
    engine->device = NULL;
}

// ---- codes ----

struct bsw_code_arrays bsw_device_code_arrays(const struct bsw_device_codes *codes)
{
    struct bsw_code_arrays arrays = {.scales = (uint16_t *)(uintptr_t)codes->scales,
                                     .tails = (uint16_t *)(uintptr_t)codes->tails,
                                     .biases = (float *)(uintptr_t)codes->biases,
                                     .offsets = (int32_t *)(uintptr_t)codes->offsets,
                                     .masks = (uint32_t *)(uintptr_t)codes->masks};
    memcpy(arrays.planes, codes->planes, sizeof arrays.planes);
    return arrays;
}

static enum bsw_status send(struct bsw_device_engine *engine, int is_pinned, void *to,
                            const void *from, size_t bytes, struct bsw_error *err)
{
    if (is_pinned) return bsw_device_upload(engine->device, BSW_QUEUE_COPY, to, from, bytes, err);
    return bsw_device_blocks_upload(&engine->transfer, to, from, bytes, "codes to the device", err);
}

// Scans on a device read a bias of every row, also where the host has none.
static enum bsw_status send_zero_biases(struct bsw_device_engine *engine, size_t num_bundles,
                                        float *to, struct bsw_error *err)
{
    static const float zeros[1 << 14];
    size_t left = num_bundles * BSW_BUNDLE_ROWS, most = sizeof zeros / sizeof zeros[0];
    for (size_t count; left > 0; left -= count, to += count) {
        count = left < most ? left : most;
        BSW_TRY(bsw_device_blocks_upload(&engine->transfer, to, zeros, count * sizeof *to,
                                         "codes to the device", err));
    }
    return BSW_OK;
}

void bsw_device_codes_point(const struct bsw_device_plan *plan, size_t num_bundles,
                            const struct bsw_device_buffer *memory, struct bsw_device_codes *out)
{
    unsigned char *to = memory->data;
    struct bsw_device_codes_layout at;
    bsw_device_codes_layout_make(&plan->layout, plan->keys, plan->stage_dims > 0, num_bundles, &at);
    *out = (struct bsw_device_codes){.layout = plan->layout,
                                     .masks = (const uint32_t *)(void *)(to + at.masks),
                                     .num_bundles = (uint32_t)num_bundles};
    for (uint32_t s = 0; s < plan->layout.num_segments; s++)
        out->planes[s] = (const uint32_t *)(void *)(to + at.planes[s]);
    if (plan->has_affine) {
        out->scales = (const uint16_t *)(void *)(to + at.scales);
        out->biases = (const float *)(void *)(to + at.biases);
    }
    if (plan->stage_dims > 0) out->tails = (const uint16_t *)(void *)(to + at.tails);
    if (plan->keys == BSW_DEVICE_KEYS_WHOLE)
        out->offsets = (const int32_t *)(void *)(to + at.offsets);
}

enum bsw_status bsw_device_copy_run(struct bsw_device_engine *engine,
                                    const struct bsw_device_shard *shard, size_t first,
                                    size_t num_bundles, size_t to, int is_pinned,
                                    const struct bsw_device_codes *codes, struct bsw_error *err)
{
    const struct bsw_resident_shard *host = shard->host;
    const struct bsw_code_array_list list = bsw_code_arrays_list(&host->shape);
    const struct bsw_code_arrays there = bsw_device_code_arrays(codes);
    for (size_t i = 0; i < list.count; i++) {
        void *array = bsw_code_array_at(&there, &list.items[i], to);
        if (array)
            BSW_TRY(send(engine, is_pinned, array,
                         bsw_code_array_at(&host->arrays, &list.items[i], first),
                         num_bundles * list.items[i].bundle_bytes, err));
    }
    BSW_TRY(bsw_device_mask_copied(engine, shard, first, num_bundles, to, codes, err));
    if (!codes->biases || host->shape.has_biases) return BSW_OK;
    return send_zero_biases(engine, num_bundles, there.biases + to * BSW_BUNDLE_ROWS, err);
}

enum bsw_status bsw_device_copy_codes(struct bsw_device_engine *engine,
                                      const struct bsw_device_shard *shard, size_t first,
                                      size_t num_bundles, const struct bsw_device_buffer *memory,
                                      int is_pinned, struct bsw_device_codes *out,
                                      struct bsw_error *err)
{
    bsw_device_codes_point(&engine->plan, num_bundles, memory, out);
    out->first_row = (uint32_t)(first * BSW_BUNDLE_ROWS);
    return bsw_device_copy_run(engine, shard, first, num_bundles, 0, is_pinned, out, err);
}

// The arrays that blocks are copied from. If the system refuses one, all go through `transfer`.
static void pin_codes(struct bsw_device_engine *engine, struct bsw_device_shard *shard)
{
    const struct bsw_resident_shard *host = shard->host;
    const struct bsw_code_array_list list = bsw_code_arrays_list(&host->shape);
    shard->is_pinned = 1;
    for (size_t i = 0; i < list.count && shard->is_pinned; i++) {
        void *memory = bsw_code_array_at(&host->arrays, &list.items[i], 0);
        int is_sent = list.items[i].part == BSW_PART_CODES ||
                      (list.items[i].part == BSW_PART_TAILS && engine->plan.stage_dims > 0);
        if (!is_sent) continue;
        shard->is_pinned =
            bsw_device_pin(engine->device, memory, shard->num_bundles * list.items[i].bundle_bytes,
                           &shard->pinned[shard->num_pinned]);
        shard->num_pinned += (size_t)shard->is_pinned;
    }
}

// The rows of places. Places of a last bundle that the order does not have no mask has either.
static enum bsw_status load_places(struct bsw_device_engine *engine, size_t bundles,
                                   struct bsw_device_shard *shard, struct bsw_error *err)
{
    const struct bsw_list_order *order = &shard->host->order;
    size_t places = bundles * BSW_BUNDLE_ROWS;
    if (!engine->plan.has_lists) return BSW_OK;
    if (places > order->num_places) places = order->num_places;
    BSW_TRY(bsw_device_allocate(engine->device, bsw_device_places_bytes(bundles), "rows",
                                &shard->rows, err));
    return bsw_device_blocks_upload(&engine->transfer, shard->rows.data, order->rows,
                                    places * sizeof(uint32_t), "rows to the device", err);
}

static enum bsw_status load_resident(struct bsw_device_engine *engine, size_t bundles,
                                     struct bsw_device_shard *shard, struct bsw_error *err)
{
    const struct bsw_device_plan *plan = &engine->plan;
    struct bsw_device_codes_layout at;
    if (bundles == 0) return BSW_OK;
    bsw_device_codes_layout_make(&plan->layout, plan->keys, plan->stage_dims > 0, bundles, &at);
    BSW_TRY(bsw_device_allocate(engine->device, at.bytes, "codes", &shard->memory, err));
    BSW_TRY(
        bsw_device_copy_codes(engine, shard, 0, bundles, &shard->memory, 0, &shard->resident, err));
    BSW_TRY(load_places(engine, bundles, shard, err));
    BSW_TRY(bsw_device_bundle_lists_load(engine, shard->host, bundles, &shard->lists, err));
    return bsw_device_wait(engine->device, BSW_QUEUE_COPY, "codes to the device", err);
}

enum bsw_status bsw_device_shard_load(struct bsw_device_engine *engine, size_t index,
                                      struct bsw_resident_shard *host, struct bsw_device_shard *out,
                                      struct bsw_error *err)
{
    BSW_DEVICE_PHASE(LOAD);
    size_t bundles = engine->plan.resident_bundles[index];
    *out = (struct bsw_device_shard){.host = host, .num_bundles = host->num_bundles};
    enum bsw_status status = load_resident(engine, bundles, out, err);
    if (status == BSW_OK) status = bsw_device_list_shape_load(engine, index, out, err);
    if (status == BSW_OK && !engine->is_checked && bundles > 0) {
        engine->is_checked = 1;
        status = bsw_device_self_check(engine, out, err);
    }
    if (status == BSW_OK)
        status = bsw_allocate_zero(&out->mask, 1, sizeof *out->mask, "masks", err);
    if (status != BSW_OK) {
        bsw_device_shard_unload(engine, out);
        return status;
    }
    if (bundles < out->num_bundles)
        pin_codes(engine, out);
    else
        bsw_resident_shard_drop_codes(host);
    engine->launches_seen = bsw_device_launches();
    return BSW_OK;
}

void bsw_device_shard_unload(struct bsw_device_engine *engine, struct bsw_device_shard *shard)
{
    if (!engine->device) return;
    bsw_device_graphs_drop(engine);
    while (shard->num_pinned > 0)
        bsw_device_unpin(engine->device, &shard->pinned[--shard->num_pinned]);
    bsw_device_free(engine->device, &shard->memory);
    bsw_device_free(engine->device, &shard->rows);
    bsw_device_free(engine->device, &shard->lists);
    bsw_device_mask_free(engine, shard->mask);
    bsw_free(&shard->mask);
    bsw_free(&shard->longest);
}

// ---- parts ----
