#include "coordinator/sweep/sweep_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "coordinator/sweep/sweep_files.h"

// ---- sweep.json ----

static void read_cpu_name(char *out, size_t capacity)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(out, capacity, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, "model name", 10) != 0) continue;
        snprintf(out, capacity, "%s", colon + 2);
        out[strcspn(out, "\n")] = '\0';
        break;
    }
    if (file) fclose(file);
}

// Names with bytes that are not UTF-8 are told without them.
static json_t *text_of(const char *text)
{
    json_t *value = json_string(text);
    return value ? value : json_string("(not UTF-8)");
}

static json_t *describe_environment(const struct bsw_sweep_report *r)
{
    const struct bsw_sweep_run *run = r->run;
    struct utsname system = {0};
    char cpu[256], date[40] = "";
    time_t now = time(NULL);
    struct tm utc;
    uname(&system);
    read_cpu_name(cpu, sizeof cpu);
    if (gmtime_r(&now, &utc)) strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &utc);
    return json_pack("{s:s, s:s, s:s, s:s+++, s:I, s:i, s:i, s:s, s:s}", "bitsweep",
                     BITSWEEP_VERSION, "date", date, "cpu", cpu, "system", system.sysname, " ",
                     system.release, "", "cores", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN),
                     "ranks", run->team.transport->num_ranks, "threads", run->team.num_threads,
                     "level", run->level, "device", run->team.device);
}

static json_t *describe_job(const struct bsw_sweep_report *r)
{
    const struct bsw_sweep_run *run = r->run;
    return json_pack(
        "{s:o, s:I, s:I, s:o, s:I, s:s, s:o, s:s, s:o, s:I, s:I, s:I, s:I, s:I}", "base",
        text_of(run->team.base), "rows", (json_int_t)r->num_rows, "dims", (json_int_t)run->dims,
        "queries", text_of(run->team.queries), "num_queries", (json_int_t)run->num_queries,
        "metric", bsw_metric_name(run->metric), "groundtruth",
        r->truth_is_computed ? json_string("computed") : text_of(run->truth), "recall_counts",
        bsw_sweep_recall_counts(run), "model", text_of(run->model ? run->model : "learned"),
        "shards", (json_int_t)run->team.shards, "repeat", (json_int_t)run->repeat, "batch",
        (json_int_t)run->batch, "items", (json_int_t)run->queue.items, "queue_length",
        (json_int_t)run->queue.length);
}

static json_t *describe(const struct bsw_sweep_report *r)
{
    const char *name;
    json_t *row, *rows = json_array(), *skips = json_array(), *columns = json_object();
    json_t *arguments = json_array();
    for (size_t c = 0; c < bsw_sweep_num_columns; c++)
        json_object_set_new(columns, bsw_sweep_columns[c].name,
                            json_string(bsw_sweep_columns[c].help));
    json_object_foreach(r->rows, name, row) json_array_append(rows, row);
    for (size_t i = 0; i < r->points->num_skips; i++)
        json_array_append_new(skips,
                              json_pack("{s:s, s:I}", "reason", r->points->skips[i].reason,
                                        "points", (json_int_t)r->points->skips[i].num_points));
    for (int i = 0; i < r->num_arguments; i++)
        json_array_append_new(arguments, text_of(r->arguments[i]));
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "environment", describe_environment(r),
                     "arguments", arguments, "job", describe_job(r), "columns", columns, "rows",
                     rows, "left_out", skips);
}

static enum bsw_status write_json(const struct bsw_sweep_report *r, struct bsw_error *err)
{
    char *text =
        json_dumps(r->json, JSON_INDENT(1) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(12));
    if (!text) return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "no memory for sweep.json");
    struct bsw_buffer buffer = {0};
    enum bsw_status status = bsw_sweep_print(&buffer, err, "%s\n", text);
    free(text);
    if (status == BSW_OK) status = bsw_sweep_write_file(r->run->folder, "sweep.json", &buffer, err);
    bsw_buffer_deinit(&buffer);
    return status;
}

// ---- report.html ----

