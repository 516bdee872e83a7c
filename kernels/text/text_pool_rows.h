// SPDX-License-Identifier: Apache-2.0
// The same a word at a time, written so that compilers vectorise over outputs; compiled once for
// each level above the reference. The sums of the last three words go round in scratch.
#ifndef BITSWEEP_KERNELS_TEXT_POOL_ROWS_H
#define BITSWEEP_KERNELS_TEXT_POOL_ROWS_H

#include "kernels/rbe_tanh.h"
#include "kernels/text/text_pool.h"

static inline void bsw_text_sum_word(const struct bsw_text_layer *layer,
                                     const struct bsw_text_ids *text, size_t word,
                                     float *__restrict__ sum)
{
    uint32_t dims = layer->dims;
    for (uint32_t d = 0; d < dims; d++) sum[d] = 0;
    for (uint32_t i = word > 0 ? text->word_ends[word - 1] : 0; i < text->word_ends[word]; i++) {
        const float *row = layer->weights + (size_t)text->ids[i] * dims;
        for (uint32_t d = 0; d < dims; d++) sum[d] += row[d];
    }
}

// The group of these words, of which b and c may be NULL; the first one sets what is largest.
static inline void bsw_text_take_group(uint32_t dims, const float *a, const float *b,
                                       const float *c, uint32_t group, float *__restrict__ sum,
                                       float *__restrict__ largest, uint32_t *__restrict__ groups)
{
    for (uint32_t d = 0; d < dims; d++) sum[d] = a[d];
    for (uint32_t d = 0; b && d < dims; d++) sum[d] += b[d];
    for (uint32_t d = 0; c && d < dims; d++) sum[d] += c[d];
    for (uint32_t d = 0; groups && d < dims; d++)
        groups[d] = group == 0 || sum[d] > largest[d] ? group : groups[d];
    for (uint32_t d = 0; d < dims; d++)
        largest[d] = group == 0 || sum[d] > largest[d] ? sum[d] : largest[d];
}

static inline void bsw_text_pool_text(const struct bsw_text_layer *layer,
                                      const struct bsw_text_ids *text, float *scratch, float *out,
                                      uint32_t *groups)
{
    uint32_t dims = layer->dims;
    float *sum = scratch + (size_t)BSW_TEXT_GROUP_WORDS * dims, *words[BSW_TEXT_GROUP_WORDS];
    for (size_t w = 0; w < BSW_TEXT_GROUP_WORDS; w++) words[w] = scratch + w * dims;
    for (uint32_t d = 0; d < dims; d++) words[0][d] = 0;
    for (size_t w = 0; w < text->num_words; w++) {
        bsw_text_sum_word(layer, text, w, words[w % BSW_TEXT_GROUP_WORDS]);
        if (w + 1 < BSW_TEXT_GROUP_WORDS) continue;
        bsw_text_take_group(dims, words[(w + 1) % 3], words[(w + 2) % 3], words[w % 3],
                            (uint32_t)(w - 2), sum, out, groups);
    }
    if (text->num_words < BSW_TEXT_GROUP_WORDS)
        bsw_text_take_group(dims, words[0], text->num_words > 1 ? words[1] : NULL, NULL, 0, sum,
                            out, groups);
    for (uint32_t d = 0; d < dims; d++) out[d] = bsw_rbe_tanh(out[d] + layer->bias[d]);
}

#endif
