// SPDX-License-Identifier: Apache-2.0
#include "common/base/number_parse.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

// Copies text without underscores; 0 where one does not stand between two digits, or where the text
// is too long.
static int copy_digits(const char *text, char out[BSW_NUMBER_CHARACTERS + 1])
{
    size_t length = strlen(text), written = 0;
    if (length > BSW_NUMBER_CHARACTERS) return 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] != '_')
            out[written++] = text[i];
        else if (i == 0 || !is_digit(text[i - 1]) || !is_digit(text[i + 1]))
            return 0;
    }
    out[written] = '\0';
    return 1;
}

// Cuts a unit off the end of the text and returns what it stands for; 1 if there is none.
static uint64_t cut_unit(char *text)
{
    static const char letters[] = "KMG";
    size_t length = strlen(text);
    int is_binary = length > 1 && text[length - 1] == 'i';
    if (length < (is_binary ? 2 : 1)) return 1;
    char *last = text + length - 1 - is_binary;
    const char *letter = strchr(letters, toupper((unsigned char)*last));
    if (!letter) return 1;
    uint64_t unit = 1;
    for (const char *at = letters; at <= letter; at++) unit *= is_binary ? 1024 : 1000;
    *last = '\0';
    return unit;
}

// Reads one digit or more into value; 0 if there is none or they overflow.
static int read_digits(const char **at, uint64_t *value)
{
    if (!is_digit(**at)) return 0;
    for (; is_digit(**at); (*at)++) {
        if (__builtin_mul_overflow(*value, (uint64_t)10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(**at - '0'), value)) {
            return 0;
        }
    }
    return 1;
}

// Digits, decimals, exponent: value * 10^power.
static int read_decimal(const char *at, uint64_t *value, int *power)
{
    uint64_t exponent = 0;
    *value = 0;
    *power = 0;
    if (!read_digits(&at, value)) return 0;
    if (*at == '.') {
        const char *decimals = ++at;
        if (!read_digits(&at, value)) return 0;
        *power = (int)(decimals - at);
    }
    if (*at == 'e' || *at == 'E') {
        at += at[1] == '+' ? 2 : 1;
        if (!read_digits(&at, &exponent) || exponent > BSW_NUMBER_CHARACTERS) return 0;
    }
    *power += (int)exponent;
    return *at == '\0';
}

// value * 10^power; 0 if that is not whole or above 2^63 - 1.
static int scale(unsigned __int128 value, int power, uint64_t *out)
{
    for (; power > 0 && value <= INT64_MAX; power--) value *= 10;
    for (; power < 0 && value % 10 == 0; power++) value /= 10;
    *out = (uint64_t)value;
    return power == 0 && value <= INT64_MAX;
}

enum bsw_status bsw_count_parse(const char *what, const char *text, uint64_t *out,
                                struct bsw_error *err)
{
    char digits[BSW_NUMBER_CHARACTERS + 1];
    uint64_t value, product;
    int power;
    if (copy_digits(text, digits)) {
        uint64_t unit = cut_unit(digits);
        if (read_decimal(digits, &value, &power) &&
            scale((unsigned __int128)value * unit, power, &product)) {
            *out = product;
            return BSW_OK;
        }
    }
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "%s '%s' is not a whole number below 2^63 (such as 1500, 1_500, 1.5K, 1e9, "
                    "1Gi)",
                    what, text);
}

enum bsw_status bsw_count_parse_or(const char *what, const char *text, const char *word,
                                   uint64_t *out, struct bsw_error *err)
{
    if (bsw_count_parse(what, text, out, NULL) == BSW_OK) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "%s '%s' is not a whole number below 2^63 (such as 1500, 1_500, 1.5K), nor %s",
                    what, text, word);
}

enum bsw_status bsw_number_parse(const char *what, const char *text, double *out,
                                 struct bsw_error *err)
{
    char digits[BSW_NUMBER_CHARACTERS + 1];
    if (copy_digits(text, digits)) {
        char *end;
        uint64_t unit = cut_unit(digits);
        double value = strtod(digits, &end) * (double)unit;
        // strtod also takes hex, inf and nan, which nobody means on a command line.
        if (*digits != '\0' && strspn(digits, "+-.0123456789eE") == strlen(digits) &&
            *end == '\0' && isfinite(value)) {
            *out = value;
            return BSW_OK;
        }
    }
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "%s '%s' is not a number (such as 0.5, 1e-3, 1_500, 1.5K, 1Gi)", what, text);
}
