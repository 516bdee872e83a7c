// eval: recall of a result file, always named in full.
//
// K-recall@R: of the K true nearest, the share found among the first R returned. A returned id also
// counts when its exact value ties with the K-th true one (relative 1e-6): which of equal
// neighbours a search returns is no fault of it. Values that are estimates earn no such credit,
// unless --base gives the rows to compute exact ones from.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"
#include "common/result_file.h"
#include "common/vectors.h"
#include "coordinator/command.h"
#include "coordinator/sidecar.h"
#include "kernels/refine/refine.h"

#define TIE_TOLERANCE 1e-6

struct eval_options {
    struct bsw_common_options common;
    const char *results, *groundtruth, *base, *queries, *metric;
    uint64_t k;
    struct bsw_row_range query_rows;
};

struct eval_job {
    struct eval_options options;
    struct bsw_results results, truth;
    struct bsw_sidecar result_facts, truth_facts;
    enum bsw_metric metric;
    int has_ties;                                                // values of both sides are exact
    size_t k;                                                    // neighbours of the truth compared
    size_t width;                                                // columns of the result
    double recall_k, recall_all, recall_first, recall_first_all; // sums over queries
    uint64_t ties_counted;
};

static enum bsw_status parse(struct bsw_transport *transport, struct eval_options *o, int argc,
                             char **argv, int *done, struct bsw_error *err)
{
    const struct bsw_option options[] = {
        {"results", BSW_OPTION_TEXT, &o->results, "FILE", NULL, 1, 0, 0, NULL,
         "result file of search (or .ivecs)"},
        {"groundtruth", BSW_OPTION_TEXT, &o->groundtruth, "FILE", NULL, 1, 0, 0, NULL,
         "ground truth (or .ivecs)"},
        {"k", BSW_OPTION_COUNT, &o->k, "K", NULL, 0, 1, 1e6, NULL,
         "true neighbours compared with all columns of the result [all columns both have]"},
        {"base", BSW_OPTION_TEXT, &o->base, "FILE", NULL, 0, 0, 0, NULL,
         "rows, to compute exact values of the results; needs --queries"},
        {"queries", BSW_OPTION_TEXT, &o->queries, "FILE", NULL, 0, 0, 0, NULL,
         "query vectors, with --base"},
        {"query-rows", BSW_OPTION_ROWS, &o->query_rows, "A:B", NULL, 0, 0, 0, NULL,
         "the queries that were searched, with --base"},
        {"metric", BSW_OPTION_CHOICE, &o->metric, NULL, NULL, 0, 0, 0, "cosine|ip|l2",
         "with --base, when no FILE.json tells"},
        BSW_COMMON_OPTIONS(o->common),
    };
    const struct bsw_option_table table = {"eval", "recall of a result file against a ground truth",
                                           options, sizeof options / sizeof options[0]};
    return bsw_command_parse(transport, &table, &o->common, argc, argv, done, err);
}

// ---- inputs ----

static enum bsw_status find_metric(struct eval_job *job, struct bsw_error *err)
{
    const char *result = job->result_facts.metric, *truth = job->truth_facts.metric,
               *given = job->options.metric;
    if (result && truth && strcmp(result, truth) != 0) {
        return bsw_fail(err, BSW_ERROR_USAGE, "%s has metric %s, %s has %s", job->options.results,
                        result, job->options.groundtruth, truth);
    }
    const char *known = truth ? truth : result;
    if (given && known && strcmp(given, known) != 0) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--metric %s: the files say %s", given, known);
    }
    if (!known) known = given;
    if (!known && job->options.base) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--base needs --metric: no FILE.json tells it");
    }
    return known ? bsw_metric_parse(known, &job->metric, err) : BSW_OK;
}

