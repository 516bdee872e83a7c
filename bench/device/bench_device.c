// SPDX-License-Identifier: Apache-2.0
// bitsweep-bench device: scans on one GPU against what the GPU can do, over codes that are made
// there. Also built for the emulator (bitsweep_emulated-bench), where it shows that it works and no
// time means anything. README.md says what the percentages are of.
#include <fnmatch.h>
#include <stdio.h>

#include "bench/bench_what.h"
#include "bench/device/device_bench.h"

#define TIMEOUT_SECONDS 120

// A layout's codes with scales and biases or without, all of them or also parts, and queries that
// are one batch.
#define SHAPE(layout, has_affine, is_swept, kind, query_bits, queries, keep)                  \
    {                                                                                         \
        layout, has_affine, is_swept, BSW_SCAN_##kind, query_bits, queries, queries, keep, 0, \
            DEVICE_BENCH_BY_KIND, 0                                                           \
    }
// A kernel alone, over the whole shard or over lists of so many bundles.
#define KERNEL(queries, kernel) LISTS(queries, kernel, 0)
#define LISTS(queries, kernel, bundles)                                                            \
    {                                                                                              \
        "96x3", 1, 0, BSW_SCAN_MATRIX, 4, queries, queries, 100, 0, DEVICE_BENCH_##kernel, bundles \
    }

// One that follows another with the same layout uses its codes.
static const struct device_bench_case cases[] = {
    {"agree", "both scans find the same, the host agrees on every score", device_bench_agree,
     SHAPE("96x3", 1, 0, AUTO, 4, 4, 1000)},
    {"agree-integer", "the same with integer keys", device_bench_agree,
     SHAPE("96x3", 0, 0, AUTO, 4, 4, 1000)},
    {"planes-1-integer", "one query over the planes, integer keys (xfbq)", device_bench_scan,
     SHAPE("96x3", 0, 1, PLANES, 4, 1, 1000)},
    {"planes-1", "one query over the planes, scales and biases (saq)", device_bench_scan,
     SHAPE("96x3", 1, 1, PLANES, 4, 1, 1000)},
    {"planes-2", "two: where the families cross", device_bench_scan,
     SHAPE("96x3", 1, 0, PLANES, 4, 2, 1000)},
    {"matrix-1", "one query on int8 units", device_bench_scan,
     SHAPE("96x3", 1, 1, MATRIX, 4, 1, 1000)},
    {"matrix-2", "two", device_bench_scan, SHAPE("96x3", 1, 0, MATRIX, 4, 2, 1000)},
    {"matrix-8", "8 queries a pass", device_bench_scan, SHAPE("96x3", 1, 1, MATRIX, 4, 8, 100)},
    {"matrix-64", "64", device_bench_scan, SHAPE("96x3", 1, 1, MATRIX, 4, 64, 100)},
    {"matrix-256", "256", device_bench_scan, SHAPE("96x3", 1, 1, MATRIX, 4, 256, 100)},
    {"mma-64", "64 queries, the mma kernel alone", device_bench_kernel_alone, KERNEL(64, MMA)},
    {"hopper-64", "64, the wgmma kernel alone", device_bench_kernel_alone, KERNEL(64, HOPPER)},
    {"mma-256", "256, the mma kernel alone", device_bench_kernel_alone, KERNEL(256, MMA)},
    {"hopper-256", "256, the wgmma kernel alone", device_bench_kernel_alone, KERNEL(256, HOPPER)},
    {"lists-mma-16", "16 queries, lists of 48 bundles, mma", device_bench_kernel_alone,
     LISTS(16, MMA, 48)},
    {"lists-hopper-16", "the same by wgmma", device_bench_kernel_alone, LISTS(16, HOPPER, 48)},
    {"lists-mma-64", "64 queries", device_bench_kernel_alone, LISTS(64, MMA, 48)},
    {"lists-hopper-64", "64, wgmma", device_bench_kernel_alone, LISTS(64, HOPPER, 48)},
    {"lists-mma-256", "256 queries", device_bench_kernel_alone, LISTS(256, MMA, 48)},
    {"lists-hopper-256", "256, wgmma", device_bench_kernel_alone, LISTS(256, HOPPER, 48)},
    {"short-mma-256", "256, lists of 5 bundles", device_bench_kernel_alone, LISTS(256, MMA, 5)},
    {"short-hopper-256", "the same by wgmma", device_bench_kernel_alone, LISTS(256, HOPPER, 5)},
    {"batches",
     "10,000 queries in batches of 1000",
     device_bench_scan,
     {"96x3", 1, 0, BSW_SCAN_MATRIX, 6, 10000, 1000, 100, 0, DEVICE_BENCH_BY_KIND, 0}},
    {"stream-8", "8 queries, most codes in host memory", device_bench_stream,
     SHAPE("96x3", 1, 0, MATRIX, 4, 8, 100)},
    {"progressive",
     "1000 queries, the full scan and the progressive one",
     device_bench_progressive,
     {"32x4,32x2,64x1", 1, 0, BSW_SCAN_MATRIX, 6, 1000, 1000, 100, 64, DEVICE_BENCH_BY_KIND, 0}},
    {"rbegir", "the size of rbeGIR's case alone, over the planes", device_bench_scan,
     SHAPE("64x2", 0, 1, PLANES, 3, 1, 1000)},
    {"rbegir-matrix", "the same on int8 units", device_bench_scan,
     SHAPE("64x2", 0, 0, MATRIX, 3, 1, 1000)},
    {"encode-xfbq", "float32 rows to xfbq codes", device_bench_encode, {.layout = "96x3"}},
    {"encode-saq",
     "float32 rows to saq codes: center, project, quantize",
     device_bench_encode,
     {.layout = "128x3", .has_affine = 1}},
    {"refine", "exact values of random pairs, uint8", device_bench_refine, {.layout = ""}},
    {"exact-u8", "of all rows against 1000 queries, uint8", device_bench_exact_u8, {.layout = ""}},
    {"exact-float", "the same, float32", device_bench_exact_float, {.layout = ""}},
};

