// SPDX-License-Identifier: Apache-2.0
// Text of any kind: as lines of a file, as words, as a row of a network. The first byte picks the
// vocabulary and how lines are read.
#include <math.h>
#include <string.h>

#include "common/rows/text_lines.h"
#include "kernels/text/text_network.h"
#include "tests/fuzz/harness.h"

enum { NUM_GRAMS = 31, DIMS = 5 };

static uint64_t keys[NUM_GRAMS];
static float parameters[(NUM_GRAMS + 1) * DIMS];

// Ends rise, trigrams are of code points, and of known numbers.
static void check_pass(const struct bsw_text_pass *pass)
{
    const uint32_t *ids = (const uint32_t *)(const void *)pass->ids.data;
    const struct bsw_text_grams *grams = &pass->grams;
    uint32_t before = 0;
    FUZZ_REQUIRE(grams->num_words <= BSW_TEXT_MAX_WORDS);
    FUZZ_REQUIRE(grams->num_grams <= grams->num_words * BSW_TEXT_MAX_LETTERS);
    for (size_t w = 0; w < grams->num_words; w++) {
        FUZZ_REQUIRE(grams->word_ends[w] >= before);
        before = grams->word_ends[w];
    }
    for (size_t i = 0; i < grams->num_grams; i++) {
        FUZZ_REQUIRE(grams->keys[i] >> 42 <= 0x10ffff);
        FUZZ_REQUIRE((grams->keys[i] >> 21 & 0x1fffff) <= 0x10ffff);
    }
    for (size_t i = 0; i < pass->ids.bytes / sizeof *ids; i++) FUZZ_REQUIRE(ids[i] < NUM_GRAMS);
}

static enum bsw_status make(void *context, int is_query, const char *text, size_t bytes, float *row,
                            struct bsw_error *err)
{
    struct bsw_text_pass pass;
    char clean[64];
    (void)is_query;
    bsw_text_clean(text, bytes, clean, sizeof clean);
    FUZZ_REQUIRE(strlen(clean) < sizeof clean);
    FUZZ_REQUIRE(bsw_text_pass_init(context, DIMS, 1, bsw_cpu_level_detect(), &pass, err) ==
                 BSW_OK);
    FUZZ_REQUIRE(bsw_text_pass_add(&pass, text, bytes, err) == BSW_OK);
    check_pass(&pass);
    bsw_text_forward(&pass, parameters, row);
    for (size_t i = 0; i < DIMS; i++) FUZZ_REQUIRE(fabsf(row[i]) <= 1);
    bsw_text_pass_deinit(&pass);
    return BSW_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 1) return 0;
    for (uint64_t i = 0; i < NUM_GRAMS; i++) keys[i] = i * i * i * 0x123456789ull;
    bsw_text_initialize(NUM_GRAMS, DIMS, 3, parameters);
    struct bsw_text_vocabulary vocabulary = {data[0] & 1 ? keys : NULL, NUM_GRAMS};
    const struct bsw_text_maker maker = {&vocabulary, DIMS, make};
    struct bsw_text_name name = {.column = data[0] >> 1 & 3};
    struct bsw_text_lines lines;
    struct bsw_error err;
    float row[DIMS];
    strcpy(name.file, fuzz_file("lines.txt", data + 1, bytes - 1));
    enum bsw_status status = bsw_text_lines_open(&name, &lines, &err);
    if (fuzz_is_ok(status, &err, FUZZ_BIT(BSW_ERROR_BAD_DATA))) {
        FUZZ_REQUIRE(lines.starts[lines.num_lines] == bytes - 1);
        for (uint64_t i = 0; i < lines.num_lines; i++)
            (void)fuzz_is_ok(bsw_text_rows_make(&lines, &maker, 0, i, 1, row, &err), &err,
                             FUZZ_BIT(BSW_ERROR_BAD_DATA));
    }
    bsw_text_lines_close(&lines);
    return 0;
}

void fuzz_make_seeds(fuzz_put_fn put, void *context)
{
    static const char *const texts[] = {
        "\1the cat\nsat on\r\n\nthe mat",
        "\4query\tdocument\nno tab\n",
        "\2\xc3\x89t\xc3\xa9 \xef\xac\x81n "
        "e\xcc\x81\n\xf0\x9f\x98\x80\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd",
        "\1\xe2\x80\xae\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d \xef\xb7\xba \xe6\xbc\xa2\xe5\xad\x97\n",
        "\1\xff\xfe\xc0\xaf\xed\xa0\x80\xf5\x80\x80\x80 ab\xe2\x82",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        put(context, texts[i], strlen(texts[i]));
    static char zeros[70000]; // a long line
    memset(zeros, 'a', sizeof zeros);
    for (size_t i = 0; i < 3000; i++) zeros[i] = i % 7 ? (char)('a' + i % 26) : (char)(i % 2 * ' ');
    put(context, zeros, sizeof zeros);
}
