// SPDX-License-Identifier: Apache-2.0
// A batch of queries over a span on a device, a group of them at a time.
#include "common/base/clock.h"
#include "common/base/memory.h"
#include "shard/device/device_group.h"
#include "shard/device/device_mask.h"

static enum bsw_status set_masks(struct bsw_device_engine *engine,
                                 const struct bsw_device_task *task, struct bsw_error *err)
{
    for (size_t s = 0; s < task->span.num_shards; s++)
        BSW_TRY(bsw_device_mask_set(engine, task->span.shards[s],
                                    task->masks ? &task->masks[s] : NULL, err));
    return BSW_OK;
}

static void init_group(struct bsw_device_engine *engine, const struct bsw_device_task *task,
                       struct bsw_device_group *group)
{
    size_t num_queries = task->queries.num_queries, most = engine->plan.group_queries;
    *group = (struct bsw_device_group){.engine = engine,
                                       .task = *task,
                                       .layout = &engine->plan.layout,
                                       .is_resident = 1,
                                       .batch = task->queries.batch,
                                       .run = {.device = engine->device,
                                               .blocks = &engine->transfer,
                                               .fetched = engine->list_counts,
                                               .answers = task->kept ? NULL : engine->answers},
                                       .started = bsw_clock_seconds()};
    group->span = &group->task.span;
    for (size_t s = 0; s < task->span.num_shards; s++) {
        const struct bsw_device_shard *shard = task->span.shards[s];
        group->num_bundles += shard->num_bundles;
        group->num_rows += (size_t)shard->host->shape.num_rows;
        group->num_masked += bsw_device_masked_rows(shard);
        group->is_resident &= shard->resident.num_bundles == shard->num_bundles;
    }
    group->run.keep = task->keep < group->num_rows ? task->keep : group->num_rows;
    if (task->masks && group->run.keep > group->num_masked) // a limit is of some row
        group->run.keep = group->num_masked > 0 ? (size_t)group->num_masked : 1;
    group->kind = task->maker->choose(group, num_queries < most ? num_queries : most);
}

// The group of the batch's queries from number `first` of the task's on.
static enum bsw_status begin_group(struct bsw_device_group *group, size_t first,
                                   struct bsw_error *err)
{
    const struct bsw_device_task *task = &group->task;
    size_t left = task->queries.num_queries - first, most = group->engine->plan.group_queries;
    group->first_query = task->queries.first_query + first;
    group->num_queries = left < most ? left : most;
    group->limits = task->limits ? task->limits + first : NULL;
    group->is_sorted = 0;
    group->refined = (struct bsw_refined_lists){NULL, 0};
    bsw_device_group_point(group);
    bsw_device_list_run_begin(&group->run);
    return task->maker->begin(group, err);
}

static void count(struct bsw_device_group *group)
{
    const struct bsw_device_list_run *run = &group->run;
    struct bsw_scan_counts *counts = &group->engine->counts;
    counts->num_samples += run->num_samples;
    counts->num_segments += run->num_segments;
    counts->num_overflows += run->num_overflows;
    counts->num_waits += run->num_waits;
    counts->num_shorts += run->num_shorts;
    counts->num_hits += run->hits;
}

// The rest, after begin_group. items: of the group, on the host; not where lists stay on the
// device.
static enum bsw_status end_group(struct bsw_device_group *group, uint64_t *items, size_t *counts,
                                 struct bsw_error *err)
{
    struct bsw_device_list_run *run = &group->run;
    enum bsw_status status = group->task.maker->end(group, err);
    count(group);
    BSW_TRY(status);
    BSW_TRY(bsw_device_group_count_entries(group, err));
    for (size_t q = 0; q < group->num_queries; q++) counts[q] = run->counts[q];
    if (group->refined.survivors) return BSW_OK;
    if (!group->is_sorted) BSW_TRY(bsw_device_group_sort(group, err));
    if (group->task.kept)
        return bsw_device_kept_add(group->task.kept, &run->lists, run->counts, err);
    return bsw_device_list_run_fetch(run, items, err);
}

