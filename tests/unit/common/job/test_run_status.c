// SPDX-License-Identifier: Apache-2.0
// "run" in OUTPUT.json, and the STATUS file: what an earlier run left is gone before this one
// works, and what it says at the end.
#include "common/base/file.h"
#include "common/job/run_status.h"
#include "tests/unit/temporary_folder.h"
#include "unit_test.h"

static struct bsw_error err;

static void assert_says(const char *path, const char *const *facts)
{
    struct bsw_buffer text = {0};
    if (bsw_file_read_all(path, 4096, &text, &err) != BSW_OK) fail_msg("%s", err.message);
    assert_int_equal(bsw_buffer_append(&text, "", 1, &err), BSW_OK);
    for (; *facts; facts++) {
        if (!strstr((const char *)text.data, *facts)) fail_msg("%s: no %s", path, *facts);
    }
    bsw_buffer_deinit(&text);
}

// Whoever reads it must not take the end of another run for that of one that is still at work, or
// died before it had anything to say.
UNIT_TEST(what_an_earlier_run_said_is_gone_at_once)
{
    const char *asked = write_test_file("asked", "{\"status\": \"complete\"}\n", 23);
    static const char said[] = "{\"k\": 10, \"run\": {\"status\": \"complete\"}}\n";
    static const char *const facts[] = {"{\n  \"k\": 10\n}\n", NULL};
    const char *old = write_test_file("r.STATUS.json", "{\"status\": \"complete\"}\n", 23);
    const char *beside = write_test_file("r.json", said, sizeof said - 1);
    assert_int_equal(setenv("BITSWEEP_STATUS", asked, 1), 0);
    bsw_run_status_begin("search");
    assert_false(bsw_file_exists(asked));
    assert_true(bsw_run_status_is_complete(path_of("r"))); // not this run's output yet
    assert_int_equal(bsw_run_status_set_output(path_of("r"), "queries", &err), BSW_OK);
    assert_false(bsw_run_status_is_complete(path_of("r")) || bsw_file_exists(old));
    assert_says(beside, facts); // of an older result, which is still there
    write_test_file("r.STATUS.json", "", 0);
    write_test_file("r.json", said + 9, sizeof said - 10);
    assert_int_equal(bsw_run_status_set_output(path_of("r//"), "queries", &err),
                     BSW_OK);                                      // a folder
    assert_true(bsw_file_exists(beside) && !bsw_file_exists(old)); // no JSON: another's
    write_test_file("r.json", "{\"run\": {}}", 11);
    assert_int_equal(bsw_run_status_set_output(path_of("r/"), "queries", &err), BSW_OK);
    assert_false(bsw_file_exists(beside));
    write_test_file("r.STATUS.json", "{\"status\": \"complete\"}\n", 23);
    assert_true(bsw_run_status_is_complete(path_of("r"))); // of an older version
    bsw_run_status_begin("search");                        // of nothing
}

UNIT_TEST(both_places_say_how_it_ended)
{
    static const struct {
        enum bsw_status status;
        const char *facts[5];
    } cases[] = {
        {BSW_OK, {"\"status\": \"complete\"", "\"exit_code\": 0,", "\"done\": 20,", NULL}},
        {BSW_ERROR_STOPPED,
         {"\"status\": \"stopped\"", "\"exit_code\": 75,", "\"done\": 3,", NULL}},
        {BSW_ERROR_IO, {"\"status\": \"failed\"", "\"exit_code\": 74,", "\"done\": 3,", NULL}},
        {BSW_ERROR_BAD_DATA,
         {"\"status\": \"failed\"", "\"exit_code\": 65,", "\"done\": 3,", NULL}},
    };
    static const char *const counted[] = {"\"total\": 20,", "\"unit\": \"queries\"",
                                          "\"command\": \"search\"", NULL};
    assert_int_equal(setenv("BITSWEEP_STATUS", path_of("asked"), 1), 0);
    bsw_run_status_begin("search");
    assert_int_equal(bsw_run_status_set_output(path_of("r"), "queries", &err), BSW_OK);
    bsw_run_status_count(3, 20);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *message = cases[i].status == BSW_OK ? "" : "a name with \xff in it";
        assert_int_equal(bsw_run_status_write(cases[i].status, message, &err), BSW_OK);
        assert_says(path_of("asked"), cases[i].facts);
        assert_says(path_of("r.json"), cases[i].facts);
        assert_says(path_of("r.json"), counted);
        assert_int_equal(bsw_run_status_is_complete(path_of("r")), cases[i].status == BSW_OK);
    }
}

UNIT_TEST(one_place_that_cannot_be_written_does_not_spoil_the_other)
{
    static const char *const facts[] = {"\"status\": \"complete\"", NULL};
    assert_int_equal(setenv("BITSWEEP_STATUS", path_of("missing/asked"), 1), 0);
    bsw_run_status_begin("search");
    assert_int_equal(bsw_run_status_set_output(path_of("r"), "queries", &err), BSW_OK);
    assert_int_equal(bsw_run_status_write(BSW_OK, "", &err), BSW_ERROR_IO);
    assert_non_null(strstr(err.message, "missing/asked"));
    assert_says(path_of("r.json"), facts);
    assert_int_equal(unsetenv("BITSWEEP_STATUS"), 0);
    assert_int_equal(bsw_run_status_write(BSW_OK, "", &err), BSW_OK);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
