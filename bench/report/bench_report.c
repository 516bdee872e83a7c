// SPDX-License-Identifier: Apache-2.0
#include "bench/report/bench_report.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/base/arithmetic.h"
#include "common/net/message_kinds.h"
#include "common/net/mpi_library.h"
#include "common/net/transport.h"

#define ERRORS_WIDTH 8
#define JSON_FORM    (JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9))
#define TEXT_BYTES   512

// ---- options ----

enum bsw_status bsw_bench_options_check(const struct bsw_bench_options *options,
                                        struct bsw_error *err)
{
    if (options->min > options->max)
        return bsw_fail(err, BSW_ERROR_USAGE, "--min %llu is above --max %llu",
                        (unsigned long long)options->min, (unsigned long long)options->max);
    return BSW_OK;
}

int bsw_bench_is_checked(const struct bsw_bench_options *options)
{
    return strcmp(options->check, "on") == 0;
}

uint64_t bsw_bench_next_size(const struct bsw_bench_options *options, uint64_t size)
{
    if (options->step > 0) return options->max - size >= options->step ? size + options->step : 0;
    return size <= options->max / options->factor ? size * options->factor : 0;
}

// ---- what is printed ----

static FILE *out_of(const struct bsw_bench_report *report)
{
    return report->options.out ? report->options.out : stdout;
}

static int is_printed(const struct bsw_bench_report *report)
{
    return report->transport->rank == 0 && !report->options.common->json;
}

static int has_document(const struct bsw_bench_report *report)
{
    return report->transport->rank == 0 && (report->options.common->json || report->options.path);
}

static int is_text(const struct bsw_bench_column *column)
{
    return column->decimals == BSW_BENCH_TEXT;
}

// One row of the header: texts stand left as what is below them, numbers right.
static void print_header_row(const struct bsw_bench_report *report, int has_units)
{
    FILE *out = out_of(report);
    fputc('#', out);
    for (size_t i = 0; i < report->options.num_columns; i++) {
        const struct bsw_bench_column *column = &report->options.columns[i];
        if (column->width == 0) continue;
        fprintf(out, " %*s", is_text(column) ? -column->width : column->width,
                has_units ? column->unit : column->name);
    }
    fprintf(out, " %*s\n", ERRORS_WIDTH, has_units ? "values" : "errors");
}

static void print_row(const struct bsw_bench_report *report, const struct bsw_bench_value *values,
                      int64_t errors)
{
    FILE *out = out_of(report);
    fputc(' ', out);
    for (size_t i = 0; i < report->options.num_columns; i++) {
        const struct bsw_bench_column *column = &report->options.columns[i];
        if (column->width == 0) continue;
        if (is_text(column))
            fprintf(out, " %-*s", column->width, values[i].text[0] ? values[i].text : "-");
        else if (isnan(values[i].number))
            fprintf(out, " %*s", column->width, "-");
        else
            fprintf(out, " %*.*f", column->width, column->decimals,
                    values[i].number * column->scale);
    }
    if (errors == BSW_BENCH_UNCHECKED)
        fprintf(out, " %*s\n", ERRORS_WIDTH, "N/A");
    else
        fprintf(out, " %*lld\n", ERRORS_WIDTH, (long long)errors);
    fflush(out); // a long sweep is read while it runs
}

static json_t *number_to_json(const struct bsw_bench_column *column, double number)
{
    if (!isfinite(number)) return json_null();
    return column->decimals == 0 ? json_integer((json_int_t)llround(number)) : json_real(number);
}

static json_t *text_to_json(const char *text)
{
    return text[0] ? json_string(text) : json_null();
}

static json_t *row_to_json(const struct bsw_bench_report *report,
                           const struct bsw_bench_value *values, int64_t errors)
{
    json_t *row = json_object();
    if (report->table) json_object_set_new(row, "table", json_string(report->table));
    for (size_t i = 0; i < report->options.num_columns; i++) {
        const struct bsw_bench_column *column = &report->options.columns[i];
        json_object_set_new(row, column->key,
                            is_text(column) ? text_to_json(values[i].text)
                                            : number_to_json(column, values[i].number));
    }
    json_object_set_new(row, "errors",
                        errors == BSW_BENCH_UNCHECKED ? json_null()
                                                      : json_integer((json_int_t)errors));
    return row;
}

