// SPDX-License-Identifier: Apache-2.0
// Codes that do not fit: most of them in pinned host memory, copied block by block while the block
// before is scanned, by the same calls as in a search. The bound is the copy rate.
#include "bench/device/device_bench.h"
#include "shard/device/device_plan.h"

#define CHECKED_QUERIES 2

static enum bsw_status measure(struct device_bench *bench, struct device_bench_pass *pass,
                               struct device_record *record, struct bsw_error *err)
{
    uint64_t copied;
    BSW_TRY(device_bench_pass_run(pass, err));
    copied = device_bench_pass_copied(pass);
    BSW_TRY(device_bench_pass_run(pass, err));
    record->bytes = (double)(device_bench_pass_copied(pass) - copied);
    if (record->bytes <= 0)
        return bsw_fail(err, BSW_ERROR_SELF_CHECK,
                        "nothing was copied: the device holds all codes");
    record->is_checked = 1;
    BSW_TRY(device_bench_pass_time(bench, pass, &record->times, err));
    return device_bench_pass_check(bench, pass, CHECKED_QUERIES, err);
}

enum bsw_status device_bench_stream(struct device_bench *bench, const struct device_bench_case *c,
                                    struct bsw_error *err)
{
    const struct device_bench_settings *settings = bench->settings;
    struct device_bench_pass *pass;
    BSW_TRY(device_bench_codes_make(bench, c->shape.layout, settings->rows, err));
    size_t bundle_bytes =
        bsw_device_bundle_bytes(&bench->codes.codes.layout, c->shape.has_affine, 0);
    uint64_t most = settings->host_bytes / bundle_bytes * BSW_BUNDLE_ROWS;
    uint64_t rows = bench->codes.num_rows < most ? bench->codes.num_rows : most;
    struct device_record record = {.name = c->name,
                                   .rows = rows,
                                   .queries = device_bench_num_queries(bench, &c->shape),
                                   .keep = c->shape.keep,
                                   .bytes_limit = DEVICE_LIMIT_COPY};
    BSW_TRY(device_bench_pass_open(bench, &c->shape, rows, 1, &pass, err));
    enum bsw_status status = measure(bench, pass, &record, err);
    device_bench_pass_close(&pass);
    if (status == BSW_OK) device_bench_report(bench, &record);
    return status;
}
