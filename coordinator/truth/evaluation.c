// SPDX-License-Identifier: Apache-2.0
#include "coordinator/truth/evaluation.h"

#include <math.h>
#include <string.h>

#include "common/base/memory.h"
#include "coordinator/job/same_input.h"

// ---- inputs ----

static enum bsw_status find_metric(struct bsw_evaluation *e, struct bsw_error *err)
{
    const char *given = e->settings.metric;
    const char *known = e->truth_facts.metric ? e->truth_facts.metric : e->result_facts.metric;
    if (given && known && strcmp(given, known) != 0 && !e->settings.force) {
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--metric %s: the files say %s; --force uses it anyway", given, known);
    }
    if (given) known = given;
    if (!known && e->settings.base) {
        return bsw_fail(err, BSW_ERROR_USAGE, "--base needs --metric: no FILE.json tells it");
    }
    return known ? bsw_metric_parse(known, &e->metric, err) : BSW_OK;
}

// Ids of a file are rows that its companion in the comparison says it covers.
static enum bsw_status check_ids(const char *file, const struct bsw_results *results,
                                 const char *other, const struct bsw_sidecar *facts,
                                 struct bsw_error *err)
{
    uint64_t first = facts->first_row, last = first + facts->rows;
    if (facts->rows == 0 || facts->has_ids) return BSW_OK;
    for (uint64_t i = 0; i < results->num_queries * results->k; i++) {
        int64_t id = results->ids[i];
        if (id < 0 || ((uint64_t)id >= first && (uint64_t)id < last)) continue;
        return bsw_fail(err, BSW_ERROR_BAD_DATA,
                        "%s: query %llu has id %lld, %s covers rows %llu:%llu; --force compares "
                        "them anyway",
                        file, (unsigned long long)(i / results->k), (long long)id, other,
                        (unsigned long long)first, (unsigned long long)last);
    }
    return BSW_OK;
}

static enum bsw_status read_inputs(struct bsw_evaluation *e, struct bsw_error *err)
{
    const struct bsw_evaluation_settings *o = &e->settings;
    if (!o->base != !o->queries)
        return bsw_fail(err, BSW_ERROR_USAGE, "--base and --queries go together");
    BSW_TRY(bsw_results_read(o->results, &e->results, err));
    BSW_TRY(bsw_results_read(o->groundtruth, &e->truth, err));
    BSW_TRY(bsw_sidecar_read(o->results, &e->result_facts, err));
    BSW_TRY(bsw_sidecar_read(o->groundtruth, &e->truth_facts, err));
    if (e->results.num_queries != e->truth.num_queries) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s has %llu queries, %s has %llu", o->results,
                        (unsigned long long)e->results.num_queries, o->groundtruth,
                        (unsigned long long)e->truth.num_queries);
    }
    if (e->result_facts.coverage < 1 && !o->is_partial)
        return bsw_fail(
            err, BSW_ERROR_USAGE,
            "%s is partial: a query has seen %.4f of the rows; --partial compares it all "
            "the same",
            o->results, e->result_facts.coverage);
    if (o->force) return BSW_OK;
    BSW_TRY(bsw_sidecar_compare(o->results, &e->result_facts, o->groundtruth, &e->truth_facts,
                                "; --force compares them anyway", err));
    BSW_TRY(check_ids(o->groundtruth, &e->truth, o->results, &e->result_facts, err));
    return check_ids(o->results, &e->results, o->groundtruth, &e->truth_facts, err);
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

static enum bsw_status choose_ties(struct bsw_evaluation *e, struct bsw_error *err)
{
    const struct bsw_evaluation_settings *o = &e->settings;
    e->ties = o->base ? BSW_TIES_EXACT : o->ties ? BSW_TIES_WRITTEN : BSW_TIES_NONE;
    if (e->ties != BSW_TIES_WRITTEN) return BSW_OK;
    BSW_TRY(check_written(o->results, &e->results, &e->result_facts, err));
    return check_written(o->groundtruth, &e->truth, &e->truth_facts, err);
}

static enum bsw_status open_inputs(struct bsw_evaluation *e, struct bsw_error *err)
{
    const struct bsw_evaluation_settings *o = &e->settings;
    BSW_TRY(read_inputs(e, err));
    BSW_TRY(find_metric(e, err));
    BSW_TRY(choose_ties(e, err));
    if (o->k <= e->truth.k) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--k %llu: %s has %llu neighbours a query",
                    (unsigned long long)o->k, o->groundtruth, (unsigned long long)e->truth.k);
}

