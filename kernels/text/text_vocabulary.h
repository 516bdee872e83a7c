// SPDX-License-Identifier: Apache-2.0
// Which trigrams a text network knows, and their numbers: the most frequent ones of the texts that
// it was learned from, or hashes.
//
// The RBE paper's fixed vocabulary has 49,292 of them.
#ifndef BITSWEEP_KERNELS_TEXT_VOCABULARY_H
#define BITSWEEP_KERNELS_TEXT_VOCABULARY_H

#include "kernels/text/text_grams.h"

#define BSW_TEXT_MAX_GRAMS 4194304

struct bsw_text_vocabulary {
    uint64_t *keys;     // [num_grams], ascending: trigram i is keys[i]; NULL: a trigram is a hash
    uint32_t num_grams; // 1 .. BSW_TEXT_MAX_GRAMS; 0: there is none
};

#define BSW_TEXT_UNKNOWN UINT32_MAX

// The number of a trigram, or BSW_TEXT_UNKNOWN.
uint32_t bsw_text_vocabulary_find(const struct bsw_text_vocabulary *vocabulary, uint64_t key);
void bsw_text_vocabulary_deinit(struct bsw_text_vocabulary *vocabulary);

// How often trigrams are seen. {0} is an empty one; bsw_text_counts_deinit frees.
struct bsw_text_counts {
    struct bsw_text_count {
        uint64_t key, count; // count 0: a free place
    } * places;              // open addressing
    size_t num_places, num_keys;
};

enum bsw_status bsw_text_counts_add(struct bsw_text_counts *counts,
                                    const struct bsw_text_grams *grams, struct bsw_error *err);
// The `most` most frequent ones, of equals those of smaller keys; fewer if fewer were seen. The
// counts are used up. None at all is BSW_ERROR_BAD_DATA.
enum bsw_status bsw_text_counts_choose(struct bsw_text_counts *counts, uint32_t most,
                                       struct bsw_text_vocabulary *out, struct bsw_error *err);
void bsw_text_counts_deinit(struct bsw_text_counts *counts);

#endif
