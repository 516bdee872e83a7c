// SPDX-License-Identifier: Apache-2.0
// Every kind of option, its faults and its help; texts that nobody should type.
#include "unit_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/job/option_table.h"

// A subject that several commands have.
struct scales {
    double bits, rate;
};

// A command with one option of each kind, with and without defaults.
struct targets {
    int verbose;
    const char *base, *name;
    enum { COSINE, IP, L2 } metric;
    uint64_t k, batch;
    struct scales scales;
    struct bsw_row_range rows;
};

static struct targets targets;

#define OPTION(name, member, ...) BSW_OPTION(struct targets, name, member, __VA_ARGS__)

static const struct bsw_option scale_options[] = {
    BSW_OPTION(struct scales, "bits", bits, .value_name = "B", .min = 1, .max = 8,
               .help = "bits a dimension"),
    BSW_OPTION(struct scales, "rate", rate, .value_name = "R", .default_text = "-0.25", .min = -1,
               .max = 1, .help = "a rate"),
};
static const struct bsw_option_group scale_group = BSW_OPTIONS_OF(scale_options);
static const struct bsw_option options[] = {
    OPTION("verbose", verbose, .help = "say more"),
    OPTION("base", base, .value_name = "FILE", .is_required = 1, .may_stand_alone = 1,
           .help = "vectors"),
    OPTION("name", name, .value_name = "NAME", .default_text = "some", .help = "a name"),
    OPTION("metric", metric, .choices = "cosine|ip|l2", .default_text = "l2", .help = "nearest"),
    OPTION("k", k, .value_name = "K", .default_text = "10", .min = 1, .max = 10000,
           .help = "neighbours"),
    OPTION("batch", batch, .value_name = "N", .default_text = "1.5K", .max = 9e15,
           .help = "at a time"),
    BSW_OPTION_GROUP(struct targets, scales, scale_group),
    OPTION("rows", rows, .value_name = "A:B", .help = "a part"),
};
static const struct bsw_option_table table = BSW_OPTION_TABLE("try", "tries options", options);

static struct bsw_error err;
static int help;

// Parses words up to NULL.
static enum bsw_status parse(const char *first, ...)
{
    char *words[64];
    int count = 0;
    va_list list;
    va_start(list, first);
    for (const char *word = first; word; word = va_arg(list, const char *))
        words[count++] = (char *)(uintptr_t)word;
    va_end(list);
    memset(&targets, 0, sizeof targets);
    err.message[0] = '\0';
    return bsw_option_table_parse(&table, &targets, count, words, &help, &err);
}

// One clear line that has the words, and a usage status.
static void assert_refused(enum bsw_status status, const char *clause)
{
    assert_int_equal(status, BSW_ERROR_USAGE);
    assert_int_equal(err.status, BSW_ERROR_USAGE);
    if (!strstr(err.message, clause)) fail_msg("'%s' lacks '%s'", err.message, clause);
    for (const char *at = err.message; *at; at++) assert_true((unsigned char)*at >= ' ');
}

// ---- targets ----

UNIT_TEST(defaults_are_set_as_if_given)
{
    assert_int_equal(parse("--base", "x", NULL), BSW_OK);
    assert_int_equal(help, 0);
    assert_int_equal(targets.verbose, 0);
    assert_string_equal(targets.base, "x");
    assert_string_equal(targets.name, "some");
    assert_int_equal(targets.metric, L2);
    assert_true(targets.k == 10 && targets.batch == 1500);
    assert_true(targets.scales.bits == 0 && targets.scales.rate == -0.25);
    assert_true(targets.rows.first == 0 && targets.rows.last == UINT64_MAX);
}

UNIT_TEST(every_kind_is_taken)
{
    assert_int_equal(parse("--verbose", "--base", "a b", "--name", "--base", "--metric", "cosine",
                           "--k", "2K", "--batch", "0", "--bits", "2.5", "--rate", "1e-1", "--rows",
                           "1K:2M", NULL),
                     BSW_OK);
    assert_int_equal(targets.verbose, 1);
    assert_string_equal(targets.base, "a b");
    assert_string_equal(targets.name, "--base"); // a value may look like an option
    assert_int_equal(targets.metric, COSINE);
    assert_true(targets.k == 2000 && targets.batch == 0);
    assert_true(targets.scales.bits == 2.5 && targets.scales.rate == 0.1);
    assert_true(targets.rows.first == 1000 && targets.rows.last == 2000000);
}

