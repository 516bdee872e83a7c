// SPDX-License-Identifier: Apache-2.0
// select on Arm: a bundle of 32 rows is eight registers.
#include <arm_neon.h>

#include "kernels/neon_mask.h"
#include "kernels/select/select_queue.h"
#include "kernels/select/select_quick.h"

#define INLINE static inline __attribute__((always_inline))

#define LANES  4
typedef float32x4_t bundle_keys[32 / LANES];

INLINE void scores_of(const bundle_keys keys, uint32_t scores[32])
{
    float all[32];
    for (size_t g = 0; g < 8; g++) vst1q_f32(all + 4 * g, vaddq_f32(keys[g], vdupq_n_f32(0.0f)));
    for (size_t lane = 0; lane < 32; lane++) scores[lane] = bsw_score_from_float(all[lane]);
}

// Bits of the rows of a bundle whose dot is at least `least`.
INLINE uint32_t dots_reaching(const int32_t *dots, int32_t least)
{
    uint32x4_t reached[8];
    for (size_t g = 0; g < 8; g++)
        reached[g] = vcgeq_s32(vld1q_s32(dots + 4 * g), vdupq_n_s32(least));
    return bsw_neon_word_mask(reached);
}

INLINE float32x4_t load_halves(const uint16_t *halves)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(halves)));
}

INLINE float32x4_t scaled_dots(const int32_t *dots, const uint16_t *scales)
{
    return vmulq_f32(load_halves(scales), vcvtq_f32_s32(vld1q_s32(dots)));
}

// Keys of a bundle, and which are at least `least`.
INLINE uint32_t keys_reaching(const int32_t *dots, const uint16_t *scales, const float *biases,
                              float query_scale, float least, bundle_keys keys)
{
    uint32x4_t reached[8];
    for (size_t g = 0, i = 0; g < 8; g++, i += 4) {
        keys[g] = vfmaq_f32(vld1q_f32(biases + i), vdupq_n_f32(query_scale),
                            scaled_dots(dots + i, scales + i));
        reached[g] = vcgeq_f32(keys[g], vdupq_n_f32(least));
    }
    return bsw_neon_word_mask(reached);
}

// Which bounds of filter_reach are at least `least`.
INLINE uint32_t bounds_reaching(const int32_t *dots, const uint16_t *scales, const float *biases,
                                const uint16_t *tails, float query_scale, float reach, float least)
{
    uint32x4_t reached[8];
    for (size_t g = 0, i = 0; g < 8; g++, i += 4) {
        float32x4_t most =
            vfmaq_f32(vld1q_f32(biases + i), vdupq_n_f32(reach), load_halves(tails + i));
        float32x4_t bounds =
            vfmaq_f32(most, vdupq_n_f32(query_scale), scaled_dots(dots + i, scales + i));
        reached[g] = vcgeq_f32(bounds, vdupq_n_f32(least));
    }
    return bsw_neon_word_mask(reached);
}

// Without a branch: both sides are written, the one that it belongs to moves on.
INLINE size_t partition(const uint64_t *source, size_t n, uint64_t pivot, uint64_t *winners,
                        uint64_t *losers)
{
    size_t num_winners = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t value = source[i];
        winners[num_winners] = value;
        losers[i - num_winners] = value;
        num_winners += value >= pivot;
    }
    return num_winners;
}

static void put_lanes(const uint64_t *candidates, size_t queue_length, uint64_t *queues)
{
    uint64x2_t values[4];
    for (size_t g = 0; g < 4; g++) values[g] = vld1q_u64(candidates + 2 * g);
    for (size_t slot = 0; slot < queue_length; slot++, queues += BSW_QUEUE_THREADS) {
        for (size_t g = 0; g < 4; g++) {
            uint64x2_t other = vld1q_u64(queues + 2 * g), wins = vcgtq_u64(values[g], other);
            vst1q_u64(queues + 2 * g, vbslq_u64(wins, values[g], other));
            values[g] = vbslq_u64(wins, other, values[g]);
        }
    }
}

#include "kernels/select/select_bundles.h"

const struct bsw_select_table bsw_select_neon = {
    .level = "neon",
    .filter_integer = filter_integer,
    .filter_affine = filter_affine,
    .filter_reach = filter_reach,
    .filter_places = bsw_filter_places,
    .queue_insert = queue_insert,
    .keep_best = keep_best,
    .keep_exact = keep_exact,
};
