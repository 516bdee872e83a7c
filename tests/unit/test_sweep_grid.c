// Lists of values, the points they span, what is left out and why, and the Pareto front against its
// definition.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/integer_hash.h"
#include "coordinator/sweep_report.h"

static void lists_of_numbers_are_read(void **state)
{
    (void)state;
    struct bsw_sweep_axis axis;
    struct bsw_error err;
    assert_int_equal(bsw_sweep_axis_numbers("--bits", "1,1.5,8", 1, 8, 0, &axis, &err), BSW_OK);
    assert_int_equal(axis.count, 3);
    assert_true(axis.values[0] == 1 && axis.values[1] == 1.5 && axis.values[2] == 8);
    assert_int_equal(bsw_sweep_axis_numbers("--k", "10,1K", 1, 10000, 1, &axis, &err), BSW_OK);
    assert_true(axis.count == 2 && axis.values[1] == 1000);
}

static void bad_lists_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",      ",",   "1,",  ",1",    "1,,2",  "1,1",
        "1,2,1", "0.5", "8.5", "1,nan", "inf",   "x",
        "1 ,2",  "1e",  "-1",  "1,2x",  "1,1.0", "1234567890123456789012345678901234"};
    struct bsw_sweep_axis axis;
    struct bsw_error err;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        err.message[0] = '\0';
        enum bsw_status status = bsw_sweep_axis_numbers("--bits", texts[i], 1, 8, 0, &axis, &err);
        if (status != BSW_ERROR_USAGE) print_error("'%s' was taken\n", texts[i]);
        assert_int_equal(status, BSW_ERROR_USAGE);
        assert_non_null(strstr(err.message, "--bits"));
    }
    assert_int_equal(bsw_sweep_axis_numbers("--k", "1.5", 1, 8, 1, &axis, &err), BSW_ERROR_USAGE);
    char many[200] = "1";
    for (int i = 0; i < BSW_SWEEP_MAX_VALUES; i++) sprintf(many + strlen(many), ",%d", i + 2);
    assert_int_equal(bsw_sweep_axis_numbers("--k", many, 1, 99, 1, &axis, &err), BSW_ERROR_USAGE);
    *strrchr(many, ',') = '\0';
    assert_int_equal(bsw_sweep_axis_numbers("--k", many, 1, 99, 1, &axis, &err), BSW_OK);
    assert_int_equal(axis.count, BSW_SWEEP_MAX_VALUES);
}

static enum bsw_status read_codecs(const char *text, struct bsw_sweep_axis *axis)
{
    struct bsw_error err;
    return bsw_sweep_axis_words("--codec", text, bsw_sweep_codecs, 2, axis, &err);
}

