// SPDX-License-Identifier: Apache-2.0
// CDSSM's front: a text becomes a vector f [dims] of floats in -1 .. 1 (Shan, Jiao, Zhu, Mao,
// KDD'18, Sections 3.1 and 7; Shen et al., CIKM'14).
//
//   letter trigrams of words -> a layer over each group of three words on end -> maximum over the
//   groups -> tanh
//
// The first layer is sparse: only rows of a text's trigrams are read, and only they get gradients.
// Query and document have weights of their own. Parameters of a side: weights [num_grams][dims],
// then bias [dims].
#ifndef BITSWEEP_KERNELS_TEXT_NETWORK_H
#define BITSWEEP_KERNELS_TEXT_NETWORK_H

#include "common/base/cpu_level.h"
#include "kernels/text/text_pool.h"
#include "kernels/text/text_vocabulary.h"

static inline size_t bsw_text_num_parameters(uint32_t num_grams, uint32_t dims)
{
    return ((size_t)num_grams + 1) * dims;
}

// Uniform in +-sqrt(6 / (num_grams + dims)) (Glorot and Bengio), biases 0; the same bits
// everywhere.
void bsw_text_initialize(uint32_t num_grams, uint32_t dims, uint64_t seed, float *parameters);

// Texts of a batch, and what the way back needs of the way forward.
struct bsw_text_pass {
    const struct bsw_text_vocabulary *vocabulary; // borrowed
    const struct bsw_text_pool_table *table;
    uint32_t dims;
    size_t max_texts, num_texts, num_grams, num_words;
    struct bsw_text_grams grams;
    struct bsw_buffer ids, word_ends; // of all texts, ends counted from each text's first
    struct bsw_text_place {
        size_t first_gram, first_word, num_words;
    } * places;       // [max_texts]
    uint32_t *groups; // [max_texts][dims]
    float *scratch;   // [4][dims]
};

enum bsw_status bsw_text_pass_init(const struct bsw_text_vocabulary *vocabulary, uint32_t dims,
                                   size_t max_texts, enum bsw_cpu_level level,
                                   struct bsw_text_pass *out, struct bsw_error *err);
void bsw_text_pass_deinit(struct bsw_text_pass *pass);

void bsw_text_pass_clear(struct bsw_text_pass *pass);
// One text more, of at most max_texts.
enum bsw_status bsw_text_pass_add(struct bsw_text_pass *pass, const char *text, size_t bytes,
                                  struct bsw_error *err);

// outputs [num_texts][dims].
void bsw_text_forward(struct bsw_text_pass *pass, const float *parameters, float *outputs);

// After bsw_text_forward: outputs as it gave them; output_gradient [num_texts][dims] is
// overwritten; gradient [bsw_text_num_parameters] is added to.
void bsw_text_backward(struct bsw_text_pass *pass, const float *outputs, float *output_gradient,
                       float *gradient);

#endif