UNIT_TEST(values_may_follow_an_equals_sign_or_stand_alone)
{
    assert_int_equal(parse("--base=a=b", "--metric=ip", "--k=7", "--bits=8", "--rows=:5", NULL),
                     BSW_OK);
    assert_string_equal(targets.base, "a=b");
    assert_int_equal(targets.metric, IP);
    assert_true(targets.k == 7 && targets.scales.bits == 8);
    assert_true(targets.rows.first == 0 && targets.rows.last == 5);
    assert_int_equal(parse("x", "--k", "7", NULL), BSW_OK); // the first word
    assert_string_equal(targets.base, "x");
    assert_refused(parse("--base=x", "--verbose=1", NULL), "--verbose takes no value");
    assert_refused(parse("--base=x", "--verbose=", NULL), "--verbose takes no value");
    assert_refused(parse("--base=", NULL), "--base needs a value");
    assert_refused(parse("--base=x", "--k=", NULL), "--k ''");
    assert_refused(parse("--base=x", "--metric=", NULL), "--metric ''");
}

// ---- faults of the line ----

UNIT_TEST(missing_double_and_unknown_are_refused)
{
    assert_refused(parse(NULL), "try needs a name: bitsweep try FILE");
    assert_refused(parse("--k", "5", NULL), "try needs a name");
    assert_refused(parse("--base", NULL), "--base needs a value");
    assert_refused(parse("--base", "x", "--k", NULL), "--k needs a value");
    assert_refused(parse("--base", "x", "--base", "y", NULL), "--base is given twice");
    assert_refused(parse("--base=x", "--base", "y", NULL), "--base is given twice");
    assert_refused(parse("--verbose", "--base=x", "--verbose", NULL), "--verbose is given twice");
    assert_refused(parse("--base", "x", "--kk", "5", NULL), "unknown option --kk of try");
    assert_refused(parse("--bas", "x", NULL), "unknown option --bas"); // no abbreviations
    assert_refused(parse("--BASE", "x", NULL), "unknown option --BASE");
    assert_refused(parse("--base", "x", "y", NULL), "'y' is no option of try");
    // The name of an option was taken for a value, so its own value stands alone.
    assert_refused(parse("--base", "--name", "y", NULL), "--base needs a value: --name, an option");
    assert_refused(parse("x", "--name", "--k", "5", NULL), "--name needs a value: --k, an option");
    assert_refused(parse("--base", "--verbose", "y", NULL), "'y' is no option of try");
    assert_refused(parse("-k", "5", NULL), "'-k' is no option");
    assert_refused(parse("--", "--base", "x", NULL), "'--' is no option");
    assert_refused(parse("", NULL), "--base needs a value");
    assert_refused(parse("x", "", NULL), "'' is no option");
    assert_refused(parse("x", "--base", "x", NULL), "--base is given twice");
    assert_refused(parse("-", NULL), "'-' is no option");
    assert_refused(parse("--=x", NULL), "unknown option -- of try");
    assert_refused(parse("--bsae", "x", NULL), "of try: did you mean --base?");
    assert_refused(parse("--verbos", NULL), "of try: did you mean --verbose?");
    assert_refused(parse("--zzzzz", "x", NULL), "unknown option --zzzzz of try");
    assert_null(strchr(err.message, '?'));
    assert_refused(parse("--base", "-", NULL), "--base -: standard input and output are not used");
    assert_refused(parse("---base", "x", NULL), "unknown option ---base");
}

