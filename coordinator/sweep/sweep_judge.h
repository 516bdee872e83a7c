// SPDX-License-Identifier: Apache-2.0
// Recall of answers in memory by a ground truth in a file, on rank 0.
#ifndef BITSWEEP_COORDINATOR_SWEEP_JUDGE_H
#define BITSWEEP_COORDINATOR_SWEEP_JUDGE_H

#include "coordinator/sweep/sweep_step.h"
#include "coordinator/truth/evaluation.h"

// path: of the ground truth; the settings' base and queries are for ties. A ground truth of another
// number of queries, or with ids that base does not have, is BSW_ERROR_BAD_DATA.
// bsw_evaluation_deinit closes, also after an error.
enum bsw_status bsw_sweep_judge_open(struct bsw_evaluation *judge, const char *path,
                                     const struct bsw_sweep_settings *settings,
                                     uint64_t num_queries, enum bsw_metric metric,
                                     struct bsw_error *err);

// Whether each query of a ground truth has k neighbours, all different ones of the num_rows rows of
// `base`: else BSW_ERROR_BAD_DATA.
enum bsw_status bsw_sweep_judge_ids(const char *path, const char *base, uint64_t first_row,
                                    uint64_t num_rows, uint64_t k, struct bsw_error *err);

// Whether a ground truth, named `path`, can be one: rows of a refined answer that are nearer than
// its k-th neighbour and not among its first k must not be. Some there may be, *num_nearer, where
// it was not computed exactly; more than one place in a hundred of the queries that are looked at
// is BSW_ERROR_BAD_DATA.
enum bsw_status bsw_sweep_judge_check(struct bsw_evaluation *judge, const char *path,
                                      const struct bsw_sweep_settings *settings,
                                      enum bsw_metric metric, const struct bsw_results *answers,
                                      uint64_t k, uint64_t *num_nearer, struct bsw_error *err);

// k-recall@answers->k; 1 <= k <= neighbours of the truth. 0 .. 1.
enum bsw_status bsw_sweep_judge_recall(struct bsw_evaluation *judge,
                                       const struct bsw_results *answers, uint64_t k,
                                       double *recall, struct bsw_error *err);

#endif
