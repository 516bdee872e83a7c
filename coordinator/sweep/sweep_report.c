// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sweep/sweep_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "common/base/cpu_level.h"
#include "common/base/memory.h"

int bsw_sweep_index_note(const char *name, const json_t *index, char *text, size_t bytes)
{
    const char *cause = json_string_value(json_object_get(index, "check_cause"));
    double recall = json_number_value(json_object_get(index, "check_recall"));
    if (!cause || !cause[0]) return 0;
    snprintf(text, bytes, "%s: index-%s: %d-recall@%d of the sample %.4f: %s",
             recall < BSW_CODE_CHECK_LEAST ? "warning" : "note", name, BSW_CODE_CHECK_K,
             BSW_CODE_CHECK_CANDIDATES, recall, cause);
    return 1;
}

// ---- sweep.json ----

// Names with bytes that are not UTF-8 are told without them.
static json_t *text_of(const char *text)
{
    json_t *value = json_string(text);
    return value ? value : json_string("(not UTF-8)");
}

static json_t *describe_environment(const struct bsw_sweep_report *r)
{
    const struct bsw_sweep_team *team = &r->run->team;
    const struct bsw_sweep_settings *s = team->settings;
    struct utsname system = {0};
    char cpu[BSW_CPU_MODEL_BYTES], date[40] = "";
    time_t now = time(NULL);
    struct tm utc;
    uname(&system);
    bsw_cpu_model_read(cpu);
    if (gmtime_r(&now, &utc)) strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &utc);
    return json_pack("{s:s, s:s, s:s, s:s+++, s:I, s:i, s:i, s:s, s:s}", "bitsweep",
                     BITSWEEP_VERSION, "date", date, "cpu", cpu, "system", system.sysname, " ",
                     system.release, "", "cores", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN),
                     "ranks", team->transport->num_ranks, "threads", s->num_threads, "level",
                     s->level_text, "device", s->device);
}

static json_t *describe_job(const struct bsw_sweep_report *r)
{
    const struct bsw_sweep_run *run = r->run;
    const struct bsw_sweep_settings *s = run->team.settings;
    return json_pack(
        "{s:o, s:I, s:I, s:o, s:I, s:s, s:o, s:I, s:I, s:s, s:o, s:I, s:I, s:I, s:I, s:I}", "base",
        text_of(s->base), "rows", (json_int_t)r->num_rows, "dims", (json_int_t)run->dims, "queries",
        text_of(s->queries), "num_queries", (json_int_t)run->num_queries, "metric",
        bsw_metric_name(run->metric), "groundtruth",
        s->groundtruth ? text_of(run->truth) : json_string("computed"), "nearer_rows",
        (json_int_t)run->num_nearer, "queries_in_corpus", (json_int_t)run->num_own, "recall_counts",
        bsw_sweep_recall_counts(run), "model", text_of(s->model ? s->model : "learned"), "shards",
        (json_int_t)s->shards, "repeat", (json_int_t)s->repeat, "batch",
        (json_int_t)s->searches.batch, "items", (json_int_t)s->searches.queue.items, "queue_length",
        (json_int_t)s->searches.queue.length);
}

static json_t *describe(const struct bsw_sweep_report *r)
{
    const char *name;
    json_t *row, *rows = json_array(), *skips = json_array(), *columns = json_object();
    json_t *arguments = json_array();
    const struct bsw_sweep_settings *settings = r->run->team.settings;
    for (size_t c = 0; c < bsw_sweep_num_columns; c++)
        json_object_set_new(columns, bsw_sweep_columns[c].name,
                            json_string(bsw_sweep_columns[c].help));
    json_object_foreach(r->rows, name, row) json_array_append(rows, row);
    for (size_t i = 0; i < r->points->num_skips; i++)
        json_array_append_new(skips,
                              json_pack("{s:s, s:I}", "reason", r->points->skips[i].reason,
                                        "points", (json_int_t)r->points->skips[i].num_points));
    for (int i = 0; i < settings->num_arguments; i++)
        json_array_append_new(arguments, text_of(settings->arguments[i]));
    json_t *answers =
        bsw_sweep_answers(r->rows, r->targets, settings, bsw_metric_name(r->run->metric));
    return json_pack("{s:o, s:o, s:o, s:o, s:O, s:o, s:o, s:o}", "environment",
                     describe_environment(r), "arguments", arguments, "job", describe_job(r),
                     "columns", columns, "indexes", r->indexes, "rows", rows, "left_out", skips,
                     "answers", answers);
}

