// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sweep/sweep_report.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/number_parse.h"
#include "shard/codecs/codec.h"

enum bsw_status bsw_sweep_targets_parse(const char *text, struct bsw_sweep_targets *out,
                                        struct bsw_error *err)
{
    char word[BSW_NUMBER_CHARACTERS + 1];
    *out = (struct bsw_sweep_targets){.count = 0};
    while (bsw_word_take(&text, ',', word, sizeof word)) {
        double recall;
        BSW_TRY(bsw_number_parse("--target", word, &recall, err));
        if (!(recall > 0 && recall <= 1))
            return bsw_fail(err, BSW_ERROR_USAGE,
                            "--target: %s is no recall: use numbers above 0, at most 1", word);
        if (out->count == BSW_SWEEP_MAX_TARGETS)
            return bsw_fail(err, BSW_ERROR_USAGE, "--target: more than %d values",
                            BSW_SWEEP_MAX_TARGETS);
        out->recalls[out->count++] = recall;
    }
    return BSW_OK;
}

static double number_of(const json_t *row, const char *name)
{
    return json_number_value(json_object_get(row, name));
}

static const char *text_of(const json_t *row, const char *name)
{
    const char *text = json_string_value(json_object_get(row, name));
    return text ? text : "";
}

// ---- command lines ----

void bsw_sweep_print_word(FILE *out, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./,:=+%@";
    if (*text && text[strspn(text, plain)] == '\0') {
        fprintf(out, " %s", text);
        return;
    }
    fputs(" '", out);
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fputc(*text, out);
    }
    fputc('\'', out);
}

static void print_option(FILE *out, const char *option, const char *text)
{
    fprintf(out, " --%s", option);
    bsw_sweep_print_word(out, text);
}

static void print_range(FILE *out, const char *option, struct bsw_row_range range)
{
    if (range.first == 0 && range.last == UINT64_MAX) return;
    fprintf(out, " --%s %llu:", option, (unsigned long long)range.first);
    if (range.last != UINT64_MAX) fprintf(out, "%llu", (unsigned long long)range.last);
}

static void print_encode(FILE *out, const json_t *row, const struct bsw_sweep_settings *settings,
                         const char *metric)
{
    const char *name = text_of(row, "index_name");
    const struct bsw_codec *codec = bsw_codec_find(text_of(row, "algorithm"));
    const struct bsw_codec_table *table = codec->table;
    fputs("bitsweep encode", out);
    print_option(out, "base", settings->base);
    print_range(out, "rows", settings->rows);
    fprintf(out, " --metric %s --codec %s", metric, text_of(row, "algorithm"));
    if (table->has_model && settings->model)
        print_option(out, "model", settings->model);
    else if (table->has_model)
        fprintf(out, " --model index-%s.rbe", name);
    else if (table->fixed_bits == 0)
        fprintf(out, " --bits %.15g", number_of(row, "bits"));
    if (number_of(row, "subspaces") > 0)
        fprintf(out, " --subspaces %.15g", number_of(row, "subspaces"));
    if (strcmp(text_of(row, "entries"), "radius") == 0) fputs(" --entries radius", out);
    if (number_of(row, "lists") > 0) {
        fprintf(out, " --lists %.15g", number_of(row, "lists"));
        if (table->has_residuals)
            fprintf(out, " --residual %s", number_of(row, "residual") > 0 ? "yes" : "no");
    }
    if (settings->shards > 1) fprintf(out, " --shards %llu", (unsigned long long)settings->shards);
    fprintf(out, " --index index-%s", name);
}

// How candidates are chosen, where that is not by threshold.
static void print_selection(FILE *out, const json_t *row, const struct bsw_sweep_settings *settings)
{
    const char *select = text_of(row, "select");
    if (strcmp(select, "threshold") == 0) return;
    fprintf(out, " --select %s", select);
    if (strcmp(select, "queue") == 0)
        fprintf(out, " --items %llu --queue-length %llu",
                (unsigned long long)settings->searches.queue.items,
                (unsigned long long)settings->searches.queue.length);
    else
        fprintf(out, " --extra-distance %.15g --max-candidates %.15g",
                number_of(row, "extra_distance"), number_of(row, "candidates"));
}

static void print_tables(FILE *out, const json_t *row)
{
    if (strcmp(text_of(row, "entries"), "radius") == 0)
        fprintf(out, " --entries radius --radius-scale %.15g --mode %s",
                number_of(row, "radius_scale"), text_of(row, "mode"));
    else
        fprintf(out, " --table %s", text_of(row, "table"));
}

