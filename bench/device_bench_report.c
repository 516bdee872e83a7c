// What was measured, as a table on stdout and as JSON.
#include <stdio.h>

#include "bench/device_bench.h"

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

// In JSON, of limits that stand alone.
static const char *const share_names[DEVICE_NUM_LIMITS] = {[DEVICE_LIMIT_POPCOUNT] = "of_popcount",
                                                           [DEVICE_LIMIT_FLOAT32] = "of_float32",
                                                           [DEVICE_LIMIT_FLOAT64] = "of_float64"};

void device_bench_report_limits(struct device_bench *bench, const char *no_cublas)
{
    for (int i = 0; i < DEVICE_NUM_LIMITS; i++) {
        if (bench->limits[i] > 0)
            printf("# %-36s %12.1f\n", limit_names[i].text, bench->limits[i] * 1e-9);
        else
            printf("# %-36s %12s (%s)\n", limit_names[i].text, "-", no_cublas);
    }
}

void device_bench_report_header(void)
{
    printf("# %-16s %11s %7s %6s %10s %7s %2s %10s %8s %7s %10s %7s %-6s %6s\n", "case", "rows",
           "queries", "best", "time", "spread", "n", "queries", "bytes", "of", "operations", "of",
           "limit", "select");
    printf("# %-16s %11s %7s %6s %10s %7s %2s %10s %8s %7s %10s %7s %-6s %6s\n", "", "", "", "",
           "ms", "%", "", "/s", "GB/s", "limit %", "G/s", "limit %", "", "%");
}

// A number, or a dash for what was not measured.
static void print_number(int width, int decimals, double value, int is_there)
{
    if (is_there)
        printf(" %*.*f", width, decimals, value);
    else
        printf(" %*s", width, "-");
}

static double rate_of(const struct device_record *record, double work)
{
    return record->times.count > 0 ? work / record->times.median : 0;
}

static double share_of_limit(const struct device_bench *bench, double rate, enum device_limit limit)
{
    return bench->limits[limit] > 0 ? rate / bench->limits[limit] : 0;
}

// Negative where noise outweighs it.
static double selection_share(const struct device_record *record)
{
    return 1 - record->scan_seconds / record->times.median;
}

static void print_record(const struct device_bench *bench, const struct device_record *record)
{
    const struct device_times *times = &record->times;
    double bytes = rate_of(record, record->bytes), work = rate_of(record, record->operations);
    int has_times = times->count > 0, has_work = work > 0;
    printf("  %-16s %11llu %7llu %6llu", record->name, (unsigned long long)record->rows,
           (unsigned long long)record->queries, (unsigned long long)record->keep);
    if (!has_times) {
        printf(" %10s\n", "agree");
        return;
    }
    print_number(10, 3, 1e3 * times->median, 1);
    print_number(7, 1, 100 * (times->most - times->least) / times->median, 1);
    printf(" %2zu", times->count);
    print_number(10, 1, rate_of(record, (double)record->queries), record->queries > 0);
    print_number(8, 1, bytes * 1e-9, bytes > 0);
    print_number(7, 1, 100 * share_of_limit(bench, bytes, record->bytes_limit), bytes > 0);
    print_number(10, 1, work * 1e-9, has_work);
    print_number(7, 1, 100 * share_of_limit(bench, work, record->operations_limit), has_work);
    printf(" %-6s", has_work ? limit_names[record->operations_limit].short_name : "-");
    print_number(6, 1, 100 * selection_share(record), record->scan_seconds > 0);
    putchar('\n');
    if (record->values > 0) {
        printf("# %s: %.2f million %s a second\n", record->name,
               1e-6 * rate_of(record, record->values), record->values_name);
    }
}

// ---- JSON ----

static int set_number(json_t *object, const char *name, double value)
{
    return json_object_set_new(object, name, json_real(value));
}

static int set_whole(json_t *object, const char *name, uint64_t value)
{
    return json_object_set_new(object, name, json_integer((json_int_t)value));
}

static int is_int8(enum device_limit limit)
{
    return limit == DEVICE_LIMIT_CUBLAS || limit == DEVICE_LIMIT_MMA;
}