UNIT_TEST(ranges_are_checked_at_both_ends)
{
    const char *const good[][2] = {{"--k", "1"},    {"--k", "10K"},  {"--bits", "1"},
                                   {"--bits", "8"}, {"--rate", "1"}, {"--rate", "-1"}};
    const char *const bad[][2] = {{"--k", "0"},       {"--k", "10001"}, {"--bits", "0.9999"},
                                  {"--bits", "8.01"}, {"--rate", "2"},  {"--rate", "-1.1"}};
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(parse("--base", "x", good[i][0], good[i][1], NULL), BSW_OK);
        char clause[64];
        snprintf(clause, sizeof clause, "%s %s: ", bad[i][0], bad[i][1]);
        assert_refused(parse("--base", "x", bad[i][0], bad[i][1], NULL), clause);
        assert_non_null(strstr(err.message, ": must be "));
    }
}

UNIT_TEST(choices_are_whole_words)
{
    const char *const bad[] = {"", "L2", "l", "l22", "cosine|ip", "|", "ip|", " ip", "cos"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_refused(parse("--base", "x", "--metric", bad[i], NULL), "use cosine, ip or l2");
}

// ---- numbers ----

UNIT_TEST(counts_have_units)
{
    const struct {
        const char *text;
        uint64_t value;
    } good[] = {{"0", 0},
                {"1500", 1500},
                {"2K", 2000},
                {"2k", 2000},
                {"1.5M", 1500000},
                {"1G", 1000000000},
                {"0.000001M", 1},
                {"1.000", 1},
                {"007", 7},
                {"9G", 9000000000},
                {"9000000000G", 9000000000000000000},
                {"1e9", 1000000000},
                {"1E9", 1000000000},
                {"1e+3", 1000},
                {"1.5e3", 1500},
                {"1.50e1", 15},
                {"9.223372036854775807e18", INT64_MAX},
                {"9223372036854775807", INT64_MAX},
                {"0e60", 0},
                {"1_000_000", 1000000},
                {"1_0.2_5K", 10250},
                {"1Ki", 1024},
                {"1ki", 1024},
                {"1.5Mi", 1572864},
                {"1Gi", 1073741824},
                {"0.5Gi", 536870912},
                {"8589934591Gi", 9223372035781033984},
                {"999999999999999999", 999999999999999999}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint64_t value = 1;
        assert_int_equal(bsw_count_parse("x", good[i].text, &value, &err), BSW_OK);
        assert_true(value == good[i].value);
    }
    const char *const bad[] = {
        "",    "K",    "-1",  "+1",    " 1",     "1 ",    "1.5",   "1.",   ".5K",   "0x10",
        "1KK", "1KB",  "1T",  "1.5.5", "1,5K",   "0.5",   "inf",   "nan",  "1K\n",  "0.0001K",
        "1/2", "\xff", "--1", "1 000", "1_",     "_1",    "1__0",  "1_K",  "1._5K", "1_.5K",
        "_",   "1e",   "e9",  "1e-3",  "1.25e1", "1e1.5", "1_e3",  "1e_3", "1i",    "i",
        "Ki",  "1KI",  "1iK", "1Kii",  "1K1",    "1e3e3", "0.3Ki", "1K_",  "1_Ki",  "1e3i"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t value = 77;
        assert_refused(bsw_count_parse("--n", bad[i], &value, &err), "is not a whole number");
        assert_true(value == 77); // outputs are set on success only
    }
}

UNIT_TEST(counts_beyond_63_bits_are_refused)
{
    const char *const bad[] = {
        "18446744073709551615", "18446744073709551616", "9223372036854775808",
        "99999999999999999999999999999999", "9223372037G", "10000000000G", "99999999999999999M",
        "10000000000000000K", "1e19", "1e300", "1e64", "9.3e18", "9e18K", "8589934592Gi",
        "18446744073709551615e99999999999", "9_223_372_036_854_775_808",
        // 64 zeros: the power of ten behind them is 0 modulo 2^64
        "0.0000000000000000000000000000000000000000000000000000000000000000"};
    uint64_t value = 77;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_refused(bsw_count_parse("--n", bad[i], &value, &err), "is not a whole number");
    assert_true(value == 77);
}

UNIT_TEST(numbers_are_plain_decimals)
{
    const struct {
        const char *text;
        double value;
    } good[] = {{"0", 0},
                {"2.5", 2.5},
                {"-3", -3},
                {"+4", 4},
                {".5", 0.5},
                {"5.", 5},
                {"1e3", 1000},
                {"1E-2", 0.01},
                {"-0", -0.0},
                {"1e-400", 0},
                {"0.1", 0.1},
                {"123456789012345678901", 1.2345678901234568e20},
                {"1K", 1000},
                {"-2.5M", -2.5e6},
                {"1Gi", 0x1p30},
                {"0.5Ki", 512},
                {"1_000.2_5", 1000.25},
                {"1_0e1_0", 1e11}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        double value = 77;
        assert_int_equal(bsw_number_parse("x", good[i].text, &value, &err), BSW_OK);
        assert_true(value == good[i].value);
    }
    const char *const bad[] = {"",   "inf",   "nan",  "-inf", "0x10",   "1e400", "-1e400",
                               "1e", "1.2.3", "--1",  "1-",   "1KB",    " 1",    "1 ",
                               "e5", ".",     "-",    "+",    "1,5",    "\xff",  "1\n",
                               "1_", "_1",    "1__0", "1_.5", "1._5",   "-_1",   "1e_5",
                               "K",  "Ki",    "1i",   "1KK",  "1e308K", "infK",  "1_K"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        double value = 77;
        assert_refused(bsw_number_parse("--x", bad[i], &value, &err), "is not a number");
        assert_true(value == 77);
    }
}

UNIT_TEST(row_ranges_are_half_open)
{
    const struct {
        const char *text;
        uint64_t first, last;
    } good[] = {{"0:1", 0, 1},
                {"5:", 5, UINT64_MAX},
                {":5", 0, 5},
                {":", 0, UINT64_MAX},
                {"1K:1.5K", 1000, 1500},
                {"0:999999999999999999", 0, 999999999999999999}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(parse("--base", "x", "--rows", good[i].text, NULL), BSW_OK);
        assert_true(targets.rows.first == good[i].first && targets.rows.last == good[i].last);
    }
    assert_refused(parse("--base", "x", "--rows", "5:5", NULL), "'5:5' is an empty range");
    assert_refused(parse("--base", "x", "--rows", "6:5", NULL), "is an empty range");
    assert_refused(parse("--base", "x", "--rows", ":0", NULL), "is an empty range");
    const char *const bad[] = {"", "5", "5-6", "a:b", "1:2:3", "-1:5", "1:2x", "::", "1 :2"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_refused(parse("--base", "x", "--rows", bad[i], NULL), "--rows '");
}

// ---- texts that nobody should type ----

UNIT_TEST(hostile_texts_give_one_short_line)
{
    static char longest[100000];
    memset(longest, '9', sizeof longest - 1);
    const char *const hostile[] = {longest, "%s%n%x", "a\nb\tc\r", "\x1b[31mred", "--", "\x80\xff"};
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        char word[8192];
        assert_refused(parse("x", hostile[i], NULL), "");
        assert_refused(parse("--base", "x", "--k", hostile[i], NULL), "--k");
        assert_refused(parse("--base", "x", "--bits", hostile[i], NULL), "--bits");
        assert_refused(parse("--base", "x", "--metric", hostile[i], NULL), "--metric");
        assert_refused(parse("--base", "x", "--rows", hostile[i], NULL), "--rows");
        snprintf(word, sizeof word, "--%s=1", hostile[i]);
        assert_refused(parse("--base", "x", word, NULL), "");
        assert_int_equal(parse("--base", hostile[i], NULL), BSW_OK); // any text is a text
        assert_ptr_equal(targets.base, hostile[i]);
    }
}

UNIT_TEST(a_null_error_is_allowed)
{
    char word[] = "--nonsense";
    char *words[] = {word};
    assert_int_equal(bsw_option_table_parse(&table, &targets, 1, words, &help, NULL),
                     BSW_ERROR_USAGE);
}

// ---- help ----

UNIT_TEST(help_wins_over_faults)
{
    assert_int_equal(parse("--help", NULL), BSW_OK);
    assert_int_equal(help, 1);
    assert_int_equal(parse("--base", "x", "--help", "all", NULL), BSW_OK);
    assert_int_equal(help, BSW_HELP_ALL);
    assert_int_equal(parse("--nonsense", "-h", "--k", NULL), BSW_OK);
    assert_int_equal(help, 1);
    assert_int_equal(parse("--base", "x", NULL), BSW_OK);
    assert_int_equal(help, 0);
}

// The line of an option, "" if there is none.
static const char *help_line(const char *text, const char *name)
{
    static char line[512];
    char start[64];
    snprintf(start, sizeof start, "\n  --%s", name);
    const char *at = strstr(text, start);
    line[0] = '\0';
    if (at) snprintf(line, sizeof line, "%.*s", (int)strcspn(at + 1, "\n"), at + 1);
    return line;
}

static void assert_help_has(const char *text, const struct bsw_option *option)
{
    const char *line = help_line(text, option->name);
    char wanted[64];
    assert_non_null(strstr(line, option->help));
    assert_int_equal(strstr(line, "(required)") != NULL, option->is_required);
    if (option->value_name) assert_non_null(strstr(line, option->value_name));
    if (option->choices) assert_non_null(strstr(line, option->choices));
    // The text in brackets is the one that is parsed as the default.
    snprintf(wanted, sizeof wanted, "[%s]", option->default_text ? option->default_text : "");
    assert_int_equal(strstr(line, wanted) != NULL, option->default_text != NULL);
}

UNIT_TEST(help_shows_what_the_parser_takes)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    bsw_option_table_print(&table, BSW_HELP_OFTEN, out);
    fclose(out);
    assert_ptr_equal(strstr(text, "bitsweep try: tries options\n"), text);
    for (size_t i = 0; i < table.num_options; i++) {
        const struct bsw_option_group *group = options[i].group;
        for (size_t j = 0; group && j < group->num_options; j++)
            assert_help_has(text, &group->options[j]);
        if (!group) assert_help_has(text, &options[i]);
    }
    // In their order, those of a group in its place.
    assert_true(strstr(text, "--batch") < strstr(text, "--bits"));
    assert_true(strstr(text, "--bits") < strstr(text, "--rate"));
    assert_true(strstr(text, "--rate") < strstr(text, "--rows"));
    assert_non_null(strstr(help_line(text, "help"), "this text"));
    free(text);
}

