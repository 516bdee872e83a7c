// SPDX-License-Identifier: Apache-2.0
// bench tune: measures and writes a level's table of tuning, or a GPU's row.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/host/scan_tuner.h"
#include "bench/report/bench_report.h"
#include "common/base/cpu_level.h"
#include "common/base/file.h"
#include "common/device/device.h"
#include "common/job/progress.h"
#include "coordinator/job/command.h"
#include "coordinator/job/device_choice.h"
#include "kernels/tuning/scan_tuning.h"
#include "kernels/tuning_text.h"

#define DEFAULT_DIMS "32,96,128,256,512,1024"
#define DEFAULT_BITS "1,2,3,4,8"
#define MAX_ROWS     (BSW_TUNER_MAX_LIST * BSW_TUNER_MAX_LIST)

#define TABLE_BYTES  96 // how a table begins

_Static_assert(BSW_TUNER_MAX_LIST <= BSW_TUNING_MAX_BITS &&
                   BSW_TUNER_MAX_LIST <= BSW_TUNING_MAX_ROWS,
               "a table has all rows and bits");

struct tune_options {
    struct bsw_common_options common;
    const char *write, *dims_text, *bits_text;
    double seconds;
    const char *device; // "cpu", or of which a row is measured
    uint64_t rows;      // there
    int is_forced;
    struct bsw_scan_tuner_options tuner;
};

struct tune_report {
    const struct tune_options *options;
    char model[BSW_CPU_MODEL_BYTES];
    struct bsw_scan_tuner_row rows[MAX_ROWS];
    size_t num_rows;
    struct bsw_progress progress;
    struct bsw_facts facts; // the table, or the JSON
};

// ---- options ----

// "32,64": numbers from low to high, multiples of step, each once.
static enum bsw_status parse_list(const char *what, const char *text, uint32_t step, uint32_t high,
                                  uint32_t *out, size_t *count, struct bsw_error *err)
{
    const char *at = text;
    *count = 0;
    for (;; at++) {
        char *end = NULL;
        unsigned long value = *at >= '1' && *at <= '9' ? strtoul(at, &end, 10) : 0;
        if (value < step || value > high || value % step != 0 || (*end != ',' && *end != '\0'))
            return bsw_fail(err, BSW_ERROR_USAGE,
                            "%s '%s': not a list A,B,... of multiples of %u up to %u", what, text,
                            step, high);
        for (size_t i = 0; i < *count; i++) {
            if (out[i] == value)
                return bsw_fail(err, BSW_ERROR_USAGE, "%s '%s': %lu is there twice", what, text,
                                value);
        }
        if (*count == BSW_TUNER_MAX_LIST)
            return bsw_fail(err, BSW_ERROR_USAGE, "%s '%s': more than %d", what, text,
                            BSW_TUNER_MAX_LIST);
        out[(*count)++] = (uint32_t)value;
        at = end;
        if (*at == '\0') return BSW_OK;
    }
}

#define OPTION(name, member, ...) BSW_OPTION(struct tune_options, name, member, __VA_ARGS__)

static const struct bsw_option option_rows[] = {
    OPTION("write", write, .value_name = "FILE",
           .help = "file of tables, made or changed: BITSWEEP_TUNING=FILE has searches use it; "
                   "without, the table goes to stdout"),
    OPTION("seconds", seconds, .value_name = "S", .default_text = "0.1", .min = 1e-4, .max = 60,
           .help = "a measured point; a combination of dims and bits has 24"),
    OPTION("dims", dims_text, .value_name = "A,B,...", .default_text = DEFAULT_DIMS,
           .help = "dims of the codes, multiples of 32"),
    OPTION("bits", bits_text, .value_name = "A,B,...", .default_text = DEFAULT_BITS,
           .help = "bits a dimension"),
    OPTION("device", device, .value_name = "cpu|cuda:N", .default_text = "cpu",
           .help = "cuda:N: measure that GPU's row instead, for the same file"),
    OPTION("rows", rows, .value_name = "N", .default_text = "20M", .min = 32, .max = 4e9,
           .help = "of the codes on a GPU"),
    OPTION("force", is_forced, .help = "replace a row that the file has for such a GPU"),
    BSW_OPTION_GROUP(struct tune_options, common, bsw_common_option_group),
};