static enum bsw_status open_inputs(struct eval_job *job, struct bsw_error *err)
{
    const struct eval_options *o = &job->options;
    if (!o->base != !o->queries)
        return bsw_fail(err, BSW_ERROR_USAGE, "--base and --queries go together");
    BSW_TRY(bsw_results_read(o->results, &job->results, err));
    BSW_TRY(bsw_results_read(o->groundtruth, &job->truth, err));
    BSW_TRY(bsw_sidecar_read(o->results, &job->result_facts, err));
    BSW_TRY(bsw_sidecar_read(o->groundtruth, &job->truth_facts, err));
    BSW_TRY(find_metric(job, err));
    if (job->results.num_queries != job->truth.num_queries) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s has %llu queries, %s has %llu", o->results,
                        (unsigned long long)job->results.num_queries, o->groundtruth,
                        (unsigned long long)job->truth.num_queries);
    }
    job->width = (size_t)job->results.k;
    job->k = o->k ? (size_t)o->k
                  : (size_t)(job->results.k < job->truth.k ? job->results.k : job->truth.k);
    if (job->k > job->truth.k) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--k %zu: %s has %llu neighbours a query", job->k,
                        o->groundtruth, (unsigned long long)job->truth.k);
    }
    int is_exact = job->result_facts.refine && strcmp(job->result_facts.refine, "exact") == 0;
    job->has_ties = job->truth.values && job->results.values && is_exact;
    return BSW_OK;
}

// ---- exact values from --base ----

static enum bsw_status check_base(const struct eval_job *job, const bsw_vectors *base,
                                  const bsw_vectors *queries, struct bsw_error *err)
{
    if (bsw_vectors_dims(base) != bsw_vectors_dims(queries)) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %u dims, %s has %u", job->options.queries,
                        bsw_vectors_dims(queries), job->options.base, bsw_vectors_dims(base));
    }
    if (bsw_vectors_num_rows(queries) != job->results.num_queries) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %llu queries, %s has %llu",
                        job->options.queries, (unsigned long long)bsw_vectors_num_rows(queries),
                        job->options.results, (unsigned long long)job->results.num_queries);
    }
    return BSW_OK;
}

// Replaces the values of one result file by exact ones.
static enum bsw_status recompute(const struct eval_job *job, const bsw_vectors *base,
                                 const bsw_vectors *queries, const char *file,
                                 struct bsw_results *results, void *raw, double *wide,
                                 struct bsw_error *err)
{
    const struct bsw_refine_table *refine = bsw_refine_table_get(job->options.common.level);
    size_t dims = bsw_vectors_dims(base), k = (size_t)results->k;
    for (uint64_t q = 0; q < results->num_queries; q++) {
        BSW_TRY(bsw_vectors_read(queries, bsw_vectors_first_row(queries) + q, 1, raw, err));
        refine->to_double(bsw_vectors_type(queries), raw, dims, wide);
        double norm = refine->squared_norm(wide, dims);
        for (size_t i = 0; i < k; i++) {
            int64_t id = results->ids[q * k + i];
            if (id < 0) continue;
            if ((uint64_t)id >= bsw_vectors_source_rows(base)) {
                return bsw_fail(err, BSW_ERROR_BAD_DATA,
                                "%s: query %llu has id %lld, %s has %llu rows", file,
                                (unsigned long long)q, (long long)id, job->options.base,
                                (unsigned long long)bsw_vectors_source_rows(base));
            }
            BSW_TRY(bsw_vectors_read(base, (uint64_t)id, 1, raw, err));
            results->values[q * k + i] =
                refine->value(job->metric, bsw_vectors_type(base), raw, wide, norm, dims);
        }
    }
    return BSW_OK;
}

static enum bsw_status make_values(struct bsw_results *results, struct bsw_error *err)
{
    if (results->values) return BSW_OK;
    return bsw_allocate_zero(&results->values, (size_t)results->num_queries,
                             (size_t)results->k * sizeof(float), "values", err);
}

