// SPDX-License-Identifier: Apache-2.0
// train: a model of rbe from pairs of vectors (rbe_pair_source.h) or of texts (text_pairs.h),
// trained by all ranks (rbe_training.h), written by rank 0.
//
// The library under the command: it takes settings, prints nothing but progress where it is asked
// to, installs no signal handlers.
#ifndef BITSWEEP_COORDINATOR_TRAIN_H
#define BITSWEEP_COORDINATOR_TRAIN_H

#include <stdint.h>

#include "common/net/transport.h"
#include "coordinator/train/rbe_pair_source.h"
#include "coordinator/train/rbe_training.h"
#include "coordinator/train/text_pairs.h"

enum bsw_train_loss { BSW_TRAIN_LOSS_AUTO, BSW_TRAIN_LOSS_PAIRS, BSW_TRAIN_LOSS_SIMILARITIES };

// The same on all ranks but for level and is_shown. Texts are borrowed. What the help of the
// command's option says holds for the field; ranges are those of its table. 0 stands for the loss's
// and the start's neighbours, negatives, epochs, gamma and rate.
struct bsw_train_settings {
    struct bsw_rbe_pair_options pairs;        // but seed, metric, input_rms, is_one_space, is_shown
    struct bsw_rbe_training_options training; // but for shapes, input_rms, has_similarities, digest
    const char *model, *plot;                 // files to write; plot may be NULL
    const char *metric;                       // NULL: as base says, or cosine
    const char *text;                         // pairs of texts in place of all of `pairs`; or NULL
    uint64_t trigrams, text_dims;
    int is_hashed;
    enum bsw_train_loss loss;
    uint64_t code_dims, query_planes, document_planes;
    int is_shared, has_no_weights, force;
};

// Defaults of the command.
#define BSW_TRAIN_SAMPLE             32768
#define BSW_TRAIN_BATCH              512
#define BSW_TRAIN_PATIENCE           5
#define BSW_TRAIN_SEED               1
#define BSW_TRAIN_CHECKPOINT_BATCHES 1000
#define BSW_TRAIN_DECAY              0.93
#define BSW_TRAIN_SLOPE_GROWTH       1.1
#define BSW_TRAIN_VALIDATION         0.05
#define BSW_TRAIN_TRIGRAMS           49292
#define BSW_TRAIN_TEXT_DIMS          288

// All of these, and AUTO or 0; no files, no shape.
struct bsw_train_settings bsw_train_settings_default(void);

// On rank 0. On the others only what they know.
struct bsw_train_stats {
    enum bsw_metric metric;
    struct bsw_rbe_shape shapes[BSW_RBE_NUM_SIDES];
    uint32_t num_grams;           // 0: no text network
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

#endif
