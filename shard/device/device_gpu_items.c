// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_gpu_items.h"

#include <stdlib.h>

#include "common/base/memory.h"
#include "common/device/device_phase.h"
#include "kernels/gpu_select/gpu_select.h"
#include "shard/device/device_coarse.h"
#include "shard/device/device_item_scan.h"
#include "shard/device/device_list_passes.h"

// ---- a shard's lists ----

static int is_longer(const void *a, const void *b)
{
    uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;
    return (first < second) - (first > second);
}

// lengths: scratch, [num_lists].
static void sum_longest(const struct bsw_list_order *order, uint32_t *lengths, uint64_t *longest)
{
    uint32_t num = order->num_lists;
    for (uint32_t l = 0; l < num; l++)
        lengths[l] = order->first_bundles[l + 1] - order->first_bundles[l];
    qsort(lengths, num, sizeof *lengths, is_longer);
    longest[0] = 0;
    for (uint32_t l = 0; l < num; l++) longest[l + 1] = longest[l] + lengths[l];
}

static enum bsw_status send_shape(struct bsw_device_engine *engine,
                                  const struct bsw_list_order *order, uint32_t *num_rows,
                                  unsigned char *to, struct bsw_device_list_shape *out,
                                  struct bsw_error *err)
{
    uint32_t num = order->num_lists;
    unsigned char *rows = to + engine->plan.gpu_lists.shape_rows;
    for (uint32_t l = 0; l < num; l++) num_rows[l] = bsw_list_num_rows(order, l);
    *out = (struct bsw_device_list_shape){.first_bundles = (const uint32_t *)(void *)to,
                                          .num_rows = (const uint32_t *)(void *)rows};
    BSW_TRY(bsw_device_blocks_upload(&engine->transfer, to, order->first_bundles,
                                     (num + (size_t)1) * sizeof *num_rows, "lists", err));
    BSW_TRY(bsw_device_blocks_upload(&engine->transfer, rows, num_rows, num * sizeof *num_rows,
                                     "lists", err));
    return bsw_device_wait(engine->device, BSW_QUEUE_COPY, "lists", err);
}

enum bsw_status bsw_device_list_shape_load(struct bsw_device_engine *engine, size_t index,
                                           struct bsw_device_shard *shard, struct bsw_error *err)
{
    const struct bsw_device_gpu_lists_layout *at = &engine->plan.gpu_lists;
    const struct bsw_list_order *order = &shard->host->order;
    uint32_t *scratch;
    if (at->bytes == 0 || order->num_lists == 0 || shard->resident.num_bundles < shard->num_bundles)
        return BSW_OK;
    unsigned char *to = engine->gpu_lists.data + at->shapes + index * at->shape_bytes;
    BSW_TRY(bsw_allocate(&shard->longest, order->num_lists + (size_t)1, sizeof *shard->longest,
                         "lists", err));
    BSW_TRY(bsw_allocate(&scratch, order->num_lists, sizeof *scratch, "lists", err));
    sum_longest(order, scratch, shard->longest);
    enum bsw_status status = send_shape(engine, order, scratch, to, &shard->shape, err);
    bsw_free(&scratch);
    return status;
}

// ---- a batch ----

static int plan_passes(const struct bsw_device_group *group, struct bsw_device_list_passes *out)
{
    const struct bsw_device_item_run *items = &group->items;
    const struct bsw_device_engine *engine = group->engine;
    const struct bsw_device_choice *choice = &group->task.coarse->choice;
    size_t most = group->task.choice->most;
    const struct bsw_device_pass_needs needs = {.longest = group->span->shards[0]->longest,
                                                .num_lists = items->order->num_lists,
                                                .num_queries = group->num_queries,
                                                .most = most < choice->most ? most : choice->most,
                                                .ends = choice->ends,
                                                .room_bundles = items->room_bundles,
                                                .least_item =
                                                    engine->plan.product ? BSW_TABLE_ITEM : 1,
                                                .most_items = engine->plan.list_items,
                                                .most_slots = engine->plan.list_slots};
    return bsw_device_list_passes_plan(&needs, out);
}