static enum bsw_status recompute_all(struct eval_job *job, struct bsw_error *err)
{
    bsw_vectors *base = NULL, *queries = NULL;
    void *raw = NULL;
    double *wide = NULL;
    enum bsw_status status = bsw_vectors_open(job->options.base, BSW_ALL_ROWS, &base, err);
    if (status == BSW_OK)
        status = bsw_queries_open(job->options.queries, job->options.query_rows, &queries, err);
    if (status == BSW_OK) status = check_base(job, base, queries, err);
    if (status == BSW_OK)
        status = bsw_allocate(&raw, bsw_vectors_dims(base), sizeof(float), "row", err);
    if (status == BSW_OK)
        status = bsw_allocate(&wide, bsw_vectors_dims(base), sizeof(double), "row", err);
    if (status == BSW_OK) status = make_values(&job->results, err);
    if (status == BSW_OK) status = make_values(&job->truth, err);
    if (status == BSW_OK) {
        status = recompute(job, base, queries, job->options.results, &job->results, raw, wide, err);
    }
    if (status == BSW_OK) {
        status =
            recompute(job, base, queries, job->options.groundtruth, &job->truth, raw, wide, err);
    }
    job->has_ties = status == BSW_OK;
    bsw_free(&wide);
    bsw_free(&raw);
    bsw_vectors_close(&queries);
    bsw_vectors_close(&base);
    return status;
}

// ---- recall ----

// A returned id with its column.
struct returned {
    int64_t id;
    size_t column;
};

static int compare_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int compare_returned(const void *a, const void *b)
{
    const struct returned *x = a, *y = b;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return (x->column > y->column) - (x->column < y->column);
}

static int is_tie(float value, float truth)
{
    return fabs((double)value - (double)truth) <= TIE_TOLERANCE * fabs((double)truth);
}

// How many of the first `k` true neighbours the first `width` returned ids find; ties with the k-th
// count up to k. returned: all columns of the query, sorted; truth: its first k ids, sorted.
static size_t count_found(const struct eval_job *job, uint64_t query, const int64_t *truth,
                          size_t k, const struct returned *returned, size_t width, uint64_t *ties)
{
    const float *values = job->results.values ? job->results.values + query * job->results.k : NULL;
    int64_t last_id = job->truth.ids[query * job->truth.k + k - 1];
    size_t found = 0, tied = 0;
    for (size_t i = 0; i < job->width; i++) {
        if (returned[i].id < 0 || returned[i].column >= width) continue;
        if (i > 0 && returned[i - 1].id == returned[i].id) continue; // returned twice
        if (bsearch(&returned[i].id, truth, k, sizeof *truth, compare_ids)) {
            found++;
        } else if (job->has_ties && last_id >= 0) {
            tied += (size_t)is_tie(values[returned[i].column],
                                   job->truth.values[query * job->truth.k + k - 1]);
        }
    }
    if (tied > k - found) tied = k - found;
    *ties += tied;
    return found + tied;
}

static void evaluate_query(struct eval_job *job, uint64_t query, int64_t *truth,
                           struct returned *returned)
{
    size_t first = job->width < job->k ? job->width : job->k;
    uint64_t ignored = 0;
    memcpy(truth, job->truth.ids + query * job->truth.k, job->k * sizeof *truth);
    for (size_t i = 0; i < job->width; i++) {
        returned[i] = (struct returned){job->results.ids[query * job->results.k + i], i};
    }
    qsort(returned, job->width, sizeof *returned, compare_returned);
    job->recall_first += (double)count_found(job, query, truth, 1, returned, first, &ignored);
    job->recall_first_all +=
        (double)count_found(job, query, truth, 1, returned, job->width, &ignored);
    qsort(truth, job->k, sizeof *truth, compare_ids);
    job->recall_k += (double)count_found(job, query, truth, job->k, returned, first, &ignored);
    job->recall_all +=
        (double)count_found(job, query, truth, job->k, returned, job->width, &job->ties_counted);
}