static enum bsw_status print_escaped(struct bsw_buffer *out, const char *text,
                                     struct bsw_error *err)
{
    for (; *text; text++) {
        const char *entity = *text == '<'   ? "&lt;"
                             : *text == '>' ? "&gt;"
                             : *text == '&' ? "&amp;"
                                            : NULL;
        BSW_TRY(entity ? bsw_sweep_print(out, err, "%s", entity)
                       : bsw_buffer_append(out, text, 1, err));
    }
    return BSW_OK;
}

// So that a shell reads it as one word.
static enum bsw_status print_argument(struct bsw_buffer *out, const char *text,
                                      struct bsw_error *err)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./,:=+%@";
    if (*text && text[strspn(text, plain)] == '\0') return bsw_sweep_print(out, err, " %s", text);
    BSW_TRY(bsw_sweep_print(out, err, " '"));
    for (; *text; text++) {
        const char one[] = {*text, '\0'};
        BSW_TRY(print_escaped(out, *text == '\'' ? "'\\''" : one, err));
    }
    return bsw_sweep_print(out, err, "'");
}

// Names and values of a flat object, as a table.
static enum bsw_status print_facts(struct bsw_buffer *out, const json_t *facts,
                                   struct bsw_error *err)
{
    const char *name;
    json_t *value;
    BSW_TRY(bsw_sweep_print(out, err, "<table class=\"facts\">\n"));
    json_object_foreach((json_t *)(uintptr_t)facts, name, value)
    {
        BSW_TRY(bsw_sweep_print(out, err, "<tr><th>%s</th><td>", name));
        if (json_is_string(value))
            BSW_TRY(print_escaped(out, json_string_value(value), err));
        else
            BSW_TRY(bsw_sweep_print_value(out, value, -1, err));
        BSW_TRY(bsw_sweep_print(out, err, "</td></tr>\n"));
    }
    return bsw_sweep_print(out, err, "</table>\n");
}

// gnuplot's SVG without what stands before the element.
static enum bsw_status print_svg(struct bsw_buffer *out, const char *folder, const char *name,
                                 struct bsw_error *err)
{
    char path[BSW_PATH_BYTES], file[64];
    struct bsw_buffer svg = {0};
    snprintf(file, sizeof file, "%s.svg", name);
    BSW_TRY(bsw_path_join(path, folder, file, err));
    enum bsw_status status = bsw_file_read_all(path, (uint64_t)1 << 26, &svg, err);
    if (status == BSW_OK) status = bsw_buffer_append(&svg, "", 1, err);
    const char *start = status == BSW_OK ? strstr((const char *)svg.data, "<svg") : NULL;
    if (start && strstr(start, "</svg>"))
        status = bsw_sweep_print(out, err, "<figure>%s</figure>\n", start);
    else if (status == BSW_OK)
        status = bsw_fail(err, BSW_ERROR_IO, "%s: gnuplot has not written it to its end", path);
    bsw_buffer_deinit(&svg);
    return status;
}

static enum bsw_status print_rows(struct bsw_buffer *out, const struct bsw_sweep_report *r,
                                  struct bsw_error *err)
{
    const char *name;
    json_t *row;
    BSW_TRY(bsw_sweep_print(out, err, "<tr>"));
    for (size_t c = 0; c < bsw_sweep_num_columns; c++) {
        if (bsw_sweep_columns[c].is_shown)
            BSW_TRY(bsw_sweep_print(out, err, "<th>%s</th>", bsw_sweep_columns[c].name));
    }
    BSW_TRY(bsw_sweep_print(out, err, "</tr>\n"));
    json_object_foreach(r->rows, name, row)
    {
        int is_front = json_integer_value(json_object_get(row, "pareto")) > 0;
        BSW_TRY(bsw_sweep_print(out, err, "<tr%s>", is_front ? " class=\"front\"" : ""));
        for (size_t c = 0; c < bsw_sweep_num_columns; c++) {
            const struct bsw_sweep_column *column = &bsw_sweep_columns[c];
            if (!column->is_shown) continue;
            BSW_TRY(bsw_sweep_print(out, err, "<td>"));
            BSW_TRY(bsw_sweep_print_value(out, json_object_get(row, column->name), column->decimals,
                                          err));
            BSW_TRY(bsw_sweep_print(out, err, "</td>"));
        }
        BSW_TRY(bsw_sweep_print(out, err, "</tr>\n"));
    }
    return BSW_OK;
}

