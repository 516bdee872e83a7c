// The option table: words divided by newlines, with options of every kind.
#include <string.h>

#include "common/option_table.h"
#include "tests/fuzz/harness.h"

#define MAX_WORDS 64

struct values {
    int flag;
    const char *text, *choice;
    uint64_t count;
    double number;
    struct bsw_row_range rows;
};

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
    struct values values;
    struct bsw_error err;
    char *words[MAX_WORDS], *text = fuzz_text(data, bytes);
    int help;
    const struct bsw_option options[] = {
        {"flag", BSW_OPTION_FLAG, &values.flag, NULL, NULL, 0, 0, 0, NULL, "a flag"},
        {"text", BSW_OPTION_TEXT, &values.text, "FILE", NULL, 0, 0, 0, NULL, "a file"},
        {"refine", BSW_OPTION_CHOICE, &values.choice, NULL, "exact", 0, 0, 0, "exact|none", "one"},
        {"count", BSW_OPTION_COUNT, &values.count, "N", "2K", 1, 1, 1e6, NULL, "a count"},
        {"number", BSW_OPTION_NUMBER, &values.number, "X", "1", 0, 0.5, 1e6, NULL, "a number"},
        {"rows", BSW_OPTION_ROWS, &values.rows, "A:B", NULL, 0, 0, 0, NULL, "rows"},
    };
    const struct bsw_option_table table = {"fuzz", "nothing", options,
                                           sizeof options / sizeof options[0]};
    int count = split(text, words);
    enum bsw_status status = bsw_option_table_parse(&table, count, words, &help, &err);
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
