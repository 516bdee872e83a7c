// SPDX-License-Identifier: Apache-2.0
// Words of a text and their letter trigrams, what a text network (text_network.h) takes in.
//
// A text is folded as Unicode's NFKC_Casefold has it, by utf8proc: case, width, ligatures and the
// two ways to write an accent make no difference. Then letters, marks and numbers on end
// (categories L, M, N) are a word; so is each ideograph, and each symbol such as an emoji (So), by
// itself. All else, control characters and bytes that are no UTF-8 too, stands between words. A
// word gets a mark in front and behind, and every three symbols on end are a trigram: #ab, ab#; #a#
// of one letter.
//
// Bounds, so that no text costs more than others by much: what is beyond them is not looked at.
#ifndef BITSWEEP_KERNELS_TEXT_GRAMS_H
#define BITSWEEP_KERNELS_TEXT_GRAMS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/memory.h"

#define BSW_TEXT_MAX_BYTES   65536
#define BSW_TEXT_MAX_WORDS   512
#define BSW_TEXT_MAX_LETTERS 64 // of a word

// {0} is a valid empty one, that is reused; bsw_text_grams_deinit frees.
struct bsw_text_grams {
    uint64_t *keys;      // [num_grams]: three code points of 21 bits, the first one highest
    uint32_t *word_ends; // [num_words]: trigrams of this word and of those before
    size_t num_grams, num_words;
    struct bsw_buffer keys_memory, ends_memory, bytes, letters;
};

// text [bytes]: any bytes. Fails for want of memory alone.
enum bsw_status bsw_text_grams_make(struct bsw_text_grams *grams, const char *text, size_t bytes,
                                    struct bsw_error *err);
void bsw_text_grams_deinit(struct bsw_text_grams *grams);

// A text for a terminal: a blank for control and format characters (category C), a question mark
// for each byte that is no UTF-8; cut between two characters to fit, with its final zero, into
// room.
void bsw_text_clean(const char *text, size_t bytes, char *out, size_t room);

#endif
