// SPDX-License-Identifier: Apache-2.0
// One option table drives parsing, defaults and --help, so that usage text cannot drift from the
// parser.
//
// Options are --name VALUE or --name=VALUE; flags take no value; one may stand without its name in
// front of all others. Unknown options, bad or missing
// values, options given twice and stray words are BSW_ERROR_USAGE with one clear line. Numbers are
// those of number_parse.h.
#ifndef BITSWEEP_COMMON_OPTION_TABLE_H
#define BITSWEEP_COMMON_OPTION_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/number_parse.h"
#include "common/base/status.h"
#include "common/rows/vectors.h"

BSW_C_BEGIN

// What the type of a target says; BSW_OPTION finds it out.
enum bsw_option_kind {
    BSW_OPTION_FLAG,   // int: 0 or 1
    BSW_OPTION_CHOICE, // an enum: which of the words of choices, from 0 on; without a default from
                       // 1 on, 0: not given
    BSW_OPTION_TEXT,   // const char *: borrowed from argv; NULL if not given and without default
    BSW_OPTION_COUNT,  // uint64_t: min .. max, or what a word stands for
    BSW_OPTION_NUMBER, // double: the same, finite but for the word's
    BSW_OPTION_ROWS    // struct bsw_row_range: A:B, A: or :B
};

struct bsw_option_group;

// One option, or a group of them (then only offset counts besides).
struct bsw_option {
    const char *name; // without dashes
    enum bsw_option_kind kind;
    size_t offset;            // of the target in the struct that all of the table go into
    const char *value_name;   // for --help, e.g. "FILE"; not for flags and choices
    const char *default_text; // parsed as if given; NULL: none
    int is_required;
    int may_stand_alone; // the first word is its value, if it is no option
    double min, max;     // of counts and numbers
    const char *word;    // that may stand for a count or a number: "all"
    uint64_t word_count; // for which
    double word_number;
    // The words that a choice or text may be, separated by |; NULL: any text. Of a group: the names
    // of its options that are meant; NULL: all.
    const char *choices;
    const char *help; // plain words; --help breaks them at its last column
    const struct bsw_option_group *group;
};

// Options of one subject, for every table that has the subject: their offsets are those in a struct
// of the subject, which is part of the table's. They may be the first members of larger rows;
// those without help are none.
struct bsw_option_group {
    const struct bsw_option *options;
    size_t num_options, row_bytes;
};
#define BSW_OPTIONS_OF(rows)                                                             \
    {                                                                                    \
        (const struct bsw_option *)(rows), sizeof(rows) / sizeof *(rows), sizeof *(rows) \
    }

// A row of a table: `member` of struct `type` is the target, the fields follow by name.
#define BSW_OPTION(type, option_name, member, ...)                         \
    {                                                                      \
        .name = option_name, .kind = BSW_OPTION_KIND(((type *)0)->member), \
        .offset = offsetof(type, member), __VA_ARGS__                      \
    }
#define BSW_OPTION_KIND(target) \
    _Generic((target),                \
             int: BSW_OPTION_FLAG,            \
             unsigned: BSW_OPTION_CHOICE,     \
             const char *: BSW_OPTION_TEXT,   \
             uint64_t: BSW_OPTION_COUNT,      \
             double: BSW_OPTION_NUMBER,       \
             struct bsw_row_range: BSW_OPTION_ROWS)
// A row that stands for all options of a group; `member` is the struct of its subject.
#define BSW_OPTION_GROUP(type, member, the_group) BSW_OPTION_SOME(type, member, the_group, NULL)
// The same for some, "k|batch", none of which is in a group of the group.
#define BSW_OPTION_SOME(type, member, the_group, names)                           \
    {                                                                             \
        .offset = offsetof(type, member), .group = &(the_group), .choices = names \
    }

struct bsw_option_table {
    const char *command; // "search"
    const char *summary; // one line
    const struct bsw_option *options;
    size_t num_options; // rows
    // "k|out": options of every day. --help shows these and the required ones, `--help all` the
    // others, too; NULL: both show all.
    const char *often;
};

#define BSW_OPTION_TABLE(name, one_line, rows) BSW_OPTION_TABLE_OFTEN(name, one_line, rows, NULL)
#define BSW_OPTION_TABLE_OFTEN(name, one_line, rows, names)          \
    {                                                                \
        .command = name, .summary = one_line, .options = rows,       \
        .num_options = sizeof(rows) / sizeof *(rows), .often = names \
    }

#define BSW_MAX_OPTIONS 64 // of a table, with those of its groups

// "A:B", "A:" or ":B", rows A to B - 1, as options have it; `what` is for messages.
enum bsw_status bsw_row_range_parse(const char *what, const char *text, struct bsw_row_range *out,
                                    struct bsw_error *err);

// Sets targets in *targets, the struct of the table, which is {0}, from defaults and argv (without
// program and command name); rows are all unless given. *help is set, and nothing else checked,
// when --help or -h is among the words: to what bsw_option_table_print shows.
enum { BSW_HELP_OFTEN = 1, BSW_HELP_ALL };
enum bsw_status bsw_option_table_parse(const struct bsw_option_table *table, void *targets,
                                       int argc, char **argv, int *help, struct bsw_error *err);
// Sets the target of one option, as if given with the text.
enum bsw_status bsw_option_set(const struct bsw_option *option, void *target, const char *text,
                               struct bsw_error *err);
// Lines are as wide as the terminal that out is, from 60 columns to 100, else 100.
void bsw_option_table_print(const struct bsw_option_table *table, int which, FILE *out);

// ---- what a setting may be ----------------------------------------------------------------------

// What a setting may be, for options of the program and settings of the library alike. Errors are
// BSW_ERROR_USAGE in one line that names the setting as the program's option.

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
void bsw_setting_consider(struct bsw_setting_guess *guess, const char *text, size_t length,
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

BSW_C_END
#endif