static json_t *columns_to_json(const struct bsw_bench_report *report)
{
    json_t *columns = json_array();
    for (size_t i = 0; i < report->options.num_columns; i++) {
        const struct bsw_bench_column *column = &report->options.columns[i];
        json_array_append_new(columns, json_pack("{s:s, s:s, s:s, s:f}", "key", column->key, "name",
                                                 column->name, "unit", column->unit, "scale",
                                                 is_text(column) ? 1.0 : column->scale));
    }
    return columns;
}

// ---- open ----

enum bsw_status bsw_bench_report_gather(struct bsw_bench_report *report, const void *own,
                                        size_t bytes, void *all, struct bsw_error *err)
{
    const struct bsw_message message = {
        .kind = BSW_MESSAGE_BENCH_RECORD, .batch = ++report->batch, .name = "a measurement"};
    return bsw_collect_records(report->transport, &message, own, bytes, all, err);
}

static void show_environment(struct bsw_bench_report *report, const struct bsw_bench_rank *ranks)
{
    const struct bsw_bench_report_options *o = &report->options;
    int num_ranks = report->transport->num_ranks;
    if (is_printed(report)) bsw_bench_environment_print(o, ranks, num_ranks, out_of(report));
    if (!has_document(report)) return;
    report->document = json_pack("{s:s}", "bench", o->name);
    bsw_bench_environment_describe(o, ranks, num_ranks, report->document);
    json_object_set_new(report->document, "notes", json_array());
    if (report->options.columns)
        json_object_set_new(report->document, "columns", columns_to_json(report));
    else
        json_object_set_new(report->document, "tables", json_object());
    json_object_set_new(report->document, "rows", json_array());
}

enum bsw_status bsw_bench_report_open(struct bsw_bench_report *report,
                                      const struct bsw_bench_report_options *options,
                                      struct bsw_transport *transport, struct bsw_error *err)
{
    struct bsw_bench_rank own, *ranks = NULL;
    enum bsw_status status = BSW_OK;
    *report =
        (struct bsw_bench_report){.options = *options, .transport = transport, .is_header_due = 1};
    if (options->columns) report->averaged = &options->columns[options->main_column];
    bsw_bench_rank_describe(options->common, options->device, &own);
    if (transport->rank == 0)
        status = bsw_allocate(&ranks, (size_t)transport->num_ranks, sizeof own, "ranks", err);
    status = bsw_transport_agree(transport, status, err);
    if (status == BSW_OK) status = bsw_bench_report_gather(report, &own, sizeof own, ranks, err);
    if (status == BSW_OK && transport->rank == 0) show_environment(report, ranks);
    bsw_free(&ranks);
    return status;
}

void bsw_bench_report_table(struct bsw_bench_report *report, const char *name,
                            const struct bsw_bench_column *columns, size_t num_columns,
                            size_t main_column)
{
    if (report->transport->rank != 0) return;
    report->options.columns = columns;
    report->options.num_columns = num_columns;
    report->options.main_column = main_column;
    report->table = name;
    report->is_header_due = 1;
    if (!report->averaged && main_column < num_columns) report->averaged = &columns[main_column];
    if (report->document)
        json_object_set_new(json_object_get(report->document, "tables"), name,
                            columns_to_json(report));
}

void bsw_bench_report_add(struct bsw_bench_report *report, const char *key, json_t *value)
{
    if (report->document)
        json_object_set_new(report->document, key, value);
    else
        json_decref(value);
}

void bsw_bench_report_note(struct bsw_bench_report *report, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list arguments;
    if (report->transport->rank != 0) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (is_printed(report)) fprintf(out_of(report), "# %s\n", text);
    if (report->document)
        json_array_append_new(json_object_get(report->document, "notes"), json_string(text));
}

// ---- rows ----

static double main_value_of(const struct bsw_bench_report *report,
                            const struct bsw_bench_value *values)
{
    const struct bsw_bench_report_options *o = &report->options;
    int has_average =
        o->main_column < o->num_columns && &o->columns[o->main_column] == report->averaged;
    return has_average ? values[o->main_column].number : (double)NAN;
}

static void count_row(struct bsw_bench_report *report, double main_value, int64_t errors)
{
    report->num_rows++;
    if (errors != BSW_BENCH_UNCHECKED) {
        report->num_checked++;
        report->num_wrong += (uint64_t)errors;
        report->num_wrong_rows += errors > 0;
    }
    if (!isfinite(main_value)) return;
    report->main_sum += main_value;
    report->num_averaged++;
}