// What is used every day first, all others when asked for.
UNIT_TEST(help_has_two_lengths)
{
    struct bsw_option_table often = table;
    often.often = "k|bits"; // bits is of a group
    for (int which = BSW_HELP_OFTEN; which <= BSW_HELP_ALL; which++) {
        char *text = NULL;
        size_t bytes;
        FILE *out = open_memstream(&text, &bytes);
        assert_non_null(out);
        bsw_option_table_print(&often, which, out);
        fclose(out);
        const char *needed = strstr(text, "\nNeeded:\n  --base");
        const char *used = strstr(text, "\nOften used:\n");
        assert_true(needed && used && needed < used && used < strstr(text, "  --k "));
        assert_true(used < strstr(text, "  --bits "));
        assert_int_equal(strstr(text, "  --verbose") != NULL, which == BSW_HELP_ALL);
        assert_int_equal(strstr(text, "\nAll others:\n") != NULL, which == BSW_HELP_ALL);
        assert_int_equal(strstr(text, "all: with 6 more options") != NULL, which == BSW_HELP_OFTEN);
        free(text);
    }
}

// No line is wider than 100 columns, and every word is there.
UNIT_TEST(help_breaks_long_lines)
{
    char *text = NULL, help_text[800] = "", all[1200] = "";
    for (int i = 0; i < 60; i++) strcat(help_text, i % 7 ? " word,s" : " longest-of-words");
    const struct bsw_option long_one = {.name = "name-that-is-much-longer-than-its-column",
                                        .kind = BSW_OPTION_COUNT,
                                        .value_name = "N",
                                        .default_text = "1.5K",
                                        .is_required = 1,
                                        .min = 1,
                                        .max = 5000,
                                        .help = help_text + 1};
    const struct bsw_option_table long_table = {"long", "long", &long_one, 1, NULL};
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    bsw_option_table_print(&long_table, BSW_HELP_OFTEN, out);
    fclose(out);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        assert_in_range(strlen(line), 1, 100);
        assert_true(line[strlen(line) - 1] != ' ');
        if (strspn(line, " ") >= 37) strcat(strcat(all, " "), line + strspn(line, " "));
    }
    strcat(help_text, " [1.5K] (required)");
    assert_string_equal(all, help_text);
    free(text);
}

