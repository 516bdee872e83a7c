// SPDX-License-Identifier: Apache-2.0
// bench kernels: each family of kernels on one thread of rank 0, over numbers of rows, beside the
// limit that bounds it and compared with the plain reference bit for bit.
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench_what.h"
#include "bench/host/bench_kernel.h"
#include "bench/report/bench_report.h"
#include "bench/report/bench_timing.h"
#include "common/base/clock.h"
#include "common/base/fault_points.h"
#include "common/base/memory.h"
#include "kernels/limits/limits.h"

#define PEAK_STEPS 100000

static const struct bsw_kernel_case *const lists[] = {
    bsw_kernel_scans, bsw_kernel_codings, bsw_kernel_values, bsw_kernel_tables, bsw_kernel_entries};
#define NUM_LISTS (sizeof lists / sizeof lists[0])
#define FAMILY_CHOICES \
    "all|plane_scan|matrix_scan|select|encode|screen|refine|merge|table_scan|entries_within"

static const char *const limit_names[BSW_NUM_LIMITS] = {[BSW_LIMIT_READ] = "read",
                                                        [BSW_LIMIT_COPY] = "copy",
                                                        [BSW_LIMIT_INT8] = "int8",
                                                        [BSW_LIMIT_FLOAT32] = "float32"};
static const enum bsw_peak peaks[BSW_NUM_LIMITS] = {
    [BSW_LIMIT_INT8] = BSW_PEAK_INT8, [BSW_LIMIT_FLOAT32] = BSW_PEAK_FLOAT32};

_Static_assert(sizeof(struct bsw_kernel_shape) ==
                   2 * sizeof(size_t) + sizeof(struct bsw_code_layout) + 12,
               "bench_kernel.h says why there may be no padding");

static const struct bsw_bench_column columns[] = {
    {"family", "", "family", 12, BSW_BENCH_TEXT, 1},
    {"kernel", "", "kernel", 15, BSW_BENCH_TEXT, 1},
    {"rows", "", "rows", 9, 0, 1},
    {"queries", "", "queries", 7, 0, 1},
    {"size", "B", "bytes", 12, 0, 1},
    {"time", "us", "seconds", 11, 1, 1e6},
    {"bandwidth", "GB/s", "bytes_per_second", 9, 2, 1e-9},
    {"operations", "G/s", "operations_per_second", 10, 2, 1e-9},
    {"limit", "", "limit", 7, BSW_BENCH_TEXT, 1},
    {"limit", "G/s", "limit_per_second", 8, 2, 1e-9},
    {"share", "%", "share_of_limit", 8, 1, 100},
};
enum { NUM_COLUMNS = sizeof columns / sizeof columns[0], SHARE_COLUMN = NUM_COLUMNS - 1 };

struct kernels_options {
    struct bsw_common_options common;
    struct bsw_bench_options bench;
    const char *family, *segments, *metric_text;
    uint64_t dims, bits, query_bits, queries;
    enum bsw_metric metric;
    struct bsw_code_layout layout;
};

struct kernels_bench {
    const struct kernels_options *options;
    const struct bsw_limits_table *limits;
    struct bsw_bench_report report;
};

// A kernel on its input, and what it is compared with.
struct measurement {
    const struct bsw_kernel_case *kernel;
    enum bsw_cpu_level level;
    struct bsw_kernel_run run;
    struct bsw_kernel_output found, expected;
    // the limit
    const struct bsw_limits_table *limits;
    char *memory; // [bytes], for reading and copying
    size_t bytes;
    uint64_t sink; // keeps the compiler from dropping results
};

// ---- comparing ----

uint64_t bsw_kernel_count_wrong(const struct bsw_kernel_output *reference,
                                const struct bsw_kernel_output *found)
{
    uint64_t num_wrong = 0;
    size_t bytes = reference->value_bytes;
    for (size_t list = 0; list < reference->num_lists; list++) {
        size_t a = reference->counts[list], b = found->counts[list], both = a < b ? a : b;
        const unsigned char *expected = reference->values + list * reference->list_values * bytes;
        const unsigned char *values = found->values + list * found->list_values * bytes;
        num_wrong += a - both + (b - both);
        if (memcmp(expected, values, both * bytes) == 0) continue;
        for (size_t i = 0; i < both; i++)
            num_wrong += memcmp(expected + i * bytes, values + i * bytes, bytes) != 0;
    }
    return num_wrong;
}

