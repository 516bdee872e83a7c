// SPDX-License-Identifier: Apache-2.0
// Training of rbe: mini-batches of pairs, softmax loss against cross-sampled negatives, Adam.
//
// Every rank takes an equal slice of each mini-batch and cuts it into groups of some 128 pairs; a
// pair's negatives are documents of its own group, at shifts drawn anew for each group and batch.
// A group is forward, loss and backward by one thread with a single-threaded BLAS, and gradients
// are added in the order of groups, then of ranks: so the weights depend on the number of ranks,
// never on the number of threads. Rank 0 updates and sends the parameters to all.
//
// After each epoch rank 0 also judges the held-out pairs by ROC AUC, at the end by recall
// (rbe_quality.h).
//
// Every choice (held-out pairs, order of an epoch, shifts, first weights) is an integer hash of the
// seed. On one machine the same call gives the same bits, resumed or not; another machine's BLAS
// may round otherwise.
//
// Cost: a pair takes some 6 * code_dims * dims * (2 + 2 * (u + v)) multiply-adds; 288 dims to 64 in
// 3 and 2 planes, 0.9 M. A rank sends and gets all parameters once a batch.
#ifndef BITSWEEP_COORDINATOR_RBE_TRAINING_H
#define BITSWEEP_COORDINATOR_RBE_TRAINING_H

#include <stddef.h>
#include <stdint.h>

#include "common/net/transport.h"
#include "coordinator/train/rbe_checkpoint.h"
#include "kernels/rbe/rbe_loss.h"
#include "kernels/rbe/rbe_model_file.h"
#include "kernels/text/text_network.h"

#define BSW_RBE_GROUP_PAIRS 128

// First weights.
enum bsw_rbe_start {
    BSW_RBE_START_RANDOM,    // random, each side its own: the paper's
    BSW_RBE_START_QUANTIZER, // rbe_start.h, both sides the same
    BSW_RBE_START_PRINCIPAL, // rbe_first_weights.h, for the loss of similarities
    BSW_RBE_START_AUTO,      // train.h alone: one of these, by loss and inputs
    BSW_RBE_START_SAME       // random, both sides the same
};

static inline int bsw_rbe_start_is_random(enum bsw_rbe_start start)
{
    return start == BSW_RBE_START_RANDOM || start == BSW_RBE_START_SAME;
}

struct bsw_rbe_pair_text {
    const char *text;
    size_t bytes;
};

// Pairs of inputs, as the model wants them. One tenant: each function has one, rbe_pair_source.h
// reads vectors and text_pairs.h texts; tests have made-up ones.
struct bsw_rbe_pairs {
    void *context;
    uint64_t num_pairs;
    // How documents were scaled, for the loss of similarities: input = (x * factor - mean) * scale
    const float *mean; // [dims]
    float scale;
    // NULL, or [num_pairs]: 1 for a pair that shares a row with the held-out pairs, so must not be
    // trained on. Called once after the split; held_out [num_held_out] are pairs.
    enum bsw_status (*exclude)(void *context, const uint64_t *held_out, uint64_t num_held_out,
                               unsigned char *is_excluded, struct bsw_error *err);
    // Inputs of a pair, [dims] each. draw: another number each epoch, for a pair that is one of
    // several. Called by several threads at once.
    enum bsw_status (*read)(void *context, uint64_t pair, uint64_t draw, float *query,
                            float *document, struct bsw_error *err);
    // In its place, where a text network makes the inputs: the texts of both sides, inside buffer,
    // which a thread uses again.
    enum bsw_status (*read_texts)(void *context, uint64_t pair, struct bsw_buffer *buffer,
                                  struct bsw_rbe_pair_text texts[BSW_RBE_NUM_SIDES],
                                  struct bsw_error *err);
};

struct bsw_rbe_training_options {
    struct bsw_rbe_shape shapes[BSW_RBE_NUM_SIDES];
    enum bsw_rbe_estimator estimator;
    int has_float_queries; // the query's side is smooth, of no steps
    double slope_growth;   // annealing: the slope is this to the power of the epoch
    double gamma, rate;
    double decay;      // the rate is multiplied by it after each epoch
    double validation; // share of the pairs held out, 0 .. 0.9
    uint64_t negatives, batch_pairs, epochs, patience, seed; // patience 0: never stops early
    enum bsw_rbe_start start;
    double input_rms;     // root mean square of the components of inputs, for the quantizer
    int has_similarities; // the loss: rbe_loss.h

    // NULL, or of the text network in front, which is trained, too: its parameters are behind those
    // of the sides, the query's first. Borrowed.
    const struct bsw_text_vocabulary *vocabulary;

    int has_near_negatives;      // groups are cells of near queries (rbe_pair_source.h), not random
                                 // pairs; also of those held out
    uint64_t most_batches;       // of this call; 0: no limit
    uint64_t checkpoint_batches; // between checkpoints; 0: at the ends of epochs alone
    const char *checkpoint;      // NULL: none
    int is_resumed;
    uint64_t input_digest; // of what the pairs are made of, for the checkpoint's settings
    int is_shown;          // progress on stderr
};

// All parameters, and where the text network's of a side begin among them.
size_t bsw_rbe_training_parameters(const struct bsw_rbe_training_options *options);
size_t bsw_rbe_training_text_offset(const struct bsw_rbe_training_options *options, int side);

// Recall of held-out queries among held-out documents: rbe_quality.h.
#define BSW_RBE_NUM_RECALLS 3
extern const uint32_t bsw_rbe_recall_ranks[BSW_RBE_NUM_RECALLS]; // 1, 10, 100

struct bsw_rbe_recall {
    size_t num_documents; // 0: nothing is held out
    double shares[BSW_RBE_NUM_RECALLS];
};

struct bsw_rbe_training_result {
    // On rank 0 alone; bsw_rbe_state_deinit frees. best_parameters are those of the best epoch, or
    // of the last batch if no epoch was finished.
    struct bsw_rbe_state state;
    struct bsw_rbe_recall recall;       // of best_parameters, rank 0 alone
    uint64_t num_trained, num_held_out; // pairs
    // Loss of similarities: of documents of some pairs, the largest scale of integer components.
    double largest_scale;
    double first_roc_auc; // where no epoch is the best one: of best_parameters
    int is_stopped_early;
};

// Called by all ranks with the same arguments. BSW_ERROR_USAGE: too few pairs for the split, the
// batch or the negatives, or a checkpoint of other settings. A loss or gradient that is not finite
// is BSW_ERROR_BAD_DATA naming epoch and batch; the last checkpoint stays. Ends with an agreement.
enum bsw_status bsw_rbe_train(const struct bsw_rbe_training_options *options,
                              const struct bsw_rbe_pairs *pairs, struct bsw_transport *transport,
                              struct bsw_rbe_training_result *out, struct bsw_error *err);

#endif
