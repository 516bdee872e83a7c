// SPDX-License-Identifier: Apache-2.0
// A batch over an index with lists as a whole, phase by phase as the device engine does it: the
// coarse step, work items, the scan, the last kernels, candidates to the host, refinement. Lists
// are runs of bundles, centroids, queries and raw rows random, so that recall means nothing. The
// host waits at the end of each phase, and its clock is asked: together they take longer than a
// search that lets them overlap.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/device/device_bench_lists.h"
#include "common/base/arithmetic.h"
#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/codes/metric.h"
#include "shard/device/device_gpu_items.h"

#define CENTROID_SEED 0x9000u
#define VECTOR_SEED   0x9001u
#define RAW_SEED      0x9002u

// ---- phases ----

static enum bsw_status find_lists(struct lists_bench *lists, struct bsw_error *err)
{
    return bsw_coarse_search_run(lists->coarse_search, lists->vectors, lists->num_queries,
                                 &lists->choice, err);
}

static enum bsw_status make_items(struct lists_bench *lists, struct bsw_error *err)
{
    const struct bsw_device_shard *shard = &lists->shard;
    const struct bsw_device_task task = {.maker = &bsw_device_items,
                                         .span = {&shard, 1},
                                         .queries = {&lists->queries.batch, 0, lists->num_queries},
                                         .choice = &lists->choice,
                                         .coarse = &lists->coarse,
                                         .keep = lists->shape->keep,
                                         .workspace = &lists->workspace,
                                         .kept = &lists->kept.spans[0]};
    if (lists->num_queries > lists->engine.plan.group_queries)
        return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "the device takes %u queries in parts",
                        lists->num_queries);
    return bsw_device_scan_begin(&lists->engine, &task, err);
}

static enum bsw_status await_scan(struct lists_bench *lists, struct bsw_error *err)
{
    return bsw_device_wait(lists->bench->device, BSW_QUEUE_SCAN, "scan", err);
}

static enum bsw_status end_scan(struct lists_bench *lists, struct bsw_error *err)
{
    BSW_TRY(bsw_device_scan_end(&lists->engine, &lists->found, &lists->num_pairs, NULL, err));
    return bsw_device_wait(lists->bench->device, BSW_QUEUE_LINK, "candidates", err);
}

static enum bsw_status take(struct lists_bench *lists, struct bsw_error *err)
{
    return bsw_device_kept_take(&lists->kept.spans[0], &lists->engine.transfer, lists->cuts,
                                &lists->found, err);
}

static enum bsw_status refine(struct lists_bench *lists, struct bsw_error *err)
{
    bsw_device *device = lists->bench->device;
    size_t count, num = 0;
    for (uint32_t q = 0; q < lists->num_queries; q++) {
        const uint64_t *items = bsw_candidate_list(&lists->found, q, &count);
        for (size_t i = 0; i < count; i++)
            lists->pairs[num++] = (struct bsw_device_pair){q, bsw_candidate_row(items[i])};
    }
    lists->num_survivors = num;
    BSW_TRY(bsw_device_upload(device, BSW_QUEUE_SCAN, lists->d_pairs, lists->pairs,
                              num * sizeof *lists->pairs, err));
    BSW_TRY(DEVICE_BENCH_LAUNCH(lists->bench, "refine", err, bsw_device_refine, BSW_METRIC_L2,
                                &lists->raw_rows, &lists->raw_queries, lists->d_pairs, num,
                                lists->d_values));
    BSW_TRY(bsw_device_download(device, BSW_QUEUE_SCAN, lists->values, lists->d_values,
                                num * sizeof *lists->values, err));
    return bsw_device_wait(device, BSW_QUEUE_SCAN, "values", err);
}

static const struct {
    const char *name;
    enum bsw_status (*run)(struct lists_bench *lists, struct bsw_error *err);
} phases[] = {{"coarse", find_lists}, {"items", make_items}, {"scan", await_scan},
              {"last", end_scan},     {"take", take},        {"refine", refine}};
enum { NUM_PHASES = sizeof phases / sizeof phases[0] };

struct phase_seconds {
    double phase[NUM_PHASES][DEVICE_BENCH_MOST_REPEATS], all[DEVICE_BENCH_MOST_REPEATS];
    size_t count;
};

// ---- an index ----

static void fill(float *numbers, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++)
        numbers[i] = (float)(int32_t)(uint32_t)bsw_hash2(seed, i) * 0x1p-31f;
}

