// SPDX-License-Identifier: Apache-2.0
// The loss of a group of pairs, and its gradient with respect to the codes of both sides.
//
// Query i meets document i and num_negatives others, cross-sampled: documents (i + shifts[r]) mod
// num_rows. P is the softmax of gamma * score over them.
//   pairs           score = cosine of the codes, loss = -log P(document i): Eq. 1 to 3 of the paper
//   similarities    rows of one space, whose order the codes are to keep: score estimates a
//                   similarity, T is the softmax of gamma * the exact one, and
//                   loss = sum of T log(T / P): 0 where all estimates are right
#ifndef BITSWEEP_KERNELS_RBE_LOSS_H
#define BITSWEEP_KERNELS_RBE_LOSS_H

#include <stddef.h>

#define BSW_RBE_MAX_NEGATIVES 1024

// Query i with document j: score = offsets[j] + query_weights[i] * document_weights[j] * dot of
// their codes. A weight divides by what the code has along a direction, so it takes that part of
// the gradient away; else weights and offsets count as constants.
struct bsw_rbe_similarities {
    const float *exact;                            // [num_rows][num_rows]: what scores estimate
    const float *query_weights, *document_weights; // [num_rows]
    const float *offsets;                          // [num_rows]
    // [num_rows][code_dims]: of a document's weight; a query's is its code.
    const float *directions;
};

struct bsw_rbe_loss_group {
    const float *queries, *documents; // [num_rows][code_dims]; a row of zeros counts as norm 1
    size_t num_rows, code_dims;
    const size_t *shifts; // [num_negatives], different, 1 .. num_rows - 1
    size_t num_negatives; // 1 .. BSW_RBE_MAX_NEGATIVES
    float gamma;
    const struct bsw_rbe_similarities *similarities; // NULL: the paper's loss
};

static inline size_t bsw_rbe_loss_scratch_floats(size_t num_rows)
{
    return num_rows * (num_rows + 6);
}

// Returns the mean loss; gradients [num_rows][code_dims] are overwritten with its.
double bsw_rbe_loss(const struct bsw_rbe_loss_group *group, float *scratch, float *query_gradient,
                    float *document_gradient);

#endif
