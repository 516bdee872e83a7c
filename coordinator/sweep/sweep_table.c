// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sweep/sweep_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"

// algorithm, parameters, dataset, count, qps, build and indexsize are columns that
// big-ann-benchmarks exports (benchmark/plotting/utils.py), index_name and recall those of
// cuvs-bench (data_export.py), all with their units.
const struct bsw_sweep_column bsw_sweep_columns[] = {
    {"algorithm", -1, 0, "codec"},
    {"parameters", -1, 0, "all that tells this point from others"},
    {"index_name", -1, 1, "codec, bits and lists: the folder index-NAME"},
    {"dataset", -1, 0, "file of the corpus"},
    {"bits", -1, 0, "bits a dimension that were asked for"},
    {"true_bits", 3, 1, "those that the codes have; saq: what groups of 32 dims allow"},
    {"subspaces", 0, 1, "pq: that were asked for; 0: two bits a dimension"},
    {"lists", 0, 1, "that the index has; 0: none, all rows are looked at"},
    {"residual", 0, 1, "1: codes are of rows less their list's centroid"},
    {"query_bits", 0, 1, "bits a query component"},
    {"table", -1, 1, "pq: numbers of a query's tables"},
    {"entries", -1, 1, "pq: of these tables: all, or those within a radius"},
    {"radius_scale", -1, 1, "of a radius: times this; 0: all entries"},
    {"mode", -1, 1, "of a radius: H, M or L"},
    {"select", -1, 1, "how candidates are chosen"},
    {"extra_distance", 0, 1, "of histogram selection: what may be added to D_K"},
    {"count", 0, 1, "k, neighbours a query"},
    {"oversample", -1, 1, "candidates wanted, times k"},
    {"candidates", 0, 1, "L, candidates a query; histogram: at most"},
    {"probe", 0, 1, "lists that a query looks at, at most; 0: not said"},
    {"probe_ratio", -1, 1,
     "squared distance of a list, in units of the 16th's, at most; 0: not said"},
    {"recall_asked", -1, 1, "recall that the index's table was asked for; 0: not said"},
    {"lists_a_query", 1, 1, "lists that a query looked at, on average"},
    {"rows_a_query", 0, 1, "rows that a query looked at, on average"},
    {"entries_share", 4, 1, "pq: entries within their radius, of all in tables that were made"},
    {"computed_share", 4, 0, "pq: entries whose distance was computed, of all in these tables"},
    {"lookups_share", 4, 0,
     "pq with lists: look-ups of rows that find an entry within its radius, of all, sampled"},
    {"recall", 4, 1, "k-recall@k of the answer"},
    {"recall_counts", -1, 0, "what recall, ceiling and selected count: ids, or ids and ties"},
    {"ceiling", 4, 0, "k-recall@L of the best L by code, of all rows"},
    {"selected", 4, 0, "k-recall@L of the candidates that the selection chose"},
    {"loss_code", 4, 1, "1 - ceiling"},
    {"loss_selection", 4, 1, "ceiling - selected; with lists and queue it can be below 0"},
    {"loss_refinement", 4, 1, "selected - recall"},
    {"qps", 0, 1, "queries a second, of the median pass"},
    {"pareto", 0, 1, "1: no point of the same k is as good in recall and qps and better in one"},
    {"seconds", -1, 0, "of the median pass"},
    {"bytes_per_vector", -1, 1, "bytes of codes a vector"},
    {"indexsize", 0, 0, "kB of the index"},
    {"build", 3, 1, "seconds to train and encode"},
    {"train_seconds", 3, 0, "of build, training and lists"},
    {"ranks", 0, 0, "processes that searched"},
    {"threads", 0, 0, "of each"},
    {"memory_bytes", 0, 1,
     "memory of all ranks together while they searched, without mapped files"},
    {"build_memory_bytes", 0, 0,
     "most memory of the process while it encoded; of several ranks, the first's"},
    {"encode_seconds", 4, 0, "seconds of an average pass: coding queries"},
    {"broadcast_seconds", 4, 0, "sending them"},
    {"scan_seconds", 4, 1, "scanning codes and choosing candidates"},
    {"merge_seconds", 4, 1, "merging what shards chose"},
    {"refine_seconds", 4, 1, "exact values of candidates"},
    {"finish_seconds", 4, 0, "ordering the answer"},
    {"write_seconds", 4, 0, "writing it"},
    {"passes", 0, 0, "timed passes"},
    {"cpu_seconds_a_query", 6, 1, "CPU time of all ranks a query, of an average pass"},
    {"cores_share", 3, 1,
     "of the cores that the threads asked for, what they had; below 0.95 others took some, or too "
     "few queries left threads idle"},
    {"level", -1, 1, "CPU kernels that ran"},
    {"device", -1, 1, "where it was searched"},
};
const size_t bsw_sweep_num_columns = sizeof bsw_sweep_columns / sizeof bsw_sweep_columns[0];

