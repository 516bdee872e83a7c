// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sweep/sweep_judge.h"

#include <stdlib.h>

// Queries whose answers show whether a ground truth is one.
#define CHECKED_QUERIES 1000

enum bsw_status bsw_sweep_judge_open(struct bsw_evaluation *judge, const char *path,
                                     const struct bsw_sweep_settings *s, uint64_t num_queries,
                                     enum bsw_metric metric, struct bsw_error *err)
{
    const struct bsw_results *truth = &judge->truth;
    *judge = (struct bsw_evaluation){.ties = s->counts_ties ? BSW_TIES_EXACT : BSW_TIES_NONE};
    BSW_TRY(bsw_results_read(path, &judge->truth, err));
    if (s->counts_ties)
        BSW_TRY(bsw_exact_pairs_open(&judge->pairs, s->base, s->queries, s->query_rows, metric,
                                     s->level, err));
    if (truth->num_queries != num_queries)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %llu queries, the sweep has %llu", path,
                        (unsigned long long)truth->num_queries, (unsigned long long)num_queries);
    return s->counts_ties ? bsw_exact_pairs_check(&judge->pairs, path, truth, err) : BSW_OK;
}

static int compare_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

enum bsw_status bsw_sweep_judge_ids(const char *path, const char *base, uint64_t first_row,
                                    uint64_t num_rows, uint64_t k, struct bsw_error *err)
{
    struct bsw_results truth = {0};
    enum bsw_status status = bsw_results_read(path, &truth, err);
    for (uint64_t q = 0; status == BSW_OK && q < truth.num_queries; q++) {
        int64_t *ids = truth.ids + q * truth.k, last;
        unsigned long long query = q;
        qsort(ids, (size_t)k, sizeof *ids, compare_ids);
        last = ids[k - 1];
        if (ids[0] < 0)
            status =
                bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: query %llu has fewer than %llu neighbours",
                         path, query, (unsigned long long)k);
        else if ((uint64_t)last >= first_row + num_rows)
            status = bsw_fail(err, BSW_ERROR_BAD_DATA,
                              "%s: query %llu has id %lld, %s has %llu rows", path, query,
                              (long long)last, base, (unsigned long long)(first_row + num_rows));
        else if ((uint64_t)ids[0] < first_row)
            status = bsw_fail(err, BSW_ERROR_BAD_DATA,
                              "%s: query %llu has id %lld, --rows begins at %llu", path, query,
                              (long long)ids[0], (unsigned long long)first_row);
        for (uint64_t i = 1; status == BSW_OK && i < k; i++) {
            if (ids[i] == ids[i - 1])
                status = bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: query %llu has id %lld twice", path,
                                  query, (long long)ids[i]);
        }
    }
    bsw_results_deinit(&truth);
    return status;
}

enum bsw_status bsw_sweep_judge_check(struct bsw_evaluation *judge, const char *path,
                                      const struct bsw_sweep_settings *s, enum bsw_metric metric,
                                      const struct bsw_results *answers, uint64_t k,
                                      uint64_t *num_nearer, struct bsw_error *err)
{
    const enum bsw_tie_values ties = judge->ties;
    if (!judge->pairs.base)
        BSW_TRY(bsw_exact_pairs_open(&judge->pairs, s->base, s->queries, s->query_rows, metric,
                                     s->level, err));
    judge->results = *answers; // for the call
    if (judge->results.num_queries > CHECKED_QUERIES) judge->results.num_queries = CHECKED_QUERIES;
    uint64_t num_places = judge->results.num_queries * k;
    judge->ties = BSW_TIES_EXACT;
    enum bsw_status status = bsw_evaluation_count(judge, k, err);
    judge->ties = ties;
    judge->results = (struct bsw_results){0};
    *num_nearer = judge->recall.num_nearer;
    if (status != BSW_OK || *num_nearer * 100 <= num_places) return status;
    return bsw_fail(err, BSW_ERROR_BAD_DATA,
                    "%s: a search finds %llu rows that are nearer than its neighbours, at %llu "
                    "places: it is of other rows, another metric or other ids",
                    path, (unsigned long long)*num_nearer, (unsigned long long)num_places);
}

enum bsw_status bsw_sweep_judge_recall(struct bsw_evaluation *judge,
                                       const struct bsw_results *answers, uint64_t k, double *out,
                                       struct bsw_error *err)
{
    const struct bsw_recall *recall = &judge->recall;
    judge->results = *answers; // for the call
    enum bsw_status status = bsw_evaluation_count(judge, k, err);
    judge->results = (struct bsw_results){0};
    if (status == BSW_OK)
        *out = (judge->ties == BSW_TIES_NONE ? bsw_recall_by_ids : bsw_recall_with_ties)(
            recall, bsw_recall_widest(recall));
    return status;
}