static enum bsw_status print_json(FILE *out, void *report, struct bsw_error *err)
{
    const struct bsw_sweep_report *r = report;
    size_t flags = JSON_INDENT(1) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(12);
    if (json_dumpf(r->json, out, flags) == 0 && fputc('\n', out) != EOF) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "no memory for sweep.json");
}

// ---- report.html ----

static void print_escaped(FILE *out, const char *text)
{
    for (; *text; text++) {
        const char *entity = *text == '<'   ? "&lt;"
                             : *text == '>' ? "&gt;"
                             : *text == '&' ? "&amp;"
                                            : NULL;
        if (entity)
            fputs(entity, out);
        else
            fputc(*text, out);
    }
}

static enum bsw_status print_arguments(FILE *out, const struct bsw_sweep_settings *settings,
                                       struct bsw_error *err)
{
    char *text = NULL;
    size_t bytes;
    FILE *words = open_memstream(&text, &bytes);
    if (!words) return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "no memory for a report");
    for (int i = 0; i < settings->num_arguments; i++)
        bsw_sweep_print_word(words, settings->arguments[i]);
    if (fclose(words) == 0) print_escaped(out, text);
    free(text);
    return BSW_OK;
}

// ---- the answers ----

static void print_choice(FILE *out, const char *what, const json_t *answer)
{
    fprintf(out, "<tr><th>%s</th><td>", what);
    print_escaped(out, json_string_value(json_object_get(answer, "point")));
    fprintf(out, "</td><td>%.4f</td><td>%.4g</td><td>%.0f</td></tr>\n<tr><td colspan=\"5\"><pre>",
            json_number_value(json_object_get(answer, "recall")),
            json_number_value(json_object_get(answer, "bytes_per_vector")),
            json_number_value(json_object_get(answer, "qps")));
    print_escaped(out, json_string_value(json_object_get(answer, "encode")));
    fputc('\n', out);
    print_escaped(out, json_string_value(json_object_get(answer, "search")));
    fputs("</pre></td></tr>\n", out);
}

static void print_answer(FILE *out, const json_t *answer)
{
    const json_t *fewest = json_object_get(answer, "fewest_bytes");
    const json_t *fastest = json_object_get(answer, "fastest");
    int is_one = fewest && json_equal(fewest, fastest);
    fprintf(out, "<h3>Recall %g, k %lld</h3>\n",
            json_number_value(json_object_get(answer, "target")),
            (long long)json_integer_value(json_object_get(answer, "k")));
    if (!fewest) {
        fprintf(out, "<p>No point reaches it; the best has %.4f.</p>\n",
                json_number_value(json_object_get(answer, "best_recall")));
        return;
    }
    fputs("<div class=\"wide\"><table class=\"answer\">\n<tr><th></th><th>point</th><th>recall</th>"
          "<th>bytes a vector</th><th>queries a second</th></tr>\n",
          out);
    print_choice(out, is_one ? "fewest bytes and fastest" : "fewest bytes", fewest);
    if (!is_one) print_choice(out, "fastest", fastest);
    fputs("</table></div>\n", out);
}

static void print_answers(FILE *out, const json_t *answers)
{
    const json_t *answer;
    size_t i;
    json_array_foreach(answers, i, answer) print_answer(out, answer);
}

// Names and values of a flat object, as a table.
static void print_facts(FILE *out, json_t *facts)
{
    const char *name;
    json_t *value;
    fputs("<table class=\"facts\">\n", out);
    json_object_foreach(facts, name, value)
    {
        fprintf(out, "<tr><th>%s</th><td>", name);
        if (json_is_string(value))
            print_escaped(out, json_string_value(value));
        else
            bsw_sweep_print_value(out, value, -1);
        fputs("</td></tr>\n", out);
    }
    fputs("</table>\n", out);
}

// gnuplot's SVG without what stands before the element.
static enum bsw_status print_svg(FILE *out, const char *folder, const char *name,
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
        fprintf(out, "<figure>%s</figure>\n", start);
    else if (status == BSW_OK)
        status = bsw_fail(err, BSW_ERROR_IO, "%s: gnuplot has not written it to its end", path);
    bsw_buffer_deinit(&svg);
    return status;
}

