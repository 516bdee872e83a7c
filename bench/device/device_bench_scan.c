// Scanning cases: a whole pass, and the kernel alone in one launch with limits that nothing
// reaches. What the pass takes beyond that is selection: segments, counts, cuts, sorting and
// waiting.
#include <stdio.h>
#include <string.h>

#include "bench/device/device_bench.h"
#include "common/base/memory.h"
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
    size_t num_launches;
};

static int is_matrix(const struct device_bench_shape *shape)
{
    if (shape->kind == BSW_SCAN_AUTO)
        return shape->batch >= bsw_device_tuning_current()->matrix_from_queries;
    return bsw_scan_is_matrix(shape->kind);
}

// Offsets in one buffer, 256-byte aligned.
struct bare_places {
    size_t words, scales, components, constants, items, counts, limits, bytes;
};

static struct bare_places place_bare(const struct bsw_code_layout *layout, size_t num_queries,
                                     size_t query_words)
{
    size_t total = 0;
    struct bare_places at;
    at.words = device_bench_place(num_queries * query_words * sizeof(uint32_t), &total);
    at.scales = device_bench_place(num_queries * sizeof(float), &total);
    at.components = device_bench_place(num_queries * layout->padded_dims, &total);
    at.constants = device_bench_place(num_queries * sizeof(int32_t), &total);
    at.items = device_bench_place(num_queries * sizeof(uint64_t), &total);
    at.counts = device_bench_place(num_queries * sizeof(uint32_t), &total);
    at.limits = device_bench_place(num_queries * sizeof(uint32_t), &total);
    at.bytes = total;
    return at;
}

static void point_bare(struct bare_scan *bare, const struct bsw_query_batch *batch,
                       uint32_t num_queries, const struct bare_places *at)
{
    unsigned char *memory = bare->memory.data;
    bare->queries = (struct bsw_device_queries){
        .num_queries = num_queries,
        .query_bits = batch->query_bits,
        .query_words = (uint32_t)batch->query_words,
        .words = (const uint32_t *)(void *)(memory + at->words),
        .components = (const int8_t *)(memory + at->components),
        .constants = (const int32_t *)(void *)(memory + at->constants),
        .scales = bare->shape->has_affine ? (const float *)(void *)(memory + at->scales) : NULL};
    bare->lists = (struct bsw_device_lists){.num_queries = num_queries,
                                            .capacity = 1,
                                            .items = (uint64_t *)(void *)(memory + at->items),
                                            .counts = (uint32_t *)(void *)(memory + at->counts),
                                            .limits = (uint32_t *)(void *)(memory + at->limits)};
}

