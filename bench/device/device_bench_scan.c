// SPDX-License-Identifier: Apache-2.0
// Scanning cases: a whole pass, and the kernel alone in one launch with limits that nothing
// reaches. What the pass takes beyond that is selection: segments, counts, cuts, sorting and
// waiting.
#include <stdio.h>
#include <string.h>

#include "bench/device/device_bench.h"
#include "common/base/memory.h"
#include "kernels/device_scan/device_list_scan.h"
#include "kernels/device_scan/device_tuning.h"
#include "shard/device/device_plan.h"

// ---- the kernel alone ----

// A launch over all bundles for one batch; lists hold nothing.
struct bare_scan {
    struct device_bench *bench;
    const struct device_bench_shape *shape;
    struct bsw_device_codes codes;
    struct bsw_device_buffer memory;
    struct bsw_device_queries queries;
    struct bsw_device_lists lists;
    struct bsw_device_list_work work; // where the shape has lists
    size_t num_launches;
};

static int is_matrix(const struct device_bench_shape *shape)
{
    if (shape->kind == BSW_SCAN_AUTO)
        return shape->batch >= bsw_device_tuning_current()->matrix_from_queries;
    return bsw_scan_is_matrix(shape->kind);
}

static enum bsw_status allocate_bare(struct bare_scan *bare, const struct bsw_query_batch *batch,
                                     size_t num_queries, struct bsw_error *err)
{
    struct bsw_device_queries *queries = &bare->queries;
    struct bsw_device_lists *lists = &bare->lists;
    const struct device_bench_array arrays[] = {
        {&queries->words, num_queries * batch->query_words * sizeof *queries->words},
        {&queries->scales, num_queries * sizeof *queries->scales},
        {&queries->components, num_queries * bare->codes.layout.padded_dims},
        {&queries->constants, num_queries * sizeof *queries->constants},
        {&lists->items, num_queries * sizeof *lists->items},
        {&lists->counts, num_queries * sizeof *lists->counts},
        {&lists->limits, num_queries * sizeof *lists->limits},
        {&bare->work.items, (bare->work.num_items + 1) * sizeof *bare->work.items},
        {&bare->work.queries, num_queries * sizeof *bare->work.queries}};
    queries->num_queries = lists->num_queries = (uint32_t)num_queries;
    queries->query_bits = batch->query_bits;
    queries->query_words = (uint32_t)batch->query_words;
    lists->capacity = 1;
    return device_bench_allocate(bare->bench, arrays, sizeof arrays / sizeof arrays[0],
                                 &bare->memory, err);
}

// Lists one after another, each an item for all queries. Candidates' rows are never read, as there
// are none; biases have as many numbers.
static enum bsw_status send_items(struct bare_scan *bare, struct bsw_error *err)
{
    bsw_device *device = bare->bench->device;
    uint32_t num = bare->queries.num_queries, most = bare->shape->list_bundles, *numbers;
    struct bsw_device_list_item *items;
    BSW_TRY(bsw_allocate(&numbers, num, sizeof *numbers, "numbers of queries", err));
    enum bsw_status status =
        bsw_allocate(&items, bare->work.num_items, sizeof *items, "work items", err);
    for (uint32_t q = 0; q < num; q++) numbers[q] = q;
    for (uint32_t i = 0; i < bare->work.num_items && status == BSW_OK; i++) {
        uint32_t left = bare->codes.num_bundles - i * most;
        items[i] = (struct bsw_device_list_item){i * most, left < most ? left : most, 0, num};
    }
    if (status == BSW_OK)
        status = bsw_device_upload(device, BSW_QUEUE_SCAN, (void *)bare->work.items, items,
                                   bare->work.num_items * sizeof *items, err);
    if (status == BSW_OK)
        status = bsw_device_upload(device, BSW_QUEUE_SCAN, (void *)bare->work.queries, numbers,
                                   num * sizeof *numbers, err);
    if (status == BSW_OK) status = bsw_device_wait(device, BSW_QUEUE_SCAN, "work items", err);
    bare->work.rows = (const uint32_t *)(const void *)bare->codes.biases;
    bare->work.num_bundles = bare->codes.num_bundles;
    bsw_free(&items);
    bsw_free(&numbers);
    return status;
}