static void print_search(FILE *out, const json_t *row, const struct bsw_sweep_settings *settings)
{
    const struct bsw_codec *codec = bsw_codec_find(text_of(row, "algorithm"));
    const struct bsw_codec_table *table = codec->table;
    double probe = number_of(row, "probe"), ratio = number_of(row, "probe_ratio");
    double recall = number_of(row, "recall_asked");
    fprintf(out, "bitsweep search --index index-%s", text_of(row, "index_name"));
    print_option(out, "queries", settings->queries);
    print_range(out, "query-rows", settings->query_rows);
    if (settings->searches.exclude_self) fputs(" --exclude-self", out);
    fprintf(out, " --k %.15g", number_of(row, "count"));
    if (!table->has_exact_keys) fprintf(out, " --oversample %.15g", number_of(row, "oversample"));
    if (!table->has_exact_keys && !table->has_model && !codec->has_bytes && !codec->has_tables)
        fprintf(out, " --query-bits %.15g", number_of(row, "query_bits"));
    if (codec->has_tables) print_tables(out, row);
    print_selection(out, row, settings);
    if (probe > 0) fprintf(out, " --probe %.15g", probe);
    if (ratio > 0) fprintf(out, " --probe-ratio %.15g", ratio);
    if (recall > 0)
        fprintf(out, " --recall %.15g", recall);
    else if (number_of(row, "lists") > 0 && probe == 0 && ratio == 0)
        fputs(" --probe all", out);
    fprintf(out, " --batch %llu --out result", (unsigned long long)settings->searches.batch);
}

// What is printed, as a string; NULL: no memory.
static json_t *line_of(const json_t *row, const struct bsw_sweep_settings *settings,
                       const char *metric)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return NULL;
    if (metric)
        print_encode(out, row, settings, metric);
    else
        print_search(out, row, settings);
    int is_whole = !ferror(out);
    is_whole &= fclose(out) == 0;
    json_t *line = is_whole ? json_string(text) : NULL;
    if (is_whole && !line) line = json_string("(a name is not UTF-8)");
    free(text);
    return line;
}

// ---- the best ----

// Above 0: a is better.
static int compare(const json_t *a, const json_t *b, int by_bytes)
{
    const double differences[] = {
        number_of(b, "bytes_per_vector") - number_of(a, "bytes_per_vector"),
        number_of(a, "qps") - number_of(b, "qps"), number_of(a, "recall") - number_of(b, "recall")};
    double first = differences[by_bytes ? 0 : 1], second = differences[by_bytes ? 1 : 0];
    double all = first != 0 ? first : second != 0 ? second : differences[2];
    return (all > 0) - (all < 0);
}

static const json_t *find_best(const json_t *rows, double k, double target, int by_bytes)
{
    const json_t *best = NULL;
    const char *name;
    json_t *row;
    json_object_foreach((json_t *)rows, name, row)
    {
        if (number_of(row, "count") != k || number_of(row, "recall") < target) continue;
        if (!best || compare(row, best, by_bytes) > 0) best = row;
    }
    return best;
}

static json_t *describe(const json_t *row, const struct bsw_sweep_settings *settings,
                        const char *metric)
{
    return json_pack("{s:O, s:O, s:O, s:O, s:o, s:o}", "point", json_object_get(row, "parameters"),
                     "recall", json_object_get(row, "recall"), "qps", json_object_get(row, "qps"),
                     "bytes_per_vector", json_object_get(row, "bytes_per_vector"), "encode",
                     line_of(row, settings, metric), "search", line_of(row, settings, NULL));
}

static json_t *answer(const json_t *rows, double k, double target,
                      const struct bsw_sweep_settings *settings, const char *metric)
{
    double best_recall = 0;
    const char *name;
    json_t *row, *out;
    json_object_foreach((json_t *)rows, name, row)
    {
        if (number_of(row, "count") == k && number_of(row, "recall") > best_recall)
            best_recall = number_of(row, "recall");
    }
    out = json_pack("{s:I, s:f, s:f}", "k", (json_int_t)k, "target", target, "best_recall",
                    best_recall);
    if (best_recall < target) return out;
    json_object_set_new(out, "fewest_bytes",
                        describe(find_best(rows, k, target, 1), settings, metric));
    json_object_set_new(out, "fastest", describe(find_best(rows, k, target, 0), settings, metric));
    return out;
}

static int has_k(const json_t *answers, double k)
{
    size_t i;
    const json_t *one;
    json_array_foreach(answers, i, one)
    {
        if (number_of(one, "k") == k) return 1;
    }
    return 0;
}

json_t *bsw_sweep_answers(const json_t *rows, const struct bsw_sweep_targets *targets,
                          const struct bsw_sweep_settings *settings, const char *metric)
{
    json_t *answers = json_array(), *row;
    const char *name;
    json_object_foreach((json_t *)rows, name, row)
    {
        double k = number_of(row, "count");
        if (has_k(answers, k)) continue;
        for (size_t t = 0; t < targets->count; t++)
            json_array_append_new(answers, answer(rows, k, targets->recalls[t], settings, metric));
    }
    return answers;
}