static void count_work(const struct bsw_device_group *group)
{
    const struct bsw_device_plan *plan = &group->engine->plan;
    struct bsw_scan_workspace *workspace = group->task.workspace;
    workspace->used = group->kind;
    workspace->num_stopped += group->stopped;
    workspace->scanned_bytes +=
        group->scanned * bsw_device_bundle_bytes(group->layout, plan->keys, plan->stage_dims > 0);
    workspace->num_pairs += group->num_row_pairs;
    workspace->scan_seconds += bsw_clock_seconds() - group->started;
}

// All groups, of which the first may have begun.
static enum bsw_status scan_groups(struct bsw_device_group *group, int is_begun,
                                   struct bsw_candidate_lists *out, struct bsw_error *err)
{
    size_t num_queries = group->task.queries.num_queries;
    size_t stride = group->task.kept ? 0 : group->run.keep; // of lists on the host
    BSW_TRY(bsw_candidate_lists_reserve(out, num_queries, stride, err));
    uint64_t *items = (uint64_t *)(void *)out->items.data;
    size_t *counts = (size_t *)(void *)out->counts.data;
    if (group->task.kept && !group->task.is_continued) group->task.kept->num_queries = 0;
    for (size_t done = 0; done < num_queries; done += group->num_queries) {
        if (!is_begun) BSW_TRY(begin_group(group, done, err));
        is_begun = 0;
        BSW_TRY(end_group(group, items + done * stride, counts + done, err));
    }
    count_work(group);
    return BSW_OK;
}

static void deinit_group(struct bsw_device_group *group, uint64_t *num_list_pairs)
{
    bsw_device_list_table_deinit(&group->items.table);
    if (num_list_pairs) *num_list_pairs += group->num_list_pairs;
}

enum bsw_status bsw_device_scan(struct bsw_device_engine *engine,
                                const struct bsw_device_task *task, struct bsw_candidate_lists *out,
                                uint64_t *num_list_pairs, struct bsw_error *err)
{
    struct bsw_device_group group;
    BSW_TRY(set_masks(engine, task, err));
    init_group(engine, task, &group);
    enum bsw_status status = scan_groups(&group, 0, out, err);
    deinit_group(&group, num_list_pairs);
    return status;
}

enum bsw_status bsw_device_scan_begin(struct bsw_device_engine *engine,
                                      const struct bsw_device_task *task, struct bsw_error *err)
{
    struct bsw_device_group *group;
    if (!engine->begun) BSW_TRY(bsw_allocate_zero(&engine->begun, 1, sizeof *group, "a scan", err));
    group = engine->begun;
    BSW_TRY(set_masks(engine, task, err));
    init_group(engine, task, group);
    group->is_open = 1;
    group->is_begun =
        task->queries.num_queries > 0 && task->queries.num_queries <= engine->plan.group_queries;
    return group->is_begun ? begin_group(group, 0, err) : BSW_OK;
}

// Items that were queued are waited for in any case: what they read is free then.
enum bsw_status bsw_device_scan_end(struct bsw_device_engine *engine,
                                    struct bsw_candidate_lists *out, uint64_t *num_list_pairs,
                                    struct bsw_refined_lists *refined, struct bsw_error *err)
{
    struct bsw_device_group *group = engine->begun;
    struct bsw_error unsaid;
    if (!group || !group->is_open) return BSW_OK;
    enum bsw_status status = out ? scan_groups(group, group->is_begun, out, err) : BSW_OK;
    if (!out || status != BSW_OK) {
        enum bsw_status waited = bsw_device_wait(engine->device, BSW_QUEUE_SCAN, "scan", &unsaid);
        if (status == BSW_OK) status = waited;
        if (!out && waited != BSW_OK && err) *err = unsaid;
    }
    group->is_open = 0;
    if (refined) *refined = group->refined;
    deinit_group(group, num_list_pairs);
    return status;
}