#define NUM_CASES (sizeof cases / sizeof cases[0])

static int is_wanted(const struct device_bench_case *c, const char *pattern)
{
    return fnmatch(pattern, c->name, 0) == 0;
}

static enum bsw_status check_pattern(const char *pattern, struct bsw_error *err)
{
    for (size_t i = 0; i < NUM_CASES; i++)
        if (is_wanted(&cases[i], pattern)) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--case '%s': no such case; --list names them", pattern);
}

static void list_cases(void)
{
    for (size_t i = 0; i < NUM_CASES; i++) printf("%-18s %s\n", cases[i].name, cases[i].what);
}

// After an error of the device none is asked for anything more; other failures are one case's.
static int is_last(enum bsw_status status)
{
    return status == BSW_ERROR_IO;
}

static enum bsw_status run_cases(struct device_bench *bench, struct bsw_error *err)
{
    struct bsw_error failure = {0};
    enum bsw_status first = BSW_OK;
    for (size_t i = 0; i < NUM_CASES && !is_last(first); i++) {
        if (!is_wanted(&cases[i], bench->settings->pattern)) continue;
        enum bsw_status status = cases[i].run(bench, &cases[i], &failure);
        if (status == BSW_OK) continue;
        bsw_bench_report_note(&bench->report, "%s FAILED: %s", cases[i].name, failure.message);
        if (first == BSW_OK || is_last(status))
            first = bsw_fail(err, status, "%s: %s", cases[i].name, failure.message);
    }
    return first;
}

static enum bsw_status measure(struct device_bench *bench, struct bsw_error *err)
{
    for (int i = 0; i < 2; i++) {
        int code = device_bench_event_make(&bench->events[i]);
        BSW_TRY(bsw_device_launched(bench->device, code, "event", err));
    }
    BSW_TRY(device_bench_limits_measure(bench, err));
    return run_cases(bench, err);
}

#define OPTION(name, member, ...) \
    BSW_OPTION(struct device_bench_settings, name, member, __VA_ARGS__)

