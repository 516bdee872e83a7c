// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_group.h"

#include <string.h>

#include "common/device/device_phase.h"
#include "kernels/gpu_bytes/gpu_bytes.h"

void bsw_device_group_point(struct bsw_device_group *group)
{
    const struct bsw_device_plan *plan = &group->engine->plan;
    const struct bsw_device_queries_layout *at = &plan->queries;
    unsigned char *memory = group->engine->queries.data;
    uint32_t num_queries = (uint32_t)group->num_queries;
    int is_whole = plan->keys == BSW_DEVICE_KEYS_WHOLE;
    group->run.counts = (uint32_t *)(void *)(group->engine->staging + at->counts);
    group->queries = (struct bsw_device_queries){
        .num_queries = num_queries,
        .query_bits = plan->query_bits,
        .query_words = (uint32_t)plan->query_words,
        .words = (const uint32_t *)(void *)(memory + at->words),
        .components = (const int8_t *)(memory + at->components),
        .constants = (const int32_t *)(void *)(memory + (is_whole ? at->scales : at->constants)),
        .scales = plan->has_affine ? (const float *)(void *)(memory + at->scales) : NULL};
    if (plan->product)
        group->tables = bsw_device_table_run_of(group->engine, group->batch, group->first_query,
                                                num_queries, memory);
    if (group->is_staged) {
        group->stage = (struct bsw_device_stage){
            .dims = plan->stage_dims,
            .constants = (const int32_t *)(void *)(memory + at->stage_constants),
            .reaches = (const float *)(void *)(memory + at->reaches),
            .survivors = (uint64_t *)(void *)(memory + at->survivors)};
    }
    group->run.lists =
        (struct bsw_device_lists){.num_queries = num_queries,
                                  .capacity = (uint32_t)plan->capacity,
                                  .items = (uint64_t *)(void *)(memory + at->items),
                                  .counts = (uint32_t *)(void *)(memory + at->counts),
                                  .limits = (uint32_t *)(void *)(memory + at->limits)};
    group->run.lists.overflowed = group->run.lists.counts + num_queries;
    group->run.lists.raised = (uint32_t *)(void *)(memory + at->raised);
    group->run.lists.hits =
        (uint64_t *)(void *)(group->run.lists.counts + bsw_device_lists_hits_place(num_queries));
    group->run.d_answers = (uint64_t *)(void *)(memory + at->sort); // free until there is a sort
    if (!group->has_queues) return;
    group->run.lists.queues =
        (struct bsw_device_row_queues){.slots = (uint64_t *)(void *)(memory + at->slots),
                                       .items = (uint32_t)plan->queue.items,
                                       .length = (uint32_t)plan->queue.length,
                                       .num_blocks = (uint32_t)plan->queue_blocks};
}

// Words and a number of each query, its scale or constant, if it has one: on the device already, or
// through staging.
static enum bsw_status place_words(struct bsw_device_group *group, struct bsw_error *err)
{
    struct bsw_device_engine *engine = group->engine;
    const struct bsw_device_plan *plan = &engine->plan;
    const struct bsw_query_batch *batch = group->batch;
    unsigned char *staging = engine->staging, *memory = engine->queries.data;
    size_t query = group->first_query, word = query * plan->query_words;
    size_t word_bytes = group->num_queries * plan->query_words * sizeof(uint32_t);
    size_t number_bytes =
        plan->keys == BSW_DEVICE_KEYS_INTEGER ? 0 : group->num_queries * sizeof(uint32_t);
    int is_whole = plan->keys == BSW_DEVICE_KEYS_WHOLE;
    if (!batch->d_words) {
        group->first_staged = plan->queries.words;
        memcpy(staging + plan->queries.words, batch->words + word, word_bytes);
        if (number_bytes == 0) return BSW_OK;
        const void *numbers = is_whole ? (const void *)(batch->constants + query)
                                       : (const void *)(batch->scales + query);
        memcpy(staging + plan->queries.scales, numbers, number_bytes);
        return BSW_OK;
    }
    group->first_staged = plan->queries.limits;
    BSW_TRY(bsw_device_copy(engine->device, BSW_QUEUE_SCAN, memory + plan->queries.words,
                            batch->d_words + word, word_bytes, err));
    if (number_bytes == 0) return BSW_OK;
    const void *numbers = is_whole ? (const void *)(batch->d_constants + query)
                                   : (const void *)(batch->d_scales + query);
    return bsw_device_copy(engine->device, BSW_QUEUE_SCAN, memory + plan->queries.scales, numbers,
                           number_bytes, err);
}

