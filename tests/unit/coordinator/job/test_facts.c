// SPDX-License-Identifier: Apache-2.0
// Each kind of fact as text and as JSON, nested lists, what is unknown, silence.
#include "unit_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/job/facts.h"

static void tell(struct bsw_facts *facts)
{
    bsw_facts_say(facts, "index %s\n", "here");
    bsw_fact_text(facts, "codec", "saq", "  codec %-5s|");
    bsw_fact_text(facts, "select", NULL, "select %s");
    bsw_fact_digest(facts, "digest", 0xabcd, " %s");
    bsw_fact_integer(facts, "rows", (uint64_t)1 << 62, " %d rows, 100 %% of them\n");
    bsw_fact_bytes(facts, "codes_bytes", 23440000, "%10s\n");
    bsw_fact_real(facts, "load_seconds", 1.25, "load %8.3f s, 5 %%\n");
    bsw_fact_real(facts, "rate", 0.125, "%g\n");
    bsw_fact_real(facts, "loss", NAN, "loss %g\n");
    bsw_fact_flag(facts, "copied", 1, "copied, 100 %%\n");
    bsw_fact_flag(facts, "shared", 0, "shared\n");
    bsw_fact_integer(facts, "hidden", 7, NULL);
    bsw_facts_open_list(facts, "shards");
    for (uint64_t i = 0; i < 2; i++) {
        bsw_facts_open_object(facts, NULL);
        bsw_fact_integer(facts, "shard", i, "  %4d");
        bsw_fact_real(facts, "share", 0.5 * (double)i, " %5.2f\n");
        bsw_facts_close(facts);
    }
    bsw_fact_real(facts, NULL, 3.5, NULL);
    bsw_facts_close(facts);
    bsw_facts_open_object(facts, "more");
    bsw_fact_json(facts, "list", json_pack("[i, i]", 1, 2));
    bsw_facts_close(facts);
    bsw_fact_text(facts, "last", "%d", "%s\n");
}

// What is printed; to be freed.
static char *print(enum bsw_facts_form form, enum bsw_status status)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    struct bsw_facts facts;
    assert_non_null(out);
    bsw_facts_begin(&facts, form, out);
    tell(&facts);
    bsw_facts_end(&facts, status);
    fclose(out);
    return text;
}

UNIT_TEST(people_read_what_is_said)
{
    char *text = print(BSW_FACTS_TEXT, BSW_OK);
    assert_string_equal(text, "index here\n"
                              "  codec saq  | 000000000000abcd 4611686018427387904 rows, 100 % of "
                              "them\n"
                              "  23.44 MB\n"
                              "load    1.250 s, 5 %\n"
                              "0.125\n"
                              "copied, 100 %\n"
                              "     0  0.00\n"
                              "     1  0.50\n"
                              "%d\n");
    free(text);
}

UNIT_TEST(programs_read_every_fact)
{
    char *text = print(BSW_FACTS_JSON, BSW_OK);
    json_t *object = json_loads(text, 0, NULL);
    json_t *wanted = json_pack(
        "{s:s, s:n, s:s, s:I, s:i, s:f, s:f, s:n, s:b, s:b, s:i, s:[{s:i, s:f}, {s:i, s:f}, f], "
        "s:{s:[i, i]}, s:s}",
        "codec", "saq", "select", "digest", "000000000000abcd", "rows",
        (json_int_t)4611686018427387904, "codes_bytes", 23440000, "load_seconds", 1.25, "rate",
        0.125, "loss", "copied", 1, "shared", 0, "hidden", 7, "shards", "shard", 0, "share", 0.0,
        "shard", 1, "share", 0.5, 3.5, "more", "list", 1, 2, "last", "%d");
    assert_non_null(object);
    assert_non_null(wanted);
    assert_true(json_equal(object, wanted));
    // In the order in which they are told.
    assert_true(strstr(text, "\"codec\"") < strstr(text, "\"rows\""));
    assert_true(strstr(text, "\"shards\"") < strstr(text, "\"more\""));
    json_decref(object);
    json_decref(wanted);
    free(text);
}

UNIT_TEST(nothing_is_printed_in_silence_and_no_json_after_an_error)
{
    char *text = print(BSW_FACTS_SILENT, BSW_OK);
    assert_string_equal(text, "");
    free(text);
    text = print(BSW_FACTS_JSON, BSW_ERROR_IO);
    assert_string_equal(text, "");
    free(text);
}

UNIT_TEST(bytes_have_four_digits_and_a_unit)
{
    const struct {
        double bytes;
        const char *text;
    } cases[] = {{0, "0 B"},        {512, "512 B"},     {999, "999 B"},   {1000, "1 kB"},
                 {1.5e9, "1.5 GB"}, {2.5e15, "2.5 PB"}, {7e18, "7000 PB"}};
    char text[32];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bsw_format_bytes(cases[i].bytes, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

// In text; JSON has the numbers alone.
UNIT_TEST(one_is_singular)
{
    static const struct {
        const char *said, *one;
    } cases[] = {{"%d rows x", "1 row x"},    {"(%d queries,", "(1 query,"},
                 {"%d searches", "1 search"}, {"%d passes", "1 pass"},
                 {"%d planes", "1 plane"},    {"%d a batch", "1 a batch"},
                 {"%d less", "1 less"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = NULL;
        size_t bytes;
        struct bsw_facts facts;
        FILE *out = open_memstream(&text, &bytes);
        bsw_facts_begin(&facts, BSW_FACTS_TEXT, out);
        bsw_fact_integer(&facts, "n", 1, cases[i].said);
        bsw_facts_end(&facts, BSW_OK);
        fclose(out);
        assert_string_equal(text, cases[i].one);
        free(text);
    }
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
