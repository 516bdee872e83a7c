// SPDX-License-Identifier: Apache-2.0
// The plain oracle: one output after another, one group after another.
#include "kernels/rbe_tanh.h"
#include "kernels/text/text_pool.h"

static float word_sum(const struct bsw_text_layer *layer, const struct bsw_text_ids *text,
                      size_t word, uint32_t d)
{
    float sum = 0;
    for (uint32_t i = word > 0 ? text->word_ends[word - 1] : 0; i < text->word_ends[word]; i++)
        sum += layer->weights[(size_t)text->ids[i] * layer->dims + d];
    return sum;
}

static float group_sum(const struct bsw_text_layer *layer, const struct bsw_text_ids *text,
                       size_t group, uint32_t d)
{
    float sum = text->num_words > 0 ? word_sum(layer, text, group, d) : 0;
    for (size_t w = group + 1; w < group + BSW_TEXT_GROUP_WORDS && w < text->num_words; w++)
        sum += word_sum(layer, text, w, d);
    return sum;
}

static void pool(const struct bsw_text_layer *layer, const struct bsw_text_ids *text,
                 float *scratch, float *out, uint32_t *groups)
{
    (void)scratch;
    for (uint32_t d = 0; d < layer->dims; d++) {
        float largest = group_sum(layer, text, 0, d);
        uint32_t at = 0;
        for (size_t g = 1; g + BSW_TEXT_GROUP_WORDS <= text->num_words; g++) {
            float sum = group_sum(layer, text, g, d);
            if (!(sum > largest)) continue;
            largest = sum;
            at = (uint32_t)g;
        }
        out[d] = bsw_rbe_tanh(largest + layer->bias[d]);
        if (groups) groups[d] = at;
    }
}

const struct bsw_text_pool_table bsw_text_pool_reference = {.level = "reference", .pool = pool};
