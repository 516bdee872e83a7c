// A bundle of 32 rows is eight registers; a filter's common case ends at one branch. Rows that pass
// are few once a limit stands, so they are appended one by one.
#include <arm_neon.h>

#include "kernels/neon_mask.h"
#include "kernels/select/select.h"
#include "kernels/select/select_queue.h"
#include "kernels/select/select_quick.h"

// Appends those of 32 rows, first_row on, whose bit in pass is 1.
static inline size_t append32(const uint32_t scores[32], uint32_t pass, uint32_t first_row,
                              uint64_t *out)
{
    size_t count = 0;
    for (; pass; pass &= pass - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(pass);
        out[count++] = bsw_candidate_pack(scores[lane], first_row + lane);
    }
    return count;
}

static size_t neon_filter_integer(const int32_t *dots, const uint32_t *masks, size_t num_bundles,
                                  uint32_t first_row, uint32_t limit, uint64_t *out)
{
    const int32x4_t least = vdupq_n_s32(bsw_score_to_integer(limit));
    uint32_t scores[32];
    size_t count = 0;
    for (size_t b = 0; b < num_bundles; b++) {
        uint32x4_t reached[8];
        for (size_t g = 0; g < 8; g++)
            reached[g] = vcgeq_s32(vld1q_s32(dots + 32 * b + 4 * g), least);
        uint32_t pass = bsw_neon_word_mask(reached) & masks[b];
        if (!pass) continue;
        for (size_t lane = 0; lane < 32; lane++)
            scores[lane] = bsw_score_from_integer(dots[32 * b + lane]);
        count += append32(scores, pass, first_row + (uint32_t)(32 * b), out + count);
    }
    return count;
}

static inline float32x4_t load_halves(const uint16_t *halves)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(halves)));
}

static inline float32x4_t scaled_dots(const int32_t *dots, const uint16_t *scales)
{
    return vmulq_f32(load_halves(scales), vcvtq_f32_s32(vld1q_s32(dots)));
}

static size_t append_keys(const float32x4_t keys[8], uint32_t pass, uint32_t first_row,
                          uint64_t *out)
{
    float all[32];
    uint32_t scores[32];
    for (size_t g = 0; g < 8; g++) vst1q_f32(all + 4 * g, vaddq_f32(keys[g], vdupq_n_f32(0.0f)));
    for (size_t lane = 0; lane < 32; lane++) scores[lane] = bsw_score_from_float(all[lane]);
    return append32(scores, pass, first_row, out);
}

static size_t neon_filter_affine(const int32_t *dots, const uint16_t *scales, const float *biases,
                                 float query_scale, const uint32_t *masks, size_t num_bundles,
                                 uint32_t first_row, uint32_t limit, uint64_t *out)
{
    const float32x4_t least = vdupq_n_f32(bsw_float_limit(limit)), scale = vdupq_n_f32(query_scale);
    size_t count = 0;
    for (size_t b = 0; b < num_bundles; b++) {
        float32x4_t keys[8];
        uint32x4_t reached[8];
        for (size_t g = 0; g < 8; g++) {
            size_t i = 32 * b + 4 * g;
            keys[g] = vfmaq_f32(vld1q_f32(biases + i), scale, scaled_dots(dots + i, scales + i));
            reached[g] = vcgeq_f32(keys[g], least);
        }
        uint32_t pass = bsw_neon_word_mask(reached) & masks[b];
        if (pass) count += append_keys(keys, pass, first_row + (uint32_t)(32 * b), out + count);
    }
    return count;
}

static size_t neon_filter_reach(const int32_t *dots, const uint16_t *scales, const float *biases,
                                const uint16_t *tails, float query_scale, float reach,
                                const uint32_t *masks, size_t num_bundles, float limit,
                                uint32_t *places)
{
    const float32x4_t least = vdupq_n_f32(limit), factor = vdupq_n_f32(query_scale),
                      tail_factor = vdupq_n_f32(reach);
    size_t count = 0;
    for (size_t b = 0; b < num_bundles; b++) {
        uint32x4_t reached[8];
        for (size_t g = 0; g < 8; g++) {
            size_t i = 32 * b + 4 * g;
            float32x4_t most =
                vfmaq_f32(vld1q_f32(biases + i), tail_factor, load_halves(tails + i));
            reached[g] =
                vcgeq_f32(vfmaq_f32(most, factor, scaled_dots(dots + i, scales + i)), least);
        }
        for (uint32_t pass = bsw_neon_word_mask(reached) & masks[b]; pass; pass &= pass - 1)
            places[count++] = (uint32_t)(32 * b) + (uint32_t)__builtin_ctz(pass);
    }
    return count;
}

static void neon_histogram(const int32_t *dots, const uint32_t *masks, size_t num_bundles,
                           int32_t dot_limit, uint64_t *counts)
{
    uint32_t distances[32];
    for (size_t b = 0; b < num_bundles; b++) {
        for (size_t i = 0; i < 32; i++)
            distances[i] = ((uint32_t)dot_limit - (uint32_t)dots[32 * b + i]) >> 1;
        bsw_count_distances(distances, masks[b], counts);
    }
}

// Without a branch: both sides are written, the one that it belongs to moves on.
BSW_QUICK_INLINE size_t neon_partition(const uint64_t *source, size_t n, uint64_t pivot,
                                       uint64_t *winners, uint64_t *losers)
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

static size_t neon_keep_best(uint64_t *candidates, size_t n, size_t keep, uint64_t *scratch)
{
    return bsw_quick_keep(candidates, n, keep, scratch, neon_partition);
}

static uint64_t neon_keep_exact(uint64_t *scores, uint32_t *rows, size_t n, size_t keep,
                                uint64_t *scratch)
{
    const uint64_t worst = bsw_quick_nth(scores, n, keep, scratch, neon_partition);
    size_t above = 0, count = 0;
    for (size_t i = 0; i < n; i++) above += scores[i] > worst;
    size_t ties = keep - above;
    for (size_t i = 0; i < n; i++) { // without a branch
        uint64_t score = scores[i];
        size_t is_tie = score == worst && ties > 0;
        ties -= is_tie;
        scores[count] = score;
        rows[count] = rows[i];
        count += (size_t)(score > worst) | is_tie;
    }
    return worst;
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

static void neon_queue_insert(const uint64_t *candidates, size_t n, size_t queue_length,
                              uint64_t *queues)
{
    bsw_queue_insert(candidates, n, queue_length, queues, put_lanes);
}

const struct bsw_select_table bsw_select_neon = {
    .level = "neon",
    .filter_integer = neon_filter_integer,
    .filter_affine = neon_filter_affine,
    .filter_reach = neon_filter_reach,
    .filter_places = bsw_filter_places,
    .histogram = neon_histogram,
    .queue_insert = neon_queue_insert,
    .keep_best = neon_keep_best,
    .keep_exact = neon_keep_exact,
};
