// SPDX-License-Identifier: Apache-2.0
// What was measured, in the columns of the report that all benches have.
#include <math.h>
#include <stdio.h>

#include "bench/device/device_bench.h"

static const struct {
    const char *name, *text, *short_name;
} limit_names[DEVICE_NUM_LIMITS] = {
    [DEVICE_LIMIT_READ] = {"read_bytes_per_second", "memory read, GB/s", "read"},
    [DEVICE_LIMIT_COPY] = {"copy_bytes_per_second", "copy from pinned host memory, GB/s", "copy"},
    [DEVICE_LIMIT_CUBLAS] = {"cublas_int8_per_second", "int8 product by cuBLAS, Gop/s", "cublas"},
    [DEVICE_LIMIT_MMA] = {"mma_int8_per_second", "int8 mma.sync, Gop/s", "mma"},
    [DEVICE_LIMIT_POPCOUNT] = {"popcounts_per_second", "popcounts, G/s", "popc"},
    [DEVICE_LIMIT_FLOAT32] = {"float32_per_second", "float32 multiply-adds, Gop/s", "fp32"},
    [DEVICE_LIMIT_FLOAT64] = {"float64_per_second", "float64 multiply-adds, Gop/s", "fp64"}};

static const struct bsw_bench_column columns[] = {
    {"case", "", "case", 16, BSW_BENCH_TEXT, 1},
    {"rows", "", "rows", 11, 0, 1},
    {"queries", "", "queries", 7, 0, 1},
    {"best", "", "k", 6, 0, 1},
    {"time", "ms", "seconds", 10, 3, 1e3},
    {"spread", "%", "spread", 7, 1, 100},
    {"n", "", "repeats", 2, 0, 1},
    {"queries", "/s", "queries_per_second", 10, 1, 1},
    {"bytes", "GB/s", "bytes_per_second", 8, 1, 1e-9},
    {"of", "limit %", "of_bytes_limit", 7, 1, 100},
    {"operations", "G/s", "operations_per_second", 10, 1, 1e-9},
    {"of", "limit %", "of_operations_limit", 7, 1, 100},
    {"limit", "", "operations_limit", 6, BSW_BENCH_TEXT, 1},
    {"select", "%", "selection_share", 6, 1, 100},
    // in JSON alone
    {"least", "s", "least_seconds", 0, 6, 1},
    {"most", "s", "most_seconds", 0, 6, 1},
    {"scan", "s", "scan_seconds", 0, 6, 1},
    {"limit", "", "bytes_limit", 0, BSW_BENCH_TEXT, 1},
    {"of mma", "", "of_mma", 0, 6, 1},
    {"of cublas", "", "of_cublas", 0, 6, 1},
    {"stopped", "", "stopped_share", 0, 6, 1},
    {"values", "/s", "values_per_second", 0, 1, 1},
    {"values", "", "values", 0, BSW_BENCH_TEXT, 1},
};
enum { NUM_COLUMNS = sizeof columns / sizeof columns[0] };

// Limits come before the cases, whose table is opened behind them.
void device_bench_report_limits(struct device_bench *bench, const char *no_cublas)
{
    json_t *limits = json_object();
    for (int i = 0; i < DEVICE_NUM_LIMITS; i++) {
        if (bench->limits[i] > 0) {
            bsw_bench_report_note(&bench->report, "%-36s %12.1f", limit_names[i].text,
                                  bench->limits[i] * 1e-9);
            json_object_set_new(limits, limit_names[i].name, json_real(bench->limits[i]));
        } else {
            bsw_bench_report_note(&bench->report, "%-36s %12s (%s)", limit_names[i].text, "-",
                                  no_cublas);
        }
    }
    bsw_bench_report_add(&bench->report, "limits", limits);
    bsw_bench_report_table(&bench->report, "cases", columns, NUM_COLUMNS, NUM_COLUMNS);
}

static struct bsw_bench_value share_of_limit(const struct device_bench *bench, double rate,
                                             enum device_limit limit)
{
    return bsw_bench_number_if(rate > 0 && bench->limits[limit] > 0, rate / bench->limits[limit]);
}

static struct bsw_bench_value name_of_limit(double rate, enum device_limit limit)
{
    return bsw_bench_text(rate > 0 ? limit_names[limit].short_name : "");
}

// What is not timed was compared, and was as it must be.
void device_bench_report(struct device_bench *bench, const struct device_record *record)
{
    const struct device_times *times = &record->times;
    enum device_limit limit = record->operations_limit;
    int is_timed = times->count > 0, has_scan = record->scan_seconds > 0;
    int is_int8 = limit == DEVICE_LIMIT_CUBLAS || limit == DEVICE_LIMIT_MMA;
    double bytes = is_timed ? record->bytes / times->median : 0;
    double work = is_timed ? record->operations / times->median : 0;
    double values = is_timed ? record->values / times->median : 0;
    const struct bsw_bench_value row[NUM_COLUMNS] = {
        bsw_bench_text(record->name), bsw_bench_number((double)record->rows),
        bsw_bench_number((double)record->queries), bsw_bench_number((double)record->keep),
        bsw_bench_number_if(is_timed, times->median),
        bsw_bench_number_if(is_timed, (times->most - times->least) / times->median),
        bsw_bench_number_if(is_timed, (double)times->count),
        bsw_bench_number_if(is_timed && record->queries > 0,
                            (double)record->queries / times->median),
        bsw_bench_number_if(bytes > 0, bytes), share_of_limit(bench, bytes, record->bytes_limit),
        bsw_bench_number_if(work > 0, work), share_of_limit(bench, work, limit),
        name_of_limit(work, limit),
        bsw_bench_number_if(has_scan, 1 - record->scan_seconds / times->median), // below 0: noise
        bsw_bench_number_if(is_timed, times->least), bsw_bench_number_if(is_timed, times->most),
        bsw_bench_number_if(has_scan, record->scan_seconds),
        name_of_limit(bytes, record->bytes_limit),
        // Every limit that operations may be compared with, so that readers need not divide.
        share_of_limit(bench, is_int8 ? work : 0, DEVICE_LIMIT_MMA),
        share_of_limit(bench, is_int8 ? work : 0, DEVICE_LIMIT_CUBLAS),
        bsw_bench_number_if(record->has_stage, record->stopped),
        bsw_bench_number_if(values > 0, values),
        bsw_bench_text(record->values > 0 ? record->values_name : "")};
    bsw_bench_report_row(&bench->report, row,
                         is_timed && !record->is_checked ? BSW_BENCH_UNCHECKED : 0);
    if (record->values > 0)
        bsw_bench_report_note(&bench->report, "%s: %.2f million %s a second", record->name,
                              1e-6 * values, record->values_name);
}
