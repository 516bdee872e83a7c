// SPDX-License-Identifier: Apache-2.0
// What xfbq learns from the sample: its scale, and whether rows are rotated.
//
// The paper multiplies rows by a random orthogonal matrix where some components are large. Whether
// they are is tried: 3-bit codes of the sample, by their own scale, with and without. The rotation
// stays if it leaves less than 0.9 of the squared error: on SIFT, whose components are uneven,
// 0.44; on word and image embeddings, which look like Gaussians either way, 0.98 to 1; of even
// components, which a rotation makes Gaussian, 2. The bits that are asked for do not matter.
#ifndef BITSWEEP_SHARD_XFBQ_TRAINING_H
#define BITSWEEP_SHARD_XFBQ_TRAINING_H

#include "shard/codecs/codec.h"

// Sets codec_number, rule and part of a manifest whose layout is set. settings: rotation "random",
// "none", or NULL: whichever is better, "none" beyond BSW_XFBQ_MAX_ROTATED_DIMS; scale; seed.
enum bsw_status bsw_train_xfbq(const struct bsw_codec_settings *settings, struct bsw_sample *sample,
                               struct bsw_manifest *manifest, struct bsw_error *err);

#endif
