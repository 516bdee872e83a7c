// SPDX-License-Identifier: Apache-2.0
// bitsweep-bench device: scans on one GPU against what the GPU can do, over codes that are made
// there. Also built for the emulator (bitsweep_emulated-bench), where it shows that it works and no
// time means anything. README.md says what the percentages are of.
#include <fnmatch.h>
#include <stdio.h>

#include "bench/device/device_bench.h"
#include "bench/report/bench_report.h"
#include "common/base/number_parse.h"

#define TIMEOUT_SECONDS 120

// pattern: one or more, with commas.
static int is_wanted(const struct device_bench_case *c, const char *pattern)
{
    char word[64];
    while (bsw_word_take(&pattern, ',', word, sizeof word))
        if (fnmatch(word, c->name, 0) == 0) return 1;
    return 0;
}

static enum bsw_status check_pattern(const char *pattern, struct bsw_error *err)
{
    char word[64];
    while (bsw_word_take(&pattern, ',', word, sizeof word)) {
        size_t i = 0;
        while (i < device_bench_num_cases && !is_wanted(&device_bench_cases[i], word)) i++;
        if (i == device_bench_num_cases)
            return bsw_fail(err, BSW_ERROR_USAGE, "--case '%s': no such case; --list names them",
                            word);
    }
    return BSW_OK;
}

static void list_cases(void)
{
    for (size_t i = 0; i < device_bench_num_cases; i++)
        printf("%-18s %s\n", device_bench_cases[i].name, device_bench_cases[i].what);
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
    for (size_t i = 0; i < device_bench_num_cases && !is_last(first); i++) {
        if (!is_wanted(&device_bench_cases[i], bench->settings->pattern)) continue;
        enum bsw_status status = device_bench_cases[i].run(bench, &device_bench_cases[i], &failure);
        if (status == BSW_OK) continue;
        bsw_bench_report_note(&bench->report, "%s FAILED: %s", device_bench_cases[i].name,
                              failure.message);
        if (first == BSW_OK || is_last(status))
            first = bsw_fail(err, status, "%s: %s", device_bench_cases[i].name, failure.message);
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
    OPTION("case", pattern, .value_name = "PATTERN,...", .default_text = "*",
           .help = "only cases whose names match, as 'matrix-*,select-*'"),
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