// ---- the front ----

// A row of the table as the front sees it.
struct rated {
    json_t *row;
    double k, recall, rate;
};

// By k, then the best recall first, then the best rate.
static int compare_rated(const void *a, const void *b)
{
    const struct rated *x = a, *y = b;
    if (x->k != y->k) return x->k < y->k ? -1 : 1;
    if (x->recall != y->recall) return x->recall > y->recall ? -1 : 1;
    return (x->rate < y->rate) - (x->rate > y->rate);
}

static double number_of(const json_t *row, const char *name)
{
    return json_number_value(json_object_get(row, name));
}

enum bsw_status bsw_sweep_mark_front(json_t *rows, struct bsw_error *err)
{
    struct rated *all;
    size_t count = 0;
    const char *name;
    json_t *row;
    BSW_TRY(bsw_allocate(&all, json_object_size(rows) + 1, sizeof *all, "front", err));
    json_object_foreach(rows, name, row)
    {
        all[count++] = (struct rated){row, number_of(row, "count"), number_of(row, "recall"),
                                      number_of(row, "qps")};
    }
    qsort(all, count, sizeof *all, compare_rated);
    double best = -INFINITY; // rate of the front so far
    for (size_t i = 0; i < count; i++) {
        const struct rated *before = i > 0 && all[i - 1].k == all[i].k ? &all[i - 1] : NULL;
        if (!before) best = -INFINITY;
        int is_twin = before && all[i].recall == before->recall && all[i].rate == before->rate &&
                      number_of(before->row, "pareto") > 0;
        int is_front = all[i].rate > best || is_twin;
        json_object_set_new(all[i].row, "pareto", json_integer(is_front));
        if (is_front) best = all[i].rate;
    }
    bsw_free(&all);
    return BSW_OK;
}

int bsw_sweep_is_disturbed(const json_t *row)
{
    const json_t *share = json_object_get(row, "cores_share");
    const char *device = json_string_value(json_object_get(row, "device"));
    return share && device && strcmp(device, "cpu") == 0 &&
           json_number_value(share) < BSW_SWEEP_LEAST_CORES;
}

// ---- sweep.csv ----

void bsw_sweep_print_value(FILE *out, const json_t *value, int decimals)
{
    if (json_is_string(value))
        fputs(json_string_value(value), out);
    else if (decimals >= 0)
        fprintf(out, "%.*f", decimals, json_number_value(value));
    else
        fprintf(out, "%.12g", json_number_value(value));
}

// As RFC 4180 has it: the dataset's name may hold anything.
static void print_cell(FILE *out, const json_t *value)
{
    const char *text = json_string_value(value);
    if (!text || !strpbrk(text, ",\"\r\n")) {
        bsw_sweep_print_value(out, value, -1);
        return;
    }
    fputc('"', out);
    for (; *text; text++) fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
    fputc('"', out);
}

static enum bsw_status print_csv(FILE *out, void *rows, struct bsw_error *err)
{
    const char *name;
    json_t *row;
    (void)err;
    for (size_t c = 0; c < bsw_sweep_num_columns; c++)
        fprintf(out, "%s%s", c ? "," : "", bsw_sweep_columns[c].name);
    fputc('\n', out);
    json_object_foreach((json_t *)rows, name, row)
    {
        for (size_t c = 0; c < bsw_sweep_num_columns; c++) {
            if (c) fputc(',', out);
            print_cell(out, json_object_get(row, bsw_sweep_columns[c].name));
        }
        fputc('\n', out);
    }
    return BSW_OK;
}

enum bsw_status bsw_sweep_write_file(const char *folder, const char *name, bsw_sweep_print *print,
                                     void *context, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES], *text = NULL;
    size_t bytes;
    BSW_TRY(bsw_path_join(path, folder, name, err));
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "no memory for %s", name);
    enum bsw_status status = print(out, context, err);
    int is_whole = !ferror(out);
    is_whole &= fclose(out) == 0;
    if (status == BSW_OK && !is_whole)
        status = bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "no memory for %s", name);
    if (status == BSW_OK) status = bsw_file_write_atomic(path, text, bytes, err);
    free(text);
    return status;
}

enum bsw_status bsw_sweep_write_csv(const char *folder, json_t *rows, struct bsw_error *err)
{
    BSW_TRY(bsw_sweep_mark_front(rows, err));
    return bsw_sweep_write_file(folder, "sweep.csv", print_csv, rows, err);
}
