// SPDX-License-Identifier: Apache-2.0
#include "bench/host/device_tune.h"

#include <stdio.h>
#include <string.h>

#include "common/base/file.h"
#include "common/device/device.h"
#include "coordinator/job/device_choice.h"
#include "kernels/scan_tuning.h"
#include "kernels/tuning_text.h"

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

// ---- the file ----

static void name_capability(const struct bsw_device_tuning *row, char out[CAPABILITY_BYTES])
{
    snprintf(out, CAPABILITY_BYTES, "%d.%d", row->major, row->minor);
}

// The file, all of which can be read; nothing where there is none.
static enum bsw_status read_file(const char *path, struct bsw_buffer *text, struct bsw_error *err)
{
    static struct bsw_scan_tuning_table tables[BSW_TUNING_MAX_TABLES];
    struct bsw_device_tunings tunings = *bsw_device_tuning_built_in();
    size_t num_tables;
    if (bsw_file_is_found(path))
        BSW_TRY(bsw_file_read_all(path, BSW_TUNING_MAX_FILE_BYTES, text, err));
    BSW_TRY(bsw_buffer_append(text, "", 1, err));
    const char *whole = (const char *)text->data;
    BSW_TRY(bsw_scan_tuning_parse(path, whole, tables, BSW_TUNING_MAX_TABLES, &num_tables, err));
    return bsw_device_tuning_parse(path, whole, &tunings, err);
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
static enum bsw_status check_file(const struct bsw_device_tune_options *o,
                                  const struct bsw_device_tuning *row, struct bsw_error *err)
{
    struct bsw_buffer text = {0}, others = {0};
    size_t num_own = 0;
    if (!o->write) return BSW_OK;
    enum bsw_status status = read_file(o->write, &text, err);
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

static enum bsw_status write_file(const char *path, const struct bsw_device_tuning *row,
                                  const char *lines, struct bsw_error *err)
{
    struct bsw_buffer before = {0}, after = {0};
    size_t num_own;
    enum bsw_status status = read_file(path, &before, err);
    if (status == BSW_OK)
        status = copy_others(path, (const char *)before.data, row, &after, &num_own, err);
    if (status == BSW_OK) status = bsw_buffer_append(&after, lines, strlen(lines), err);
    if (status == BSW_OK) status = bsw_file_write_output(path, after.data, after.bytes, err);
    bsw_buffer_deinit(&before);
    bsw_buffer_deinit(&after);
    return status;
}

// ---- the command ----

static void tell_head(const struct bsw_device_tuner *tuner, struct bsw_facts *facts)
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
static enum bsw_status measure(const struct bsw_device_tune_options *o,
                               struct bsw_device_tuner *tuner, struct bsw_error *err)
{
    struct bsw_facts facts;
    struct bsw_buffer lines = {0};
    const struct bsw_common_options *common = o->common;
    BSW_TRY(check_file(o, bsw_device_tuner_row(tuner), err));
    bsw_facts_begin(
        &facts, o->write || common->json ? bsw_common_facts_form(common) : BSW_FACTS_SILENT, NULL);
    tell_head(tuner, &facts);
    enum bsw_status status = bsw_device_tuner_run(tuner, &facts, err);
    if (status == BSW_OK) status = make_lines(tuner, &lines, err);
    const char *text = (const char *)lines.data;
    if (status == BSW_OK && o->write)
        status = write_file(o->write, bsw_device_tuner_row(tuner), text, err);
    bsw_facts_end(&facts, status);
    if (status == BSW_OK && !o->write && !common->json) fputs(text, stdout);
    bsw_buffer_deinit(&lines);
    return status;
}

enum bsw_status bsw_device_tune(const struct bsw_device_tune_options *options,
                                struct bsw_error *err)
{
    struct bsw_device_tuner_options tuner_options = {
        .rows = options->rows, .repeat = REPEATS, .seconds = options->seconds};
    struct bsw_device_tuner *tuner;
    BSW_TRY(find_ordinal(options->device, &tuner_options.ordinal, err));
    BSW_TRY(bsw_device_tuner_open(&tuner_options, &tuner, err));
    enum bsw_status status = measure(options, tuner, err);
    bsw_device_tuner_close(&tuner);
    return status;
}
