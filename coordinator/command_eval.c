// eval: recall of a result file (recall.h), by ids, and with ties where it is known which values
// tie: exact ones computed from --base, or with --ties those that both files hold.
#include <stdio.h>
#include <string.h>

#include "common/file.h"
#include "common/result_file.h"
#include "common/vectors.h"
#include "coordinator/command.h"
#include "coordinator/exact_pairs.h"
#include "coordinator/query_digest.h"
#include "coordinator/recall.h"
#include "coordinator/sidecar.h"

struct eval_options {
    struct bsw_common_options common;
    const char *results, *groundtruth, *base, *queries, *metric;
    uint64_t k;
    struct bsw_row_range query_rows;
    int ties, force;
};

enum tie_values {
    TIES_NONE,    // by ids alone
    TIES_WRITTEN, // float32 values of the two files
    TIES_EXACT,   // computed from --base
};

struct eval_job {
    struct eval_options options;
    struct bsw_results results, truth;
    struct bsw_sidecar result_facts, truth_facts;
    enum bsw_metric metric;
    enum tie_values ties;
    struct bsw_exact_pairs pairs; // with TIES_EXACT
    double *values;               // of a query's returned ids
    struct bsw_recall recall;
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
         "rows, to compute exact values and tell ties by them; needs --queries"},
        {"queries", BSW_OPTION_TEXT, &o->queries, "FILE", NULL, 0, 0, 0, NULL,
         "query vectors, with --base"},
        {"query-rows", BSW_OPTION_ROWS, &o->query_rows, "A:B", NULL, 0, 0, 0, NULL,
         "the queries that were searched, with --base"},
        {"metric", BSW_OPTION_CHOICE, &o->metric, NULL, NULL, 0, 0, 0, "cosine|ip|l2",
         "with --base, when no FILE.json tells"},
        {"ties", BSW_OPTION_FLAG, &o->ties, NULL, NULL, 0, 0, 0, NULL,
         "also print the recall with ties: an id whose value in the file equals the last true "
         "neighbour's counts, too; --base implies it, by exact values"},
        {"force", BSW_OPTION_FLAG, &o->force, NULL, NULL, 0, 0, 0, NULL,
         "compare files even if they say that rows, queries or metrics differ"},
        BSW_COMMON_OPTIONS(o->common),
    };
    const struct bsw_option_table table = {"eval", "recall of a result file against a ground truth",
                                           options, sizeof options / sizeof options[0]};
    return bsw_command_parse(transport, &table, &o->common, argc, argv, done, err);
}

// ---- inputs ----

static enum bsw_status find_metric(struct eval_job *job, struct bsw_error *err)
{
    const char *given = job->options.metric;
    const char *known =
        job->truth_facts.metric ? job->truth_facts.metric : job->result_facts.metric;
    if (given && known && strcmp(given, known) != 0 && !job->options.force) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--metric %s: the files say %s; --force uses it anyway", given, known);
    }
    if (given) known = given;
    if (!known && job->options.base) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--base needs --metric: no FILE.json tells it");
    }
    return known ? bsw_metric_parse(known, &job->metric, err) : BSW_OK;
}

static enum bsw_status read_inputs(struct eval_job *job, struct bsw_error *err)
{
    const struct eval_options *o = &job->options;
    if (!o->base != !o->queries)
        return bsw_fail(err, BSW_ERROR_USAGE, "--base and --queries go together");
    BSW_TRY(bsw_results_read(o->results, &job->results, err));
    BSW_TRY(bsw_results_read(o->groundtruth, &job->truth, err));
    BSW_TRY(bsw_sidecar_read(o->results, &job->result_facts, err));
    BSW_TRY(bsw_sidecar_read(o->groundtruth, &job->truth_facts, err));
    if (job->results.num_queries != job->truth.num_queries) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s has %llu queries, %s has %llu", o->results,
                        (unsigned long long)job->results.num_queries, o->groundtruth,
                        (unsigned long long)job->truth.num_queries);
    }
    if (o->force) return BSW_OK;
    return bsw_sidecar_compare(o->results, &job->result_facts, o->groundtruth, &job->truth_facts,
                               "; --force compares them anyway", err);
}

// Values of a file that may be compared: there, and not known to be estimates.
static enum bsw_status check_written(const char *file, const struct bsw_results *results,
                                     const struct bsw_sidecar *facts, struct bsw_error *err)
{
    int is_estimate = facts->refine && strcmp(facts->refine, "exact") != 0;
    if (results->values && !is_estimate) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "--ties: %s has %s; --base and --queries compute exact values", file,
                    is_estimate ? "estimates (refine none)" : "no values");
}

