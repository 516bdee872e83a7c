// SPDX-License-Identifier: Apache-2.0
// The first stage of a progressive scan: what its dimensions say of a row at most.
//
// With dot1 the stage's part of dot, the rest of a row's key is at most scale_q * |scale_d * dot of
// the rest| <= reach_q * tail_d (Cauchy-Schwarz; tails are rounded up when encoded, reaches here).
// Key and bound are sums of a few float32 roundings each; together these take less than
// 2^-20 * (scale_q * scale_d * M + |bias_d|), M the largest |dot| there is, which also bounds
// norm(q) * norm(c). The slack of a tile is twice that for its largest scale and bias, so
// no row that reaches the limit is dropped.
#ifndef BITSWEEP_SHARD_SCAN_STAGE_H
#define BITSWEEP_SHARD_SCAN_STAGE_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/plane_scan/plane_scan.h"
#include "shard/host/shard_scan.h"

// The first stage for a group of queries; arrays [num_queries].
struct bsw_scan_stage {
    uint32_t dims; // padded; 0: none
    size_t num_queries;
    int32_t *constants; // sum over the stage of (2^B - 1) * q
    float *reaches;
    float *weights; // scale_q * M
};

// Bytes of the arrays for num_queries.
static inline size_t bsw_scan_stage_bytes(size_t num_queries)
{
    return num_queries * (sizeof(int32_t) + 2 * sizeof(float));
}

// components: [num_queries][padded_dims], scales [num_queries]: of the queries; memory:
// bsw_scan_stage_bytes, kept.
void bsw_scan_stage_init(const struct bsw_resident_shard *shard, uint32_t query_bits,
                         size_t num_queries, const int8_t *components, const float *scales,
                         void *memory, struct bsw_scan_stage *out);

// The most that any bundle of a tile has.
static inline struct bsw_bundle_most bsw_tile_most(const struct bsw_resident_shard *shard,
                                                   size_t bundle, size_t num_bundles)
{
    struct bsw_bundle_most most = shard->most[bundle];
    for (size_t b = bundle + 1; b < bundle + num_bundles; b++) {
        if (shard->most[b].scale > most.scale) most.scale = shard->most[b].scale;
        if (shard->most[b].bias > most.bias) most.bias = shard->most[b].bias;
    }
    return most;
}

// What the bound of query q must be lowered by in that tile.
static inline float bsw_stage_slack(const struct bsw_scan_stage *stage, size_t q,
                                    struct bsw_bundle_most most)
{
    return 0x1p-19f * (stage->weights[q] * most.scale + most.bias) + 0x1p-120f;
}

// The words of a segment whose padded dimensions lie in [first_dim, last_dim), multiples of 32;
// count may be 0.
static inline struct bsw_word_range bsw_words_between(const struct bsw_segment *segment,
                                                      uint32_t first_dim, uint32_t last_dim)
{
    uint32_t start = segment->padded_dim / 32, end = start + segment->words;
    uint32_t first = first_dim / 32 > start ? first_dim / 32 : start;
    uint32_t last = last_dim / 32 < end ? last_dim / 32 : end;
    return (struct bsw_word_range){first - start, last > first ? last - first : 0};
}

#endif