static void lists_of_words_are_read(void **state)
{
    (void)state;
    struct bsw_sweep_axis axis;
    assert_int_equal(read_codecs("saq,xfbq", &axis), BSW_OK);
    assert_true(axis.count == 2 && axis.values[0] == 1 && axis.values[1] == 0);
    static const char *const texts[] = {"", "rbe", "saq,", "saq,saq", "saqq", "sa", "saq xfbq"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_int_equal(read_codecs(texts[i], &axis), BSW_ERROR_USAGE);
}

static const struct bsw_sweep_grid grid = {.codecs = {2, {0, 1}},
                                           .bits = {2, {1.5, 2}},
                                           .query_bits = {1, {6}},
                                           .k = {3, {10, 100, 2000}},
                                           .oversamples = {2, {1, 2.55}},
                                           .selects = {2, {0, 1}}};

static void what_cannot_be_is_left_out(void **state)
{
    (void)state;
    const struct bsw_sweep_limits limits = {.num_rows = 200, .truth_k = 150, .is_cosine = 1};
    struct bsw_sweep_points points;
    assert_int_equal(bsw_sweep_grid_expand(&grid, &limits, &points, NULL), BSW_OK);
    assert_int_equal(points.num_points, 3 * 2 * 2 * 2);
    // The first reason counts: the 12 of xfbq with 1.5 bits, of all others those with too large k.
    assert_int_equal(points.num_skips, 2);
    assert_non_null(strstr(points.skips[0].reason, "1.5 bits"));
    assert_int_equal(points.skips[0].num_points, 12);
    assert_non_null(strstr(points.skips[1].reason, "200 rows"));
    assert_int_equal(points.skips[1].num_points, 12);
    const struct bsw_sweep_point *p = points.points;
    assert_string_equal(p[0].codec, "xfbq");
    assert_true(p[0].bits == 2 && p[0].k == 10 && p[0].candidates == 10);
    assert_string_equal(p[0].select, "threshold");
    assert_string_equal(p[1].select, "queue");
    assert_int_equal(p[2].candidates, 26);  // 25.5, rounded up
    assert_int_equal(p[6].candidates, 200); // 255, but there are 200 rows
    char name[BSW_SWEEP_NAME_BYTES];
    bsw_sweep_point_name(&p[2], name);
    assert_string_equal(name, "xfbq-2-q6-k10-x2.55-threshold");
    bsw_sweep_points_deinit(&points);
}

static void limits_of_truth_metric_and_candidates_hold(void **state)
{
    (void)state;
    struct bsw_sweep_limits limits = {.num_rows = 1000000, .truth_k = 50, .is_cosine = 0};
    struct bsw_sweep_points points;
    assert_int_equal(bsw_sweep_grid_expand(&grid, &limits, &points, NULL), BSW_OK);
    assert_int_equal(points.num_points, 2 * 2 * 2); // saq, k 10
    for (size_t i = 0; i < points.num_points; i++)
        assert_string_equal(points.points[i].codec, "saq");
    assert_int_equal(points.num_skips, 3); // xfbq, k 100, k 2000
    bsw_sweep_points_deinit(&points);
    struct bsw_sweep_grid wide = grid;
    wide.oversamples = (struct bsw_sweep_axis){2, {5, 6}};
    limits.truth_k = 1000000;
    assert_int_equal(bsw_sweep_grid_expand(&wide, &limits, &points, NULL), BSW_OK);
    assert_int_equal(points.num_skips, 2); // xfbq, and 12,000 candidates, but not 10,000
    assert_int_equal(points.skips[1].num_points, 4);
    bsw_sweep_points_deinit(&points);
}

static double number_of(const json_t *row, const char *name)
{
    return json_number_value(json_object_get(row, name));
}

// Few values, so that there are ties of one and of both.
static json_t *random_rows(uint64_t seed, int count)
{
    json_t *rows = json_object();
    for (int i = 0; i < count; i++) {
        uint64_t hash = bsw_hash2(seed, (uint64_t)i);
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        json_object_set_new(rows, name,
                            json_pack("{s:I, s:f, s:f}", "count", (json_int_t)(10 + hash % 2),
                                      "recall", (double)(hash / 2 % 6) / 8, "qps",
                                      (double)(hash / 64 % 6)));
    }
    return rows;
}

static void the_front_is_what_the_definition_says(void **state)
{
    (void)state;
    int num_front = 0, num_behind = 0;
    for (uint64_t seed = 0; seed < 50; seed++) {
        json_t *a, *b, *rows = random_rows(seed, 20);
        const char *name, *other;
        bsw_sweep_mark_front(rows);
        json_object_foreach(rows, name, a)
        {
            int expected = 1;
            json_object_foreach(rows, other, b)
            {
                if (number_of(a, "count") != number_of(b, "count")) continue;
                double recall = number_of(b, "recall") - number_of(a, "recall"),
                       qps = number_of(b, "qps") - number_of(a, "qps");
                if (recall >= 0 && qps >= 0 && recall + qps > 0) expected = 0;
            }
            assert_int_equal(number_of(a, "pareto"), expected);
            num_front += expected;
            num_behind += !expected;
        }
        json_decref(rows);
    }
    assert_true(num_front > 50 && num_behind > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_numbers_are_read),
        cmocka_unit_test(bad_lists_are_refused),
        cmocka_unit_test(lists_of_words_are_read),
        cmocka_unit_test(what_cannot_be_is_left_out),
        cmocka_unit_test(limits_of_truth_metric_and_candidates_hold),
        cmocka_unit_test(the_front_is_what_the_definition_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
