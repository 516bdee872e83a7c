// SPDX-License-Identifier: Apache-2.0
// Whole shards on a device: codes of a span through the kernels, segment by segment, block by block
// where they are the host's.
//
// Where all codes are on the device a span's bundles are numbered through, and a segment that goes
// over the end of a shard is a launch for each. Else its shards take turns, each adding to the
// lists of those before.
#include "common/device/device_phase.h"
#include "kernels/device_scan/device_tuning.h"
#include "kernels/gpu_bytes/gpu_bytes.h"
#include "shard/device/device_graph.h"
#include "shard/device/device_mask.h"
#include "shard/device/device_row_queues.h"

static int is_matrix(const struct bsw_device_plan *plan, enum bsw_scan_kind kind,
                     size_t num_queries)
{
    if (kind == BSW_SCAN_AUTO)
        return bsw_device_takes_matrix(&plan->layout, plan->query_bits, (uint32_t)num_queries);
    return bsw_scan_is_matrix(kind);
}

// Hopper GPUs alone have a first stage, for layouts that fit; it is for few queries too. AUTO takes
// it where the tuning says so.
static int takes_stage(const struct bsw_device_group *group, enum bsw_scan_kind kind)
{
    const struct bsw_device_plan *plan = &group->engine->plan;
    if (plan->stage_dims == 0 || group->has_queues ||
        !bsw_device_has_hopper_stage(&plan->layout, plan->stage_dims))
        return 0;
    return bsw_scan_is_progressive(kind) ||
           (kind == BSW_SCAN_AUTO && group->is_matrix &&
            plan->layout.padded_dims >= bsw_device_tuning_current()->progressive_from_dims);
}

static enum bsw_scan_kind choose(struct bsw_device_group *group, size_t num_queries)
{
    const struct bsw_device_plan *plan = &group->engine->plan;
    enum bsw_scan_kind kind = group->task.workspace->scan;
    group->has_queues = group->task.workspace->queue.length > 0;
    if (plan->product) return BSW_SCAN_TABLES;
    if (plan->keys == BSW_DEVICE_KEYS_WHOLE) kind = BSW_SCAN_MATRIX; // the only one of bytes
    group->is_matrix = is_matrix(plan, kind, num_queries);
    group->is_staged = takes_stage(group, kind);
    group->is_matrix |= group->is_staged;
    group->stage_run = (struct bsw_device_stage_run){.is_always = bsw_scan_is_progressive(kind),
                                                     .words = plan->layout.padded_dims / 32,
                                                     .stage_words = plan->stage_dims / 32};
    return group->is_staged   ? BSW_SCAN_PROGRESSIVE_MATRIX
           : group->is_matrix ? BSW_SCAN_MATRIX
                              : BSW_SCAN_PLANES;
}

// ---- codes through the kernels ----

struct codes_scan {
    struct bsw_device_group *group;
    const struct bsw_device_codes *codes; // rows count within their shard; NULL: the whole span
    uint32_t first_row;                   // of the shard in the span
};

typedef int launch_fn(const struct bsw_device_group *group, const struct bsw_device_codes *codes,
                      const struct bsw_device_part *part, const struct bsw_device_lists *lists);

// A launch for each type of table that there is.
static int launch_tables(const struct bsw_device_group *group, const struct bsw_device_codes *codes,
                         const struct bsw_device_part *part, const struct bsw_device_lists *lists)
{
    bsw_stream stream = bsw_device_stream(group->engine->device, BSW_QUEUE_SCAN);
    struct bsw_device_tables tables = group->tables.tables;
    int code = 0;
    for (int t = bsw_device_next_type(&group->tables, 0); t < BSW_NUM_TABLE_TYPES && code == 0;
         t = bsw_device_next_type(&group->tables, t + 1)) {
        tables.type = (enum bsw_table_type)t;
        code = bsw_device_table_scan(codes, part, &tables, lists, stream);
    }
    return code;
}

static int launch_full(const struct bsw_device_group *group, const struct bsw_device_codes *codes,
                       const struct bsw_device_part *part, const struct bsw_device_lists *lists)
{
    bsw_stream stream = bsw_device_stream(group->engine->device, BSW_QUEUE_SCAN);
    if (group->engine->plan.product) return launch_tables(group, codes, part, lists);
    if (codes->offsets)
        return bsw_device_byte_scan(codes, part, &group->queries, group->batch->factor, lists,
                                    stream);
    return (group->is_matrix ? bsw_device_matrix_scan
                             : bsw_device_plane_scan)(codes, part, &group->queries, lists, stream);
}