// Zero counts, limits above every score, queries and their bytes.
static enum bsw_status send_bare(struct bare_scan *bare, const struct bsw_query_batch *batch,
                                 struct bsw_error *err)
{
    bsw_device *device = bare->bench->device;
    struct bsw_device_queries *queries = &bare->queries;
    size_t num = queries->num_queries;
    uint32_t *numbers; // counts, then limits
    BSW_TRY(bsw_allocate_zero(&numbers, 2 * num, sizeof *numbers, "limits", err));
    memset(numbers + num, 0xff, num * sizeof *numbers);
    const struct {
        const void *to, *from;
        size_t bytes;
    } uploads[] = {{bare->lists.counts, numbers, 4 * num},
                   {bare->lists.limits, numbers + num, 4 * num},
                   {queries->words, batch->words, num * batch->query_words * sizeof(uint32_t)},
                   {queries->scales, batch->scales, num * sizeof(float)}};
    enum bsw_status status = BSW_OK;
    for (size_t i = 0; i < 4 && status == BSW_OK; i++)
        status = bsw_device_upload(device, BSW_QUEUE_SCAN, (void *)uploads[i].to, uploads[i].from,
                                   uploads[i].bytes, err);
    if (status == BSW_OK) status = bsw_device_wait(device, BSW_QUEUE_SCAN, "queries", err);
    bsw_free(&numbers);
    BSW_TRY(status);
    if (!bare->shape->has_affine) queries->scales = NULL;
    return DEVICE_BENCH_LAUNCH(bare->bench, "queries", err, bsw_device_unpack_queries,
                               &bare->codes.layout, queries->num_queries, batch->query_bits,
                               queries->query_words, queries->words, (int8_t *)queries->components,
                               (int32_t *)queries->constants);
}

typedef int (*scan_launcher)(const struct bsw_device_codes *codes,
                             const struct bsw_device_part *part,
                             const struct bsw_device_queries *queries,
                             const struct bsw_device_lists *lists, bsw_stream stream);

static scan_launcher choose_launcher(const struct device_bench_shape *shape)
{
    switch (shape->kernel) {
    case DEVICE_BENCH_MMA:
        return bsw_device_matrix_scan_mma;
    case DEVICE_BENCH_HOPPER:
        return bsw_device_matrix_scan_hopper;
    case DEVICE_BENCH_BY_KIND:
        break;
    }
    return is_matrix(shape) ? bsw_device_matrix_scan : bsw_device_plane_scan;
}

static enum bsw_status run_lists(struct bare_scan *bare, struct bsw_error *err)
{
    const uint32_t tile = bsw_device_list_tile(bare->queries.num_queries);
    int (*launcher)(const struct bsw_device_codes *, const struct bsw_device_list_work *, uint32_t,
                    const struct bsw_device_queries *, const struct bsw_device_lists *,
                    bsw_stream) = bare->shape->kernel == DEVICE_BENCH_HOPPER
                                      ? bsw_device_list_scan_hopper
                                      : bsw_device_list_scan_mma;
    return DEVICE_BENCH_LAUNCH(bare->bench, "scan of lists", err, launcher, &bare->codes,
                               &bare->work, tile, &bare->queries, &bare->lists);
}

static enum bsw_status run_bare(void *context, struct bsw_error *err)
{
    struct bare_scan *bare = context;
    const struct bsw_device_part part = {0, bare->codes.num_bundles, 1};
    const scan_launcher launcher = choose_launcher(bare->shape);
    if (bare->shape->list_bundles > 0) return run_lists(bare, err);
    for (size_t i = 0; i < bare->num_launches; i++)
        BSW_TRY(DEVICE_BENCH_LAUNCH(bare->bench, "scan", err, launcher, &bare->codes, &part,
                                    &bare->queries, &bare->lists));
    return BSW_OK;
}

// All queries, in launches of a batch each.
enum bsw_status device_bench_kernel_time(struct device_bench *bench,
                                         const struct device_bench_shape *shape, uint64_t num_rows,
                                         const struct device_bench_queries *queries,
                                         struct device_times *times, struct bsw_error *err)
{
    const struct bsw_query_batch *batch = &queries->batch;
    uint32_t num = batch->num_queries < shape->batch ? batch->num_queries : shape->batch;
    struct bare_scan bare = {.bench = bench, .shape = shape};
    bare.num_launches = (batch->num_queries + num - 1) / num;
    bare.codes = device_bench_codes_first(bench, num_rows, shape->has_affine);
    if (shape->list_bundles > 0)
        bare.work.num_items =
            (bare.codes.num_bundles + shape->list_bundles - 1) / shape->list_bundles;
    BSW_TRY(allocate_bare(&bare, batch, num, err));
    enum bsw_status status = send_bare(&bare, batch, err);
    if (status == BSW_OK && shape->list_bundles > 0) status = send_items(&bare, err);
    if (status == BSW_OK)
        status = device_bench_time(bench, bench->device, run_bare, &bare, times, err);
    bsw_device_free(bench->device, &bare.memory);
    return status;
}

