// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_tables.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "common/base/memory.h"
#include "kernels/encode/encode.h"
#include "shard/codecs/selective_table.h"

// ---- codebooks and centroids ----

static enum bsw_status send(struct bsw_device_engine *engine, size_t at, const float *from,
                            size_t num, struct bsw_error *err)
{
    return bsw_device_blocks_upload(&engine->transfer, engine->book.data + at, from,
                                    num * sizeof(float), "codebooks to the device", err);
}

// c' of all lists, as bsw_list_tables makes them; rooms: [threads][dims].
static void project_centroids(const struct bsw_device_needs *needs, float *rooms, float *out)
{
    const struct bsw_product_codes *codes = needs->product;
    const struct bsw_encode_table *kernels = bsw_encode_table_get(needs->level);
#pragma omp parallel for schedule(static)
    for (size_t l = 0; l < needs->num_centroids; l++)
        bsw_product_project_vector(codes, kernels, needs->centroids + l * codes->dims, 1.0f,
                                   codes->mean, rooms + (size_t)omp_get_thread_num() * codes->dims,
                                   out + l * codes->projected_dims);
}

static enum bsw_status load_centroids(struct bsw_device_engine *engine,
                                      const struct bsw_device_needs *needs, struct bsw_error *err)
{
    const struct bsw_product_codes *codes = needs->product;
    size_t floats = (size_t)needs->num_centroids * codes->projected_dims;
    struct bsw_buffer all = {0}, rooms = {0};
    size_t room_bytes = (size_t)omp_get_max_threads() * codes->dims * sizeof(float);
    if (floats == 0) return BSW_OK;
    enum bsw_status status = bsw_buffer_reserve(&all, floats * sizeof(float), err);
    if (status == BSW_OK) status = bsw_buffer_reserve(&rooms, room_bytes, err);
    if (status == BSW_OK) {
        float *out = (float *)(void *)all.data;
        project_centroids(needs, (float *)(void *)rooms.data, out);
        status = send(engine, engine->plan.book.centroids, out, floats, err);
    }
    if (status == BSW_OK) status = bsw_device_wait(engine->device, BSW_QUEUE_COPY, "copy", err);
    bsw_buffer_deinit(&all);
    bsw_buffer_deinit(&rooms);
    return status;
}

enum bsw_status bsw_device_book_load(struct bsw_device_engine *engine,
                                     const struct bsw_device_needs *needs, struct bsw_error *err)
{
    const struct bsw_device_plan *plan = &engine->plan;
    const struct bsw_product_codes *codes = plan->product;
    if (!codes) return BSW_OK;
    size_t numbers = bsw_product_numbers(&codes->book);
    BSW_TRY(bsw_device_allocate(engine->device, plan->book.bytes, "codebooks", &engine->book, err));
    BSW_TRY(send(engine, plan->book.entries, codes->entries, numbers * codes->book.part_dims, err));
    BSW_TRY(send(engine, plan->book.norms, codes->norms, numbers, err));
    BSW_TRY(load_centroids(engine, needs, err));
    return bsw_device_wait(engine->device, BSW_QUEUE_COPY, "codebooks to the device", err);
}

enum bsw_status bsw_device_bundle_lists_load(struct bsw_device_engine *engine,
                                             const struct bsw_resident_shard *host,
                                             size_t num_bundles, struct bsw_device_buffer *lists,
                                             struct bsw_error *err)
{
    const struct bsw_list_order *order = &host->order;
    uint32_t *numbers;
    if (engine->plan.num_centroids == 0) return BSW_OK;
    BSW_TRY(bsw_device_allocate(engine->device, bsw_device_bundle_lists_bytes(num_bundles),
                                "lists of bundles", lists, err));
    BSW_TRY(bsw_allocate_zero(&numbers, num_bundles, sizeof *numbers, "lists of bundles", err));
    for (uint32_t l = 0; l < order->num_lists; l++) {
        uint32_t end = order->first_bundles[l + 1];
        for (uint32_t b = order->first_bundles[l]; b < end && b < num_bundles; b++) numbers[b] = l;
    }
    enum bsw_status status =
        bsw_device_blocks_upload(&engine->transfer, lists->data, numbers,
                                 num_bundles * sizeof *numbers, "lists of bundles", err);
    if (status == BSW_OK)
        status = bsw_device_wait(engine->device, BSW_QUEUE_COPY, "lists of bundles", err);
    bsw_free(&numbers);
    return status;
}