static enum bsw_status settle(struct tune_options *o, struct bsw_error *err)
{
    struct bsw_scan_tuner_options *tuner = &o->tuner;
    tuner->level = o->common.level;
    tuner->seconds = o->seconds;
    BSW_TRY(
        parse_list("--dims", o->dims_text, 32, BSW_MAX_DIMS, tuner->dims, &tuner->num_dims, err));
    return parse_list("--bits", o->bits_text, 1, BSW_MAX_CODE_BITS, tuner->bits, &tuner->num_bits,
                      err);
}

// ---- the tables ----

__attribute__((format(printf, 3, 4))) static enum bsw_status
append(struct bsw_buffer *text, struct bsw_error *err, const char *format, ...)
{
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof line)
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "a line of the table is too long");
    return bsw_buffer_append(text, line, (size_t)length, err);
}

// All rows of the same dims.
static enum bsw_status append_row(struct bsw_buffer *text, const struct bsw_scan_tuner_row *rows,
                                  size_t num_bits, struct bsw_error *err)
{
    const struct bsw_scan_tuning *first = &rows[0].tuning;
    BSW_TRY(append(text, err, "row %u %u %.1f %.2f", first->dims, first->tile_kib,
                   (double)first->stage_overhead, (double)first->finish_factor));
    for (size_t i = 0; i < num_bits; i++) {
        uint32_t from = rows[i].tuning.matrix_from_queries;
        BSW_TRY(from == UINT32_MAX ? append(text, err, " -") : append(text, err, " %u", from));
    }
    return append(text, err, "\n");
}

// How a table of what was measured begins.
static void begin_table(const struct tune_report *report, char out[TABLE_BYTES])
{
    struct bsw_cpu_identity cpu;
    bsw_cpu_identity_read(&cpu);
    snprintf(out, TABLE_BYTES, "table %s %s %u ", bsw_cpu_level_name(report->options->tuner.level),
             cpu.vendor, cpu.family);
}

static enum bsw_status make_table(const struct tune_report *report, struct bsw_buffer *text,
                                  struct bsw_error *err)
{
    const struct bsw_scan_tuner_options *tuner = &report->options->tuner;
    char begin[TABLE_BYTES];
    begin_table(report, begin);
    BSW_TRY(append(text, err, "%s", begin));
    for (size_t i = 0; i < tuner->num_bits; i++) BSW_TRY(append(text, err, "%u ", tuner->bits[i]));
    BSW_TRY(append(text, err, "# %s\n", report->model));
    for (size_t i = 0; i + tuner->num_bits <= report->num_rows; i += tuner->num_bits)
        BSW_TRY(append_row(text, &report->rows[i], tuner->num_bits, err));
    return BSW_OK;
}

static int begins_with(const char *line, const char *begin)
{
    return strncmp(line, begin, strlen(begin)) == 0;
}

// The file without the table of the same level and CPU, which is now at its end.
static enum bsw_status replace_table(const struct tune_report *report, const char *file,
                                     const struct bsw_buffer *table, struct bsw_buffer *out,
                                     struct bsw_error *err)
{
    char begin[TABLE_BYTES];
    int is_old = 0;
    begin_table(report, begin);
    for (size_t length; *file; file += length) {
        length = strcspn(file, "\n");
        length += file[length] == '\n';
        is_old = begins_with(file, begin) || (is_old && begins_with(file, "row "));
        if (!is_old) BSW_TRY(bsw_buffer_append(out, file, length, err));
    }
    if (out->bytes > 0 && out->data[out->bytes - 1] != '\n') BSW_TRY(append(out, err, "\n"));
    return bsw_buffer_append(out, table->data, table->bytes, err);
}

// What is in a file that is there: tables that can be read.
static enum bsw_status read_file(const char *path, struct bsw_buffer *text, struct bsw_error *err)
{
    struct bsw_scan_tuning_table tables[BSW_TUNING_MAX_TABLES];
    size_t num_tables;
    if (bsw_file_is_found(path))
        BSW_TRY(bsw_file_read_all(path, BSW_TUNING_MAX_FILE_BYTES, text, err));
    BSW_TRY(bsw_buffer_append(text, "", 1, err));
    return bsw_scan_tuning_parse(path, (const char *)text->data, tables, BSW_TUNING_MAX_TABLES,
                                 &num_tables, err);
}

