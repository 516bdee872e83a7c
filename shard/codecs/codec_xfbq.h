// SPDX-License-Identifier: Apache-2.0
// xfbq's own part of a manifest: the rotation of its rows, and rows rotated by it.
//
// A rotated row is R x as the kernels of saq make it, of a frame whose mean is 0: the same bits on
// every CPU level and on devices.
#ifndef BITSWEEP_SHARD_CODEC_XFBQ_H
#define BITSWEEP_SHARD_CODEC_XFBQ_H

#include "common/files/index_manifest.h"
#include "kernels/encode/encode.h"

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

#endif
