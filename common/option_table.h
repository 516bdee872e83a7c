// One option table drives parsing, defaults and --help, so that usage text cannot drift from the
// parser.
//
// Options are --name VALUE or --name=VALUE; flags take no value. Unknown options, bad or missing
// values, options given twice and stray words are BSW_ERROR_USAGE with one clear line. Numbers are
// those of number_parse.h.
#ifndef BITSWEEP_COMMON_OPTION_TABLE_H
#define BITSWEEP_COMMON_OPTION_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/number_parse.h"
#include "common/status.h"
#include "common/vectors.h"

#ifdef __cplusplus
extern "C" {
#endif

enum bsw_option_kind {
    BSW_OPTION_FLAG,   // int *: 0 or 1
    BSW_OPTION_TEXT,   // const char **: borrowed from argv; NULL if not given and without default
    BSW_OPTION_CHOICE, // const char **: one of the words in `choices`, separated by |
    BSW_OPTION_COUNT,  // uint64_t *: min .. max
    BSW_OPTION_NUMBER, // double *: min .. max, finite
    BSW_OPTION_ROWS    // struct bsw_row_range *: A:B, A: or :B
};

struct bsw_option {
    const char *name; // without dashes
    enum bsw_option_kind kind;
    void *target;
    const char *value_name;   // for --help, e.g. "FILE"; NULL for flags and choices
    const char *default_text; // parsed as if given; NULL: none
    int is_required;
    double min, max;     // for counts and numbers
    const char *choices; // for choices
    const char *help;    // plain words; --help breaks them at column 100
};

struct bsw_option_table {
    const char *command; // "search"
    const char *summary; // one line
    const struct bsw_option *options;
    size_t num_options;
};

#define BSW_MAX_OPTIONS 64

// Sets every target from defaults and argv (without program and command name). *help is set, and
// nothing else checked, when --help or -h is among the words.
enum bsw_status bsw_option_table_parse(const struct bsw_option_table *table, int argc, char **argv,
                                       int *help, struct bsw_error *err);
void bsw_option_table_print(const struct bsw_option_table *table, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