static int64_t check_tiles(struct measurement *m)
{
    uint64_t num_wrong = 0;
    for (size_t tile = 0; tile < m->run.num_tiles; tile++) {
        m->run.run_tile(m->run.input, BSW_CPU_REFERENCE, tile, &m->expected);
        m->run.run_tile(m->run.input, m->level, tile, &m->found);
        if (m->found.counts[0] > 0 && BSW_FAULT(FLIP, 1, 0)) m->found.values[0] ^= 1;
        num_wrong += bsw_kernel_count_wrong(&m->expected, &m->found);
    }
    return (int64_t)num_wrong;
}

// ---- what is timed ----

static void run_tiles(void *context)
{
    struct measurement *m = context;
    for (size_t tile = 0; tile < m->run.num_tiles; tile++)
        m->run.run_tile(m->run.input, m->level, tile, &m->found);
}

static void run_read_lines(void *context)
{
    struct measurement *m = context;
    m->sink += m->limits->read[BSW_READ_LINES](m->memory, m->bytes);
}

static void run_read_pages(void *context)
{
    struct measurement *m = context;
    m->sink += m->limits->read[BSW_READ_PAGES](m->memory, m->bytes);
}

static void run_copy(void *context)
{
    struct measurement *m = context;
    m->limits->copy(m->memory + m->bytes / 2, m->memory, m->bytes / 2);
}

static void run_peak(void *context)
{
    struct measurement *m = context;
    uint64_t num_wrong;
    m->sink += m->limits->peaks[peaks[m->kernel->limit]](PEAK_STEPS, &num_wrong);
}

static int is_memory_limit(const struct measurement *m)
{
    return m->kernel->limit == BSW_LIMIT_READ || m->kernel->limit == BSW_LIMIT_COPY;
}

// Times the kernel and its limit in turns; the limit's rate is in bytes or operations a second.
static double take_times(struct measurement *m, const struct bsw_bench_options *options,
                         double *limit_rate)
{
    struct bsw_bench_run runs[3] = {{run_tiles, m, 0}};
    size_t num_runs = 2;
    uint64_t num_wrong;
    if (m->kernel->limit == BSW_LIMIT_READ) {
        runs[1] = (struct bsw_bench_run){run_read_lines, m, 0};
        runs[2] = (struct bsw_bench_run){run_read_pages, m, 0};
        num_runs = 3;
    } else {
        runs[1] = (struct bsw_bench_run){is_memory_limit(m) ? run_copy : run_peak, m, 0};
    }
    bsw_bench_take_turns(options, bsw_thread_seconds, runs, num_runs);
    double seconds = num_runs == 3 ? fmin(runs[1].seconds, runs[2].seconds) : runs[1].seconds;
    double work = is_memory_limit(m)
                      ? (double)m->bytes
                      : (double)m->limits->peaks[peaks[m->kernel->limit]](PEAK_STEPS, &num_wrong);
    *limit_rate = work / seconds;
    return runs[0].seconds;
}

// ---- a row ----

enum bsw_status bsw_kernel_allocate(void *context, void *out, size_t count, size_t size,
                                    struct bsw_error *err)
{
    struct bsw_kernel_run *run = context;
    void *array;
    assert(run->num_arrays < BSW_KERNEL_MAX_ARRAYS);
    BSW_TRY(bsw_allocate_zero(&array, count, size, "input of a kernel", err));
    run->arrays[run->num_arrays++] = array;
    memcpy(out, &array, sizeof array);
    return BSW_OK;
}

static enum bsw_status make_output(const struct bsw_kernel_run *run, struct bsw_kernel_output *out,
                                   struct bsw_error *err)
{
    size_t values;
    if (!bsw_multiply_size(run->num_lists, run->list_values, &values))
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "%zu lists of %zu values", run->num_lists,
                        run->list_values);
    *out =
        (struct bsw_kernel_output){run->num_lists, run->list_values, run->value_bytes, NULL, NULL};
    BSW_TRY(bsw_allocate_zero(&out->counts, run->num_lists, sizeof *out->counts, "counts", err));
    return bsw_allocate(&out->values, values, run->value_bytes, "output of a kernel", err);
}