// ---- exact values from --base ----

static enum bsw_status check_queries(const struct bsw_evaluation *e, struct bsw_error *err)
{
    const struct bsw_evaluation_settings *o = &e->settings;
    const bsw_vectors *queries = e->pairs.queries;
    struct bsw_sidecar facts = {0};
    if (bsw_vectors_num_rows(queries) != e->results.num_queries) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %llu queries, %s has %llu", o->queries,
                        (unsigned long long)bsw_vectors_num_rows(queries), o->results,
                        (unsigned long long)e->results.num_queries);
    }
    if (o->force) return BSW_OK;
    const char *hint = "; --force uses them anyway";
    BSW_TRY(bsw_query_digest(queries, &facts.queries_digest, err));
    BSW_TRY(bsw_sidecar_compare(o->queries, &facts, o->results, &e->result_facts, hint, err));
    return bsw_sidecar_compare(o->queries, &facts, o->groundtruth, &e->truth_facts, hint, err);
}

static enum bsw_status open_pairs(struct bsw_evaluation *e, struct bsw_error *err)
{
    const struct bsw_evaluation_settings *o = &e->settings;
    BSW_TRY(bsw_exact_pairs_open(&e->pairs, o->base, o->queries, o->query_rows, e->metric, o->level,
                                 err));
    BSW_TRY(check_queries(e, err));
    BSW_TRY(bsw_exact_pairs_check(&e->pairs, o->results, &e->results, err));
    return bsw_exact_pairs_check(&e->pairs, o->groundtruth, &e->truth, err);
}

// ---- recall ----

static void take_written(struct bsw_evaluation *e, uint64_t place, struct bsw_recall_query *query)
{
    const float *returned = e->results.values + place * e->results.k,
                *true_values = e->truth.values + place * e->truth.k;
    for (size_t i = 0; i < e->recall.width; i++) e->values[i] = returned[i];
    query->first_value = true_values[0];
    query->last_value = true_values[e->recall.k - 1];
}

// Exact values as keys, which tell what is nearer, too.
static enum bsw_status take_exact(struct bsw_evaluation *e, uint64_t place,
                                  struct bsw_recall_query *query, struct bsw_error *err)
{
    BSW_TRY(bsw_exact_pairs_judge(&e->pairs, place, &e->recall, e->values, query, err));
    enum bsw_metric metric = e->pairs.metric;
    for (size_t i = 0; i < e->recall.width; i++)
        e->values[i] = bsw_metric_key(metric, e->values[i]);
    query->first_value = bsw_metric_key(metric, query->first_value);
    query->last_value = bsw_metric_key(metric, query->last_value);
    query->has_keys = 1;
    return BSW_OK;
}

enum bsw_status bsw_evaluation_count(struct bsw_evaluation *e, uint64_t k, struct bsw_error *err)
{
    size_t width = (size_t)e->results.k;
    bsw_recall_deinit(&e->recall);
    bsw_free(&e->values);
    BSW_TRY(bsw_allocate(&e->values, width, sizeof *e->values, "values", err));
    BSW_TRY(bsw_recall_init(&e->recall, (size_t)k, width, err));
    for (uint64_t place = 0; place < e->results.num_queries; place++) {
        struct bsw_recall_query query = {.true_ids = e->truth.ids + place * e->truth.k,
                                         .ids = e->results.ids + place * e->results.k,
                                         .values = e->ties == BSW_TIES_NONE ? NULL : e->values};
        if (e->ties == BSW_TIES_WRITTEN) take_written(e, place, &query);
        if (e->ties == BSW_TIES_EXACT) BSW_TRY(take_exact(e, place, &query, err));
        bsw_recall_add(&e->recall, &query);
    }
    return BSW_OK;
}

enum bsw_status bsw_evaluation_run(const struct bsw_evaluation_settings *settings,
                                   struct bsw_evaluation *e, struct bsw_error *err)
{
    *e = (struct bsw_evaluation){.settings = *settings};
    BSW_TRY(open_inputs(e, err));
    if (e->ties == BSW_TIES_EXACT) BSW_TRY(open_pairs(e, err));
    uint64_t all = e->results.k < e->truth.k ? e->results.k : e->truth.k;
    return bsw_evaluation_count(e, settings->k ? settings->k : all, err);
}

void bsw_evaluation_deinit(struct bsw_evaluation *e)
{
    bsw_recall_deinit(&e->recall);
    bsw_free(&e->values);
    bsw_exact_pairs_close(&e->pairs);
    bsw_results_deinit(&e->results);
    bsw_results_deinit(&e->truth);
}

