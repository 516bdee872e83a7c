// SPDX-License-Identifier: Apache-2.0
// One group of pairs of a training of rbe: read, forward, loss, backward, by one thread.
#ifndef BITSWEEP_COORDINATOR_RBE_GROUP_H
#define BITSWEEP_COORDINATOR_RBE_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include "coordinator/train/rbe_training.h"

// Scratch of a thread.
struct bsw_rbe_worker {
    const struct bsw_rbe_training_options *options; // borrowed, as pairs
    const struct bsw_rbe_pairs *pairs;
    struct bsw_rbe_pass passes[BSW_RBE_NUM_SIDES];
    float *memory;
    struct bsw_text_pass texts[BSW_RBE_NUM_SIDES]; // with a text network alone
    struct bsw_buffer text;
    float *input_gradient;               // [max_pairs][dims], likewise
    float *inputs[BSW_RBE_NUM_SIDES];    // [max_pairs][dims]
    float *gradients[BSW_RBE_NUM_SIDES]; // [max_pairs][code_dims]
    size_t *shifts;                      // [negatives]
    float *scratch;                      // of the loss
    float *exact;                        // [max_pairs][max_pairs]; with similarities alone
    float *weights[BSW_RBE_NUM_SIDES];   // [max_pairs] each, likewise: scales of codes
    float *offsets;                      // [max_pairs], likewise: biases of documents
    float *projected;                    // [max_pairs][code_dims], likewise
};

enum bsw_status bsw_rbe_worker_init(const struct bsw_rbe_training_options *options,
                                    const struct bsw_rbe_pairs *pairs, size_t max_pairs,
                                    struct bsw_rbe_worker *out, struct bsw_error *err);
void bsw_rbe_worker_deinit(struct bsw_rbe_worker *worker);

struct bsw_rbe_group {
    const uint64_t *pairs; // [num_pairs], ids
    size_t num_pairs;      // above the negatives
    uint64_t draw, shift_seed;
    float slope;
};

// Both sides' outputs [num_pairs][code_dims], in the worker until its next call.
enum bsw_status bsw_rbe_group_forward(struct bsw_rbe_worker *worker, const float *parameters,
                                      const struct bsw_rbe_group *group,
                                      const float *outputs[BSW_RBE_NUM_SIDES],
                                      struct bsw_error *err);

// *loss: mean over the pairs. gradient: NULL, or [both sides' parameters], overwritten with share *
// the gradient of the loss.
enum bsw_status bsw_rbe_group_run(struct bsw_rbe_worker *worker, const float *parameters,
                                  const struct bsw_rbe_group *group, float share, float *gradient,
                                  double *loss, struct bsw_error *err);

// The largest scale that the group's documents get (rbe_coders.h), for integer components. Only for
// the loss of similarities.
enum bsw_status bsw_rbe_group_largest_scale(struct bsw_rbe_worker *worker, const float *parameters,
                                            const struct bsw_rbe_group *group, double *largest,
                                            struct bsw_error *err);

// Different numbers in 1 .. num_pairs - 1, count of them.
void bsw_rbe_draw_shifts(uint64_t seed, size_t num_pairs, size_t count, size_t *shifts);

#endif