static enum bsw_status make_limit(struct measurement *m, struct bsw_error *err)
{
    if (!is_memory_limit(m)) return BSW_OK;
    size_t grain = 2 * BSW_LIMITS_BLOCK_BYTES;
    m->bytes = ((size_t)m->run.bytes + grain - 1) / grain * grain;
    BSW_TRY(bsw_allocate(&m->memory, m->bytes, 1, "memory to read", err));
    memset(m->memory, 1, m->bytes); // pages of their own, not one of zeros
    return BSW_OK;
}

static void free_measurement(struct measurement *m)
{
    bsw_free(&m->memory);
    bsw_free(&m->expected.values);
    bsw_free(&m->expected.counts);
    bsw_free(&m->found.values);
    bsw_free(&m->found.counts);
    for (size_t i = 0; i < m->run.num_arrays; i++) bsw_free(&m->run.arrays[i]);
}

static void show_row(struct kernels_bench *bench, const struct measurement *m, size_t rows,
                     double seconds, double limit_rate, int64_t errors)
{
    double bandwidth = m->run.bytes / seconds, operations = m->run.operations / seconds;
    double bound = is_memory_limit(m) ? bandwidth : operations;
    const struct bsw_bench_value values[NUM_COLUMNS] = {
        bsw_bench_text(m->kernel->family),
        bsw_bench_text(m->kernel->name),
        bsw_bench_number((double)rows),
        bsw_bench_number_if(m->run.queries > 0, (double)m->run.queries),
        bsw_bench_number_if(m->run.bytes > 0, m->run.bytes),
        bsw_bench_number(seconds),
        bsw_bench_number_if(bandwidth > 0, bandwidth),
        bsw_bench_number_if(operations > 0, operations),
        bsw_bench_text(limit_names[m->kernel->limit]),
        bsw_bench_number(limit_rate),
        bsw_bench_number_if(bound > 0, bound / limit_rate)};
    bsw_bench_report_row(&bench->report, values, errors);
}

static enum bsw_status measure(struct kernels_bench *bench, struct measurement *m, size_t rows,
                               struct bsw_error *err)
{
    const struct kernels_options *o = bench->options;
    const struct bsw_kernel_shape shape = {.rows = rows,
                                           .queries = o->queries,
                                           .layout = o->layout,
                                           .level = o->common.level,
                                           .query_bits = (uint32_t)o->query_bits,
                                           .metric = o->metric};
    int64_t errors = BSW_BENCH_UNCHECKED;
    double limit_rate;
    BSW_TRY(m->kernel->make(&shape, &m->run, err));
    if (m->run.num_tiles == 0) return BSW_OK; // the shape has no such kernel
    BSW_TRY(make_output(&m->run, &m->found, err));
    BSW_TRY(make_output(&m->run, &m->expected, err));
    BSW_TRY(make_limit(m, err));
    double seconds = take_times(m, &o->bench, &limit_rate);
    // The reference is what others are compared with.
    if (bsw_bench_is_checked(&o->bench) && m->level != BSW_CPU_REFERENCE) errors = check_tiles(m);
    show_row(bench, m, rows, seconds, limit_rate, errors);
    return BSW_OK;
}

static enum bsw_status measure_kernel(struct kernels_bench *bench,
                                      const struct bsw_kernel_case *kernel, struct bsw_error *err)
{
    const struct bsw_bench_options *sizes = &bench->options->bench;
    enum bsw_status status = BSW_OK;
    for (uint64_t size = sizes->min; size && status == BSW_OK;
         size = bsw_bench_next_size(sizes, size)) {
        struct measurement m = {.kernel = kernel,
                                .level = bench->options->common.level,
                                .run.variant = kernel->variant,
                                .limits = bench->limits};
        status = measure(bench, &m, bsw_num_bundles(size) * BSW_BUNDLE_ROWS, err);
        free_measurement(&m);
    }
    return status;
}

static enum bsw_status measure_all(struct kernels_bench *bench, struct bsw_error *err)
{
    const char *family = bench->options->family;
    for (size_t i = 0; i < NUM_LISTS; i++) {
        for (const struct bsw_kernel_case *kernel = lists[i]; kernel->family; kernel++) {
            if (strcmp(family, "all") == 0 || strcmp(family, kernel->family) == 0)
                BSW_TRY(measure_kernel(bench, kernel, err));
        }
    }
    return BSW_OK;
}