static enum bsw_status write_file(const struct tune_report *report, const struct bsw_buffer *table,
                                  struct bsw_error *err)
{
    const char *path = report->options->write;
    struct bsw_buffer before = {0}, after = {0};
    enum bsw_status status = read_file(path, &before, err);
    if (status == BSW_OK)
        status = replace_table(report, (const char *)before.data, table, &after, err);
    if (status == BSW_OK) status = bsw_file_write_output(path, after.data, after.bytes, err);
    bsw_buffer_deinit(&before);
    bsw_buffer_deinit(&after);
    return status;
}

// ---- what is printed ----

static void tell_head(struct tune_report *report)
{
    struct bsw_facts *facts = &report->facts;
    bsw_facts_say(facts, "# bitsweep %s, ", BITSWEEP_VERSION);
    bsw_fact_text(facts, "level", bsw_cpu_level_name(report->options->tuner.level), "level %s");
    bsw_fact_text(facts, "cpu", report->model, ", %s; ns for 16 rows and a query\n");
    bsw_fact_real(facts, "seconds", report->options->seconds, NULL);
    bsw_facts_say(facts, "# %5s %4s %12s %8s %8s %7s %9s %9s %9s\n", "dims", "bits", "matrix from",
                  "tile", "stage", "finish", "planes", "matrix", "alone");
    bsw_facts_say(facts, "# %5s %4s %12s %8s %8s %7s %9s %9s %9s\n", "", "", "queries", "x 1024 B",
                  "overhead", "factor", "ns", "ns", "ns");
    bsw_facts_open_list(facts, "rows");
}

static void tell_row(struct bsw_facts *facts, const struct bsw_scan_tuner_row *row)
{
    const struct bsw_scan_tuning *tuning = &row->tuning;
    bsw_facts_open_object(facts, NULL);
    bsw_fact_integer(facts, "dims", tuning->dims, "  %5d");
    bsw_fact_integer(facts, "bits", tuning->bits, " %4d");
    if (tuning->matrix_from_queries != UINT32_MAX) {
        bsw_fact_integer(facts, "matrix_from_queries", tuning->matrix_from_queries, " %12d");
    } else {
        bsw_fact_text(facts, "matrix_from_queries", NULL, NULL);
        bsw_facts_say(facts, " %12s", "-");
    }
    bsw_fact_integer(facts, "tile_kib", tuning->tile_kib, " %8d");
    bsw_fact_real(facts, "stage_overhead", (double)tuning->stage_overhead, " %8.1f");
    bsw_fact_real(facts, "finish_factor", (double)tuning->finish_factor, " %7.2f");
    bsw_fact_real(facts, "plane_ns", row->plane_ns, " %9.4g");
    bsw_fact_real(facts, "matrix_ns", row->matrix_ns, " %9.4g");
    bsw_fact_real(facts, "full_ns", row->full_ns, " %9.4g\n");
    bsw_facts_close(facts);
}

// ---- the command ----

static void take_row(void *context, const struct bsw_scan_tuner_row *row)
{
    struct tune_report *report = context;
    report->rows[report->num_rows++] = *row;
    bsw_progress_update(&report->progress, report->num_rows);
    // The row takes the bar's line.
    if (report->facts.form == BSW_FACTS_TEXT) bsw_progress_finish(&report->progress);
    tell_row(&report->facts, row);
    fflush(stdout);
}

// stdout has JSON if that is asked for, else the table unless it goes to a file, else figures.
static enum bsw_status tune(const struct tune_options *o, struct tune_report *report,
                            struct bsw_buffer *text, struct bsw_error *err)
{
    enum bsw_facts_form form = bsw_common_facts_form(&o->common);
    if (o->write) { // before minutes of measuring
        enum bsw_status status = read_file(o->write, text, err);
        bsw_buffer_deinit(text);
        BSW_TRY(status);
    }
    bsw_cpu_model_read(report->model);
    bsw_facts_begin(&report->facts, o->write || o->common.json ? form : BSW_FACTS_SILENT, NULL);
    bsw_progress_init(&report->progress, "bench tune", "rows",
                      o->tuner.num_dims * o->tuner.num_bits, !o->common.quiet);
    tell_head(report);
    enum bsw_status status = bsw_scan_tuner_run(&o->tuner, take_row, report, err);
    bsw_progress_finish(&report->progress);
    bsw_facts_close(&report->facts);
    if (status == BSW_OK) status = make_table(report, text, err);
    if (status == BSW_OK && o->write) status = write_file(report, text, err);
    bsw_facts_end(&report->facts, status);
    if (status == BSW_OK && !o->write && !o->common.json)
        fwrite(text->data, 1, text->bytes, stdout);
    return status;
}

