// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sweep/sweep_judge.h"

enum bsw_status bsw_sweep_judge_open(struct bsw_evaluation *judge, const char *path,
                                     const struct bsw_sweep_settings *s, uint64_t num_queries,
                                     enum bsw_metric metric, struct bsw_error *err)
{
    const struct bsw_results *truth = &judge->truth;
    *judge = (struct bsw_evaluation){.ties = s->counts_ties ? BSW_TIES_EXACT : BSW_TIES_NONE};
    BSW_TRY(bsw_results_read(path, &judge->truth, err));
    if (s->counts_ties)
        BSW_TRY(bsw_exact_pairs_open(&judge->pairs, s->base, s->queries, BSW_ALL_ROWS, metric,
                                     s->level, err));
    if (truth->num_queries != num_queries)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %llu queries, the sweep has %llu", path,
                        (unsigned long long)truth->num_queries, (unsigned long long)num_queries);
    return s->counts_ties ? bsw_exact_pairs_check(&judge->pairs, path, truth, err) : BSW_OK;
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
