// SPDX-License-Identifier: Apache-2.0
// Words and trigrams of every kind of text, those that are none included, and vocabularies.
#include <stdio.h>
#include <string.h>

#include "kernels/text/text_vocabulary.h"
#include "unit_test.h"

static struct bsw_error err;
static struct bsw_text_grams grams;

static void put(char *out, uint64_t c)
{
    char one[32] = {0};
    if (c < 0x80)
        one[0] = (char)c;
    else
        snprintf(one, sizeof one, "<%llx>", (unsigned long long)c);
    strcat(out, one);
}

// "abc|de": trigrams by their words, with code points beyond ASCII as <hex>.
static const char *grams_of(const char *text, size_t bytes)
{
    static char out[4096];
    out[0] = '\0';
    assert_ok(bsw_text_grams_make(&grams, text, bytes, &err), &err);
    for (size_t w = 0, i = 0; w < grams.num_words; w++) {
        if (w > 0) strcat(out, "|");
        for (size_t first = i; i < grams.word_ends[w]; i++) {
            if (i > first) strcat(out, " ");
            for (int shift = 42; shift >= 0; shift -= 21)
                put(out, grams.keys[i] >> shift & ((1 << 21) - 1));
        }
    }
    return out;
}

static void expect(const char *text, const char *expected)
{
    assert_string_equal(grams_of(text, strlen(text)), expected);
}

UNIT_TEST(words_have_marks_in_front_and_behind)
{
    expect("cat", "#ca cat at#");
    expect("a To", "#a#|#to to#");
    expect("It's 42!", "#it it#|#s#|#42 42#");
    expect("", "");
    expect(" \t\r\n.,;#", "");
}

UNIT_TEST(ways_to_write_the_same_are_folded)
{
    expect("\xc3\x89t", "#<e9>t <e9>t#");
    char composed[64];
    strcpy(composed, grams_of("\xc3\x89t", 3));
    expect("e\xcc\x81T", composed);                     // e and an accent
    expect("\xef\xbc\xa3\xef\xbc\xa1T", "#ca cat at#"); // wide letters
    expect("\xef\xac\x81x", "#fi fix ix#");             // a ligature
    expect("Stra\xc3\x9f"
           "e",
           grams_of("STRASSE", 7));
    expect("co\xc2\xadop", "#co coo oop op#"); // a soft hyphen is nothing
}

UNIT_TEST(ideographs_and_emoji_are_words)
{
    expect("\xe6\xbc\xa2\xe5\xad\x97", "#<6f22>#|#<5b57>#");
    expect("ok\xf0\x9f\x98\x80ok", "#ok ok#|#<1f600>#|#ok ok#");
    // Hebrew, and a mark that turns the direction.
    expect("\xe2\x80\xae\xd7\xa9\xd7\x9c", "#<5e9><5dc> <5e9><5dc>#");
}

UNIT_TEST(bytes_that_are_no_text_stand_between_words)
{
    expect("ab\xff\xfe"
           "cd",
           "#ab ab#|#cd cd#");
    assert_string_equal(grams_of("ab\0cd", 5), "#ab ab#|#cd cd#");
    expect("ab\xe2\x82", "#ab ab#");                // cut
    expect("\xed\xa0\x80\xc0\xaf\xf5\x80x", "#x#"); // a surrogate, too long, too large
}

UNIT_TEST(what_is_beyond_the_bounds_is_not_looked_at)
{
    size_t bytes = 1 << 20;
    char *text = allocate_or_fail(bytes, 1);
    memset(text, 'a', bytes);
    assert_ok(bsw_text_grams_make(&grams, text, bytes, &err), &err);
    assert_int_equal(grams.num_words, 1);
    assert_int_equal(grams.num_grams, BSW_TEXT_MAX_LETTERS);
    for (size_t i = 1; i < bytes; i += 2) text[i] = ' ';
    assert_ok(bsw_text_grams_make(&grams, text, bytes, &err), &err);
    assert_int_equal(grams.num_words, BSW_TEXT_MAX_WORDS);
    // The one character that stands for 18.
    for (size_t i = 0; i + 3 <= bytes; i += 3) memcpy(text + i, "\xef\xb7\xba", 3);
    assert_ok(bsw_text_grams_make(&grams, text, bytes, &err), &err);
    assert_true(grams.num_words > 0 &&
                grams.num_grams <= BSW_TEXT_MAX_WORDS * BSW_TEXT_MAX_LETTERS);
    bsw_free(&text);
}

