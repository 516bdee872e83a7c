// SPDX-License-Identifier: Apache-2.0
// How well an rbe model tells the documents of held-out pairs from others, by the score of codes
// (cosine, or estimated similarity) as training computes it (so also for models that encode
// refuses). Rank 0 alone: figures depend on the weights, never on ranks or threads.
#ifndef BITSWEEP_COORDINATOR_RBE_QUALITY_H
#define BITSWEEP_COORDINATOR_RBE_QUALITY_H

#include <stddef.h>
#include <stdint.h>

#include "coordinator/train/rbe_group.h"

#define BSW_RBE_AUC_PAIRS    32768 // the first so many held-out pairs at most
#define BSW_RBE_RECALL_PAIRS 4096

struct bsw_rbe_quality {
    const struct bsw_rbe_training_options *options; // borrowed, as held_out and workers
    const uint64_t *held_out;
    size_t num_pairs, group_pairs;
    struct bsw_rbe_worker *workers; // for 2 * group_pairs - 1 rows
    size_t num_workers;
    float *memory; // owned; what follows points into it
    // Planes add up to multiples of a power of 2, so dots and squared norms of them are exact:
    // codes that tie have equal cosines.
    float *codes[BSW_RBE_NUM_SIDES];   // [num_pairs][code_dims]
    float *factors[BSW_RBE_NUM_SIDES]; // [num_pairs]: 1/norm; 1 of a row of zeros; or scales
    float *offsets;                    // [num_pairs]: 0, or biases of documents
    float *positives;                  // [num_pairs]: scores
    float *negatives;                  // [num_pairs][negatives]
};

// Sets the owned fields of a quality whose borrowed ones are set, num_pairs to all held out, which
// it limits. num_pairs 0: nothing to judge, the figures are 0.
enum bsw_status bsw_rbe_quality_init(struct bsw_rbe_quality *quality, struct bsw_error *err);
void bsw_rbe_quality_deinit(struct bsw_rbe_quality *quality);

// *auc: of the scores of all pairs against those of all their negatives, as many a pair as in
// training, other documents of its group_pairs neighbours in held_out; the same each time.
// parameters: of both sides, the query's first.
enum bsw_status bsw_rbe_quality_auc(struct bsw_rbe_quality *quality, const float *parameters,
                                    double *auc, struct bsw_error *err);

// Each query of the first BSW_RBE_RECALL_PAIRS pairs searches the documents of these pairs.
// recall->shares[i]: of the queries whose own document is among the first bsw_rbe_recall_ranks[i];
// of documents that tie any order is as likely, so a share of a query may count.
enum bsw_status bsw_rbe_quality_recall(struct bsw_rbe_quality *quality, const float *parameters,
                                       struct bsw_rbe_recall *recall, struct bsw_error *err);

// Area under the receiver operating characteristic: the chance that a positive scores above a
// negative. Mann and Whitney's count: of all pairs of a positive and a negative, those in which the
// positive is larger, and half of those that tie, over all. Exact but for the last division. Both
// arrays, numbers and no NaN, are sorted in place. 0 if one of them is empty. Cost: that of
// sorting.
double bsw_roc_auc(float *positives, size_t num_positives, float *negatives, size_t num_negatives);

#endif