// ---- the points ----

static const char *const first_columns[] = {"recall", "qps", "bytes_per_vector"};
enum { NUM_FIRST = sizeof first_columns / sizeof first_columns[0] };

static int is_first(const struct bsw_sweep_column *column)
{
    int is = 0;
    for (int i = 0; i < NUM_FIRST; i++) is |= strcmp(column->name, first_columns[i]) == 0;
    return is;
}

// Whether all points have one value, which is then said once.
static int is_same(const struct bsw_sweep_report *r, const struct bsw_sweep_column *column)
{
    const json_t *value = NULL;
    const char *name;
    json_t *row;
    int is_begun = 0;
    if (is_first(column)) return 0;
    json_object_foreach(r->rows, name, row)
    {
        json_t *other = json_object_get(row, column->name);
        if (is_begun && other != value && !(other && value && json_equal(other, value))) return 0;
        value = other;
        is_begun = 1;
    }
    return 1;
}

static void print_same(FILE *out, const struct bsw_sweep_report *r)
{
    const char *before = "<p>All points have ";
    const json_t *row = json_object_iter_value(json_object_iter(r->rows));
    for (size_t c = 0; c < bsw_sweep_num_columns; c++) {
        const struct bsw_sweep_column *column = &bsw_sweep_columns[c];
        const json_t *value = json_object_get(row, column->name);
        const char *text = json_string_value(value);
        if (!column->is_shown || !value || (text && !*text) || !is_same(r, column)) continue;
        fprintf(out, "%s%s ", before, column->name);
        bsw_sweep_print_value(out, value, column->decimals);
        before = ", ";
    }
    if (before[0] != '<') fputs(".</p>\n", out);
}

// The shown columns whose values differ, in their order here: bsw_sweep_num_columns at most.
static size_t choose_columns(const struct bsw_sweep_report *r, const struct bsw_sweep_column *out[])
{
    size_t count = 0;
    for (int i = 0; i < NUM_FIRST; i++) {
        for (size_t c = 0; c < bsw_sweep_num_columns; c++) {
            if (strcmp(bsw_sweep_columns[c].name, first_columns[i]) == 0)
                out[count++] = &bsw_sweep_columns[c];
        }
    }
    for (size_t c = 0; c < bsw_sweep_num_columns; c++) {
        const struct bsw_sweep_column *column = &bsw_sweep_columns[c];
        if (column->is_shown && !is_first(column) && !is_same(r, column)) out[count++] = column;
    }
    return count;
}

static void print_row(FILE *out, const struct bsw_sweep_column *const columns[], size_t count,
                      const json_t *row)
{
    int is_front = json_integer_value(json_object_get(row, "pareto")) > 0;
    fprintf(out, "<tr%s>", is_front ? " class=\"front\"" : "");
    for (size_t c = 0; c < count; c++) {
        int is_marked = strcmp(columns[c]->name, "qps") == 0 && bsw_sweep_is_disturbed(row);
        fputs("<td>", out);
        bsw_sweep_print_value(out, json_object_get(row, columns[c]->name), columns[c]->decimals);
        fputs(is_marked ? "*</td>" : "</td>", out);
    }
    fputs("</tr>\n", out);
}

static enum bsw_status print_rows(FILE *out, const struct bsw_sweep_report *r,
                                  struct bsw_error *err)
{
    const struct bsw_sweep_column **columns;
    const char *name;
    json_t *row;
    BSW_TRY(bsw_allocate(&columns, bsw_sweep_num_columns, sizeof *columns, "columns", err));
    size_t count = choose_columns(r, columns);
    fputs("<tr>", out);
    for (size_t c = 0; c < count; c++) fprintf(out, "<th>%s</th>", columns[c]->name);
    fputs("</tr>\n", out);
    json_object_foreach(r->rows, name, row) print_row(out, columns, count, row);
    bsw_free(&columns);
    return BSW_OK;
}

static void print_left_out(FILE *out, const struct bsw_sweep_points *points)
{
    for (size_t i = 0; i < points->num_skips; i++)
        fprintf(out, "<p>%llu points left out: %s.</p>\n",
                (unsigned long long)points->skips[i].num_points, points->skips[i].reason);
}

static void print_columns(FILE *out)
{
    for (size_t c = 0; c < bsw_sweep_num_columns; c++)
        fprintf(out, "<tr><th>%s</th><td>%s</td></tr>\n", bsw_sweep_columns[c].name,
                bsw_sweep_columns[c].help);
}