// ---- exact values of pairs ----------------------------------------------------------------------

static enum bsw_status open_files(struct bsw_exact_pairs *pairs, const char *base,
                                  const char *queries, struct bsw_row_range query_rows,
                                  struct bsw_error *err)
{
    BSW_TRY(bsw_vectors_open(base, BSW_ALL_ROWS, &pairs->base, err));
    BSW_TRY(bsw_queries_open(queries, query_rows, &pairs->queries, err));
    if (bsw_vectors_dims(pairs->base) != bsw_vectors_dims(pairs->queries)) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %u dims, %s has %u", queries,
                        bsw_vectors_dims(pairs->queries), base, bsw_vectors_dims(pairs->base));
    }
    return BSW_OK;
}

enum bsw_status bsw_exact_pairs_open(struct bsw_exact_pairs *pairs, const char *base,
                                     const char *queries, struct bsw_row_range query_rows,
                                     enum bsw_metric metric, enum bsw_cpu_level level,
                                     struct bsw_error *err)
{
    *pairs = (struct bsw_exact_pairs){.metric = metric, .refine = bsw_refine_table_get(level)};
    BSW_TRY(open_files(pairs, base, queries, query_rows, err));
    size_t dims = bsw_vectors_dims(pairs->base);
    BSW_TRY(bsw_allocate(&pairs->raw, dims, sizeof(float), "row", err)); // the widest numbers
    return bsw_allocate(&pairs->query, dims, sizeof(double), "query", err);
}

void bsw_exact_pairs_close(struct bsw_exact_pairs *pairs)
{
    bsw_free(&pairs->query);
    bsw_free(&pairs->raw);
    bsw_vectors_close(&pairs->queries);
    bsw_vectors_close(&pairs->base);
}

enum bsw_status bsw_exact_pairs_take_query(struct bsw_exact_pairs *pairs, uint64_t query,
                                           struct bsw_error *err)
{
    size_t dims = bsw_vectors_dims(pairs->queries);
    BSW_TRY(bsw_vectors_read(pairs->queries, bsw_vectors_first_row(pairs->queries) + query, 1,
                             pairs->raw, err));
    pairs->refine->to_double(bsw_vectors_type(pairs->queries), pairs->raw, dims, pairs->query);
    pairs->query_norm = pairs->refine->squared_norm(pairs->query, dims);
    return BSW_OK;
}

enum bsw_status bsw_exact_pairs_values(struct bsw_exact_pairs *pairs, const int64_t *ids,
                                       size_t count, double *values, struct bsw_error *err)
{
    size_t dims = bsw_vectors_dims(pairs->base);
    for (size_t i = 0; i < count; i++) {
        values[i] = NAN;
        if (ids[i] < 0) continue;
        BSW_TRY(bsw_vectors_read(pairs->base, (uint64_t)ids[i], 1, pairs->raw, err));
        values[i] = pairs->refine->value(pairs->metric, bsw_vectors_type(pairs->base), pairs->raw,
                                         pairs->query, pairs->query_norm, dims);
    }
    return BSW_OK;
}

enum bsw_status bsw_exact_pairs_judge(struct bsw_exact_pairs *pairs, uint64_t query,
                                      const struct bsw_recall *recall, double *values,
                                      struct bsw_recall_query *out, struct bsw_error *err)
{
    out->values = values;
    BSW_TRY(bsw_exact_pairs_take_query(pairs, query, err));
    BSW_TRY(bsw_exact_pairs_values(pairs, out->ids, recall->width, values, err));
    BSW_TRY(bsw_exact_pairs_values(pairs, out->true_ids, 1, &out->first_value, err));
    return bsw_exact_pairs_values(pairs, out->true_ids + recall->k - 1, 1, &out->last_value, err);
}

enum bsw_status bsw_exact_pairs_check(const struct bsw_exact_pairs *pairs, const char *file,
                                      const struct bsw_results *results, struct bsw_error *err)
{
    uint64_t num_rows = bsw_vectors_source_rows(pairs->base);
    for (size_t i = 0; i < (size_t)(results->num_queries * results->k); i++) {
        if (results->ids[i] < 0 || (uint64_t)results->ids[i] < num_rows) continue;
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: query %llu has id %lld, %s has %llu rows",
                        file, (unsigned long long)(i / results->k), (long long)results->ids[i],
                        bsw_vectors_name(pairs->base), (unsigned long long)num_rows);
    }
    return BSW_OK;
}
