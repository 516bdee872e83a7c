// SPDX-License-Identifier: Apache-2.0
// Lists of words in a text: "1,2,8" of an option that takes several values, "a|b|c" to choose from.
#ifndef BITSWEEP_COMMON_WORD_LIST_H
#define BITSWEEP_COMMON_WORD_LIST_H

#include <stdio.h>
#include <string.h>

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

#endif