// A default that the parser would refuse is a fault of the table, found at the first use.
UNIT_TEST(a_bad_default_is_found)
{
    uint64_t count;
    const struct bsw_option bad = {.name = "n",
                                   .kind = BSW_OPTION_COUNT,
                                   .default_text = "0",
                                   .min = 1,
                                   .max = 5,
                                   .help = "n"};
    const struct bsw_option_table bad_table = {"bad", "bad", &bad, 1, NULL};
    assert_refused(bsw_option_table_parse(&bad_table, &count, 0, NULL, &help, &err),
                   "--n 0: must be 1 to 5");
}

// ---- words, rows of lists, some options of a group ----

struct worded {
    uint64_t count;
    double number;
    enum { FIRST, SECOND } chosen;
    unsigned maybe;
};
// Options that are the first members of larger rows; one of these is a fact and no option.
static const struct row {
    struct bsw_option option;
    int other;
} rows[] = {
    {BSW_OPTION(struct worded, "count", count, .value_name = "N|all", .min = 1, .max = 9,
                .word = "all", .word_count = UINT64_MAX, .help = "a count"),
     7},
    {BSW_OPTION(struct worded, "number", number, .value_name = "X|never", .min = 0, .max = 9,
                .word = "never", .word_number = -1, .help = "a number"),
     7},
    {{.name = "fact"}, 7},
    {BSW_OPTION(struct worded, "chosen", chosen, .choices = "a|b", .default_text = "a",
                .help = "a word"),
     7},
    {BSW_OPTION(struct worded, "maybe", maybe, .choices = "a|b", .help = "a word or none"), 7}};
