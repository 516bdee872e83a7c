// SPDX-License-Identifier: Apache-2.0
// The option table: words divided by newlines, with options of every kind.
#include <string.h>

#include "coordinator/job/option_table.h"
#include "tests/fuzz/harness.h"

#define MAX_WORDS 64

struct values {
    int flag;
    const char *text, *choice;
    uint64_t count;
    double number;
    struct bsw_row_range rows;
};

#define OPTION(name, member, ...) BSW_OPTION(struct values, name, member, __VA_ARGS__)

static const struct bsw_option option_rows[] = {
    OPTION("flag", flag, .help = "a flag"),
    OPTION("text", text, .value_name = "FILE", .may_stand_alone = 1, .help = "a file"),
    OPTION("refine", choice, .choices = "exact|none", .default_text = "exact", .help = "one"),
    OPTION("count", count, .value_name = "N", .default_text = "2K", .is_required = 1, .min = 1,
           .max = 1e6, .help = "a count"),
    OPTION("number", number, .value_name = "X", .default_text = "1", .min = 0.5, .max = 1e6,
           .help = "a number"),
    OPTION("rows", rows, .value_name = "A:B", .help = "rows"),
};
static const struct bsw_option_table option_table =
    BSW_OPTION_TABLE("fuzz", "nothing", option_rows);

static int split(char *text, char **words)
{
    int count = 0;
    for (char *at = text; at && count < MAX_WORDS; count++) {
        words[count] = at;
        at = strchr(at, '\n');
        if (at) *at++ = '\0';
    }
    return count;
}

static void check(const struct values *values)
{
    FUZZ_REQUIRE(values->flag == 0 || values->flag == 1);
    FUZZ_REQUIRE(values->text == NULL || *values->text != '\0');
    FUZZ_REQUIRE(strcmp(values->choice, "exact") == 0 || strcmp(values->choice, "none") == 0);
    FUZZ_REQUIRE(values->count >= 1 && values->count <= 1000000);
    FUZZ_REQUIRE(values->number >= 0.5 && values->number <= 1e6);
    FUZZ_REQUIRE(values->rows.first < values->rows.last);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct values values = {0};
    struct bsw_error err;
    char *words[MAX_WORDS], *text = fuzz_text(data, bytes);
    int help;
    int count = split(text, words);
    enum bsw_status status =
        bsw_option_table_parse(&option_table, &values, count, words, &help, &err);
    if (fuzz_is_ok(status, &err, FUZZ_BIT(BSW_ERROR_USAGE))) check(&values);
    bsw_free(&text);
    return 0;
}

void fuzz_make_seeds(fuzz_put_fn put, void *context)
{
    static const char *const seeds[] = {
        "--count\n1.5K\n--rows\n5:1M\n--number=2.5e3\n--refine\nnone\n--flag\n--text\na file",
        "--count=3\n--count=4",
        "--count\n0\n--rows\n:9",
        "--help",
        "stray\n--\n--=\n--unknown=1",
        "--count=1\n--rows=7:\n--number\n-1",
        "--count=1_000\n--rows=1e3:1Gi\n--number\n1.5K",
    };
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++)
        put(context, seeds[i], strlen(seeds[i]));
}