static int launch_staged(const struct bsw_device_group *group, const struct bsw_device_codes *codes,
                         const struct bsw_device_part *part, const struct bsw_device_lists *lists)
{
    bsw_stream stream = bsw_device_stream(group->engine->device, BSW_QUEUE_SCAN);
    return bsw_device_progressive_scan_hopper(codes, &group->stage, part, &group->queries, lists,
                                              stream);
}

// What of a part lies in bundles [first, first + num_bundles), counted from there; 0: nothing.
static int cut_part(const struct bsw_device_part *part, uint32_t first, uint32_t num_bundles,
                    struct bsw_device_part *out)
{
    uint32_t before = part->first < first ? first - part->first : 0;
    uint64_t begin = part->first + ((uint64_t)before + part->step - 1) / part->step * part->step;
    uint64_t end = (uint64_t)first + num_bundles < part->last ? first + num_bundles : part->last;
    if (begin >= end) return 0;
    *out = (struct bsw_device_part){(uint32_t)(begin - first), (uint32_t)(end - first), part->step};
    return 1;
}

// The part of the codes, or of the span, shard by shard.
static enum bsw_status launch(const struct codes_scan *scan, launch_fn *kernel,
                              const struct bsw_device_part *part,
                              const struct bsw_device_lists *lists, struct bsw_error *err)
{
    const struct bsw_device_span *span = scan->group->span;
    bsw_device *device = scan->group->engine->device;
    uint32_t bundle = 0, row = scan->first_row;
    for (size_t s = 0; s < (scan->codes ? 1 : span->num_shards); s++) {
        struct bsw_device_codes codes =
            scan->codes ? *scan->codes : bsw_device_masked_codes(span->shards[s]);
        struct bsw_device_part own;
        codes.first_row += row;
        if (cut_part(part, bundle, codes.num_bundles, &own))
            BSW_TRY(
                bsw_device_launched(device, kernel(scan->group, &codes, &own, lists), "scan", err));
        bundle += codes.num_bundles;
        row += (uint32_t)span->shards[s]->host->shape.num_rows;
    }
    return BSW_OK;
}

// The number of survivors is there when the host has waited for the launch.
static enum bsw_status scan_staged(const struct codes_scan *scan,
                                   const struct bsw_device_part *part,
                                   const struct bsw_device_lists *lists, struct bsw_error *err)
{
    struct bsw_device_group *group = scan->group;
    bsw_device_stage_launched(&group->stage_run, part, group->num_queries);
    BSW_TRY(launch(scan, launch_staged, part, lists, err));
    return bsw_device_download(group->engine->device, BSW_QUEUE_SCAN, group->engine->survivors,
                               group->stage.survivors, sizeof(uint64_t), err);
}

// What the part before has told; the host has waited for it.
static void end_part(struct bsw_device_group *group)
{
    if (!group->is_staged) return;
    bsw_device_stage_settle(&group->stage_run, *group->engine->survivors);
    bsw_device_stage_end_part(&group->stage_run, group->run.num_overflows);
}

static enum bsw_status launch_scan(void *context, const struct bsw_device_part *part,
                                   const struct bsw_device_lists *lists, struct bsw_error *err)
{
    BSW_DEVICE_PHASE(SCAN);
    const struct codes_scan *scan = context;
    struct bsw_device_group *group = scan->group;
    struct bsw_device_part beginning, rest = *part;
    if (!group->is_staged) return launch(scan, launch_full, part, lists, err);
    end_part(group);
    enum bsw_device_stage_step step = bsw_device_stage_next(&group->stage_run, part, &beginning);
    if (step == BSW_STAGE_BEGINNING) {
        BSW_TRY(scan_staged(scan, &beginning, lists, err));
        BSW_TRY(bsw_device_wait(group->engine->device, BSW_QUEUE_SCAN, "scan", err));
        bsw_device_stage_settle(&group->stage_run, *group->engine->survivors);
        rest.first = beginning.last;
        step = group->stage_run.resting > 0 ? BSW_STAGE_FULL : BSW_STAGE_STAGED;
    }
    if (step == BSW_STAGE_STAGED) return scan_staged(scan, &rest, lists, err);
    return launch(scan, launch_full, &rest, lists, err);
}

// All bundles of what is given, which follow those done so far.
static enum bsw_status scan_codes(const struct codes_scan *scan, struct bsw_error *err)
{
    struct bsw_device_group *group = scan->group;
    size_t num_bundles = scan->codes ? scan->codes->num_bundles : group->num_bundles;
    void *context = (void *)(uintptr_t)scan;
    if (group->has_queues)
        return bsw_device_row_queues_scan(&group->run, num_bundles, group->num_bundles, launch_scan,
                                          context, err);
    return bsw_device_list_run_scan(&group->run, num_bundles, launch_scan, context, err);
}

// ---- blocks ----

