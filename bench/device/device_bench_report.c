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

enum column {
    CASE,
    ROWS,
    QUERIES,
    KEEP,
    SECONDS,
    SPREAD,
    REPEATS,
    RATE,
    BANDWIDTH,
    BANDWIDTH_SHARE,
    OPERATIONS,
    OPERATIONS_SHARE,
    LIMIT,
    SELECTION,
    // in JSON alone
    LEAST,
    MOST,
    SCAN_SECONDS,
    BANDWIDTH_LIMIT,
    OF_MMA,
    OF_CUBLAS,
    STOPPED,
    VALUES,
    VALUES_NAME,
    NUM_COLUMNS
};

static const struct bsw_bench_column columns[NUM_COLUMNS] = {
    [CASE] = {"case", "", "case", 16, BSW_BENCH_TEXT, 1},
    [ROWS] = {"rows", "", "rows", 11, 0, 1},
    [QUERIES] = {"queries", "", "queries", 7, 0, 1},
    [KEEP] = {"best", "", "k", 6, 0, 1},
    [SECONDS] = {"time", "ms", "seconds", 10, 3, 1e3},
    [SPREAD] = {"spread", "%", "spread", 7, 1, 100},
    [REPEATS] = {"n", "", "repeats", 2, 0, 1},
    [RATE] = {"queries", "/s", "queries_per_second", 10, 1, 1},
    [BANDWIDTH] = {"bytes", "GB/s", "bytes_per_second", 8, 1, 1e-9},
    [BANDWIDTH_SHARE] = {"of", "limit %", "of_bytes_limit", 7, 1, 100},
    [OPERATIONS] = {"operations", "G/s", "operations_per_second", 10, 1, 1e-9},
    [OPERATIONS_SHARE] = {"of", "limit %", "of_operations_limit", 7, 1, 100},
    [LIMIT] = {"limit", "", "operations_limit", 6, BSW_BENCH_TEXT, 1},
    [SELECTION] = {"select", "%", "selection_share", 6, 1, 100},
    [LEAST] = {"least", "s", "least_seconds", 0, 6, 1},
    [MOST] = {"most", "s", "most_seconds", 0, 6, 1},
    [SCAN_SECONDS] = {"scan", "s", "scan_seconds", 0, 6, 1},
    [BANDWIDTH_LIMIT] = {"limit", "", "bytes_limit", 0, BSW_BENCH_TEXT, 1},
    [OF_MMA] = {"of mma", "", "of_mma", 0, 6, 1},
    [OF_CUBLAS] = {"of cublas", "", "of_cublas", 0, 6, 1},
    [STOPPED] = {"stopped", "", "stopped_share", 0, 6, 1},
    [VALUES] = {"values", "/s", "values_per_second", 0, 1, 1},
    [VALUES_NAME] = {"values", "", "values", 0, BSW_BENCH_TEXT, 1},
};

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

static int is_int8(enum device_limit limit)
{
    return limit == DEVICE_LIMIT_CUBLAS || limit == DEVICE_LIMIT_MMA;
}

// NAN: there is none.
static struct bsw_bench_value number_if(int is_there, double value)
{
    return bsw_bench_number(is_there ? value : (double)NAN);
}

static struct bsw_bench_value share_of_limit(const struct device_bench *bench, double rate,
                                             enum device_limit limit)
{
    return number_if(rate > 0 && bench->limits[limit] > 0, rate / bench->limits[limit]);
}

static void set_times(const struct device_record *record, struct bsw_bench_value *values)
{
    const struct device_times *times = &record->times;
    int is_timed = times->count > 0;
    values[SECONDS] = number_if(is_timed, times->median);
    values[SPREAD] = number_if(is_timed, (times->most - times->least) / times->median);
    values[REPEATS] = number_if(is_timed, (double)times->count);
    values[LEAST] = number_if(is_timed, times->least);
    values[MOST] = number_if(is_timed, times->most);
    values[RATE] =
        number_if(is_timed && record->queries > 0, (double)record->queries / times->median);
    values[SCAN_SECONDS] = number_if(record->scan_seconds > 0, record->scan_seconds);
    // Negative where noise outweighs it.
    values[SELECTION] =
        number_if(record->scan_seconds > 0, 1 - record->scan_seconds / times->median);
}

// Every limit that operations may be compared with, so that readers need not divide.
static void set_rates(const struct device_bench *bench, const struct device_record *record,
                      struct bsw_bench_value *values)
{
    int is_timed = record->times.count > 0;
    double bytes = is_timed ? record->bytes / record->times.median : 0;
    double work = is_timed ? record->operations / record->times.median : 0;
    double int8_work = is_int8(record->operations_limit) ? work : 0;
    values[BANDWIDTH] = number_if(bytes > 0, bytes);
    values[BANDWIDTH_SHARE] = share_of_limit(bench, bytes, record->bytes_limit);
    values[BANDWIDTH_LIMIT] =
        bsw_bench_text(bytes > 0 ? limit_names[record->bytes_limit].short_name : "");
    values[OPERATIONS] = number_if(work > 0, work);
    values[OPERATIONS_SHARE] = share_of_limit(bench, work, record->operations_limit);
    values[LIMIT] =
        bsw_bench_text(work > 0 ? limit_names[record->operations_limit].short_name : "");
    values[OF_MMA] = share_of_limit(bench, int8_work, DEVICE_LIMIT_MMA);
    values[OF_CUBLAS] = share_of_limit(bench, int8_work, DEVICE_LIMIT_CUBLAS);
    values[VALUES] =
        number_if(is_timed && record->values > 0, record->values / record->times.median);
    values[VALUES_NAME] = bsw_bench_text(record->values > 0 ? record->values_name : "");
}

void device_bench_report(struct device_bench *bench, const struct device_record *record)
{
    struct bsw_bench_value values[NUM_COLUMNS] = {[CASE] = bsw_bench_text(record->name)};
    values[ROWS].number = (double)record->rows;
    values[QUERIES].number = (double)record->queries;
    values[KEEP].number = (double)record->keep;
    values[STOPPED] = number_if(record->has_stage, record->stopped);
    set_times(record, values);
    set_rates(bench, record, values);
    // What is not timed was compared, and was as it must be.
    bsw_bench_report_row(&bench->report, values, record->times.count > 0 ? BSW_BENCH_UNCHECKED : 0);
    if (record->values > 0)
        bsw_bench_report_note(&bench->report, "%s: %.2f million %s a second", record->name,
                              1e-6 * values[VALUES].number, record->values_name);
}