// ---- the command ----

static enum bsw_status check_options(struct kernels_options *o, struct bsw_error *err)
{
    BSW_TRY(bsw_bench_options_check(&o->bench, err));
    if (o->bench.max > UINT32_MAX - BSW_BUNDLE_ROWS)
        return bsw_fail(err, BSW_ERROR_USAGE, "--max %llu: a shard has fewer than 2^32 rows",
                        (unsigned long long)o->bench.max);
    BSW_TRY(bsw_metric_parse(o->metric_text, &o->metric, err));
    bsw_code_layout_init(&o->layout);
    if (o->segments)
        BSW_TRY(bsw_code_layout_parse(o->segments, (uint32_t)o->dims, &o->layout, err));
    else
        BSW_TRY(bsw_code_layout_append(&o->layout, (uint32_t)o->dims, (uint32_t)o->bits, err));
    return bsw_code_layout_check(&o->layout, (uint32_t)o->query_bits, err);
}

#define OPTION(name, member, ...) BSW_OPTION(struct kernels_options, name, member, __VA_ARGS__)

static const struct bsw_option option_rows[] = {
    OPTION("family", family, .choices = FAMILY_CHOICES, .default_text = "all",
           .help = "kernels of one family alone"),
    OPTION("dims", dims, .value_name = "D", .default_text = "128", .min = 1, .max = 4096,
           .help = "dimensions"),
    OPTION("bits", bits, .value_name = "B", .default_text = "3", .min = 1, .max = BSW_MAX_CODE_BITS,
           .help = "bits a dimension"),
    OPTION("segments", segments, .value_name = "DxB,...",
           .help = "codes of several segments in place of --bits: 32x4,96x2"),
    OPTION("query-bits", query_bits, .value_name = "B", .default_text = "6", .min = 1,
           .max = BSW_MAX_QUERY_BITS, .help = "bits of a query's dimension"),
    OPTION("queries", queries, .value_name = "N", .default_text = "100", .min = 1, .max = 100000,
           .help = "queries of a batch; planes are scanned for one"),
    OPTION("metric", metric_text, .choices = BSW_METRIC_NAMES, .default_text = "l2",
           .help = "of exact values"),
    BSW_BENCH_OPTIONS(struct kernels_options, "rows, in bundles of 32", "2K", "200K", "10", "9",
                      "% of the limit"),
    BSW_OPTION_GROUP(struct kernels_options, common, bsw_common_option_group),
};

static enum bsw_status open_and_measure(struct kernels_bench *bench,
                                        struct bsw_transport *transport, struct bsw_error *err)
{
    const struct kernels_options *o = bench->options;
    const struct bsw_bench_report_options report = {.name = "kernels",
                                                    .common = &o->common,
                                                    .bench = &o->bench,
                                                    .columns = columns,
                                                    .num_columns = NUM_COLUMNS,
                                                    .main_column = SHARE_COLUMN};
    char layout[256];
    bsw_code_layout_format(&o->layout, layout, sizeof layout);
    BSW_TRY(bsw_bench_report_open(&bench->report, &report, transport, err));
    bsw_bench_report_note(&bench->report,
                          "one thread of rank 0, its own time; codes %s, queries of %llu bits, %s; "
                          "limits of level %s",
                          layout, (unsigned long long)o->query_bits, o->metric_text,
                          bench->limits->level);
    return transport->rank == 0 ? measure_all(bench, err) : BSW_OK;
}

static enum bsw_status run(struct bsw_transport *transport, void *options, struct bsw_error *err)
{
    struct kernels_options *o = options;
    BSW_TRY(check_options(o, err));
    // The reference is held to the best there is.
    enum bsw_cpu_level level =
        o->common.level == BSW_CPU_REFERENCE ? bsw_cpu_level_detect() : o->common.level;
    struct kernels_bench bench = {.options = o, .limits = bsw_limits_table_get(level)};
    enum bsw_status status = open_and_measure(&bench, transport, err);
    return bsw_bench_report_close(&bench.report, status, err);
}

const struct bsw_command bsw_bench_kernels = BSW_COMMAND(
    "bench kernels", "kernels against their limits and the reference, on one thread of rank 0",
    struct kernels_options, BSW_ALL_RANKS);
