// SPDX-License-Identifier: Apache-2.0
// rbe's own part of a manifest: what it says of the model that its codes are made with.
#ifndef BITSWEEP_SHARD_CODEC_RBE_H
#define BITSWEEP_SHARD_CODEC_RBE_H

#include "common/files/index_manifest.h"
#include "kernels/rbe/rbe_coders.h"

struct bsw_rbe_part {
    uint64_t model_digest;
    uint32_t query_planes;
    const struct bsw_rbe_coders *coders; // borrowed, not in the file: set by who codes rows
};

static inline struct bsw_rbe_part *bsw_rbe_part_of(const struct bsw_manifest *manifest)
{
    return (struct bsw_rbe_part *)manifest->part;
}

// What the manifest says of the model; coders are borrowed.
enum bsw_status bsw_rbe_describe(const struct bsw_rbe_coders *coders, struct bsw_manifest *manifest,
                                 struct bsw_error *err);

#endif
