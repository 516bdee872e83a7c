// train: a model of rbe from pairs (rbe_pair_source.h), trained by all ranks (rbe_training.h),
// written by rank 0.
//
// The library under the command: it takes settings, prints nothing but progress where it is asked
// to, installs no signal handlers.
#ifndef BITSWEEP_COORDINATOR_TRAIN_H
#define BITSWEEP_COORDINATOR_TRAIN_H

#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/codes/metric.h"
#include "common/net/transport.h"
#include "coordinator/train/rbe_training.h"

#ifdef __cplusplus
extern "C" {
#endif

enum bsw_train_loss { BSW_TRAIN_LOSS_AUTO, BSW_TRAIN_LOSS_PAIRS, BSW_TRAIN_LOSS_SIMILARITIES };
enum bsw_train_start {
    BSW_TRAIN_START_AUTO,
    BSW_TRAIN_START_RANDOM,
    BSW_TRAIN_START_QUANTIZER,
    BSW_TRAIN_START_PRINCIPAL
};

// The same on all ranks but for level and is_shown. Texts are borrowed. What the help of the
// command's option says holds for the field; ranges are those of its table.
struct bsw_train_settings {
    const char *queries, *documents, *base, *groundtruth; // files, or NULL
    const char *model;                                    // file to write
    const char *checkpoint, *plot;                        // files, or NULL
    int has_metric;                                       // else as base says, or cosine
    enum bsw_metric metric;
    enum bsw_rbe_estimator estimator; // BSW_RBE_SMOOTH: a tanh layer, no bits
    enum bsw_train_loss loss;
    enum bsw_train_start start;
    uint64_t neighbours, negatives, epochs; // 0: the loss's and the start's
    double gamma, rate;                     // the same
    uint64_t sample, code_dims, query_planes, document_planes, batch, patience, seed, most_batches,
        checkpoint_batches;
    double decay, slope_growth, validation;
    int is_shared, has_no_weights, is_centered, has_near_negatives;
    int is_resumed, force;
    enum bsw_cpu_level level;
    int is_shown; // progress on stderr
};

// On rank 0. On the others only what they know.
struct bsw_train_stats {
    enum bsw_metric metric;
    struct bsw_rbe_shape shapes[BSW_RBE_NUM_SIDES];
    struct bsw_rbe_origin origin; // as the model has it
    struct bsw_rbe_training_result result;
    uint64_t epochs; // at most
    double pair_seconds, train_seconds;
    int is_drawn; // the plot
};

// Called by all ranks; ends with an agreement, so all return the same. bsw_train_stats_deinit
// frees, also after a failure.
enum bsw_status bsw_train_run(const struct bsw_train_settings *settings,
                              struct bsw_transport *transport, struct bsw_train_stats *stats,
                              struct bsw_error *err);
void bsw_train_stats_deinit(struct bsw_train_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
