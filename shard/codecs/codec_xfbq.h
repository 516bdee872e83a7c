// SPDX-License-Identifier: Apache-2.0
// xfbq's own part of a manifest: the rotation of its rows, and rows rotated by it.
//
// A rotated row is R x as the kernels of saq make it, of a frame whose mean is 0: the same bits on
// every CPU level and on devices.
#ifndef BITSWEEP_SHARD_CODEC_XFBQ_H
#define BITSWEEP_SHARD_CODEC_XFBQ_H

#include "common/files/index_manifest.h"
#include "kernels/encode/encode.h"
#include "shard/codecs/codec.h"

#define BSW_XFBQ_MAX_ROTATED_DIMS 4096 // the matrix is dims^2 floats, in the manifest

// What rule 1 has; rule 0, whose rows are coded as they are, has no part.
struct bsw_xfbq_part {
    float *mean;     // [dims] zeros; owned
    float *rotation; // [dims][padded_dims], columns of padding 0; owned
};

static inline struct bsw_xfbq_part *bsw_xfbq_part_of(const struct bsw_manifest *manifest)
{
    return (struct bsw_xfbq_part *)manifest->part;
}

// Makes the manifest one of rule 1, whose rotation is zeros so far. The layout is set.
enum bsw_status bsw_xfbq_part_create(struct bsw_manifest *manifest, struct bsw_error *err);
// Makes it one of rule 0.
void bsw_xfbq_part_drop(struct bsw_manifest *manifest);

// The frame as the kernels want it, which borrows the manifest's arrays; 0: rows are not rotated.
int bsw_xfbq_frame(const struct bsw_manifest *manifest, struct bsw_saq_frame *out);

// Bytes of scratch that rotating so many rows takes.
size_t bsw_xfbq_rotate_bytes(const struct bsw_code_layout *layout, size_t num_rows);
// rows [num_rows][dims] with their factors, num_rows up to BSW_TILE_MAX_ROWS -> R (row * factor),
// [num_rows][dims] in scratch, which is 64-byte aligned.
float *bsw_xfbq_rotate(const struct bsw_encode_table *kernels, const struct bsw_saq_frame *frame,
                       const float *rows, size_t num_rows, const float *factors, void *scratch);

// ---- training -----------------------------------------------------------------------------------

// What xfbq learns from the sample: its scale, and whether rows are rotated.
//
// The paper multiplies rows by a random orthogonal matrix where some components are large. Whether
// they are is tried: 3-bit codes of the sample, by their own scale, with and without. The rotation
// stays if it leaves less than 0.9 of the squared error: on SIFT, whose components are uneven,
// 0.44; on word and image embeddings, which look like Gaussians either way, 0.98 to 1; of even
// components, which a rotation makes Gaussian, 2. The bits that are asked for do not matter.

// Sets codec_number, rule and part of a manifest whose layout is set. settings: rotation "random",
// "none", or NULL: whichever is better, "none" beyond BSW_XFBQ_MAX_ROTATED_DIMS; scale; seed.
enum bsw_status bsw_train_xfbq(const struct bsw_codec_settings *settings, struct bsw_sample *sample,
                               struct bsw_manifest *manifest, struct bsw_error *err);

#endif