static const struct bsw_option option_rows[] = {
    OPTION("rows", rows, .value_name = "N", .default_text = "1G", .min = 32, .max = 4e9,
           .help = "of the largest corpus"),
    OPTION("queries", queries, .value_name = "N", .default_text = "10000", .min = 1, .max = 1e6,
           .help = "in batches; passes: at most"),
    OPTION("repeat", repeat, .value_name = "N", .default_text = "9", .min = 1,
           .max = DEVICE_BENCH_MOST_REPEATS, .help = "repetitions; the median counts"),
    OPTION("bytes", bytes, .value_name = "N", .default_text = "4G", .min = 4096, .max = 1e12,
           .help = "of the buffers that limits are measured with"),
    OPTION("host-bytes", host_bytes, .value_name = "N", .default_text = "8G", .min = 4096,
           .max = 1e12, .help = "of codes in host memory, at most"),
    OPTION("steps", steps, .value_name = "N", .default_text = "100K", .min = 1, .max = 1e9,
           .help = "of the loops that keep the units busy"),
    OPTION("product", product, .value_name = "N", .default_text = "8192", .min = 64, .max = 65536,
           .help = "rows and columns of cuBLAS's product"),
    OPTION("gpu", gpu, .value_name = "N", .default_text = "0", .max = 1023, .help = "which"),
    OPTION("seconds", seconds, .value_name = "S", .default_text = "5", .max = 1e6,
           .help = "after these no further repetition of a measurement"),
    OPTION("case", pattern, .value_name = "PATTERN", .default_text = "*",
           .help = "only cases whose names match, as 'matrix-*'"),
    OPTION("cublas", cublas_path, .value_name = "FILE",
           .help = "libcublas.so, where the system does not find it"),
    OPTION("save", save_path, .value_name = "FILE",
           .help = "what --json prints, anew after every case, besides the table"),
    OPTION("list", is_list, .help = "name the cases"),
    BSW_OPTION_GROUP(struct device_bench_settings, common, bsw_common_option_group),
};

static enum bsw_status open_device(struct device_bench *bench, struct bsw_error *err)
{
    char why[256];
    const struct bsw_device_options options = {
        .ordinal = (int)bench->settings->gpu, .num_sharers = 1, .timeout_seconds = TIMEOUT_SECONDS};
    if (bsw_device_count(why, sizeof why) == 0)
        return bsw_fail(err, BSW_ERROR_USAGE, "bench device: no GPU: %s", why);
    return bsw_device_open(&options, &bench->device, err);
}

static enum bsw_status open_and_measure(struct device_bench *bench, struct bsw_transport *transport,
                                        struct bsw_error *err)
{
    const struct device_bench_settings *settings = bench->settings;
    const struct bsw_bench_report_options report = {.name = "device",
                                                    .common = &settings->common,
                                                    .bench = &settings->bench,
                                                    .device = bench->device,
                                                    .path = settings->save_path};
    BSW_TRY(bsw_bench_report_open(&bench->report, &report, transport, err));
    return transport->rank == 0 ? measure(bench, err) : BSW_OK;
}

static enum bsw_status run(struct bsw_transport *transport, void *options, struct bsw_error *err)
{
    struct device_bench_settings *settings = options;
    struct device_bench bench = {.settings = settings};
    BSW_TRY(check_pattern(settings->pattern, err));
    settings->bench.check = "on";
    if (settings->is_list) {
        if (transport->rank == 0) list_cases();
        return BSW_OK;
    }
    enum bsw_status status = transport->rank == 0 ? open_device(&bench, err) : BSW_OK;
    BSW_TRY(bsw_transport_agree(transport, status, err));
    status = open_and_measure(&bench, transport, err);
    if (bench.device) {
        device_bench_codes_free(&bench);
        bsw_device_free(bench.device, &bench.flush);
        for (int i = 0; i < 2; i++) device_bench_event_free(&bench.events[i]);
    }
    bsw_device_close(&bench.device);
    return bsw_bench_report_close(&bench.report, status, err);
}

const struct bsw_command bsw_bench_device =
    BSW_COMMAND("bench device", "scans on one GPU of rank 0, against its limits",
                struct device_bench_settings, BSW_ALL_RANKS);