struct block_run {
    const struct bsw_device_shard *shard;
    struct bsw_device_codes codes[2];
    size_t next; // bundle of the first block not on its way
    unsigned place;
};

static enum bsw_status copy_next(struct bsw_device_group *group, struct block_run *run,
                                 struct bsw_error *err)
{
    struct bsw_device_engine *engine = group->engine;
    size_t left = run->shard->num_bundles - run->next;
    size_t count = left < engine->plan.block_bundles ? left : engine->plan.block_bundles;
    if (count == 0) return BSW_OK;
    BSW_TRY(bsw_device_copy_codes(engine, run->shard, run->next, count, &engine->blocks[run->place],
                                  run->shard->is_pinned, &run->codes[run->place], err));
    run->next += count;
    run->place ^= 1;
    engine->counts.copied_bytes +=
        count * bsw_device_bundle_bytes(&engine->plan.layout, engine->plan.keys,
                                        engine->plan.stage_dims > 0);
    return BSW_OK;
}

// Resident bundles, then the others: a block is copied while the one before it is scanned. Its
// memory is free by then, as the host has seen the end of every scan.
static enum bsw_status scan_shard(struct bsw_device_group *group,
                                  const struct bsw_device_shard *shard, uint32_t first_row,
                                  struct bsw_error *err)
{
    struct block_run run = {.shard = shard, .next = shard->resident.num_bundles};
    const struct bsw_device_codes resident = bsw_device_masked_codes(shard);
    struct codes_scan scan = {group, &resident, first_row};
    size_t end = group->run.done + shard->num_bundles;
    BSW_TRY(copy_next(group, &run, err));
    BSW_TRY(scan_codes(&scan, err));
    for (unsigned place = 0; group->run.done < end; place ^= 1) {
        BSW_TRY(bsw_device_follow(group->engine->device, BSW_QUEUE_SCAN, BSW_QUEUE_COPY, err));
        BSW_TRY(copy_next(group, &run, err));
        scan.codes = &run.codes[place];
        BSW_TRY(scan_codes(&scan, err));
    }
    return BSW_OK;
}

static enum bsw_status scan_bundles(struct bsw_device_group *group, struct bsw_error *err)
{
    const struct bsw_device_span *span = group->span;
    const struct codes_scan all = {group, NULL, 0};
    uint32_t row = 0;
    if (group->is_resident) return scan_codes(&all, err);
    for (size_t s = 0; s < span->num_shards; s++) {
        BSW_TRY(scan_shard(group, span->shards[s], row, err));
        row += (uint32_t)span->shards[s]->host->shape.num_rows;
    }
    return BSW_OK;
}

// ---- a group ----

// Where the host decides nothing between segments.
static int may_scan_ahead(const struct bsw_device_group *group)
{
    return !group->is_staged && !group->has_queues && group->is_resident;
}

// All of a group that the host does not look at in between. Lists that overflow are sorted for
// nothing.
static enum bsw_status queue_ahead(struct bsw_device_group *group, struct bsw_error *err)
{
    struct codes_scan scan = {group, NULL, 0};
    BSW_TRY(bsw_device_group_upload(group, err));
    BSW_TRY(
        bsw_device_list_run_queue_ahead(&group->run, group->num_bundles, launch_scan, &scan, err));
    return bsw_device_group_sort(group, err);
}

static enum bsw_status begin(struct bsw_device_group *group, struct bsw_error *err)
{
    if (group->has_queues) BSW_TRY(bsw_device_row_queues_begin(&group->run, err));
    BSW_TRY(bsw_device_group_stage(group, err));
    group->is_sorted = may_scan_ahead(group);
    if (!group->is_sorted) return bsw_device_group_upload(group, err);
    return bsw_device_graphs_queue(group, queue_ahead, err);
}

static enum bsw_status end_scan(struct bsw_device_group *group, struct bsw_error *err)
{
    int is_whole;
    if (!may_scan_ahead(group)) return scan_bundles(group, err);
    BSW_TRY(bsw_device_list_run_end_ahead(&group->run, &is_whole, err));
    if (is_whole) return BSW_OK;
    group->scanned += group->run.scanned;
    BSW_TRY(bsw_device_group_begin_again(group, err));
    return scan_bundles(group, err);
}

static enum bsw_status end(struct bsw_device_group *group, struct bsw_error *err)
{
    struct bsw_device_stage_run stage_run = group->stage_run; // as it begins
    enum bsw_status status = end_scan(group, err);
    end_part(group);
    group->stopped += group->stage_run.stopped;
    group->stage_run = stage_run;
    group->scanned += group->run.scanned;
    group->num_row_pairs += group->num_masked * (uint64_t)group->num_queries;
    return status;
}

const struct bsw_device_maker bsw_device_whole = {.choose = choose, .begin = begin, .end = end};