UNIT_TEST(ascii_is_folded_as_all_else)
{
    char text[140];
    size_t bytes = 0;
    for (int c = 1; c < 128; c++) text[bytes++] = (char)c;
    char plain[4096];
    strcpy(plain, grams_of(text, bytes));
    memcpy(text + bytes, "\xc2\xa0", 2); // a blank that is not of ASCII
    assert_string_equal(grams_of(text, bytes + 2), plain);
}

UNIT_TEST(texts_are_cleaned_for_a_terminal)
{
    char out[16];
    bsw_text_clean("a\x1b[31m\xff\xe2\x80\xae\xc3\xa9", 12, out, sizeof out);
    assert_string_equal(out, "a [31m? \xc3\xa9");
    bsw_text_clean("12345678901234\xc3\xa9", 16, out, sizeof out);
    assert_string_equal(out, "12345678901234"); // not half a character
    bsw_text_clean("", 0, out, 1);
    assert_string_equal(out, "");
}

// ---- vocabularies ----

static uint64_t key_of(const char *three)
{
    return (uint64_t)three[0] << 42 | (uint64_t)three[1] << 21 | (uint64_t)three[2];
}

UNIT_TEST(the_most_frequent_trigrams_are_known)
{
    struct bsw_text_counts counts = {0};
    struct bsw_text_vocabulary vocabulary;
    assert_ok(bsw_text_grams_make(&grams, "cat cat cab", 11, &err), &err);
    assert_ok(bsw_text_counts_add(&counts, &grams, &err), &err);
    assert_ok(bsw_text_counts_choose(&counts, 4, &vocabulary, &err), &err);
    assert_int_equal(vocabulary.num_grams,
                     4); // "#ca" 3, "cat" and "at#" 2, of ab# and cab the first
    assert_true(bsw_text_vocabulary_find(&vocabulary, key_of("#ca")) == 0);
    assert_true(bsw_text_vocabulary_find(&vocabulary, key_of("ab#")) == 1);
    assert_true(bsw_text_vocabulary_find(&vocabulary, key_of("at#")) == 2);
    assert_true(bsw_text_vocabulary_find(&vocabulary, key_of("cat")) == 3);
    assert_true(bsw_text_vocabulary_find(&vocabulary, key_of("cab")) == BSW_TEXT_UNKNOWN);
    assert_true(bsw_text_vocabulary_find(&vocabulary, 0) == BSW_TEXT_UNKNOWN);
    assert_true(bsw_text_vocabulary_find(&vocabulary, UINT64_MAX) == BSW_TEXT_UNKNOWN);
    bsw_text_vocabulary_deinit(&vocabulary);
    bsw_text_counts_deinit(&counts);
}

UNIT_TEST(every_one_of_many_is_found)
{
    enum { COUNT = 30000 };
    struct bsw_text_counts counts = {0};
    struct bsw_text_vocabulary vocabulary;
    uint64_t *keys = allocate_or_fail(COUNT, sizeof *keys);
    for (uint64_t i = 0; i < COUNT; i++) keys[i] = i * i * 77 + 5;
    const struct bsw_text_grams many = {.keys = keys, .num_grams = COUNT};
    assert_ok(bsw_text_counts_add(&counts, &many, &err), &err);
    assert_ok(bsw_text_counts_choose(&counts, COUNT, &vocabulary, &err), &err);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_true(bsw_text_vocabulary_find(&vocabulary, keys[i]) == i);
        assert_true(bsw_text_vocabulary_find(&vocabulary, keys[i] + 1) == BSW_TEXT_UNKNOWN);
    }
    bsw_text_vocabulary_deinit(&vocabulary);
    bsw_text_counts_deinit(&counts);
    bsw_free(&keys);
}

UNIT_TEST(no_words_are_no_vocabulary_and_hashes_know_all)
{
    struct bsw_text_counts counts = {0};
    struct bsw_text_vocabulary none, hashed = {.num_grams = 10};
    assert_int_equal(bsw_text_counts_choose(&counts, 4, &none, &err), BSW_ERROR_BAD_DATA);
    int seen = 0;
    for (uint64_t key = 0; key < 200; key++) {
        uint32_t id = bsw_text_vocabulary_find(&hashed, key);
        assert_true(id < 10);
        seen |= 1 << id;
    }
    assert_int_equal(seen, (1 << 10) - 1);
}

int main(void)
{
    int failed = run_unit_tests(NULL, NULL);
    bsw_text_grams_deinit(&grams);
    return failed;
}
