// SPDX-License-Identifier: Apache-2.0
// Trains codes on rank 0: everything the manifest says of them, from a sample of the rows or the
// model. Where that is left to the data, codes are trained twice, as residuals and not, and the
// better ones stay; so are codes that a check finds poor, where the codec has another way.
#ifndef BITSWEEP_COORDINATOR_ENCODE_TRAINING_H
#define BITSWEEP_COORDINATOR_ENCODE_TRAINING_H

#include "shard/codecs/codec.h"

// Residuals are another kind of code, with no first stage and something to add for every list: they
// have to find so much more.
#define BSW_RESIDUAL_MARGIN 0.01

// Another way to train has to find so much more of the sample than the usual one.
#define BSW_VARIANT_MARGIN 0.01

struct bsw_encode_training {
    const bsw_vectors *vectors;
    const struct bsw_codec_settings *code;
    const struct bsw_codec_model *model;
    enum bsw_cpu_level level;
    struct bsw_progress *progress;
    int checks_codes;      // sets manifest->check: code_recall.h
    int chooses_residuals; // else as the manifest says
};

// manifest: metric, codec, lists with their centroids.
enum bsw_status bsw_encode_train(const struct bsw_encode_training *training,
                                 struct bsw_manifest *manifest, struct bsw_error *err);

#endif