// Runs of bundles, at least eight lists.
static enum bsw_status make_order(struct lists_bench *lists, struct bsw_error *err)
{
    struct bsw_list_order *order = &lists->host.order;
    uint32_t bundles = lists->bench->codes.codes.num_bundles, each = lists->shape->list_bundles;
    uint32_t rows = (uint32_t)lists->bench->codes.num_rows;
    if (each > bundles / 8) each = bundles / 8 > 0 ? bundles / 8 : 1;
    order->num_lists = (bundles + each - 1) / each;
    order->num_rows = rows;
    order->num_places = bundles * BSW_BUNDLE_ROWS;
    BSW_TRY(bsw_allocate(&order->first_bundles, order->num_lists + (size_t)1, sizeof(uint32_t),
                         "lists", err));
    BSW_TRY(bsw_allocate(&order->rows, order->num_places, sizeof(uint32_t), "lists", err));
    BSW_TRY(bsw_allocate(&order->places, rows, sizeof(uint32_t), "lists", err));
    for (uint32_t l = 0; l <= order->num_lists; l++)
        order->first_bundles[l] = l * each < bundles ? l * each : bundles;
    for (uint32_t p = 0; p < order->num_places; p++) order->rows[p] = p < rows ? p : BSW_NO_ROW;
    for (uint32_t row = 0; row < rows; row++) order->places[row] = row;
    return BSW_OK;
}

static enum bsw_status open_coarse(struct lists_bench *lists, struct bsw_error *err)
{
    const struct device_bench_settings *settings = lists->bench->settings;
    uint32_t num_lists = lists->host.order.num_lists, dims = lists->raw_rows.dims;
    struct bsw_manifest *manifest = &lists->manifest;
    size_t free_bytes;
    manifest->metric = BSW_METRIC_L2;
    manifest->layout = lists->bench->codes.codes.layout;
    manifest->lists.count = num_lists;
    lists->probe = lists->shape->probe < num_lists / 2 ? lists->shape->probe : num_lists / 2;
    if (lists->probe == 0) lists->probe = 1;
    BSW_TRY(bsw_allocate(&manifest->lists.centroids, (size_t)num_lists * dims, sizeof(float),
                         "centroids", err));
    fill(manifest->lists.centroids, (size_t)num_lists * dims, CENTROID_SEED);
    const struct bsw_probe_settings probe = {.probe = lists->probe};
    const struct bsw_device_coarse_needs needs = {.num_lists = num_lists,
                                                  .dims = dims,
                                                  .max_queries = lists->num_queries,
                                                  .probe = lists->probe,
                                                  .stays = lists->shape->has_gpu_lists};
    BSW_TRY(bsw_coarse_search_open(manifest, &probe, NULL, settings->common.level,
                                   (int)settings->common.threads, &lists->coarse_search, err));
    BSW_TRY(bsw_device_free_bytes(lists->bench->device, &free_bytes, err));
    BSW_TRY(bsw_device_coarse_open(lists->bench->device, &needs, free_bytes, &lists->coarse, err));
    return bsw_device_coarse_take(&lists->coarse, lists->coarse_search, err);
}

static enum bsw_status open_engine(struct lists_bench *lists, struct bsw_error *err)
{
    lists->tuning = *bsw_device_tuning_current();
    lists->tuning.has_gpu_lists = (uint32_t)lists->shape->has_gpu_lists;
    static const struct bsw_shard_range span = {0, 1};
    struct device_bench *bench = lists->bench;
    const struct bsw_list_order *order = &lists->host.order;
    struct bsw_shard_shape *shape = &lists->host.shape;
    *shape = (struct bsw_shard_shape){.layout = bench->codes.codes.layout,
                                      .has_affine = 1,
                                      .has_biases = 1,
                                      .num_rows = order->num_rows,
                                      .num_places = order->num_places,
                                      .num_lists = order->num_lists};
    lists->host.num_bundles = bench->codes.codes.num_bundles;
    const struct bsw_device_needs needs = {.shapes = shape,
                                           .num_shards = 1,
                                           .query_bits = lists->shape->query_bits,
                                           .max_queries = lists->num_queries,
                                           .keep = lists->shape->keep,
                                           .probe = lists->probe,
                                           .tuning = &lists->tuning};
    const struct bsw_device_kept_needs kept = {.shapes = shape,
                                               .spans = &span,
                                               .num_spans = 1,
                                               .max_queries = lists->num_queries,
                                               .keep = lists->shape->keep};
    BSW_TRY(bsw_device_kept_open(bench->device, &kept, &lists->kept, err));
    BSW_TRY(bsw_device_engine_open(bench->device, &needs, &lists->engine, err));
    size_t bytes = order->num_places * sizeof(uint32_t);
    BSW_TRY(bsw_device_allocate(bench->device, bytes, "rows", &lists->shard.rows, err));
    BSW_TRY(bsw_device_blocks_upload(&lists->engine.transfer, lists->shard.rows.data, order->rows,
                                     bytes, "rows to the device", err));
    lists->shard.host = &lists->host;
    lists->shard.resident = device_bench_codes_first(bench, order->num_rows, 1);
    lists->shard.num_bundles = lists->host.num_bundles;
    BSW_TRY(bsw_device_list_shape_load(&lists->engine, 0, &lists->shard, err));
    return bsw_device_wait(bench->device, BSW_QUEUE_COPY, "rows", err);
}