static void keep_document(struct bsw_bench_report *report)
{
    if (report->options.path)
        report->is_lost |= json_dump_file(report->document, report->options.path, JSON_FORM) != 0;
}

void bsw_bench_report_row(struct bsw_bench_report *report, const struct bsw_bench_value *values,
                          int64_t errors)
{
    if (report->transport->rank != 0) return;
    if (is_printed(report)) {
        if (report->is_header_due) { // behind the notes
            if (report->table) fprintf(out_of(report), "# %s\n", report->table);
            print_header_row(report, 0);
            print_header_row(report, 1);
            report->is_header_due = 0;
        }
        print_row(report, values, errors);
    }
    if (report->document)
        json_array_append_new(json_object_get(report->document, "rows"),
                              row_to_json(report, values, errors));
    keep_document(report);
    count_row(report, main_value_of(report, values), errors);
}

// ---- the footer ----

// In the unit of the main column; NAN: no row has it.
static double average_of(const struct bsw_bench_report *report)
{
    const struct bsw_bench_column *column = report->averaged;
    return report->num_averaged > 0
               ? report->main_sum * column->scale / (double)report->num_averaged
               : (double)NAN;
}

static int is_too_low(const struct bsw_bench_report *report)
{
    return report->options.bench->least > 0 &&
           !(average_of(report) >= report->options.bench->least);
}

static void print_footer(const struct bsw_bench_report *report)
{
    const struct bsw_bench_column *column = report->averaged;
    FILE *out = out_of(report);
    fprintf(out, "# %llu rows, %llu checked: ", (unsigned long long)report->num_rows,
            (unsigned long long)report->num_checked);
    if (report->num_wrong > 0)
        fprintf(out, "%llu wrong values in %llu, FAILED\n", (unsigned long long)report->num_wrong,
                (unsigned long long)report->num_wrong_rows);
    else
        fprintf(out, "no wrong value%s\n", report->num_checked > 0 ? ", OK" : "");
    if (!column) return;
    fprintf(out, "# average of %s: %.6g %s", column->name, average_of(report), column->unit);
    if (report->options.bench->least > 0)
        fprintf(out, ", at least %g asked: %s", report->options.bench->least,
                is_too_low(report) ? "FAILED" : "OK");
    fputc('\n', out);
}

static void finish_document(struct bsw_bench_report *report)
{
    const struct bsw_bench_column *column = report->averaged;
    double average = average_of(report), least = report->options.bench->least;
    json_object_set_new(
        report->document, "footer",
        json_pack("{s:I, s:I, s:I, s:s, s:s, s:o, s:o, s:b}", "rows", (json_int_t)report->num_rows,
                  "checked_rows", (json_int_t)report->num_checked, "wrong_values",
                  (json_int_t)report->num_wrong, "averaged", column ? column->key : "",
                  "average_unit", column ? column->unit : "", "average",
                  isnan(average) ? json_null() : json_real(average), "least",
                  least > 0 ? json_real(least) : json_null(), "passed",
                  report->num_wrong == 0 && !is_too_low(report)));
    keep_document(report);
    if (is_printed(report)) return;
    json_dumpf(report->document, out_of(report), JSON_FORM);
    fputc('\n', out_of(report));
}

static enum bsw_status judge(const struct bsw_bench_report *report, struct bsw_error *err)
{
    const struct bsw_bench_column *column = report->averaged;
    double least = report->options.bench->least;
    if (report->is_lost)
        return bsw_fail(err, BSW_ERROR_IO, "%s: cannot be written", report->options.path);
    if (report->num_wrong > 0)
        return bsw_fail(
            err, BSW_ERROR_SELF_CHECK, "bench %s: %llu wrong values in %llu of %llu rows",
            report->options.name, (unsigned long long)report->num_wrong,
            (unsigned long long)report->num_wrong_rows, (unsigned long long)report->num_rows);
    if (is_too_low(report) && !column)
        return bsw_fail(err, BSW_ERROR_SELF_CHECK,
                        "bench %s: no table has an average, --least asks for %g",
                        report->options.name, least);
    if (is_too_low(report))
        return bsw_fail(err, BSW_ERROR_SELF_CHECK,
                        "bench %s: the average of %s is %.4g %s, --least asks for %g",
                        report->options.name, column->name, average_of(report), column->unit,
                        least);
    return BSW_OK;
}

