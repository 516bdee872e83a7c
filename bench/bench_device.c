// bench_device: scans on one GPU against what the GPU can do, over codes that are made there. Also
// built for the emulator (bench_device_emulated), where it shows that it works and no time means
// anything. README.md says what the percentages are of.
#include <fnmatch.h>
#include <stdio.h>

#include "bench/device_bench.h"
#include "coordinator/bench_report.h"

#define TIMEOUT_SECONDS 120
#define EXIT_NO_DEVICE  77

// One that follows another with the same layout uses its codes.
static const struct device_bench_case cases[] = {
    {"agree",
     "both scans find the same, the host agrees on every score",
     device_bench_agree,
     {"96x3", 1, 0, BSW_SCAN_AUTO, 4, 4, 4, 1000, 0, DEVICE_BENCH_BY_KIND}},
    {"agree-integer",
     "the same with integer keys",
     device_bench_agree,
     {"96x3", 0, 0, BSW_SCAN_AUTO, 4, 4, 4, 1000, 0, DEVICE_BENCH_BY_KIND}},
    {"planes-1-integer",
     "one query over the planes, integer keys (xfbq)",
     device_bench_scan,
     {"96x3", 0, 1, BSW_SCAN_PLANES, 4, 1, 1, 1000, 0, DEVICE_BENCH_BY_KIND}},
    {"planes-1",
     "one query over the planes, scales and biases (saq)",
     device_bench_scan,
     {"96x3", 1, 1, BSW_SCAN_PLANES, 4, 1, 1, 1000, 0, DEVICE_BENCH_BY_KIND}},
    {"planes-2",
     "two: where the families cross",
     device_bench_scan,
     {"96x3", 1, 0, BSW_SCAN_PLANES, 4, 2, 2, 1000, 0, DEVICE_BENCH_BY_KIND}},
    {"matrix-1",
     "one query on int8 units",
     device_bench_scan,
     {"96x3", 1, 1, BSW_SCAN_MATRIX, 4, 1, 1, 1000, 0, DEVICE_BENCH_BY_KIND}},
    {"matrix-2",
     "two",
     device_bench_scan,
     {"96x3", 1, 0, BSW_SCAN_MATRIX, 4, 2, 2, 1000, 0, DEVICE_BENCH_BY_KIND}},
    {"matrix-8",
     "8 queries a pass",
     device_bench_scan,
     {"96x3", 1, 1, BSW_SCAN_MATRIX, 4, 8, 8, 100, 0, DEVICE_BENCH_BY_KIND}},
    {"matrix-64",
     "64",
     device_bench_scan,
     {"96x3", 1, 1, BSW_SCAN_MATRIX, 4, 64, 64, 100, 0, DEVICE_BENCH_BY_KIND}},
    {"matrix-256",
     "256",
     device_bench_scan,
     {"96x3", 1, 1, BSW_SCAN_MATRIX, 4, 256, 256, 100, 0, DEVICE_BENCH_BY_KIND}},
    {"mma-64",
     "64 queries, the mma kernel alone",
     device_bench_kernel_alone,
     {"96x3", 1, 0, BSW_SCAN_MATRIX, 4, 64, 64, 100, 0, DEVICE_BENCH_MMA}},
    {"hopper-64",
     "64, the wgmma kernel alone",
     device_bench_kernel_alone,
     {"96x3", 1, 0, BSW_SCAN_MATRIX, 4, 64, 64, 100, 0, DEVICE_BENCH_HOPPER}},
    {"mma-256",
     "256, the mma kernel alone",
     device_bench_kernel_alone,
     {"96x3", 1, 0, BSW_SCAN_MATRIX, 4, 256, 256, 100, 0, DEVICE_BENCH_MMA}},
    {"hopper-256",
     "256, the wgmma kernel alone",
     device_bench_kernel_alone,
     {"96x3", 1, 0, BSW_SCAN_MATRIX, 4, 256, 256, 100, 0, DEVICE_BENCH_HOPPER}},
    {"batches",
     "10,000 queries in batches of 1000",
     device_bench_scan,
     {"96x3", 1, 0, BSW_SCAN_MATRIX, 6, 10000, 1000, 100, 0, DEVICE_BENCH_BY_KIND}},
    {"stream-8",
     "8 queries, most codes in host memory",
     device_bench_stream,
     {"96x3", 1, 0, BSW_SCAN_MATRIX, 4, 8, 8, 100, 0, DEVICE_BENCH_BY_KIND}},
    {"progressive",
     "1000 queries, the full scan and the progressive one",
     device_bench_progressive,
     {"32x4,32x2,64x1", 1, 0, BSW_SCAN_MATRIX, 6, 1000, 1000, 100, 64, DEVICE_BENCH_BY_KIND}},
    {"rbegir",
     "the setting of rbeGIR, over the planes",
     device_bench_scan,
     {"64x2", 0, 1, BSW_SCAN_PLANES, 3, 1, 1, 1000, 0, DEVICE_BENCH_BY_KIND}},
    {"rbegir-matrix",
     "the same on int8 units",
     device_bench_scan,
     {"64x2", 0, 0, BSW_SCAN_MATRIX, 3, 1, 1, 1000, 0, DEVICE_BENCH_BY_KIND}},
    {"encode-xfbq", "float32 rows to xfbq codes", device_bench_encode_xfbq, {.layout = "96x3"}},
    {"encode-saq",
     "float32 rows to saq codes: center, project, quantize",
     device_bench_encode_saq,
     {.layout = "128x3"}},
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
    device_bench_report_header();
    for (size_t i = 0; i < NUM_CASES && !is_last(first); i++) {
        if (!is_wanted(&cases[i], bench->settings->pattern)) continue;
        enum bsw_status status = cases[i].run(bench, &cases[i], &failure);
        if (status == BSW_OK) continue;
        printf("  %-16s FAILED: %s\n", cases[i].name, failure.message);
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

static enum bsw_status run(const struct device_bench_settings *settings, struct bsw_error *err)
{
    struct device_bench bench = {.settings = settings, .json = json_array()};
    const struct bsw_device_options options = {
        .ordinal = (int)settings->gpu, .num_sharers = 1, .timeout_seconds = TIMEOUT_SECONDS};
    enum bsw_status status = bsw_device_open(&options, &bench.device, err);
    if (status == BSW_OK) {
        printf("# bench_device %s on %s (%s)\n", BITSWEEP_VERSION, bsw_device_name(bench.device),
               bsw_device_label(bench.device));
        status = measure(&bench, err);
        device_bench_codes_free(&bench);
        bsw_device_free(bench.device, &bench.flush);
        for (int i = 0; i < 2; i++) device_bench_event_free(&bench.events[i]);
    }
    bsw_device_close(&bench.device);
    json_decref(bench.json);
    return status;
}

static enum bsw_status parse_settings(int argc, char **argv, struct device_bench_settings *settings,
                                      int *help, struct bsw_error *err)
{
    const struct bsw_option options[] = {
        BSW_BENCH_COUNT("rows", &settings->rows, "N", "1G", 32, 4e9, "of the largest corpus"),
        BSW_BENCH_COUNT("queries", &settings->queries, "N", "10000", 1, 1e6,
                        "in batches; passes: at most"),
        BSW_BENCH_COUNT("repeat", &settings->repeat, "N", "9", 1, DEVICE_BENCH_MOST_REPEATS,
                        "repetitions; the median counts"),
        BSW_BENCH_COUNT("bytes", &settings->bytes, "N", "4G", 4096, 1e12,
                        "of the buffers that limits are measured with"),
        BSW_BENCH_COUNT("host-bytes", &settings->host_bytes, "N", "8G", 4096, 1e12,
                        "of codes in host memory, at most"),
        BSW_BENCH_COUNT("steps", &settings->steps, "N", "100K", 1, 1e9,
                        "of the loops that keep the units busy"),
        BSW_BENCH_COUNT("product", &settings->product, "N", "8192", 64, 65536,
                        "rows and columns of cuBLAS's product"),
        BSW_BENCH_COUNT("gpu", &settings->gpu, "N", "0", 0, 1023, "which"),
        {"seconds", BSW_OPTION_NUMBER, &settings->seconds, "S", "5", 0, 0, 1e6, NULL,
         "after these no further repetition of a measurement"},
        {"case", BSW_OPTION_TEXT, &settings->pattern, "PATTERN", "*", 0, 0, 0, NULL,
         "only cases whose names match, as 'matrix-*'"},
        {"cublas", BSW_OPTION_TEXT, &settings->cublas_path, "FILE", NULL, 0, 0, 0, NULL,
         "libcublas.so, where the system does not find it"},
        {"json", BSW_OPTION_TEXT, &settings->json_path, "FILE", NULL, 0, 0, 0, NULL,
         "what was measured, as JSON"},
        {"list", BSW_OPTION_FLAG, &settings->is_list, NULL, NULL, 0, 0, 0, NULL, "name the cases"}};
    const struct bsw_option_table table = {"bench_device", "scans on a GPU, against its limits",
                                           options, sizeof options / sizeof options[0]};
    BSW_TRY(bsw_option_table_parse(&table, argc - 1, argv + 1, help, err));
    if (*help) bsw_option_table_print(&table, stdout);
    return *help ? BSW_OK : check_pattern(settings->pattern, err);
}

int main(int argc, char **argv)
{
    struct bsw_error err = {0};
    struct device_bench_settings settings = {0};
    char why[256];
    int help;
    enum bsw_status status = parse_settings(argc, argv, &settings, &help, &err);
    if (status == BSW_OK && !help && settings.is_list) {
        list_cases();
    } else if (status == BSW_OK && !help) {
        if (bsw_device_count(why, sizeof why) == 0) {
            printf("bench_device: no GPU: %s\n", why);
            return EXIT_NO_DEVICE;
        }
        status = run(&settings, &err);
    }
    if (status != BSW_OK) fprintf(stderr, "bench_device: %s\n", err.message);
    return bsw_status_exit_code(status);
}
