// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/setting_checks.h"

#include <string.h>

#include "common/base/number_parse.h"

enum bsw_status bsw_setting_choice(const char *option, const char *choices, const char *text,
                                   unsigned *out, struct bsw_error *err)
{
    size_t length = text ? strlen(text) : 0;
    unsigned place = 0;
    *out = 0;
    if (!text) return BSW_OK;
    for (const char *at = choices; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
        if (length > 0 && strcspn(at, "|") == length && memcmp(at, text, length) == 0) {
            *out = place;
            return BSW_OK;
        }
        place++;
    }
    char words[BSW_CHOICES_BYTES];
    return bsw_fail(err, BSW_ERROR_USAGE, "unknown --%s '%s': use %s", option, text,
                    bsw_choices_text(choices, words));
}

const char *bsw_setting_word(const char *choices, unsigned place, char word[BSW_WORD_BYTES])
{
    word[0] = '\0';
    for (unsigned i = 0; i <= place; i++) bsw_word_take(&choices, '|', word, BSW_WORD_BYTES);
    return word;
}

enum { GUESS_BYTES = 32 };

static unsigned least_of(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

// The distance of optimal string alignment; both at most GUESS_BYTES.
static unsigned distance_of(const char *a, size_t a_length, const char *b, size_t b_length)
{
    unsigned rows[GUESS_BYTES + 1][GUESS_BYTES + 1];
    for (size_t i = 0; i <= a_length; i++) rows[i][0] = (unsigned)i;
    for (size_t j = 0; j <= b_length; j++) rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a_length; i++) {
        for (size_t j = 1; j <= b_length; j++) {
            unsigned changed = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            rows[i][j] = least_of(changed, least_of(rows[i - 1][j], rows[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                rows[i][j] = least_of(rows[i][j], rows[i - 2][j - 2] + 1);
        }
    }
    return rows[a_length][b_length];
}

void bsw_setting_guess(struct bsw_setting_guess *guess, const char *text, size_t length,
                       const char *known)
{
    size_t known_length = strlen(known);
    if (length < 2 || length > GUESS_BYTES || known_length > GUESS_BYTES) return;
    unsigned distance = distance_of(text, length, known, known_length);
    if (length >= 3 && strncmp(text, known, length) == 0) distance = 1; // begun, and not ended
    if (distance > (length < 4 ? 1 : length < 8 ? 2 : 3)) return;
    if (guess->word && guess->distance <= distance) return;
    *guess = (struct bsw_setting_guess){known, distance};
}

enum bsw_status bsw_setting_number(const char *option, double value, double least, double most,
                                   struct bsw_error *err)
{
    if (value >= least && value <= most) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--%s %.10g: must be %.10g to %.10g", option, value,
                    least, most);
}

enum bsw_status bsw_setting_count(const char *option, uint64_t value, uint64_t least, uint64_t most,
                                  struct bsw_error *err)
{
    if (value >= least && value <= most) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "--%s %llu: must be %llu to %llu", option,
                    (unsigned long long)value, (unsigned long long)least, (unsigned long long)most);
}

enum bsw_status bsw_setting_default_threads(int threads, struct bsw_error *err)
{
    if (threads >= 1 && threads <= BSW_MAX_THREADS) return BSW_OK;
    return bsw_fail(
        err, BSW_ERROR_USAGE,
        "OpenMP has %d threads, must be 1 to %d: change OMP_NUM_THREADS or give --threads", threads,
        BSW_MAX_THREADS);
}