static enum bsw_status evaluate(struct eval_job *job, struct bsw_error *err)
{
    int64_t *truth;
    struct returned *returned;
    BSW_TRY(bsw_allocate(&truth, job->k, sizeof *truth, "ids", err));
    enum bsw_status status = bsw_allocate(&returned, job->width, sizeof *returned, "ids", err);
    for (uint64_t q = 0; q < job->results.num_queries && status == BSW_OK; q++) {
        evaluate_query(job, q, truth, returned);
    }
    bsw_free(&returned);
    bsw_free(&truth);
    double queries = (double)job->results.num_queries;
    job->recall_k /= queries * (double)job->k;
    job->recall_all /= queries * (double)job->k;
    job->recall_first /= queries;
    job->recall_first_all /= queries;
    return status;
}

// ---- report ----

struct named_recall {
    char name[64];
    double value;
};

static size_t list_recalls(const struct eval_job *job, struct named_recall out[4])
{
    size_t count = 0;
    if (job->width >= job->k) {
        snprintf(out[count].name, sizeof out[count].name, "%zu-recall@%zu", job->k, job->k);
        out[count++].value = job->recall_k;
        if (job->k > 1) {
            snprintf(out[count].name, sizeof out[count].name, "1-recall@%zu", job->k);
            out[count++].value = job->recall_first;
        }
    }
    if (job->width != job->k) {
        snprintf(out[count].name, sizeof out[count].name, "%zu-recall@%zu", job->k, job->width);
        out[count++].value = job->recall_all;
        if (job->k > 1) {
            snprintf(out[count].name, sizeof out[count].name, "1-recall@%zu", job->width);
            out[count++].value = job->recall_first_all;
        }
    }
    return count;
}

// A miss may be the queues' fault and not the codes'.
static void print_selection(const struct bsw_sidecar *facts)
{
    if (!facts->select || strcmp(facts->select, "queue") != 0) return;
    printf("selected by queues of %llu over %llu rows each, which may miss some of the best\n",
           (unsigned long long)facts->queue.length, (unsigned long long)facts->queue.items);
}

static void report(const struct eval_job *job)
{
    struct named_recall recalls[4];
    size_t count = list_recalls(job, recalls);
    if (job->options.common.json) {
        json_t *values = json_object();
        for (size_t i = 0; i < count; i++)
            json_object_set_new(values, recalls[i].name, json_real(recalls[i].value));
        bsw_print_json(json_pack("{s:I, s:o, s:I, s:b, s:s?}", "queries",
                                 (json_int_t)job->results.num_queries, "recalls", values,
                                 "ties_counted", (json_int_t)job->ties_counted, "ties_credited",
                                 job->has_ties, "select", job->result_facts.select));
        return;
    }
    for (size_t i = 0; i < count; i++) printf("%-20s %.4f\n", recalls[i].name, recalls[i].value);
    if (job->has_ties) {
        printf("%llu queries; ties with the last true neighbour (relative 1e-6) count: %llu did\n",
               (unsigned long long)job->results.num_queries, (unsigned long long)job->ties_counted);
    } else {
        printf("%llu queries; no credit for ties: the values are not known to be exact (--base "
               "computes them)\n",
               (unsigned long long)job->results.num_queries);
    }
    print_selection(&job->result_facts);
}

static enum bsw_status run(struct eval_job *job, struct bsw_error *err)
{
    BSW_TRY(open_inputs(job, err));
    if (job->options.base) BSW_TRY(recompute_all(job, err));
    return evaluate(job, err);
}

enum bsw_status bsw_command_eval(struct bsw_transport *transport, int argc, char **argv,
                                 struct bsw_error *err)
{
    struct eval_job job = {0};
    int done;
    BSW_TRY(parse(transport, &job.options, argc, argv, &done, err));
    if (done) return BSW_OK;
    enum bsw_status status = transport->rank == 0 ? run(&job, err) : BSW_OK;
    status = bsw_transport_agree(transport, status, err);
    if (status == BSW_OK && transport->rank == 0) report(&job);
    bsw_results_deinit(&job.results);
    bsw_results_deinit(&job.truth);
    return status;
}