// ---- queries ----

// The numbers of selective_table.h: of modes that count, and of misses where they have no bound.
static struct bsw_device_selection selection_of(const struct bsw_selection *selection,
                                                const struct bsw_device_queries_layout *at,
                                                unsigned char *memory)
{
    const struct bsw_selection_settings *settings = &selection->settings;
    int is_m = settings->mode == BSW_SELECTION_M,
        is_l2 = bsw_has_row_norms(selection->codes->metric);
    struct bsw_device_selection out = {
        .limits = (const float *)(const void *)(memory + at->entry_limits),
        .nothing = (const float *)(const void *)(memory + at->nothing),
        .counts = (uint64_t *)(void *)(memory + at->entry_counts),
        .are_counts = settings->mode != BSW_SELECTION_H,
        .has_bound = settings->mode == BSW_SELECTION_H && !settings->is_miss_infinite,
        .miss = is_l2 ? INFINITY : -INFINITY};
    if (!out.are_counts) return out;
    out.inner = 1.0f;
    out.ring = is_m ? 0.0f : 1.0f;
    out.miss = is_m ? -1.0f : 0.0f;
    return out;
}

void bsw_device_selection_stage(const struct bsw_query_batch *batch, size_t first_query,
                                size_t num_queries, const struct bsw_device_plan *plan,
                                unsigned char *staging)
{
    const struct bsw_device_queries_layout *at = &plan->queries;
    float *limits = (float *)(void *)(staging + at->entry_limits),
          *nothing = (float *)(void *)(staging + at->nothing);
    memset(staging + at->entry_counts, 0, 2 * sizeof(uint64_t));
#pragma omp parallel for schedule(static)
    for (size_t q = 0; q < num_queries; q++) {
        const uint32_t *words = batch->words + (first_query + q) * batch->query_words;
        const float *query = (const float *)(const void *)words;
        float *own = limits + q * plan->product->book.parts;
        bsw_selective_limits(batch->selection, query, own);
        nothing[q] = bsw_selective_nothing(batch->selection, query, own);
    }
}

struct bsw_device_table_run bsw_device_table_run_of(const struct bsw_device_engine *engine,
                                                    const struct bsw_query_batch *batch,
                                                    size_t first_query, size_t num_queries,
                                                    unsigned char *memory)
{
    const struct bsw_device_plan *plan = &engine->plan;
    const struct bsw_product_codes *codes = plan->product;
    const unsigned char *book = engine->book.data;
    struct bsw_device_table_run out = {
        .types = 1u << batch->table,
        .tables = {.num_queries = (uint32_t)num_queries,
                   .parts = codes->book.parts,
                   .part_dims = codes->book.part_dims,
                   .bits = codes->book.bits,
                   .is_l2 = bsw_has_row_norms(codes->metric),
                   .stride = codes->projected_dims,
                   .entries = (const float *)(const void *)(book + plan->book.entries),
                   .norms = (const float *)(const void *)(book + plan->book.norms),
                   .queries = (const float *)(const void *)(memory + plan->queries.words)}};
    if (batch->selection) {
        out.types = 1u << BSW_TABLE_FLOAT32;
        out.tables.selection = selection_of(batch->selection, &plan->queries, memory);
        return out;
    }
    if (!batch->tables) return out;
    out.types = 0;
    out.tables.types = memory + plan->queries.types;
    for (size_t q = 0; q < num_queries; q++) out.types |= 1u << batch->tables[first_query + q];
    return out;
}
