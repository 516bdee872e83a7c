// SPDX-License-Identifier: Apache-2.0
// What a sweep answers for a recall: the fewest bytes, the most queries a second, and the lines
// that make and search such an index.
#include "unit_test.h"

#include "coordinator/sweep/sweep_report.h"

static const struct bsw_sweep_settings settings = {.base = "my base.fbin",
                                                   .queries = "q.fbin",
                                                   .rows = {0, UINT64_MAX},
                                                   .query_rows = {0, UINT64_MAX},
                                                   .shards = 1,
                                                   .searches.batch = 100};

static json_t *add_row(json_t *rows, const char *name, const char *codec, double recall,
                       double rate, double bytes)
{
    json_t *row = json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:i, s:f, s:i, s:s}", "algorithm",
                            codec, "parameters", name, "index_name", name, "recall", recall, "qps",
                            rate, "bytes_per_vector", bytes, "bits", 2.5, "count", 10, "oversample",
                            5.0, "query_bits", 6, "select", "threshold");
    json_object_set_new(rows, name, row);
    return row;
}

static json_t *answer(json_t *rows, const char *targets)
{
    struct bsw_sweep_targets parsed;
    assert_int_equal(bsw_sweep_targets_parse(targets, &parsed, NULL), BSW_OK);
    return bsw_sweep_answers(rows, &parsed, &settings, "l2");
}

static const char *text_of(const json_t *answers, size_t place, const char *which, const char *what)
{
    return json_string_value(
        json_object_get(json_object_get(json_array_get(answers, place), which), what));
}

UNIT_TEST(the_fewest_bytes_and_the_fastest_that_reach_it)
{
    json_t *rows = json_object();
    add_row(rows, "a", "saq", 0.89, 9000, 10);
    add_row(rows, "b", "saq", 0.90, 500, 20);
    add_row(rows, "c", "saq", 0.97, 700, 20);
    add_row(rows, "d", "saq", 0.98, 800, 40);
    json_t *answers = answer(rows, "0.9,0.95,0.99");
    assert_int_equal(json_array_size(answers), 3);
    assert_string_equal(text_of(answers, 0, "fewest_bytes", "point"), "c"); // faster than b
    assert_string_equal(text_of(answers, 0, "fastest", "point"), "d");
    assert_string_equal(text_of(answers, 1, "fewest_bytes", "point"), "c");
    assert_null(text_of(answers, 2, "fastest", "point"));
    assert_true(json_number_value(json_object_get(json_array_get(answers, 2), "best_recall")) ==
                0.98);
    json_decref(answers);
    json_decref(rows);
}

UNIT_TEST(lines_are_those_of_the_point)
{
    json_t *rows = json_object();
    add_row(rows, "saq-2.5", "saq", 1, 1, 1);
    json_t *answers = answer(rows, "1");
    assert_string_equal(text_of(answers, 0, "fastest", "encode"),
                        "bitsweep encode --base 'my base.fbin' --metric l2 --codec saq --bits 2.5 "
                        "--index index-saq-2.5");
    assert_string_equal(text_of(answers, 0, "fastest", "search"),
                        "bitsweep search --index index-saq-2.5 --queries q.fbin --k 10 "
                        "--oversample 5 --query-bits 6 --batch 100 --out result");
    json_decref(answers);
    json_object_clear(rows);
    json_t *row = add_row(rows, "raw-8-l64", "raw", 1, 1, 1);
    json_object_set_new(row, "lists", json_integer(64));
    json_object_set_new(row, "probe", json_integer(4));
    answers = answer(rows, "1");
    assert_non_null(strstr(text_of(answers, 0, "fastest", "encode"), " --lists 64 "));
    assert_string_equal(text_of(answers, 0, "fastest", "search"),
                        "bitsweep search --index index-raw-8-l64 --queries q.fbin --k 10 --probe 4 "
                        "--batch 100 --out result");
    json_decref(answers);
    json_decref(rows);
}

UNIT_TEST(what_is_no_recall_is_refused)
{
    static const char *const wrong[] = {"0", "1.01", "0.9,", "x", ".1,.2,.3,.4,.5,.6,.7,.8,.9"};
    struct bsw_sweep_targets targets;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(bsw_sweep_targets_parse(wrong[i], &targets, NULL), BSW_ERROR_USAGE);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
