// SPDX-License-Identifier: Apache-2.0
// Not a measurement: at full size both scans must find the same candidates, and each candidate must
// have the score that plain code computes on the host. Sizes beyond 2^32 bytes are met nowhere
// else.
#include "bench/device/device_bench.h"

static enum bsw_status run_pass(struct device_bench *bench, const struct device_bench_shape *shape,
                                struct device_bench_pass **pass, struct bsw_error *err)
{
    BSW_TRY(device_bench_pass_open(bench, shape, bench->codes.num_rows, 0, pass, err));
    BSW_TRY(device_bench_pass_run(*pass, err));
    return device_bench_pass_check(bench, *pass, SIZE_MAX, err);
}

enum bsw_status device_bench_agree(struct device_bench *bench, const struct device_bench_case *c,
                                   struct bsw_error *err)
{
    struct device_bench_shape shapes[2] = {c->shape, c->shape};
    struct device_bench_pass *passes[2] = {NULL, NULL};
    shapes[0].kind = BSW_SCAN_PLANES;
    shapes[1].kind = BSW_SCAN_MATRIX;
    BSW_TRY(device_bench_codes_make(bench, c->shape.layout, bench->settings->rows, err));
    enum bsw_status status = run_pass(bench, &shapes[0], &passes[0], err);
    if (status == BSW_OK) status = run_pass(bench, &shapes[1], &passes[1], err);
    if (status == BSW_OK) status = device_bench_pass_compare(passes[0], passes[1], err);
    for (int i = 0; i < 2; i++) device_bench_pass_close(&passes[i]);
    BSW_TRY(status);
    const struct device_record record = {.name = c->name,
                                         .rows = bench->codes.num_rows,
                                         .queries = device_bench_num_queries(bench, &c->shape),
                                         .keep = c->shape.keep};
    device_bench_report(bench, &record);
    return BSW_OK;
}
