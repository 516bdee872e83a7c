// SPDX-License-Identifier: Apache-2.0
// Numbers as people write them on a command line.
//
// Digits may have single underscores between them (1_000_000). An exponent (1e9, 1.5e3) and then a
// unit may follow: K, M, G are powers of 1000 (k, m, g are the same), Ki, Mi, Gi of 1024. At most
// BSW_NUMBER_CHARACTERS in all. Anything else, spaces included, is BSW_ERROR_USAGE with one line
// that names `what` and the text; *out is set on success only.
#ifndef BITSWEEP_COMMON_NUMBER_PARSE_H
#define BITSWEEP_COMMON_NUMBER_PARSE_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/base/c_linkage.h"
#include "common/base/status.h"

BSW_C_BEGIN

#define BSW_NUMBER_CHARACTERS 63

// A number that a macro has, as such text.
#define BSW_TEXT_OF(number)    BSW_TEXT_OF_IT(number)
#define BSW_TEXT_OF_IT(number) #number

// "1500", "1.5M", "1e9", "1Gi": a whole number of at most 2^63 - 1, computed exactly.
enum bsw_status bsw_count_parse(const char *what, const char *text, uint64_t *out,
                                struct bsw_error *err);

// The same where a word may stand in its place, which is told too: "auto".
enum bsw_status bsw_count_parse_or(const char *what, const char *text, const char *word,
                                   uint64_t *out, struct bsw_error *err);

// Also with a sign and a fraction, "-1.5e-3"; finite.
enum bsw_status bsw_number_parse(const char *what, const char *text, double *out,
                                 struct bsw_error *err);

// Lists of words in a text: "1,2,8" of an option that takes several values, "a|b|c" to choose from.

// Copies the next word of *text, which ends at a separator or with the text, to word[capacity], and
// moves *text behind the separator, or to NULL after the last word. Returns 0 where *text is NULL.
// A word may be empty. One that is too long ends with dots, and so is neither number nor choice.
// capacity >= 5.
static inline int bsw_word_take(const char **text, char separator, char *word, size_t capacity)
{
    const char ends[] = {separator, '\0'};
    if (!*text) return 0;
    size_t length = strcspn(*text, ends);
    if (length < capacity)
        snprintf(word, capacity, "%.*s", (int)length, *text);
    else
        snprintf(word, capacity, "%.*s...", (int)capacity - 4, *text);
    *text = (*text)[length] == '\0' ? NULL : *text + length + 1;
    return 1;
}

#define BSW_CHOICES_BYTES 320 // as long as the choices of any option, in words

// "cosine|ip|l2" as messages have it, "cosine, ip or l2"; returns text.
static inline const char *bsw_choices_text(const char *choices, char text[BSW_CHOICES_BYTES])
{
    char word[64];
    size_t length = 0;
    text[0] = '\0';
    while (length < BSW_CHOICES_BYTES && bsw_word_take(&choices, '|', word, sizeof word)) {
        const char *before = length == 0 ? "" : choices ? ", " : " or ";
        length += (size_t)snprintf(text + length, BSW_CHOICES_BYTES - length, "%s%s", before, word);
    }
    return text;
}

BSW_C_END
#endif