static enum bsw_status open_raw_rows(struct lists_bench *lists, struct bsw_error *err)
{
    size_t dims = lists->raw_rows.dims, rows = lists->raw_rows.num_rows, num = lists->num_queries;
    size_t pairs = num * lists->shape->keep;
    const struct device_bench_array arrays[] = {
        {&lists->raw_rows.numbers, rows * dims},
        {&lists->raw_queries.numbers, num * dims * sizeof(double)},
        {&lists->raw_queries.norms, num * sizeof(double)},
        {&lists->d_pairs, pairs * sizeof *lists->d_pairs},
        {&lists->d_values, pairs * sizeof *lists->d_values}};
    BSW_TRY(device_bench_allocate(lists->bench, arrays, sizeof arrays / sizeof arrays[0],
                                  &lists->memory, err));
    lists->raw_queries.num_queries = lists->num_queries;
    BSW_TRY(bsw_allocate(&lists->pairs, pairs, sizeof *lists->pairs, "pairs", err));
    BSW_TRY(bsw_allocate(&lists->values, pairs, sizeof *lists->values, "values", err));
    BSW_TRY(DEVICE_BENCH_LAUNCH(lists->bench, "rows", err, device_bench_fill,
                                (void *)lists->raw_rows.numbers, rows * dims, RAW_SEED));
    BSW_TRY(DEVICE_BENCH_LAUNCH(lists->bench, "queries", err, device_bench_make_doubles,
                                (double *)lists->raw_queries.norms, num));
    return DEVICE_BENCH_LAUNCH(lists->bench, "queries", err, device_bench_make_doubles,
                               (double *)lists->raw_queries.numbers, num * dims);
}

static enum bsw_status open_lists(struct lists_bench *lists, struct bsw_error *err)
{
    const struct bsw_code_layout *layout = &lists->bench->codes.codes.layout;
    size_t num = lists->num_queries;
    lists->raw_rows = (struct bsw_device_raw_rows){BSW_VECTOR_UINT8, layout->dims,
                                                   (uint32_t)lists->bench->codes.num_rows, NULL};
    bsw_scan_workspace_init(&lists->workspace, BSW_CPU_REFERENCE, 1);
    BSW_TRY(bsw_allocate(&lists->vectors, num * layout->dims, sizeof(float), "queries", err));
    BSW_TRY(bsw_allocate(&lists->cuts, num, sizeof *lists->cuts, "cuts", err));
    fill(lists->vectors, num * layout->dims, VECTOR_SEED);
    for (size_t q = 0; q < num; q++) lists->cuts[q] = bsw_keep_all();
    BSW_TRY(make_order(lists, err));
    BSW_TRY(open_raw_rows(lists, err));
    BSW_TRY(open_coarse(lists, err));
    BSW_TRY(open_engine(lists, err));
    return device_bench_queries_make(layout, lists->shape->query_bits, lists->num_queries,
                                     &lists->queries, err);
}