static int is_possible(const struct bsw_device_group *group)
{
    const struct bsw_list_choice *choice = group->task.choice;
    return choice && bsw_device_coarse_can_place(group->task.coarse, choice) &&
           choice->num_queries == group->num_queries && group->span->shards[0]->longest &&
           group->run.keep <= BSW_MOST_LAST_KEEP;
}

static uint32_t *counter_of(const struct bsw_device_engine *engine, uint32_t pass, uint32_t tile)
{
    unsigned char *memory = engine->gpu_lists.data + engine->plan.gpu_lists.num_items;
    return (uint32_t *)(void *)memory + pass * BSW_LIST_TILES + tile;
}

static struct bsw_device_list_totals *totals_of(const struct bsw_device_engine *engine)
{
    unsigned char *memory = engine->gpu_lists.data + engine->plan.gpu_lists.totals;
    return (struct bsw_device_list_totals *)(void *)memory;
}

// Choice and items, after the queries are there: `overflowed` is 0 then.
static enum bsw_status queue_items(struct bsw_device_group *group,
                                   const struct bsw_device_list_passes *passes,
                                   struct bsw_error *err)
{
    BSW_DEVICE_PHASE(STAGE_QUERIES);
    struct bsw_device_engine *engine = group->engine;
    const struct bsw_device_list_work *work = &group->items.work;
    const struct bsw_device_list_tables tables = {
        .items = (struct bsw_device_list_item *)(uintptr_t)work->items,
        .queries = (uint32_t *)(uintptr_t)work->queries,
        .additions = group->items.has_additions ? (float *)(uintptr_t)work->additions : NULL,
        .most_slots = (uint32_t)engine->plan.list_slots,
        .next_slots =
            (uint32_t *)(void *)(engine->gpu_lists.data + engine->plan.gpu_lists.next_slots),
        .num_items = counter_of(engine, 0, 0),
        .totals = totals_of(engine)};
    BSW_TRY(bsw_device_coarse_place(group->task.coarse, group->task.choice, err));
    BSW_TRY(bsw_device_follow(engine->device, BSW_QUEUE_SCAN, BSW_QUEUE_LINK, err));
    int code = bsw_device_list_items(&group->task.coarse->choice, &group->span->shards[0]->shape,
                                     passes, &tables, group->run.lists.overflowed,
                                     bsw_device_stream(engine->device, BSW_QUEUE_SCAN));
    return bsw_device_launched(engine->device, code, "work items", err);
}

// All items of a pass.
static enum bsw_status queue_scans(struct bsw_device_group *group,
                                   const struct bsw_device_list_passes *passes, uint32_t number,
                                   struct bsw_error *err)
{
    BSW_DEVICE_PHASE(SCAN);
    const struct bsw_device_list_pass *pass = &passes->pass[number];
    const struct bsw_list_order *order = group->items.order;
    uint64_t usual = group->num_bundles / order->num_lists + 1; // bundles of a list
    for (uint32_t t = 0; t < BSW_LIST_TILES; t++) {
        struct bsw_device_list_work work = group->items.work;
        work.items += pass->first_item[t];
        work.num_items = pass->first_item[t + 1] - pass->first_item[t];
        work.num_bundles =
            work.num_items * (usual < pass->item_bundles ? usual : pass->item_bundles);
        work.count = counter_of(group->engine, number, t);
        if (work.num_items > 0)
            BSW_TRY(bsw_device_items_launch(group, &work, t, &group->run.lists, err));
    }
    group->run.num_segments++;
    return BSW_OK;
}