// ---- a GPU ----

// `--device`: the row of a GPU, measured (scan_tuner.h) and written into a file of
// tuning.

#define REPEATS          9
#define CAPABILITY_BYTES 24

// "cuda" or "cuda:N".
static enum bsw_status find_ordinal(const char *text, int *out, struct bsw_error *err)
{
    const char *colon = strchr(text, ':');
    uint64_t number = 0;
    BSW_TRY(bsw_device_choice_check(text, err));
    if (strcmp(text, "auto") == 0 || !bsw_device_tuner_open)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "bench tune --device %s: name a GPU, as cuda:0, in a build that has GPUs",
                        text);
    if (colon) BSW_TRY(bsw_count_parse("--device", colon + 1, &number, err));
    *out = (int)number;
    return BSW_OK;
}

static void name_capability(const struct bsw_device_tuning *row, char out[CAPABILITY_BYTES])
{
    snprintf(out, CAPABILITY_BYTES, "%d.%d", row->major, row->minor);
}

// The same file, all of which can be read.
static enum bsw_status read_device_file(const char *path, struct bsw_buffer *text,
                                        struct bsw_error *err)
{
    struct bsw_device_tunings tunings = *bsw_device_tuning_built_in();
    BSW_TRY(read_file(path, text, err));
    return bsw_device_tuning_parse(path, (const char *)text->data, &tunings, err);
}

// Appends to *out the lines of a file but for those of the row's capability; how many these are.
static enum bsw_status copy_others(const char *path, const char *text,
                                   const struct bsw_device_tuning *row, struct bsw_buffer *out,
                                   size_t *num_own, struct bsw_error *err)
{
    struct bsw_tuning_line line = {.name = path};
    char capability[CAPABILITY_BYTES];
    name_capability(row, capability);
    *num_own = 0;
    while (*text) {
        const char *begin = text;
        BSW_TRY(bsw_tuning_line_next(&line, &text, err));
        int is_own = bsw_tuning_line_is_device(&line) && strcmp(line.words[1], capability) == 0;
        *num_own += (size_t)is_own;
        if (!is_own) BSW_TRY(bsw_buffer_append(out, begin, (size_t)(text - begin), err));
    }
    if (out->bytes > 0 && out->data[out->bytes - 1] != '\n')
        return bsw_buffer_append(out, "\n", 1, err);
    return BSW_OK;
}

// Before minutes of measuring: whether there is a row that would be lost.
static enum bsw_status check_device_file(const struct tune_options *o,
                                         const struct bsw_device_tuning *row, struct bsw_error *err)
{
    struct bsw_buffer text = {0}, others = {0};
    size_t num_own = 0;
    if (!o->write) return BSW_OK;
    enum bsw_status status = read_device_file(o->write, &text, err);
    if (status == BSW_OK)
        status = copy_others(o->write, (const char *)text.data, row, &others, &num_own, err);
    if (status == BSW_OK && num_own > 0 && !o->is_forced)
        status =
            bsw_fail(err, BSW_ERROR_USAGE, "%s: has a row of device %d.%d; --force replaces it",
                     o->write, row->major, row->minor);
    bsw_buffer_deinit(&text);
    bsw_buffer_deinit(&others);
    return status;
}

static enum bsw_status write_device_file(const char *path, const struct bsw_device_tuning *row,
                                         const char *lines, struct bsw_error *err)
{
    struct bsw_buffer before = {0}, after = {0};
    size_t num_own;
    enum bsw_status status = read_device_file(path, &before, err);
    if (status == BSW_OK)
        status = copy_others(path, (const char *)before.data, row, &after, &num_own, err);
    if (status == BSW_OK) status = bsw_buffer_append(&after, lines, strlen(lines), err);
    if (status == BSW_OK) status = bsw_file_write_output(path, after.data, after.bytes, err);
    bsw_buffer_deinit(&before);
    bsw_buffer_deinit(&after);
    return status;
}