enum bsw_status bsw_bench_report_close(struct bsw_bench_report *report, enum bsw_status status,
                                       struct bsw_error *err)
{
    // Agreed on twice an error would lose the rank that it is of.
    status = bsw_own_status(report->transport, status, err);
    enum bsw_status measured = bsw_transport_agree(report->transport, status, err);
    status = measured;
    if (measured == BSW_OK && report->transport->rank == 0) {
        if (is_printed(report)) print_footer(report);
        if (report->document) finish_document(report);
        status = judge(report, err);
    }
    if (report->document) json_decref(report->document);
    report->document = NULL;
    return measured != BSW_OK ? measured : bsw_transport_agree(report->transport, status, err);
}

// ---- times ----

#define LEAST_SECONDS 0.0002
#define MOST_CALLS    1e6

static double time_calls(bsw_bench_clock_fn clock, const struct bsw_bench_run *run, size_t calls)
{
    double start = clock();
    for (size_t i = 0; i < calls; i++) run->work(run->context);
    return clock() - start;
}

static size_t choose_calls(double seconds)
{
    if (seconds * MOST_CALLS < LEAST_SECONDS)
        return (size_t)MOST_CALLS; // also 0, of a coarse clock
    return seconds < LEAST_SECONDS ? (size_t)(LEAST_SECONDS / seconds) + 1 : 1;
}

void bsw_bench_take_turns(const struct bsw_bench_options *options, bsw_bench_clock_fn clock,
                          struct bsw_bench_run *runs, size_t num_runs)
{
    double seconds[BSW_BENCH_MAX_RUNS][BSW_BENCH_MAX_REPEATS];
    size_t calls[BSW_BENCH_MAX_RUNS];
    for (uint64_t turn = 0; turn < options->warmup || turn == 0; turn++) {
        for (size_t i = 0; i < num_runs; i++)
            calls[i] = choose_calls(time_calls(clock, &runs[i], 1));
    }
    for (uint64_t turn = 0; turn < options->repeat; turn++) {
        for (size_t i = 0; i < num_runs; i++)
            seconds[i][turn] = time_calls(clock, &runs[i], calls[i]) / (double)calls[i];
    }
    for (size_t i = 0; i < num_runs; i++) runs[i].seconds = bsw_median(seconds[i], options->repeat);
}

// ---- the environment ----

#include "common/base/process.h"
#include "common/net/nccl_library.h"

#if defined(__SANITIZE_ADDRESS__)
#define BUILD "with sanitizers"
#elif defined(NDEBUG)
#define BUILD "release"
#else
#define BUILD "debug"
#endif
#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif
#if !defined(BITSWEEP_CUDA_TOOLKIT) // CMakeLists.txt
#define BITSWEEP_CUDA_TOOLKIT "none"
#endif

#define VERSION_BYTES 256

struct versions {
    char mpi[VERSION_BYTES], nccl[VERSION_BYTES], system[VERSION_BYTES];
};

// For lines and for JSON, which takes UTF-8 alone.
static void keep_printable(char *text)
{
    for (; *text; text++) {
        if (*text < ' ' || *text > '~') *text = '?';
    }
}

void bsw_bench_rank_describe(const struct bsw_common_options *common, const bsw_device *device,
                             struct bsw_bench_rank *out)
{
    memset(out, 0, sizeof *out); // all of it travels
    bsw_host_name(out->host, sizeof out->host);
    bsw_cpu_model_read(out->cpu);
    snprintf(out->level, sizeof out->level, "%s", bsw_cpu_level_name(common->level));
    snprintf(out->device, sizeof out->device, "cpu");
    if (device)
        snprintf(out->device, sizeof out->device, "%s %s", bsw_device_label(device),
                 bsw_device_name(device));
    out->pid = getpid();
    out->usable_cpus = bsw_num_usable_cpus(&common->pinning);
    out->threads = (int64_t)common->threads;
    keep_printable(out->host);
    keep_printable(out->device);
}

// The library that runs, which need not be the one that the build saw.
static void find_mpi(char *out)
{
    snprintf(out, VERSION_BYTES, "none");
#if defined(BITSWEEP_HAVE_MPI)
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    if (bsw_mpi_library_load(NULL) != BSW_OK) return;
    if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return;
    snprintf(out, VERSION_BYTES, "%.*s", (int)strcspn(text, ",\n"), text);
#endif
}