// Every limit that operations may be compared with, so that readers need not divide.
static int set_shares(const struct device_bench *bench, const struct device_record *record,
                      json_t *object)
{
    double bytes = rate_of(record, record->bytes), work = rate_of(record, record->operations);
    int bad = 0;
    if (bytes > 0) {
        bad |=
            set_number(object, "bytes_per_second", bytes) |
            json_object_set_new(object, "bytes_limit",
                                json_string(limit_names[record->bytes_limit].short_name)) |
            set_number(object, "of_bytes_limit", share_of_limit(bench, bytes, record->bytes_limit));
    }
    if (work > 0) bad |= set_number(object, "operations_per_second", work);
    if (work > 0 && !is_int8(record->operations_limit))
        return bad | set_number(object, share_names[record->operations_limit],
                                share_of_limit(bench, work, record->operations_limit));
    if (work > 0)
        bad |= set_number(object, "of_mma", share_of_limit(bench, work, DEVICE_LIMIT_MMA));
    if (work > 0 && bench->limits[DEVICE_LIMIT_CUBLAS] > 0)
        bad |= set_number(object, "of_cublas", share_of_limit(bench, work, DEVICE_LIMIT_CUBLAS));
    return bad;
}

static int fill_json(const struct device_bench *bench, const struct device_record *record,
                     json_t *object)
{
    const struct device_times *times = &record->times;
    int bad = json_object_set_new(object, "case", json_string(record->name)) |
              set_whole(object, "rows", record->rows) |
              set_whole(object, "queries", record->queries) | set_whole(object, "k", record->keep);
    if (times->count == 0) return bad | json_object_set_new(object, "agree", json_true());
    bad |= set_number(object, "seconds", times->median) |
           set_number(object, "least_seconds", times->least) |
           set_number(object, "most_seconds", times->most) |
           set_whole(object, "repeats", times->count);
    if (record->queries > 0)
        bad |= set_number(object, "queries_per_second", (double)record->queries / times->median);
    if (record->values > 0) {
        bad |= set_number(object, "values_per_second", rate_of(record, record->values)) |
               json_object_set_new(object, "values", json_string(record->values_name));
    }
    if (record->has_stage) bad |= set_number(object, "stopped_share", record->stopped);
    if (record->scan_seconds > 0) {
        bad |= set_number(object, "scan_seconds", record->scan_seconds) |
               set_number(object, "selection_share", selection_share(record));
    }
    return bad | set_shares(bench, record, object);
}

static int fill_limits(const struct device_bench *bench, json_t *object)
{
    int bad = 0;
    for (int i = 0; i < DEVICE_NUM_LIMITS; i++) {
        if (bench->limits[i] > 0) bad |= set_number(object, limit_names[i].name, bench->limits[i]);
    }
    return bad;
}

// Anew after every record: what a bench that is cut has measured is worth having.
static enum bsw_status write_json(const struct device_bench *bench, struct bsw_error *err)
{
    const char *path = bench->settings->json_path;
    if (!path) return BSW_OK;
    json_t *all = json_object(), *limits = json_object();
    int bad = fill_limits(bench, limits) |
              json_object_set_new(all, "bench", json_string("bench_device")) |
              json_object_set_new(all, "version", json_string(BITSWEEP_VERSION)) |
              json_object_set_new(all, "device", json_string(bsw_device_name(bench->device))) |
              json_object_set_new(all, "limits", limits) |
              json_object_set(all, "cases", bench->json);
    if (!bad) bad = json_dump_file(all, path, JSON_INDENT(2));
    json_decref(all);
    if (bad) return bsw_fail(err, BSW_ERROR_IO, "%s: cannot be written", path);
    return BSW_OK;
}

enum bsw_status device_bench_report(struct device_bench *bench, const struct device_record *record,
                                    struct bsw_error *err)
{
    print_record(bench, record);
    fflush(stdout);
    json_t *object = json_object();
    int bad = fill_json(bench, record, object);
    if (json_array_append_new(bench->json, object) || bad)
        return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "no memory for a record");
    return write_json(bench, err);
}