static void tell_device(const struct bsw_device_tuner *tuner, struct bsw_facts *facts)
{
    char capability[CAPABILITY_BYTES];
    name_capability(bsw_device_tuner_row(tuner), capability);
    bsw_facts_say(facts, "# bitsweep %s, ", BITSWEEP_VERSION);
    bsw_fact_text(facts, "device", bsw_device_tuner_name(tuner), "%s, ");
    bsw_fact_text(facts, "capability", capability, "compute capability %s\n");
    bsw_facts_say(facts, "# %-12s %7s %7s %11s %9s %11s %9s\n", "what", "queries", "bundles",
                  "first", "ms", "second", "ms");
}

// The row's lines; the first one tells which GPU it is of.
static enum bsw_status make_lines(const struct bsw_device_tuner *tuner, struct bsw_buffer *out,
                                  struct bsw_error *err)
{
    char text[BSW_DEVICE_TUNING_TEXT_BYTES];
    const char *name = bsw_device_tuner_name(tuner);
    BSW_TRY(bsw_device_tuning_format(bsw_device_tuner_row(tuner), text, sizeof text, err));
    size_t first = strcspn(text, "\n");
    BSW_TRY(bsw_buffer_append(out, text, first, err));
    BSW_TRY(bsw_buffer_append(out, " # ", 3, err));
    BSW_TRY(bsw_buffer_append(out, name, strlen(name), err));
    return bsw_buffer_append(out, text + first, strlen(text + first) + 1, err);
}

// stdout has JSON if that is asked for, else the row unless it goes to a file, else figures.
static enum bsw_status measure_device(const struct tune_options *o, struct bsw_device_tuner *tuner,
                                      struct bsw_error *err)
{
    struct bsw_facts facts;
    struct bsw_buffer lines = {0};
    const struct bsw_common_options *common = &o->common;
    BSW_TRY(check_device_file(o, bsw_device_tuner_row(tuner), err));
    bsw_facts_begin(
        &facts, o->write || common->json ? bsw_common_facts_form(common) : BSW_FACTS_SILENT, NULL);
    tell_device(tuner, &facts);
    enum bsw_status status = bsw_device_tuner_run(tuner, &facts, err);
    if (status == BSW_OK) status = make_lines(tuner, &lines, err);
    const char *text = (const char *)lines.data;
    if (status == BSW_OK && o->write)
        status = write_device_file(o->write, bsw_device_tuner_row(tuner), text, err);
    bsw_facts_end(&facts, status);
    if (status == BSW_OK && !o->write && !common->json) fputs(text, stdout);
    bsw_buffer_deinit(&lines);
    return status;
}

static enum bsw_status tune_device(const struct tune_options *o, struct bsw_error *err)
{
    struct bsw_device_tuner_options tuner_options = {.rows = o->rows,
                                                     .repeat = REPEATS,
                                                     .seconds = o->seconds,
                                                     .level = o->common.level,
                                                     .num_threads = (int)o->common.threads};
    struct bsw_device_tuner *tuner;
    BSW_TRY(find_ordinal(o->device, &tuner_options.ordinal, err));
    BSW_TRY(bsw_device_tuner_open(&tuner_options, &tuner, err));
    enum bsw_status status = measure_device(o, tuner, err);
    bsw_device_tuner_close(&tuner);
    return status;
}

static enum bsw_status run(struct bsw_transport *transport, void *options, struct bsw_error *err)
{
    const struct tune_options *o = options;
    struct tune_report report = {.options = options};
    struct bsw_buffer text = {0};
    enum bsw_status status = BSW_OK;
    BSW_TRY(settle(options, err));
    if (transport->rank == 0)
        status = strcmp(o->device, "cpu") == 0 ? tune(o, &report, &text, err) : tune_device(o, err);
    bsw_buffer_deinit(&text);
    return bsw_transport_agree(transport, status, err);
}

const struct bsw_command bsw_bench_tune = BSW_COMMAND(
    "bench tune", "measure which scan and tile is best, on one thread or a GPU; rank 0 alone",
    struct tune_options, BSW_ALL_RANKS);