static const struct bsw_option_group row_group = BSW_OPTIONS_OF(rows);

static struct worded worded;

static enum bsw_status parse_rows(const char *names, const char *name, const char *value)
{
    const struct bsw_option some = {.group = &row_group, .choices = names};
    const struct bsw_option_table row_table = {"try", "tries", &some, 1, NULL};
    char *words[] = {(char *)(uintptr_t)name, (char *)(uintptr_t)value};
    memset(&worded, 0, sizeof worded);
    return bsw_option_table_parse(&row_table, &worded, name ? 2 : 0, words, &help, &err);
}

UNIT_TEST(a_word_stands_for_a_number)
{
    assert_ok(parse_rows(NULL, "--count", "all"), &err);
    assert_true(worded.count == UINT64_MAX);
    assert_ok(parse_rows(NULL, "--count", "9"), &err);
    assert_int_equal(worded.count, 9);
    assert_refused(parse_rows(NULL, "--count", "0"), "--count 0: must be 1 to 9, or all");
    assert_refused(parse_rows(NULL, "--count", "none"), "nor all");
    assert_ok(parse_rows(NULL, "--number", "never"), &err);
    assert_true(worded.number == -1);
    assert_refused(parse_rows(NULL, "--number", "-1"), "--number -1: must be 0 to 9, or never");
}

UNIT_TEST(a_choice_without_default_counts_from_1)
{
    assert_ok(parse_rows(NULL, NULL, NULL), &err);
    assert_true(worded.chosen == FIRST && worded.maybe == 0);
    assert_ok(parse_rows(NULL, "--maybe", "a"), &err);
    assert_int_equal(worded.maybe, 1);
    assert_ok(parse_rows(NULL, "--chosen", "b"), &err);
    assert_true(worded.chosen == SECOND && worded.maybe == 0);
}

UNIT_TEST(some_options_of_a_group)
{
    assert_ok(parse_rows("number|chosen", "--chosen", "b"), &err);
    assert_refused(parse_rows("number|chosen", "--count", "1"), "unknown option --count");
    assert_refused(parse_rows(NULL, "--fact", "1"), "unknown option --fact");
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