static enum bsw_status choose_ties(struct eval_job *job, struct bsw_error *err)
{
    const struct eval_options *o = &job->options;
    job->ties = o->base ? TIES_EXACT : o->ties ? TIES_WRITTEN : TIES_NONE;
    if (job->ties != TIES_WRITTEN) return BSW_OK;
    BSW_TRY(check_written(o->results, &job->results, &job->result_facts, err));
    return check_written(o->groundtruth, &job->truth, &job->truth_facts, err);
}

static enum bsw_status open_inputs(struct eval_job *job, struct bsw_error *err)
{
    const struct eval_options *o = &job->options;
    BSW_TRY(read_inputs(job, err));
    BSW_TRY(find_metric(job, err));
    BSW_TRY(choose_ties(job, err));
    uint64_t width = job->results.k, k = o->k ? o->k : width;
    if (!o->k && k > job->truth.k) k = job->truth.k;
    if (k > job->truth.k) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--k %llu: %s has %llu neighbours a query",
                        (unsigned long long)k, o->groundtruth, (unsigned long long)job->truth.k);
    }
    BSW_TRY(bsw_allocate(&job->values, (size_t)width, sizeof *job->values, "values", err));
    return bsw_recall_init(&job->recall, (size_t)k, (size_t)width, err);
}

// ---- exact values from --base ----

static enum bsw_status check_ids(const struct eval_job *job, const char *file,
                                 const struct bsw_results *results, struct bsw_error *err)
{
    uint64_t num_rows = bsw_vectors_source_rows(job->pairs.base);
    for (size_t i = 0; i < (size_t)(results->num_queries * results->k); i++) {
        if (results->ids[i] < 0 || (uint64_t)results->ids[i] < num_rows) continue;
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: query %llu has id %lld, %s has %llu rows",
                        file, (unsigned long long)(i / results->k), (long long)results->ids[i],
                        job->options.base, (unsigned long long)num_rows);
    }
    return BSW_OK;
}

static enum bsw_status check_queries(const struct eval_job *job, struct bsw_error *err)
{
    const struct eval_options *o = &job->options;
    const bsw_vectors *queries = job->pairs.queries;
    struct bsw_sidecar facts = {0};
    if (bsw_vectors_num_rows(queries) != job->results.num_queries) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %llu queries, %s has %llu", o->queries,
                        (unsigned long long)bsw_vectors_num_rows(queries), o->results,
                        (unsigned long long)job->results.num_queries);
    }
    if (o->force) return BSW_OK;
    const char *hint = "; --force uses them anyway";
    BSW_TRY(bsw_query_digest(queries, &facts.queries_digest, err));
    BSW_TRY(bsw_sidecar_compare(o->queries, &facts, o->results, &job->result_facts, hint, err));
    return bsw_sidecar_compare(o->queries, &facts, o->groundtruth, &job->truth_facts, hint, err);
}

static enum bsw_status open_pairs(struct eval_job *job, struct bsw_error *err)
{
    const struct eval_options *o = &job->options;
    BSW_TRY(bsw_exact_pairs_open(&job->pairs, o->base, o->queries, o->query_rows, job->metric,
                                 o->common.level, err));
    BSW_TRY(check_queries(job, err));
    BSW_TRY(check_ids(job, o->results, &job->results, err));
    return check_ids(job, o->groundtruth, &job->truth, err);
}

// ---- recall ----

static void take_written(struct eval_job *job, uint64_t place, struct bsw_recall_query *query)
{
    const float *returned = job->results.values + place * job->results.k,
                *true_values = job->truth.values + place * job->truth.k;
    for (size_t i = 0; i < job->recall.width; i++) job->values[i] = returned[i];
    query->first_value = true_values[0];
    query->last_value = true_values[job->recall.k - 1];
}

static enum bsw_status compute_exact(struct eval_job *job, uint64_t place,
                                     struct bsw_recall_query *query, struct bsw_error *err)
{
    BSW_TRY(bsw_exact_pairs_take_query(&job->pairs, place, err));
    BSW_TRY(bsw_exact_pairs_values(&job->pairs, query->ids, job->recall.width, job->values, err));
    BSW_TRY(bsw_exact_pairs_values(&job->pairs, query->true_ids, 1, &query->first_value, err));
    return bsw_exact_pairs_values(&job->pairs, query->true_ids + job->recall.k - 1, 1,
                                  &query->last_value, err);
}