// NCCL is looked for where this rank has a device: nothing else uses it.
static void find_versions(const struct bsw_bench_report_options *options, struct versions *out)
{
    struct bsw_nccl_library library = {0};
    struct utsname system = {0};
    find_mpi(out->mpi);
    snprintf(out->nccl, sizeof out->nccl, "none");
    if (options->device && bsw_nccl_library_load(&library, NULL) == BSW_OK)
        snprintf(out->nccl, sizeof out->nccl, "%s", library.version_text);
    snprintf(out->system, sizeof out->system, "unknown");
    if (uname(&system) == 0)
        snprintf(out->system, sizeof out->system, "%.99s %.99s", system.sysname, system.release);
    keep_printable(out->mpi);
    keep_printable(out->system);
}

// "bitsweep bench memory --max 1M"; a long one is cut.
static void list_words(const struct bsw_bench_report_options *options, char *out, size_t capacity)
{
    int used = snprintf(out, capacity, "bitsweep bench %s", options->name);
    for (int i = 0; i < options->common->num_words && used >= 0 && (size_t)used < capacity; i++) {
        used += snprintf(out + used, capacity - (size_t)used, " %s", options->common->words[i]);
    }
    keep_printable(out);
}

static int widest(const struct bsw_bench_rank *ranks, int num_ranks, size_t offset, int least)
{
    int width = least;
    for (int rank = 0; rank < num_ranks; rank++) {
        int length = (int)strlen((const char *)&ranks[rank] + offset);
        if (length > width) width = length;
    }
    return width;
}

void bsw_bench_environment_print(const struct bsw_bench_report_options *options,
                                 const struct bsw_bench_rank *ranks, int num_ranks, FILE *out)
{
    struct versions versions;
    char words[512];
    find_versions(options, &versions);
    list_words(options, words, sizeof words);
    fprintf(out, "# bitsweep %s, %s build, %s\n", BITSWEEP_VERSION, BUILD, COMPILER);
    fprintf(out, "# MPI: %s; CUDA toolkit: %s; NCCL: %s; %s\n", versions.mpi, BITSWEEP_CUDA_TOOLKIT,
            versions.nccl, versions.system);
    fprintf(out, "# command: %s\n", words);
    int host = widest(ranks, num_ranks, offsetof(struct bsw_bench_rank, host), 4);
    int device = widest(ranks, num_ranks, offsetof(struct bsw_bench_rank, device), 6);
    fprintf(out, "# %4s  %-*s %8s %5s %7s %-9s  %-*s  %s\n", "rank", host, "host", "pid", "cpus",
            "threads", "level", device, "device", "cpu");
    for (int i = 0; i < num_ranks; i++) {
        const struct bsw_bench_rank *rank = &ranks[i];
        fprintf(out, "# %4d  %-*s %8lld %5lld %7lld %-9s  %-*s  %s\n", i, host, rank->host,
                (long long)rank->pid, (long long)rank->usable_cpus, (long long)rank->threads,
                rank->level, device, rank->device, rank->cpu);
    }
}

void bsw_bench_environment_describe(const struct bsw_bench_report_options *options,
                                    const struct bsw_bench_rank *ranks, int num_ranks,
                                    json_t *document)
{
    struct versions versions;
    char words[512];
    json_t *list = json_array();
    find_versions(options, &versions);
    list_words(options, words, sizeof words);
    for (int i = 0; i < num_ranks; i++) {
        const struct bsw_bench_rank *rank = &ranks[i];
        json_array_append_new(
            list, json_pack("{s:i, s:s, s:I, s:I, s:I, s:s, s:s, s:s}", "rank", i, "host",
                            rank->host, "pid", (json_int_t)rank->pid, "usable_cpus",
                            (json_int_t)rank->usable_cpus, "threads", (json_int_t)rank->threads,
                            "level", rank->level, "device", rank->device, "cpu", rank->cpu));
    }
    json_object_set_new(document, "environment",
                        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "version",
                                  BITSWEEP_VERSION, "build", BUILD, "compiler", COMPILER, "mpi",
                                  versions.mpi, "cuda_toolkit", BITSWEEP_CUDA_TOOLKIT, "nccl",
                                  versions.nccl, "system", versions.system, "command", words));
    json_object_set_new(document, "ranks", list);
}

enum bsw_status bsw_own_status(const bsw_transport *transport, enum bsw_status status,
                               const struct bsw_error *err)
{
    if (transport->broken != BSW_OK || !err || err->rank < 0) return status;
    return err->rank == transport->rank ? status : BSW_OK;
}
