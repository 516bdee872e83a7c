// SPDX-License-Identifier: Apache-2.0
// What a setting may be, for options of the program and settings of the library alike. Errors are
// BSW_ERROR_USAGE in one line that names the setting as the program's option.
#ifndef BITSWEEP_COORDINATOR_SETTING_CHECKS_H
#define BITSWEEP_COORDINATOR_SETTING_CHECKS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

// Which of choices "a|b|c" a text is; NULL: 0.
enum bsw_status bsw_setting_choice(const char *option, const char *choices, const char *text,
                                   unsigned *out, struct bsw_error *err);
// Such a word by its place, which is there; returns word.
#define BSW_WORD_BYTES 32
const char *bsw_setting_word(const char *choices, unsigned place, char word[BSW_WORD_BYTES]);
// The word that someone may have meant by a text of so many bytes: begun with {0}, then shown all
// that are known. One that is too far is not: word stays NULL.
struct bsw_setting_guess {
    const char *word;
    unsigned distance; // letters to change, add, leave out or swap
};
void bsw_setting_guess(struct bsw_setting_guess *guess, const char *text, size_t length,
                       const char *known);

// From least to most; NaN is neither.
enum bsw_status bsw_setting_number(const char *option, double value, double least, double most,
                                   struct bsw_error *err);
enum bsw_status bsw_setting_count(const char *option, uint64_t value, uint64_t least, uint64_t most,
                                  struct bsw_error *err);

// Threads, which OpenMP cannot refuse: beyond, it ends the process.
#define BSW_MAX_THREADS 4096
// Threads of a setting that is 0: those of OpenMP, by OMP_NUM_THREADS or by a caller of the
// library.
enum bsw_status bsw_setting_default_threads(int threads, struct bsw_error *err);

#endif
