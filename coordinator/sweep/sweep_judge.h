// Recall of answers in memory by a ground truth in a file, on rank 0.
#ifndef BITSWEEP_COORDINATOR_SWEEP_JUDGE_H
#define BITSWEEP_COORDINATOR_SWEEP_JUDGE_H

#include "common/files/result_file.h"
#include "coordinator/job/memory_answers.h"
#include "coordinator/sweep/sweep_step.h"
#include "coordinator/truth/exact_pairs.h"

// {0} is closed.
struct bsw_sweep_judge {
    struct bsw_results truth;
    int counts_ties; // by exact values: as `eval --base`
    struct bsw_exact_pairs pairs;
};

// path: of the ground truth; the settings' base and queries are for ties. A ground truth of another
// number of queries, or with ids that base does not have, is BSW_ERROR_BAD_DATA. To be closed also
// after an error.
enum bsw_status bsw_sweep_judge_open(struct bsw_sweep_judge *judge, const char *path,
                                     const struct bsw_sweep_settings *settings,
                                     uint64_t num_queries, enum bsw_metric metric,
                                     struct bsw_error *err);
void bsw_sweep_judge_close(struct bsw_sweep_judge *judge);

// k-recall@answers->k; 1 <= k <= neighbours of the truth. 0 .. 1.
enum bsw_status bsw_sweep_judge_recall(struct bsw_sweep_judge *judge,
                                       const struct bsw_memory_answers *answers, uint64_t k,
                                       double *recall, struct bsw_error *err);

#endif
