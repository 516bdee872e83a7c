// SPDX-License-Identifier: Apache-2.0
// The progressive scan beside the full one, whole passes over codes of rows with a spectrum. Both
// must find the same, with the scores that the host computes.
#include "bench/device/device_bench.h"

#define CHECKED_QUERIES 2

struct scan_pair {
    struct device_bench_shape shapes[2]; // the full scan, the progressive one
    struct device_bench_pass *passes[2];
    struct device_record records[2];
};

static enum bsw_status measure(struct device_bench *bench, struct scan_pair *pair, int i,
                               struct bsw_error *err)
{
    struct device_record *record = &pair->records[i];
    uint64_t rows = bench->codes.num_rows;
    BSW_TRY(device_bench_pass_open(bench, &pair->shapes[i], rows, 0, &pair->passes[i], err));
    const struct device_bench_queries *queries = device_bench_pass_queries(pair->passes[i]);
    record->rows = rows;
    record->queries = queries->batch.num_queries;
    record->keep = pair->shapes[i].keep;
    if (i == 0) {
        record->operations =
            2.0 * (double)rows * (double)record->queries * DEVICE_BENCH_SPECTRUM_DIMS;
        record->operations_limit =
            bench->limits[DEVICE_LIMIT_CUBLAS] > 0 ? DEVICE_LIMIT_CUBLAS : DEVICE_LIMIT_MMA;
    }
    record->values = (double)rows * (double)record->queries;
    record->values_name = "pairs of row and query";
    BSW_TRY(device_bench_pass_time(bench, pair->passes[i], &record->times, err));
    record->stopped = device_bench_pass_stopped(pair->passes[i]);
    BSW_TRY(device_bench_pass_check(bench, pair->passes[i], CHECKED_QUERIES, err));
    record->is_checked = 1;
    device_bench_report(bench, record);
    return BSW_OK;
}

static enum bsw_status measure_pair(struct device_bench *bench, struct scan_pair *pair,
                                    struct bsw_error *err)
{
    for (int i = 0; i < 2; i++) BSW_TRY(measure(bench, pair, i, err));
    bsw_bench_report_note(
        &bench->report,
        "progressive: %.2f times as fast as the full scan, %.4f %% of pairs stopped by the "
        "first stage",
        pair->records[0].times.median / pair->records[1].times.median,
        100 * pair->records[1].stopped);
    return device_bench_pass_compare(pair->passes[0], pair->passes[1], err);
}

enum bsw_status device_bench_progressive(struct device_bench *bench,
                                         const struct device_bench_case *c, struct bsw_error *err)
{
    struct scan_pair pair = {
        .shapes = {c->shape, c->shape},
        .records = {{.name = "progressive-full"}, {.name = c->name, .has_stage = 1}}};
    pair.shapes[1].kind = BSW_SCAN_PROGRESSIVE_MATRIX;
    enum bsw_status status = device_bench_spectrum_codes(bench, &c->shape, err);
    if (status == BSW_OK) status = measure_pair(bench, &pair, err);
    for (int i = 0; i < 2; i++) device_bench_pass_close(&pair.passes[i]);
    device_bench_codes_free(bench);
    return status;
}
