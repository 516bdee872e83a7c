// SPDX-License-Identifier: Apache-2.0
// Scanning cases: a whole pass, and the kernel alone in one launch with limits that nothing
// reaches. What the pass takes beyond that is selection: limits, hits, sorting and waiting.
#include <stdio.h>

#include "bench/device/device_bench_bare.h"
#include "shard/device/device_plan.h"

#define CHECKED_QUERIES 2
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
    if (device_bench_is_matrix(shape, layout)) {
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
    if (status == BSW_OK) status = device_bench_pass_check(bench, pass, CHECKED_QUERIES, err);
    record.scan_seconds = bare.median;
    record.is_checked = 1;
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

static enum bsw_status time_alone(struct device_bench *bench, const char *name,
                                  const struct device_bench_shape *shape,
                                  const struct device_bench_queries *queries, struct bsw_error *err)
{
    struct device_record record = {.name = name,
                                   .rows = bench->codes.num_rows,
                                   .queries = queries->batch.num_queries,
                                   .bytes_limit = DEVICE_LIMIT_READ};
    count_work(bench, shape, &record);
    BSW_TRY(device_bench_kernel_time(bench, shape, record.rows, queries, &record.times, err));
    device_bench_report(bench, &record);
    return BSW_OK;
}

// Each that takes the batch.
static enum bsw_status time_rows(struct device_bench *bench, const struct device_bench_case *c,
                                 const struct device_bench_queries *queries, struct bsw_error *err)
{
    struct device_bench_shape shape = c->shape;
    for (uint32_t i = 0; i < BSW_NUM_SCANS; i++) {
        char name[64];
        if (bsw_scan_rows[i].family != BSW_MATRIX_SCANS ||
            !bsw_device_scan_fits(i, &bench->codes.codes.layout, shape.query_bits,
                                  queries->batch.num_queries))
            continue;
        shape.row = (enum bsw_scan_number)i;
        snprintf(name, sizeof name, "%s/%s", c->name, bsw_scan_rows[i].name);
        BSW_TRY(time_alone(bench, name, &shape, queries, err));
    }
    return BSW_OK;
}

enum bsw_status device_bench_kernel_alone(struct device_bench *bench,
                                          const struct device_bench_case *c, struct bsw_error *err)
{
    const struct device_bench_shape *shape = &c->shape;
    struct device_bench_queries queries;
    BSW_TRY(device_bench_codes_make(bench, shape->layout, bench->settings->rows, err));
    const struct bsw_code_layout *layout = &bench->codes.codes.layout;
    if (shape->kernel == DEVICE_BENCH_HOPPER && !bsw_device_has_hopper_lists(layout)) {
        bsw_bench_report_note(&bench->report,
                              "%s: skipped: no Hopper GPU, or no code for one (sm_90a)", c->name);
        return BSW_OK;
    }
    BSW_TRY(device_bench_queries_make(layout, shape->query_bits,
                                      (uint32_t)device_bench_num_queries(bench, shape), &queries,
                                      err));
    enum bsw_status status = shape->kernel == DEVICE_BENCH_ROW
                                 ? time_rows(bench, c, &queries, err)
                                 : time_alone(bench, c->name, shape, &queries, err);
    device_bench_queries_free(&queries);
    return status;
}
