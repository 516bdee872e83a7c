// SPDX-License-Identifier: Apache-2.0
// The report of a bench: sizes, table, document, and what decides its exit code.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/report/bench_report.h"
#include "unit_test.h"

#define TEXT_BYTES 8192

static struct bsw_error err;
static bsw_transport transport;
static struct bsw_common_options common;
static struct bsw_bench_options bench;
static char text[TEXT_BYTES]; // what a report printed

static const struct bsw_bench_column columns[] = {
    {"what", "", "what", 6, BSW_BENCH_TEXT, 1},
    {"size", "B", "bytes", 8, 0, 1},
    {"rate", "GB/s", "bytes_per_second", 7, 2, 1e-9},
};

static int set_up(void **state)
{
    bsw_transport_local_init(&transport);
    common = (struct bsw_common_options){.threads = 3, .level = BSW_CPU_REFERENCE};
    bench = (struct bsw_bench_options){.min = 1, .max = 8, .factor = 2, .repeat = 1, .check = "on"};
    return 0;
}

static int tear_down(void **state)
{
    bsw_transport_close(&transport, 0);
    return 0;
}

static void assert_sizes(uint64_t min, uint64_t max, uint64_t factor, uint64_t step,
                         const uint64_t *expected)
{
    const struct bsw_bench_options o = {.min = min, .max = max, .factor = factor, .step = step};
    assert_int_equal(bsw_bench_options_check(&o, &err), BSW_OK);
    uint64_t size = min;
    for (; *expected; expected++, size = bsw_bench_next_size(&o, size))
        assert_int_equal(size, *expected);
    assert_int_equal(size, 0);
}

UNIT_TEST_WITH(test_sizes, set_up, tear_down)
{
    assert_sizes(3, 3, 2, 0, (const uint64_t[]){3, 0});
    assert_sizes(1, 8, 2, 0, (const uint64_t[]){1, 2, 4, 8, 0});
    assert_sizes(3, 29, 3, 0, (const uint64_t[]){3, 9, 27, 0});
    assert_sizes(3, 10, 1000000, 3, (const uint64_t[]){3, 6, 9, 0});
    assert_sizes(1, 3, 2, UINT64_MAX, (const uint64_t[]){1, 0});
    assert_sizes(UINT64_MAX / 2, UINT64_MAX, 3, 0, (const uint64_t[]){UINT64_MAX / 2, 0});
    bench.min = 9;
    assert_int_equal(bsw_bench_options_check(&bench, &err), BSW_ERROR_USAGE);
    assert_string_equal(err.message, "--min 9 is above --max 8");
}

// Two rows, a note between them; status of the measurement as given. Fills `text`.
static enum bsw_status report(int64_t errors, enum bsw_status measured)
{
    char *words[] = {(char *)"--max", (char *)"8\n"};
    FILE *out = tmpfile();
    common.num_words = 2;
    common.words = words;
    assert_non_null(out);
    const struct bsw_bench_report_options options = {.name = "paper",
                                                     .common = &common,
                                                     .bench = &bench,
                                                     .columns = columns,
                                                     .num_columns = 3,
                                                     .main_column = 2,
                                                     .out = out};
    struct bsw_bench_report r;
    assert_int_equal(bsw_bench_report_open(&r, &options, &transport, &err), BSW_OK);
    bsw_bench_report_row(&r, (struct bsw_bench_value[]){{0, "read"}, {1, ""}, {3e9, ""}}, 0);
    bsw_bench_report_note(&r, "%d sheets", 2);
    bsw_bench_report_row(&r, (struct bsw_bench_value[]){{0, "peak"}, {(double)NAN, ""}, {5e9, ""}},
                         errors);
    enum bsw_status status = bsw_bench_report_close(&r, measured, &err);
    rewind(out);
    text[fread(text, 1, sizeof text - 1, out)] = '\0';
    fclose(out);
    return status;
}

