// SPDX-License-Identifier: Apache-2.0
// saq's own part of a manifest: the frame that its codes are a function of, besides the row.
#ifndef BITSWEEP_SHARD_CODEC_SAQ_H
#define BITSWEEP_SHARD_CODEC_SAQ_H

#include "common/files/index_manifest.h"
#include "common/files/shard_file.h"
#include "kernels/encode/encode.h"
#include "kernels/tuning/scan_tuning.h"
#include "shard/codecs/sample.h"

#define BSW_SAQ_MAX_DIMS 4096 // the frame is dims^2 floats, its training dims^2 doubles three times

// Codes of some axes alone: rows have more dims than codes. What those leave out of a row is in its
// norm, the bias of l2.
#define BSW_SAQ_FEWER_AXES 1

struct bsw_saq_part {
    float *mean;     // [row dims]; owned
    float *rotation; // [row dims][padded_dims], columns of padding 0; owned
    float steps[BSW_MAX_SEGMENTS];
    char axes[16]; // "principal", "random"
};

static inline struct bsw_saq_part *bsw_saq_part_of(const struct bsw_manifest *manifest)
{
    return (struct bsw_saq_part *)manifest->part;
}

// An empty part, in place of the one there was.
enum bsw_status bsw_saq_part_create(struct bsw_manifest *manifest, struct bsw_error *err);

// The frame of a manifest as the kernels want it; borrows the manifest's arrays.
void bsw_frame_of_manifest(const struct bsw_manifest *manifest, struct bsw_saq_frame *out);

// What a block keeps of `count` rows from row `row` of its arrays on: halves and biases.
// norms, scales, tails, mean_dots: [count], as the kernels of saq give them.
void bsw_store_affine(const struct bsw_manifest *manifest, size_t count, const float *norms,
                      const float *scales, const uint32_t *tails, const float *mean_dots,
                      const struct bsw_code_arrays *arrays, size_t row);

// Whether biases have what codes of residuals leave out of their products with centroids.
static inline int bsw_saq_corrects_lists(const struct bsw_manifest *manifest)
{
    return manifest->lists.is_residual && bsw_has_distances(manifest->metric);
}
// The bias of such a residual, whose scale is stored at `place`. row_norm, mean_dot: of the centred
// row, before its centroid was taken off; exact, coded: products of the centroid in the frame with
// the residual there and with steps * its code.
void bsw_saq_store_bias(const struct bsw_manifest *manifest, float row_norm, float mean_dot,
                        float exact, float coded, const struct bsw_code_arrays *arrays,
                        size_t place);

// Where the first stage of a progressive scan ends: the share of rows that would go on is counted
// on the sample, and the end that costs least, by the tables of `bitsweep bench tune`, is taken.

// Sets manifest->stage_dims, given mean, rotation, layout and metric: a multiple of 32 where a
// stage saves at least a twentieth of the scan, else all dims. Up to 32 rows of the sample serve as
// queries against up to 8,192 others, the best of which stand for the limit: looser than that of a
// larger corpus. The answer depends on the sample alone, not on CPU level or threads.
enum bsw_status bsw_choose_stage(struct bsw_sample *sample, struct bsw_manifest *manifest,
                                 struct bsw_error *err);

// What a scan costs with a stage of `dims`, in dimensions, when a share of half bundles goes on.
double bsw_stage_cost(const struct bsw_scan_tuning *tuning, uint32_t dims, uint32_t padded_dims,
                      double share);

#endif