enum bsw_status bsw_device_group_stage(struct bsw_device_group *group, struct bsw_error *err)
{
    BSW_DEVICE_PHASE(STAGE_QUERIES);
    struct bsw_device_engine *engine = group->engine;
    const struct bsw_device_plan *plan = &engine->plan;
    unsigned char *staging = engine->staging;
    BSW_TRY(place_words(group, err));
    memset(staging + plan->queries.limits, 0, group->num_queries * sizeof(uint32_t));
    if (group->limits)
        memcpy(staging + plan->queries.limits, group->limits,
               group->num_queries * sizeof(uint32_t));
    memset(group->run.counts, 0, bsw_device_lists_numbers(group->num_queries) * sizeof(uint32_t));
    memset(staging + plan->queries.raised, 0, group->num_queries * sizeof(uint32_t));
    if (plan->stage_dims > 0) memset(staging + plan->queries.survivors, 0, sizeof(uint64_t));
    if (group->tables.tables.types)
        memcpy(staging + plan->queries.types, group->batch->tables + group->first_query,
               group->num_queries);
    if (group->batch->selection)
        bsw_device_selection_stage(group->batch, group->first_query, group->num_queries, plan,
                                   staging);
    return BSW_OK;
}

// Queries as the matrix scan takes them.
static int launch_components(const struct bsw_device_group *group)
{
    const struct bsw_device_plan *plan = &group->engine->plan;
    const struct bsw_device_queries *queries = &group->queries;
    unsigned char *memory = group->engine->queries.data;
    int8_t *components = (int8_t *)(memory + plan->queries.components);
    bsw_stream stream = bsw_device_stream(group->engine->device, BSW_QUEUE_SCAN);
    if (plan->keys == BSW_DEVICE_KEYS_WHOLE)
        return bsw_device_byte_queries(queries->num_queries, plan->layout.padded_dims,
                                       (const int8_t *)queries->words, components, stream);
    return bsw_device_unpack_queries(group->layout, queries->num_queries, queries->query_bits,
                                     queries->query_words, queries->words, components,
                                     (int32_t *)(void *)(memory + plan->queries.constants), stream);
}

enum bsw_status bsw_device_group_upload(const struct bsw_device_group *group, struct bsw_error *err)
{
    BSW_DEVICE_PHASE(STAGE_QUERIES);
    struct bsw_device_engine *engine = group->engine;
    const struct bsw_device_plan *plan = &engine->plan;
    const struct bsw_device_queries *queries = &group->queries;
    unsigned char *staging = engine->staging, *memory = engine->queries.data;
    size_t first = group->first_staged;
    BSW_TRY(bsw_device_upload(engine->device, BSW_QUEUE_SCAN, memory + first, staging + first,
                              plan->queries.upload_bytes - first, err));
    if (group->is_matrix)
        BSW_TRY(bsw_device_launched(engine->device, launch_components(group), "queries", err));
    if (group->is_staged) {
        int code = bsw_device_stage_queries(
            &plan->layout, plan->stage_dims, group->span->shards[0]->host->tail_unit, queries,
            (int32_t *)(void *)(memory + plan->queries.stage_constants),
            (float *)(void *)(memory + plan->queries.reaches),
            bsw_device_stream(engine->device, BSW_QUEUE_SCAN));
        BSW_TRY(bsw_device_launched(engine->device, code, "queries", err));
    }
    return BSW_OK;
}

enum bsw_status bsw_device_group_send(struct bsw_device_group *group, struct bsw_error *err)
{
    BSW_TRY(bsw_device_group_stage(group, err));
    return bsw_device_group_upload(group, err);
}

enum bsw_status bsw_device_group_begin_again(struct bsw_device_group *group, struct bsw_error *err)
{
    struct bsw_device_list_run *run = &group->run;
    const struct bsw_device_list_run ahead = *run;
    group->is_sorted = 0;
    bsw_device_list_run_begin(run);
    run->num_overflows = ahead.num_overflows;
    run->num_shorts = ahead.num_shorts;
    run->num_waits = ahead.num_waits;
    run->hits = ahead.hits;
    return bsw_device_group_send(group, err);
}

enum bsw_status bsw_device_group_sort(struct bsw_device_group *group, struct bsw_error *err)
{
    struct bsw_device_engine *engine = group->engine;
    if (group->run.is_sorted) return BSW_OK;
    return bsw_device_list_run_sort(&group->run, engine->queries.data + engine->plan.queries.sort,
                                    err);
}

enum bsw_status bsw_device_group_count_entries(const struct bsw_device_group *group,
                                               struct bsw_error *err)
{
    struct bsw_device_engine *engine = group->engine;
    struct bsw_selection *selection = group->batch->selection;
    if (!selection) return BSW_OK;
    BSW_TRY(bsw_device_download(engine->device, BSW_QUEUE_SCAN, engine->entry_counts,
                                engine->queries.data + engine->plan.queries.entry_counts,
                                2 * sizeof(uint64_t), err));
    BSW_TRY(bsw_device_wait(engine->device, BSW_QUEUE_SCAN, "counts", err));
    bsw_selection_count(selection, engine->entry_counts[0], engine->entry_counts[0],
                        engine->entry_counts[1]);
    return BSW_OK;
}