UNIT_TEST_WITH(test_table, set_up, tear_down)
{
    assert_int_equal(report(0, BSW_OK), BSW_OK);
    assert_non_null(strstr(text, "# command: bitsweep bench paper --max 8?\n"));
    assert_non_null(strstr(text, "reference  cpu"));
    assert_non_null(strstr(text, "# what       size    rate   errors\n"
                                 "#               B    GB/s   values\n"
                                 "  read          1    3.00        0\n"
                                 "# 2 sheets\n"
                                 "  peak          -    5.00        0\n"
                                 "# 2 rows, 2 checked: no wrong value, OK\n"
                                 "# average of rate: 4 GB/s\n"));
}

UNIT_TEST_WITH(test_wrong_values, set_up, tear_down)
{
    assert_int_equal(report(7, BSW_OK), BSW_ERROR_SELF_CHECK);
    assert_string_equal(err.message, "bench paper: 7 wrong values in 1 of 2 rows");
    assert_non_null(strstr(text, "# 2 rows, 2 checked: 7 wrong values in 1, FAILED\n"));
    assert_int_equal(bsw_status_exit_code(BSW_ERROR_SELF_CHECK), 70);
}

UNIT_TEST_WITH(test_unchecked, set_up, tear_down)
{
    assert_int_equal(report(BSW_BENCH_UNCHECKED, BSW_OK), BSW_OK);
    assert_non_null(strstr(text, "  peak          -    5.00      N/A\n"));
    assert_non_null(strstr(text, "# 2 rows, 1 checked: no wrong value, OK\n"));
}

UNIT_TEST_WITH(test_least, set_up, tear_down)
{
    bench.least = 4;
    assert_int_equal(report(0, BSW_OK), BSW_OK);
    assert_non_null(strstr(text, "# average of rate: 4 GB/s, at least 4 asked: OK\n"));
    bench.least = 4.01;
    assert_int_equal(report(0, BSW_OK), BSW_ERROR_SELF_CHECK);
    assert_non_null(strstr(text, "at least 4.01 asked: FAILED\n"));
    assert_string_equal(err.message,
                        "bench paper: the average of rate is 4 GB/s, --least asks for 4.01");
}

// A bench whose tables, if any, have no average.
UNIT_TEST_WITH(test_least_without_average, set_up, tear_down)
{
    struct bsw_bench_report r;
    FILE *out = tmpfile();
    assert_non_null(out);
    const struct bsw_bench_report_options options = {
        .name = "paper", .common = &common, .bench = &bench, .out = out};
    bench.least = 1;
    assert_int_equal(bsw_bench_report_open(&r, &options, &transport, &err), BSW_OK);
    bsw_bench_report_table(&r, "sheets", columns, 3, 3);
    bsw_bench_report_row(&r, (struct bsw_bench_value[]){{0, "read"}, {1, ""}, {3e9, ""}}, 0);
    assert_int_equal(bsw_bench_report_close(&r, BSW_OK, &err), BSW_ERROR_SELF_CHECK);
    assert_string_equal(err.message, "bench paper: no table has an average, --least asks for 1");
    fclose(out);
}

// No footer for what was not measured to its end.
UNIT_TEST_WITH(test_failed_measurement, set_up, tear_down)
{
    bsw_fail(&err, BSW_ERROR_IO, "the disk is gone");
    assert_int_equal(report(0, BSW_ERROR_IO), BSW_ERROR_IO);
    assert_string_equal(err.message, "the disk is gone");
    assert_null(strstr(text, "average"));
    common.json = 1;
    assert_int_equal(report(0, BSW_ERROR_IO), BSW_ERROR_IO);
    assert_string_equal(text, "");
}

