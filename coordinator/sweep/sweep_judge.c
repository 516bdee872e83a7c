#include "coordinator/sweep/sweep_judge.h"

#include "coordinator/truth/recall.h"

static enum bsw_status check_truth(const struct bsw_sweep_judge *judge, const char *path,
                                   uint64_t num_queries, struct bsw_error *err)
{
    const struct bsw_results *truth = &judge->truth;
    if (truth->num_queries != num_queries)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %llu queries, the sweep has %llu", path,
                        (unsigned long long)truth->num_queries, (unsigned long long)num_queries);
    return judge->counts_ties ? bsw_exact_pairs_check(&judge->pairs, path, truth, err) : BSW_OK;
}

enum bsw_status bsw_sweep_judge_open(struct bsw_sweep_judge *judge, const char *path,
                                     const struct bsw_sweep_settings *s, uint64_t num_queries,
                                     enum bsw_metric metric, struct bsw_error *err)
{
    *judge = (struct bsw_sweep_judge){.counts_ties = s->counts_ties};
    BSW_TRY(bsw_results_read(path, &judge->truth, err));
    if (s->counts_ties)
        BSW_TRY(bsw_exact_pairs_open(&judge->pairs, s->base, s->queries, BSW_ALL_ROWS, metric,
                                     s->level, err));
    return check_truth(judge, path, num_queries, err);
}

void bsw_sweep_judge_close(struct bsw_sweep_judge *judge)
{
    bsw_exact_pairs_close(&judge->pairs);
    bsw_results_deinit(&judge->truth);
    *judge = (struct bsw_sweep_judge){0};
}

static enum bsw_status count(struct bsw_sweep_judge *judge,
                             const struct bsw_memory_answers *answers, double *values,
                             struct bsw_recall *recall, struct bsw_error *err)
{
    for (uint64_t place = 0; place < answers->num_queries; place++) {
        struct bsw_recall_query query = {.true_ids = judge->truth.ids + place * judge->truth.k,
                                         .ids = answers->ids + place * answers->k};
        if (judge->counts_ties)
            BSW_TRY(bsw_exact_pairs_judge(&judge->pairs, place, recall, values, &query, err));
        bsw_recall_add(recall, &query);
    }
    return BSW_OK;
}

enum bsw_status bsw_sweep_judge_recall(struct bsw_sweep_judge *judge,
                                       const struct bsw_memory_answers *answers, uint64_t k,
                                       double *out, struct bsw_error *err)
{
    struct bsw_recall recall = {0};
    double *values = NULL;
    enum bsw_status status =
        bsw_allocate(&values, (size_t)answers->k, sizeof *values, "values", err);
    if (status == BSW_OK) status = bsw_recall_init(&recall, (size_t)k, (size_t)answers->k, err);
    if (status == BSW_OK) status = count(judge, answers, values, &recall, err);
    if (status == BSW_OK)
        *out = (judge->counts_ties ? bsw_recall_with_ties
                                   : bsw_recall_by_ids)(&recall, bsw_recall_widest(&recall));
    bsw_recall_deinit(&recall);
    bsw_free(&values);
    return status;
}