static void print_notes(FILE *out, const struct bsw_sweep_report *r)
{
    const char *name;
    json_t *index;
    char text[512];
    json_object_foreach(r->indexes, name, index)
    {
        if (!bsw_sweep_index_note(name, index, text, sizeof text)) continue;
        fputs("<p>", out);
        print_escaped(out, text);
        fputs("</p>\n", out);
    }
}

// What stands for {{NAME}} in the template: a part of the page, facts of sweep.json, or a plot.
static enum bsw_status print_part(FILE *out, const struct bsw_sweep_report *r, const char *name,
                                  struct bsw_error *err)
{
    static const char *const counts[] = {
        "It is by ids alone: a row that ties with a true neighbour does not count for it.",
        "It is with ties: a returned row also counts if its exact value equals that of the K-th "
        "true one."};
    const struct bsw_sweep_settings *settings = r->run->team.settings;
    json_t *facts = json_object_get(r->json, name);
    if (strncmp(name, "sweep-", 6) == 0) return print_svg(out, r->run->folder, name, err);
    if (strcmp(name, "arguments") == 0) return print_arguments(out, settings, err);
    if (strcmp(name, "points") == 0) return print_rows(out, r, err);
    if (strcmp(name, "answer") == 0)
        print_answers(out, json_object_get(r->json, "answers"));
    else if (strcmp(name, "same") == 0)
        print_same(out, r);
    else if (strcmp(name, "counts") == 0)
        fputs(counts[settings->counts_ties != 0], out);
    else if (strcmp(name, "left out") == 0)
        print_left_out(out, r->points);
    else if (strcmp(name, "notes") == 0)
        print_notes(out, r);
    else if (strcmp(name, "columns of the table") == 0)
        print_columns(out);
    else if (facts)
        print_facts(out, facts);
    return BSW_OK;
}

// Fills the template. Without plots what is between {{plots}} and {{end of plots}} is left out.
static enum bsw_status print_html(FILE *out, void *report, struct bsw_error *err)
{
    const struct bsw_sweep_report *r = report;
    const char *at = bsw_sweep_template, *start;
    char name[32];
    while ((start = strstr(at, "{{"))) {
        const char *end = strstr(start, "}}");
        fwrite(at, 1, (size_t)(start - at), out);
        snprintf(name, sizeof name, "%.*s", (int)(end - start - 2), start + 2);
        at = end + 2;
        if (strcmp(name, "plots") == 0 && !r->has_plots) {
            fputs("<p>gnuplot was missing: no plots.</p>\n", out);
            at = strstr(at, "{{end of plots}}");
        } else {
            BSW_TRY(print_part(out, r, name, err));
        }
    }
    fputs(at, out);
    return BSW_OK;
}

// What the plots are about.
static void print_subject(const struct bsw_sweep_report *r, char *text, size_t bytes)
{
    const struct bsw_sweep_team *team = &r->run->team;
    const char *base = team->settings->base, *slash = strrchr(base, '/');
    int length = snprintf(text, bytes, "%.100s: %llu rows x %u dims, %s, %d thread%s",
                          slash ? slash + 1 : base, (unsigned long long)r->num_rows, r->run->dims,
                          bsw_metric_name(r->run->metric), team->settings->num_threads,
                          team->settings->num_threads == 1 ? "" : "s");
    if (team->transport->num_ranks > 1)
        snprintf(text + length, bytes - (size_t)length, " on each of %d ranks",
                 team->transport->num_ranks);
}

enum bsw_status bsw_sweep_report_write(struct bsw_sweep_report *report, struct bsw_error *err)
{
    char subject[256];
    report->json = describe(report);
    if (!report->json) return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "no memory for a report");
    const char *folder = report->run->folder;
    enum bsw_status status = bsw_sweep_write_file(folder, "sweep.json", print_json, report, err);
    print_subject(report, subject, sizeof subject);
    if (status == BSW_OK) status = bsw_sweep_plots_write(folder, subject, &report->has_plots, err);
    if (status == BSW_OK)
        status = bsw_sweep_write_file(folder, "report.html", print_html, report, err);
    if (status != BSW_OK) {
        json_decref(report->json);
        report->json = NULL;
    }
    return status;
}
