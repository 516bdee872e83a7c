// SPDX-License-Identifier: Apache-2.0
// The oracle: select.h's definitions row by row, keep_best by a full sort.
#include <math.h>
#include <stdlib.h>

#include "common/codes/half.h"
#include "common/codes/metric.h"
#include "kernels/select/select.h"

static size_t reference_filter_integer(const int32_t *dots, const uint32_t *masks,
                                       size_t num_bundles, uint32_t first_row, uint32_t limit,
                                       uint64_t *out)
{
    size_t count = 0;
    for (size_t i = 0; i < num_bundles * 32; i++) {
        uint32_t score = bsw_score_from_integer(dots[i]);
        if (masks[i / 32] >> i % 32 & 1 && score >= limit)
            out[count++] = bsw_candidate_pack(score, first_row + (uint32_t)i);
    }
    return count;
}

static float affine_key(const uint16_t *scales, const float *biases, float query_scale, size_t row,
                        int32_t dot)
{
    float scaled = bsw_half_to_float(scales[row]) * (float)dot;
    return fmaf(query_scale, scaled, biases[row]) + 0.0f;
}

static size_t reference_filter_affine(const int32_t *dots, const uint16_t *scales,
                                      const float *biases, float query_scale, const uint32_t *masks,
                                      size_t num_bundles, uint32_t first_row, uint32_t limit,
                                      uint64_t *out)
{
    size_t count = 0;
    for (size_t i = 0; i < num_bundles * 32; i++) {
        if (!(masks[i / 32] >> i % 32 & 1)) continue;
        uint32_t score = bsw_score_from_float(affine_key(scales, biases, query_scale, i, dots[i]));
        if (score >= limit) out[count++] = bsw_candidate_pack(score, first_row + (uint32_t)i);
    }
    return count;
}

static size_t reference_filter_reach(const int32_t *dots, const uint16_t *scales,
                                     const float *biases, const uint16_t *tails, float query_scale,
                                     float reach, const uint32_t *masks, size_t num_bundles,
                                     float limit, uint32_t *places)
{
    size_t count = 0;
    for (size_t i = 0; i < num_bundles * 32; i++) {
        if (!(masks[i / 32] >> i % 32 & 1)) continue;
        float scaled = bsw_half_to_float(scales[i]) * (float)dots[i];
        float most = fmaf(reach, bsw_half_to_float(tails[i]), biases[i]);
        if (fmaf(query_scale, scaled, most) >= limit) places[count++] = (uint32_t)i;
    }
    return count;
}

static size_t reference_filter_places(const int32_t *dots, const uint16_t *scales,
                                      const float *biases, float query_scale,
                                      const uint32_t *places, size_t num_places, uint32_t first_row,
                                      uint32_t limit, uint64_t *out)
{
    size_t count = 0;
    for (size_t i = 0; i < num_places; i++) {
        uint32_t row = places[i];
        uint32_t score =
            bsw_score_from_float(affine_key(scales, biases, query_scale, row, dots[row]));
        if (score >= limit) out[count++] = bsw_candidate_pack(score, first_row + row);
    }
    return count;
}

static void reference_queue_insert(const uint64_t *candidates, size_t n, size_t queue_length,
                                   uint64_t *queues)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t *queue = queues + bsw_candidate_row(candidates[i]) % BSW_QUEUE_THREADS;
        size_t place = queue_length;
        while (place > 0 && queue[(place - 1) * BSW_QUEUE_THREADS] < candidates[i]) place--;
        if (place == queue_length) continue;
        for (size_t slot = queue_length - 1; slot > place; slot--)
            queue[slot * BSW_QUEUE_THREADS] = queue[(slot - 1) * BSW_QUEUE_THREADS];
        queue[place * BSW_QUEUE_THREADS] = candidates[i];
    }
}

static int compare_descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

static size_t reference_keep_best(uint64_t *candidates, size_t n, size_t keep, uint64_t *scratch)
{
    (void)scratch;
    if (n > 0) qsort(candidates, n, sizeof *candidates, compare_descending);
    return n < keep ? n : keep;
}

static uint64_t reference_keep_exact(uint64_t *scores, uint32_t *rows, size_t n, size_t keep,
                                     uint64_t *scratch)
{
    size_t above = 0, count = 0;
    memcpy(scratch, scores, n * sizeof *scratch);
    qsort(scratch, n, sizeof *scratch, compare_descending);
    const uint64_t worst = scratch[keep - 1];
    while (scratch[above] > worst) above++;
    for (size_t i = 0, ties = 0; i < n; i++) {
        if (scores[i] < worst || (scores[i] == worst && ties++ >= keep - above)) continue;
        scores[count] = scores[i];
        rows[count++] = rows[i];
    }
    return worst;
}

const struct bsw_select_table bsw_select_reference = {
    .level = "reference",
    .filter_integer = reference_filter_integer,
    .filter_affine = reference_filter_affine,
    .filter_reach = reference_filter_reach,
    .filter_places = reference_filter_places,
    .queue_insert = reference_queue_insert,
    .keep_best = reference_keep_best,
    .keep_exact = reference_keep_exact,
};

BSW_KERNEL_TABLE_GET(select,
                     BSW_KERNEL_AVX2(select) BSW_KERNEL_AVX512(select) BSW_KERNEL_NEON(select))
