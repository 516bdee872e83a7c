// What xfbq learns from the sample.
#ifndef BITSWEEP_SHARD_CODEC_XFBQ_H
#define BITSWEEP_SHARD_CODEC_XFBQ_H

#include "shard/codecs/sample.h"

// The scale of `--scale auto`: 1 / (0.98 quantile of |x_i| over the sample's unit rows); if that
// quantile is 0 or subnormal, the largest |x_i| takes its place.
enum bsw_status bsw_train_xfbq_scale(struct bsw_sample *sample, float *scale,
                                     struct bsw_error *err);

#endif