UNIT_TEST_WITH(test_document, set_up, tear_down)
{
    common.json = 1;
    bench.least = 1;
    assert_int_equal(report(7, BSW_OK), BSW_ERROR_SELF_CHECK);
    json_t *document = json_loads(text, 0, NULL);
    assert_non_null(document);
    const char *name, *command, *level, *note, *unit;
    json_int_t threads, bytes, errors, wrong;
    double rate, average, least;
    int passed;
    assert_int_equal(json_unpack(document, "{s:s, s:{s:s}, s:[{s:I, s:s}], s:[s]}", "bench", &name,
                                 "environment", "command", &command, "ranks", "threads", &threads,
                                 "level", &level, "notes", &note),
                     0);
    assert_string_equal(name, "paper");
    assert_string_equal(command, "bitsweep bench paper --max 8?");
    assert_int_equal(threads, 3);
    assert_string_equal(level, "reference");
    assert_string_equal(note, "2 sheets");
    json_t *rows = json_object_get(document, "rows");
    assert_int_equal(json_array_size(rows), 2);
    assert_int_equal(json_unpack(json_array_get(rows, 0), "{s:I, s:f, s:I}", "bytes", &bytes,
                                 "bytes_per_second", &rate, "errors", &errors),
                     0);
    assert_true(bytes == 1 && rate == 3e9 && errors == 0);
    assert_true(json_is_null(json_object_get(json_array_get(rows, 1), "bytes")));
    assert_int_equal(json_unpack(document, "{s:[*], s:{s:I, s:F, s:F, s:s, s:b}}", "columns",
                                 "footer", "wrong_values", &wrong, "average", &average, "least",
                                 &least, "average_unit", &unit, "passed", &passed),
                     0);
    assert_true(wrong == 7 && average == 4 && least == 1 && !passed);
    assert_string_equal(unit, "GB/s");
    json_decref(document);
}

// A document is kept in a file beside the table; it has columns that the table has not.
UNIT_TEST_WITH(test_kept_document, set_up, tear_down)
{
    static const struct bsw_bench_column wide[] = {
        {"what", "", "what", 8, BSW_BENCH_TEXT, 1},
        {"least", "s", "least_seconds", 0, 3, 1},
    };
    char path[] = "/tmp/bench_report.XXXXXX";
    struct bsw_bench_report r;
    FILE *out = tmpfile();
    assert_non_null(out);
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    const struct bsw_bench_report_options options = {.name = "paper",
                                                     .common = &common,
                                                     .bench = &bench,
                                                     .columns = wide,
                                                     .num_columns = 2,
                                                     .main_column = 1,
                                                     .out = out,
                                                     .path = path};
    assert_int_equal(bsw_bench_report_open(&r, &options, &transport, &err), BSW_OK);
    bsw_bench_report_row(&r, (struct bsw_bench_value[]){{0, ""}, {0.5, ""}}, 0);
    json_t *document = json_load_file(path, 0, NULL); // before the end
    json_t *row = json_array_get(json_object_get(document, "rows"), 0);
    assert_true(json_is_null(json_object_get(row, "what")));
    assert_true(json_real_value(json_object_get(row, "least_seconds")) == 0.5);
    json_decref(document);
    assert_int_equal(bsw_bench_report_close(&r, BSW_OK, &err), BSW_OK);
    document = json_load_file(path, 0, NULL);
    assert_true(json_is_true(json_object_get(json_object_get(document, "footer"), "passed")));
    json_decref(document);
    unlink(path);
    rewind(out);
    text[fread(text, 1, sizeof text - 1, out)] = '\0';
    fclose(out);
    assert_non_null(strstr(text, "# what       errors\n"
                                 "#            values\n"
                                 "  -               0\n"));
}

// A file that cannot be written fails the bench, at its end.
UNIT_TEST_WITH(test_lost_document, set_up, tear_down)
{
    struct bsw_bench_report r;
    FILE *out = tmpfile();
    assert_non_null(out);
    const struct bsw_bench_report_options options = {.name = "paper",
                                                     .common = &common,
                                                     .bench = &bench,
                                                     .columns = columns,
                                                     .num_columns = 3,
                                                     .main_column = 2,
                                                     .out = out,
                                                     .path = "/no/such/folder/file"};
    assert_int_equal(bsw_bench_report_open(&r, &options, &transport, &err), BSW_OK);
    bsw_bench_report_row(&r, (struct bsw_bench_value[]){{0, "read"}, {1, ""}, {3e9, ""}}, 0);
    assert_int_equal(bsw_bench_report_close(&r, BSW_OK, &err), BSW_ERROR_IO);
    assert_string_equal(err.message, "/no/such/folder/file: cannot be written");
    fclose(out);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