static enum bsw_status print_left_out(struct bsw_buffer *out, const struct bsw_sweep_report *r,
                                      struct bsw_error *err)
{
    for (size_t i = 0; i < r->points->num_skips; i++)
        BSW_TRY(bsw_sweep_print(out, err, "<p>%llu points left out: %s.</p>\n",
                                (unsigned long long)r->points->skips[i].num_points,
                                r->points->skips[i].reason));
    return BSW_OK;
}

static enum bsw_status print_columns(struct bsw_buffer *out, struct bsw_error *err)
{
    for (size_t c = 0; c < bsw_sweep_num_columns; c++)
        BSW_TRY(bsw_sweep_print(out, err, "<tr><th>%s</th><td>%s</td></tr>\n",
                                bsw_sweep_columns[c].name, bsw_sweep_columns[c].help));
    return BSW_OK;
}

static enum bsw_status print_arguments(struct bsw_buffer *out, const struct bsw_sweep_report *r,
                                       struct bsw_error *err)
{
    for (int i = 0; i < r->num_arguments; i++) BSW_TRY(print_argument(out, r->arguments[i], err));
    return BSW_OK;
}

// What stands for {{NAME}} in the template: a part of the page, facts of sweep.json, or a plot.
static enum bsw_status print_part(struct bsw_buffer *out, const struct bsw_sweep_report *r,
                                  const char *name, struct bsw_error *err)
{
    static const char *const counts[] = {
        "It is by ids alone: a row that ties with a true neighbour does not count for it.",
        "It is with ties: a returned row also counts if its exact value equals that of the K-th "
        "true one."};
    const json_t *facts = json_object_get(r->json, name);
    if (strcmp(name, "arguments") == 0) return print_arguments(out, r, err);
    if (strcmp(name, "counts") == 0)
        return bsw_sweep_print(out, err, "%s", counts[r->run->counts_ties != 0]);
    if (strcmp(name, "points") == 0) return print_rows(out, r, err);
    if (strcmp(name, "left out") == 0) return print_left_out(out, r, err);
    if (strcmp(name, "columns of the table") == 0) return print_columns(out, err);
    if (strncmp(name, "sweep-", 6) == 0) return print_svg(out, r->run->folder, name, err);
    return facts ? print_facts(out, facts, err) : BSW_OK;
}

// Without plots what is between {{plots}} and {{end of plots}} is left out.
static enum bsw_status fill_template(struct bsw_buffer *out, const struct bsw_sweep_report *r,
                                     struct bsw_error *err)
{
    const char *at = bsw_sweep_template, *start;
    char name[32];
    while ((start = strstr(at, "{{"))) {
        const char *end = strstr(start, "}}");
        BSW_TRY(bsw_buffer_append(out, at, (size_t)(start - at), err));
        snprintf(name, sizeof name, "%.*s", (int)(end - start - 2), start + 2);
        at = end + 2;
        if (strcmp(name, "plots") == 0 && !r->has_plots) {
            BSW_TRY(bsw_sweep_print(out, err, "<p>gnuplot was missing: no plots.</p>\n"));
            at = strstr(at, "{{end of plots}}");
        } else {
            BSW_TRY(print_part(out, r, name, err));
        }
    }
    return bsw_sweep_print(out, err, "%s", at);
}

static enum bsw_status write_html(const struct bsw_sweep_report *r, struct bsw_error *err)
{
    struct bsw_buffer html = {0};
    enum bsw_status status = fill_template(&html, r, err);
    if (status == BSW_OK) status = bsw_sweep_write_file(r->run->folder, "report.html", &html, err);
    bsw_buffer_deinit(&html);
    return status;
}

enum bsw_status bsw_sweep_report_write(struct bsw_sweep_report *report, struct bsw_error *err)
{
    report->json = describe(report);
    if (!report->json) return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "no memory for a report");
    enum bsw_status status = write_json(report, err);
    if (status == BSW_OK)
        status = bsw_sweep_plots_write(report->run->folder, &report->has_plots, err);
    if (status == BSW_OK) status = write_html(report, err);
    if (status != BSW_OK) {
        json_decref(report->json);
        report->json = NULL;
    }
    return status;
}
