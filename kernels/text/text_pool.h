// SPDX-License-Identifier: Apache-2.0
// The convolution of a text network, and what its groups of words are pooled to: the same bits on
// every level.
//
// Each group of three words on end is one bag of trigrams, so its product is the sum of those of
// its words: (a + b) + c, where a word's is the sum of its trigrams' rows, in order, from 0. A text
// of fewer words is one group of what there is. For each output the largest of all groups counts,
// of equals the first; out = tanh(largest + bias). tanh after the maximum is the same as before it.
//
// Nothing here can fail or allocate. Thread-safe. Workload: some 10 words of 6 trigrams, 288
// outputs: 20,000 additions a text, rows of 1 kB that lie anywhere.
#ifndef BITSWEEP_KERNELS_TEXT_POOL_H
#define BITSWEEP_KERNELS_TEXT_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel_table.h"

#define BSW_TEXT_GROUP_WORDS 3

struct bsw_text_layer {
    const float *weights; // [trigrams][dims], then bias [dims]
    const float *bias;
    uint32_t dims;
};

// A text by the numbers of its trigrams.
struct bsw_text_ids {
    const uint32_t *ids, *word_ends; // as struct bsw_text_grams
    size_t num_words;
};

struct bsw_text_pool_table {
    const char *level;

    // out [dims]; groups: NULL, or [dims]: which group was the largest. scratch: floats [4][dims].
    void (*pool)(const struct bsw_text_layer *layer, const struct bsw_text_ids *text,
                 float *scratch, float *out, uint32_t *groups);
};

BSW_KERNEL_LEVELS(text_pool);

#endif
