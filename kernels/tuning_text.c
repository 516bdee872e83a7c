// SPDX-License-Identifier: Apache-2.0
#include "kernels/tuning_text.h"

#include <stdlib.h>
#include <string.h>

enum bsw_status bsw_tuning_line_refuse(const struct bsw_tuning_line *line, const char *why,
                                       struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: line %lu: %s", line->name, line->number, why);
}

enum bsw_status bsw_tuning_line_next(struct bsw_tuning_line *line, const char **text,
                                     struct bsw_error *err)
{
    size_t length = strcspn(*text, "\n");
    char *rest = line->text;
    line->number++;
    line->num_words = 0;
    if (length >= sizeof line->text) return bsw_tuning_line_refuse(line, "too long", err);
    memcpy(line->text, *text, length);
    line->text[length] = '\0';
    line->text[strcspn(line->text, "#")] = '\0';
    *text += length + ((*text)[length] == '\n');
    for (char *word; (word = strsep(&rest, " \t\r")) != NULL;) {
        if (*word == '\0') continue;
        if (line->num_words == BSW_TUNING_MAX_WORDS)
            return bsw_tuning_line_refuse(line, "too many words", err);
        line->words[line->num_words++] = word;
    }
    return BSW_OK;
}

int bsw_tuning_line_is_device(const struct bsw_tuning_line *line)
{
    return line->num_words > 0 && strcmp(line->words[0], BSW_TUNING_DEVICE_WORD) == 0;
}

int bsw_tuning_read_count(const char *word, uint32_t least, uint32_t most, uint32_t *out)
{
    char *end;
    unsigned long value = *word >= '0' && *word <= '9' ? strtoul(word, &end, 10) : 0;
    if (!(*word >= '0' && *word <= '9') || *end != '\0' || value < least || value > most) return 0;
    *out = (uint32_t)value;
    return 1;
}