// ---- the cases ----

// Codes read once a call count as bytes while one pass of the kernel takes the whole batch.
#define MOST_QUERIES_A_PASS 256

static void count_work(const struct device_bench *bench, const struct device_bench_shape *shape,
                       struct device_record *record)
{
    const struct bsw_code_layout *layout = &bench->codes.codes.layout;
    double pairs = (double)record->rows * (double)record->queries;
    if (record->queries <= MOST_QUERIES_A_PASS) {
        record->bytes = (double)bsw_num_bundles((size_t)record->rows) *
                        (double)bsw_device_bundle_bytes(layout, shape->has_affine, 0);
    }
    if (is_matrix(shape)) {
        record->operations = 2 * pairs * layout->dims;
        record->operations_limit =
            bench->limits[DEVICE_LIMIT_CUBLAS] > 0 ? DEVICE_LIMIT_CUBLAS : DEVICE_LIMIT_MMA;
        return;
    }
    record->operations_limit = DEVICE_LIMIT_POPCOUNT;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        record->operations +=
            pairs * layout->segments[s].words * layout->segments[s].bits * shape->query_bits;
    }
}

static enum bsw_status scan_rows(struct device_bench *bench, const struct device_bench_case *c,
                                 uint64_t num_rows, struct bsw_error *err)
{
    const struct device_bench_shape *shape = &c->shape;
    struct device_record record = {
        .name = c->name, .rows = num_rows, .keep = shape->keep, .bytes_limit = DEVICE_LIMIT_READ};
    struct device_times bare = {.count = 0};
    struct device_bench_pass *pass;
    BSW_TRY(device_bench_pass_open(bench, shape, num_rows, 0, &pass, err));
    record.queries = device_bench_pass_queries(pass)->batch.num_queries;
    count_work(bench, shape, &record);
    enum bsw_status status = device_bench_pass_time(bench, pass, &record.times, err);
    if (status == BSW_OK)
        status = device_bench_kernel_time(bench, shape, num_rows, device_bench_pass_queries(pass),
                                          &bare, err);
    record.scan_seconds = bare.median;
    device_bench_pass_close(&pass);
    if (status == BSW_OK) device_bench_report(bench, &record);
    return status;
}

enum bsw_status device_bench_scan(struct device_bench *bench, const struct device_bench_case *c,
                                  struct bsw_error *err)
{
    BSW_TRY(device_bench_codes_make(bench, c->shape.layout, bench->settings->rows, err));
    uint64_t rows = bench->codes.num_rows;
    for (uint64_t part = c->shape.is_swept ? 100 : 1; part >= 1; part /= 10) {
        // Whole bundles but for all rows.
        uint64_t some = rows / part / BSW_BUNDLE_ROWS * BSW_BUNDLE_ROWS;
        if (part == 1) some = rows;
        if (some > 0) BSW_TRY(scan_rows(bench, c, some, err));
    }
    return BSW_OK;
}

enum bsw_status device_bench_kernel_alone(struct device_bench *bench,
                                          const struct device_bench_case *c, struct bsw_error *err)
{
    const struct device_bench_shape *shape = &c->shape;
    struct device_record record = {.name = c->name,
                                   .queries = device_bench_num_queries(bench, shape),
                                   .bytes_limit = DEVICE_LIMIT_READ};
    struct device_bench_queries queries;
    BSW_TRY(device_bench_codes_make(bench, shape->layout, bench->settings->rows, err));
    const struct bsw_code_layout *layout = &bench->codes.codes.layout;
    const int has_hopper = shape->list_bundles > 0 ? bsw_device_has_hopper_lists(layout)
                                                   : bsw_device_has_hopper(layout);
    if (shape->kernel == DEVICE_BENCH_HOPPER && !has_hopper) {
        bsw_bench_report_note(&bench->report,
                              "%s: skipped: no Hopper GPU, or no code for one (sm_90a)", c->name);
        return BSW_OK;
    }
    record.rows = bench->codes.num_rows;
    count_work(bench, shape, &record);
    BSW_TRY(device_bench_queries_make(layout, shape->query_bits, (uint32_t)record.queries, &queries,
                                      err));
    enum bsw_status status =
        device_bench_kernel_time(bench, shape, record.rows, &queries, &record.times, err);
    device_bench_queries_free(&queries);
    if (status == BSW_OK) device_bench_report(bench, &record);
    return status;
}