// Zero counts, limits above every score, queries and their bytes.
static enum bsw_status send_bare(struct bare_scan *bare, const struct bsw_query_batch *batch,
                                 const struct bare_places *at, struct bsw_error *err)
{
    bsw_device *device = bare->bench->device;
    unsigned char *memory = bare->memory.data;
    size_t num = bare->queries.num_queries;
    uint32_t *numbers; // counts, then limits
    BSW_TRY(bsw_allocate_zero(&numbers, 2 * num, sizeof *numbers, "limits", err));
    memset(numbers + num, 0xff, num * sizeof *numbers);
    enum bsw_status status =
        bsw_device_upload(device, BSW_QUEUE_SCAN, memory + at->counts, numbers, 4 * num, err);
    if (status == BSW_OK)
        status = bsw_device_upload(device, BSW_QUEUE_SCAN, memory + at->limits, numbers + num,
                                   4 * num, err);
    if (status == BSW_OK)
        status = bsw_device_upload(device, BSW_QUEUE_SCAN, memory + at->words, batch->words,
                                   num * batch->query_words * sizeof(uint32_t), err);
    if (status == BSW_OK)
        status = bsw_device_upload(device, BSW_QUEUE_SCAN, memory + at->scales, batch->scales,
                                   num * sizeof(float), err);
    if (status == BSW_OK) status = bsw_device_wait(device, BSW_QUEUE_SCAN, "queries", err);
    bsw_free(&numbers);
    BSW_TRY(status);
    int code = bsw_device_unpack_queries(
        &bare->codes.layout, bare->queries.num_queries, batch->query_bits,
        bare->queries.query_words, bare->queries.words, (int8_t *)(memory + at->components),
        (int32_t *)(void *)(memory + at->constants), bsw_device_stream(device, BSW_QUEUE_SCAN));
    return bsw_device_launched(device, code, "queries", err);
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

static enum bsw_status run_bare(void *context, struct bsw_error *err)
{
    struct bare_scan *bare = context;
    bsw_device *device = bare->bench->device;
    const struct bsw_device_part part = {0, bare->codes.num_bundles, 1};
    for (size_t i = 0; i < bare->num_launches; i++) {
        bsw_stream stream = bsw_device_stream(device, BSW_QUEUE_SCAN);
        int code =
            choose_launcher(bare->shape)(&bare->codes, &part, &bare->queries, &bare->lists, stream);
        BSW_TRY(bsw_device_launched(device, code, "scan", err));
    }
    return BSW_OK;
}

// All queries, in launches of a batch each.
static enum bsw_status time_bare(struct device_bench *bench, const struct device_bench_shape *shape,
                                 uint64_t num_rows, const struct device_bench_queries *queries,
                                 struct device_times *times, struct bsw_error *err)
{
    const struct bsw_query_batch *batch = &queries->batch;
    uint32_t num = batch->num_queries < shape->batch ? batch->num_queries : shape->batch;
    struct bare_scan bare = {.bench = bench, .shape = shape};
    bare.num_launches = (batch->num_queries + num - 1) / num;
    bare.codes = device_bench_codes_first(bench, num_rows, shape->has_affine);
    struct bare_places at = place_bare(&bare.codes.layout, num, batch->query_words);
    BSW_TRY(bsw_device_allocate(bench->device, at.bytes, "queries", &bare.memory, err));
    point_bare(&bare, batch, num, &at);
    enum bsw_status status = send_bare(&bare, batch, &at, err);
    if (status == BSW_OK)
        status =
            device_bench_time(bench, bench->device, BSW_QUEUE_SCAN, run_bare, &bare, times, err);
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
    BSW_TRY(device_bench_pass_open(bench, shape, num_rows, &pass, err));
    record.queries = device_bench_pass_queries(pass)->batch.num_queries;
    count_work(bench, shape, &record);
    enum bsw_status status = device_bench_time(bench, bench->device, BSW_QUEUE_SCAN,
                                               device_bench_pass_run, pass, &record.times, err);
    if (status == BSW_OK)
        status = time_bare(bench, shape, num_rows, device_bench_pass_queries(pass), &bare, err);
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
    uint64_t most = bench->settings->queries;
    struct device_record record = {
        .name = c->name,
        .queries = shape->queries < most ? shape->queries : most,
        .bytes_limit = DEVICE_LIMIT_READ,
    };
    struct device_bench_queries queries;
    BSW_TRY(device_bench_codes_make(bench, shape->layout, bench->settings->rows, err));
    const struct bsw_code_layout *layout = &bench->codes.codes.layout;
    if (shape->kernel == DEVICE_BENCH_HOPPER && !bsw_device_has_hopper(layout)) {
        bsw_bench_report_note(&bench->report,
                              "%s: skipped: no Hopper GPU, or no code for one (sm_90a)", c->name);
        return BSW_OK;
    }
    record.rows = bench->codes.num_rows;
    count_work(bench, shape, &record);
    BSW_TRY(device_bench_queries_make(layout, shape->query_bits, (uint32_t)record.queries, &queries,
                                      err));
    enum bsw_status status = time_bare(bench, shape, record.rows, &queries, &record.times, err);
    device_bench_queries_free(&queries);
    if (status == BSW_OK) device_bench_report(bench, &record);
    return status;
}