static enum bsw_status queue_cut(struct bsw_device_group *group, struct bsw_error *err)
{
    BSW_DEVICE_PHASE(CUT);
    struct bsw_device_list_run *run = &group->run;
    int code = bsw_device_cut(&run->lists, (uint32_t)run->keep,
                              bsw_device_stream(run->device, run->queue));
    return bsw_device_launched(run->device, code, "cut", err);
}

static int is_refined_ahead(const struct bsw_device_group *group)
{
    const struct bsw_device_task *task = &group->task;
    return task->refiner && bsw_device_refiner_goes_ahead(task->refiner, task->rows,
                                                          group->num_queries, group->run.keep);
}

// What of the lists comes to the host, once they are sorted: survivors, or all of it.
static enum bsw_status queue_answers(struct bsw_device_group *group, uint64_t *d_answers,
                                     struct bsw_error *err)
{
    struct bsw_device_list_run *run = &group->run;
    const struct bsw_device_task *task = &group->task;
    if (is_refined_ahead(group))
        return bsw_device_refiner_ahead(task->refiner, task->rows, group->batch, group->first_query,
                                        &run->lists, run->keep, &group->refined, err);
    if (!d_answers) return BSW_OK;
    return bsw_device_download(run->device, run->queue, run->answers, d_answers,
                               group->num_queries * run->keep * sizeof *run->answers, err);
}

// The last step in place of a cut, and all that the host wants.
static enum bsw_status queue_last(struct bsw_device_group *group, struct bsw_error *err)
{
    BSW_DEVICE_PHASE(SORT);
    struct bsw_device_list_run *run = &group->run;
    struct bsw_device_engine *engine = group->engine;
    uint64_t *d_answers = run->answers && !is_refined_ahead(group) ? run->d_answers : NULL;
    int code = bsw_device_last(&run->lists, (uint32_t)run->keep, d_answers,
                               bsw_device_stream(run->device, run->queue));
    BSW_TRY(bsw_device_launched(run->device, code, "candidates", err));
    BSW_TRY(queue_answers(group, d_answers, err));
    BSW_TRY(bsw_device_download(run->device, run->queue, engine->list_totals, totals_of(engine),
                                sizeof *engine->list_totals, err));
    return bsw_device_download(run->device, run->queue, run->fetched, run->lists.counts,
                               (group->num_queries + 1) * sizeof *run->fetched, err);
}

enum bsw_status bsw_device_gpu_items_begin(struct bsw_device_group *group, struct bsw_error *err)
{
    struct bsw_device_list_passes passes;
    group->items.is_on_device = is_possible(group) && plan_passes(group, &passes);
    if (!group->items.is_on_device) return BSW_OK;
    BSW_TRY(queue_items(group, &passes, err));
    for (uint32_t p = 0; p < passes.num; p++) {
        BSW_TRY(queue_scans(group, &passes, p, err));
        BSW_TRY(p + 1 < passes.num ? queue_cut(group, err) : queue_last(group, err));
    }
    return BSW_OK;
}

enum bsw_status bsw_device_gpu_items_end(struct bsw_device_group *group, int *is_whole,
                                         struct bsw_error *err)
{
    const struct bsw_device_list_totals *totals = group->engine->list_totals;
    struct bsw_device_list_run *run = &group->run;
    const struct bsw_refined_lists refined = group->refined;
    group->items.is_on_device = 0;
    group->refined = (struct bsw_refined_lists){NULL, 0};
    BSW_TRY(bsw_device_list_run_end_ahead(run, is_whole, err));
    group->scanned += totals->bundles;
    // Lists of candidates may be long enough for another shard.
    if (run->fetched[group->num_queries] & ~(uint32_t)BSW_LISTS_OVERFLOWED)
        group->task.coarse->refused = group->task.choice->number;
    if (!*is_whole) return BSW_OK;
    run->is_sorted = 1;
    group->refined = refined;
    group->engine->counts.num_gpu_lists++;
    group->num_list_pairs += totals->list_pairs;
    group->num_row_pairs += totals->row_pairs;
    return BSW_OK;
}
