// SPDX-License-Identifier: Apache-2.0
// The frame that saq learns from the sample. Runs on rank 0 with one BLAS thread; after it,
// encoding is a function of the result.
//
// saq is segmented adaptive quantization (Li et al., SIGMOD 2026, arXiv 2509.12086) with one scale
// a document, as in RaBitQ: mean, principal axes, bits to groups of 32 dimensions by the error they
// remove, a random rotation inside each segment, one relative step a segment.
#ifndef BITSWEEP_SHARD_SAQ_TRAINING_H
#define BITSWEEP_SHARD_SAQ_TRAINING_H

#include "common/files/index_manifest.h"
#include "shard/codecs/sample.h"

// Mean squared error of the best uniform quantizer of a unit Gaussian with 0 to 8 bits (Max 1960).
extern const double bsw_quantizer_errors[BSW_MAX_CODE_BITS + 1];

// Half the step of that quantizer.
extern const double bsw_quantizer_half_steps[BSW_MAX_CODE_BITS + 1];

struct bsw_saq_training {
    double bits;          // average asked for, 1 .. 8
    const char *segments; // "auto" or "32x4,96x2"
    int random_axes;
    uint64_t seed;      // of the rotations
    int may_leave_axes; // "auto": axes may have no bits
};

// Fills the manifest's part (codec_saq.h), layout and stage_dims (half of them; see
// stage_choice.h); its metric is set.
enum bsw_status bsw_train_saq_frame(struct bsw_sample *sample,
                                    const struct bsw_saq_training *training,
                                    struct bsw_manifest *manifest, struct bsw_error *err);

// The frame of the index in `folder`, which must be of saq, the manifest's metric and `dims`
// dimensions (else BSW_ERROR_USAGE), in place of training.
enum bsw_status bsw_adopt_frame(const char *folder, uint32_t dims, struct bsw_manifest *manifest,
                                struct bsw_error *err);

// Powers of two for the stored halves: the sample's largest scale comes to lie at 2^7 to 2^8, so
// that rows 256 times as long still fit; longer ones saturate (their estimate is too small, never
// infinite).
enum bsw_status bsw_train_saq_exponents(struct bsw_sample *sample, struct bsw_manifest *manifest,
                                        struct bsw_error *err);

// Bits for groups of 32 dimensions of given energies (descending), `least` each, 0 or 1: each
// further bit goes to the group where it removes most squared error, up to floor(bits * dims) in
// all; equal neighbours merge into a segment. The layout ends where groups have no bits.
enum bsw_status bsw_allocate_bits(const double *energies, uint32_t dims, double bits,
                                  uint32_t least, struct bsw_code_layout *out,
                                  struct bsw_error *err);

// As bsw_code_layout_parse, of fewer dims where the last segment has no bits: "32x3,64x0".
enum bsw_status bsw_saq_parse_segments(const char *text, uint32_t dims, struct bsw_code_layout *out,
                                       struct bsw_error *err);

#endif