static enum bsw_status evaluate(struct eval_job *job, struct bsw_error *err)
{
    for (uint64_t place = 0; place < job->results.num_queries; place++) {
        struct bsw_recall_query query = {.true_ids = job->truth.ids + place * job->truth.k,
                                         .ids = job->results.ids + place * job->results.k,
                                         .values = job->ties == TIES_NONE ? NULL : job->values};
        if (job->ties == TIES_WRITTEN) take_written(job, place, &query);
        if (job->ties == TIES_EXACT) BSW_TRY(compute_exact(job, place, &query, err));
        bsw_recall_add(&job->recall, &query);
    }
    return BSW_OK;
}

// ---- report ----

// Of the first k of the truth against all columns: the widest figure.
static uint64_t num_ties(const struct bsw_recall *recall)
{
    uint64_t tied = 0;
    for (size_t i = 0; i < recall->num_figures; i++) {
        const struct bsw_recall_figure *figure = &recall->figures[i];
        if (figure->num_true == recall->k && figure->num_columns == recall->width)
            tied = figure->tied;
    }
    return tied;
}

static void name_figure(const struct bsw_recall_figure *figure, char out[64])
{
    snprintf(out, 64, "%zu-recall@%zu", figure->num_true, figure->num_columns);
}

// A miss may be the queues' fault and not the codes'.
static void print_selection(const struct bsw_sidecar *facts)
{
    if (!facts->select || strcmp(facts->select, "queue") != 0) return;
    printf("selected by queues of %llu over %llu rows each, which may miss some of the best\n",
           (unsigned long long)facts->queue.length, (unsigned long long)facts->queue.items);
}

static void print_figures(const struct bsw_recall *recall)
{
    char name[64];
    for (size_t i = 0; i < recall->num_figures; i++) {
        const struct bsw_recall_figure *figure = &recall->figures[i];
        name_figure(figure, name);
        printf("%-20s %.4f\n", name, bsw_recall_by_ids(recall, figure));
        if (figure->tied > 0)
            printf("%-20s %.4f\n", strcat(name, " with ties"),
                   bsw_recall_with_ties(recall, figure));
    }
}

static void print_text(const struct eval_job *job)
{
    static const char *const values[] = {
        [TIES_WRITTEN] = "value in the file", [TIES_EXACT] = "exact value"};
    unsigned long long queries = (unsigned long long)job->results.num_queries;
    print_figures(&job->recall);
    if (job->ties == TIES_NONE)
        printf("%llu queries; recall is by ids (--ties and --base add ties)\n", queries);
    else
        printf("%llu queries; recall is by ids; with ties %llu more count, of the same %s as the "
               "last true neighbour\n",
               queries, (unsigned long long)num_ties(&job->recall), values[job->ties]);
    print_selection(&job->result_facts);
}

static void print_json(const struct eval_job *job)
{
    static const char *const names[] = {
        [TIES_NONE] = "none", [TIES_WRITTEN] = "written", [TIES_EXACT] = "exact"};
    const struct bsw_recall *recall = &job->recall;
    char name[64];
    json_t *by_ids = json_object(), *with_ties = json_object();
    for (size_t i = 0; i < recall->num_figures; i++) {
        const struct bsw_recall_figure *figure = &recall->figures[i];
        name_figure(figure, name);
        json_object_set_new(by_ids, name, json_real(bsw_recall_by_ids(recall, figure)));
        json_object_set_new(with_ties, name, json_real(bsw_recall_with_ties(recall, figure)));
    }
    json_t *object =
        json_pack("{s:I, s:o, s:s, s:I, s:s?}", "queries", (json_int_t)job->results.num_queries,
                  "recalls", by_ids, "ties", names[job->ties], "ties_counted",
                  (json_int_t)num_ties(recall), "select", job->result_facts.select);
    if (job->ties != TIES_NONE) json_object_set(object, "recalls_with_ties", with_ties);
    json_decref(with_ties);
    bsw_print_json(object);
}

static enum bsw_status run(struct eval_job *job, struct bsw_error *err)
{
    BSW_TRY(open_inputs(job, err));
    if (job->ties == TIES_EXACT) BSW_TRY(open_pairs(job, err));
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
    if (status == BSW_OK && transport->rank == 0)
        (job.options.common.json ? print_json : print_text)(&job);
    bsw_recall_deinit(&job.recall);
    bsw_free(&job.values);
    bsw_exact_pairs_close(&job.pairs);
    bsw_results_deinit(&job.results);
    bsw_results_deinit(&job.truth);
    return status;
}