static void close_lists(struct lists_bench *lists)
{
    bsw_device *device = lists->bench->device;
    bsw_device_scan_end(&lists->engine, NULL, NULL, NULL, NULL);
    bsw_device_free(device, &lists->shard.rows);
    bsw_free(&lists->shard.longest);
    bsw_device_free(device, &lists->memory);
    bsw_device_engine_close(&lists->engine);
    bsw_device_kept_close(&lists->kept);
    bsw_device_coarse_close(&lists->coarse);
    bsw_coarse_search_close(&lists->coarse_search);
    bsw_list_order_deinit(&lists->host.order);
    bsw_scan_workspace_deinit(&lists->workspace);
    bsw_candidate_lists_deinit(&lists->found);
    device_bench_queries_free(&lists->queries);
    bsw_free(&lists->manifest.lists.centroids);
    bsw_free(&lists->vectors);
    bsw_free(&lists->cuts);
    bsw_free(&lists->pairs);
    bsw_free(&lists->values);
}

// ---- time ----

static enum bsw_status run_once(struct lists_bench *lists, struct phase_seconds *out,
                                struct bsw_error *err)
{
    double began = bsw_clock_seconds(), last = began;
    for (int i = 0; i < NUM_PHASES; i++) {
        BSW_TRY(phases[i].run(lists, err));
        double now = bsw_clock_seconds();
        out->phase[i][out->count] = now - last;
        last = now;
    }
    out->all[out->count] = last - began;
    return BSW_OK;
}

// The first is not counted.
static enum bsw_status time_phases(struct lists_bench *lists, struct phase_seconds *out,
                                   struct bsw_error *err)
{
    BSW_TRY(run_once(lists, out, err));
    double began = bsw_clock_seconds();
    while (device_bench_wants_more(lists->bench, began, out->count)) {
        BSW_TRY(run_once(lists, out, err));
        out->count++;
    }
    return BSW_OK;
}

static void report(struct lists_bench *lists, const char *name, struct phase_seconds *seconds)
{
    struct device_record record = {.name = name,
                                   .rows = lists->raw_rows.num_rows,
                                   .queries = lists->num_queries,
                                   .keep = lists->shape->keep,
                                   .is_checked = 1};
    record.times = device_bench_times_of(seconds->all, seconds->count);
    device_bench_report(lists->bench, &record);
    for (int i = 0; i < NUM_PHASES; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s/%s", name, phases[i].name);
        record.name = text;
        record.times = device_bench_times_of(seconds->phase[i], seconds->count);
        device_bench_report(lists->bench, &record);
    }
    bsw_bench_report_note(
        &lists->bench->report,
        "%s: %u of %u lists a query, %zu candidates refined; coarse step on the "
        "%s%s",
        name, lists->probe, lists->host.order.num_lists, lists->num_survivors,
        lists->coarse.device ? "device" : "host",
        lists->coarse.placed && lists->coarse.refused == 0 ? ", which makes work items" : "");
}

// Opens lists, which are to be closed in any case, and times them.
static enum bsw_status measure(struct lists_bench *lists, uint64_t rows,
                               struct phase_seconds *seconds, struct bsw_error *err)
{
    BSW_TRY(device_bench_codes_make(lists->bench, lists->shape->layout, rows, err));
    BSW_TRY(open_lists(lists, err));
    return time_phases(lists, seconds, err);
}

enum bsw_status device_bench_lists(struct device_bench *bench, const struct device_bench_case *c,
                                   struct bsw_error *err)
{
    struct lists_bench lists = {.bench = bench,
                                .shape = &c->shape,
                                .num_queries = device_bench_num_queries(bench, &c->shape)};
    struct phase_seconds *seconds;
    uint64_t rows = device_bench_num_rows(bench, &c->shape);
    BSW_TRY(bsw_allocate_zero(&seconds, 1, sizeof *seconds, "times", err));
    enum bsw_status status = measure(&lists, rows, seconds, err);
    if (status == BSW_OK) status = device_bench_lists_check(&lists, err);
    if (status == BSW_OK) report(&lists, c->name, seconds);
    close_lists(&lists);
    bsw_free(&seconds);
    return status;
}

enum bsw_status device_bench_lists_time(struct device_bench *bench,
                                        const struct device_bench_shape *shape, double *seconds,
                                        struct bsw_error *err)
{
    struct lists_bench lists = {
        .bench = bench, .shape = shape, .num_queries = device_bench_num_queries(bench, shape)};
    struct phase_seconds *all;
    BSW_TRY(bsw_allocate_zero(&all, 1, sizeof *all, "times", err));
    enum bsw_status status = measure(&lists, device_bench_num_rows(bench, shape), all, err);
    if (status == BSW_OK) *seconds = device_bench_times_of(all->all, all->count).median;
    close_lists(&lists);
    bsw_free(&all);
    return status;
}
