// SPDX-License-Identifier: Apache-2.0
// Status codes, exit codes and one-line messages.
#include <string.h>

#include "common/base/status.h"
#include "unit_test.h"

UNIT_TEST(names_and_exit_codes_are_fixed)
{
    static const struct {
        enum bsw_status status;
        int exit_code;
        const char *name;
    } cases[] = {
        {BSW_OK, 0, "ok"},
        {BSW_ERROR_USAGE, 2, "usage"},
        {BSW_ERROR_TOO_LARGE, 2, "too large"},
        {BSW_ERROR_BAD_DATA, 65, "bad data"},
        {BSW_ERROR_IO, 74, "input/output"},
        {BSW_ERROR_OUT_OF_MEMORY, 74, "no memory"},
        {BSW_ERROR_TIMEOUT, 75, "timeout"},
        {BSW_ERROR_PEER, 75, "peer lost"},
        {BSW_ERROR_SELF_CHECK, 70, "self-check"},
        {BSW_PARTIAL, 76, "partial"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(bsw_status_exit_code(cases[i].status), cases[i].exit_code);
        assert_string_equal(bsw_status_name(cases[i].status), cases[i].name);
    }
    assert_int_equal(BSW_OK, 0);
}

UNIT_TEST(fail_writes_and_returns_the_status)
{
    struct bsw_error err = {.rank = 5};
    assert_int_equal(bsw_fail(&err, BSW_ERROR_IO, "%s: %d", "path", 7), BSW_ERROR_IO);
    assert_int_equal(err.status, BSW_ERROR_IO);
    assert_int_equal(err.rank, -1);
    assert_string_equal(err.message, "path: 7");
    assert_int_equal(bsw_fail(NULL, BSW_ERROR_USAGE, "unseen"), BSW_ERROR_USAGE);
    assert_int_equal(bsw_prefix(NULL, BSW_ERROR_USAGE, "unseen"), BSW_ERROR_USAGE);
}

UNIT_TEST(hostile_names_stay_on_one_line)
{
    struct bsw_error err;
    bsw_fail(&err, BSW_ERROR_IO, "%s: gone", "a\nb\r\x1b[2J\x7f\tä");
    assert_string_equal(err.message, "a?b??[2J??ä: gone");
    bsw_prefix(&err, BSW_ERROR_IO, "%s: ", "x\ny");
    assert_string_equal(err.message, "x?y: a?b??[2J??ä: gone");
}

UNIT_TEST(long_messages_are_cut_and_terminated)
{
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    struct bsw_error err;
    bsw_fail(&err, BSW_ERROR_IO, "%s", text);
    assert_int_equal(strlen(err.message), BSW_ERROR_MESSAGE_BYTES - 1);
    bsw_fail(&err, BSW_ERROR_IO, "short");
    bsw_prefix(&err, BSW_ERROR_IO, "%s", text);
    assert_int_equal(strlen(err.message), BSW_ERROR_MESSAGE_BYTES - 1);
    text[500] = '\0';
    bsw_fail(&err, BSW_ERROR_IO, "%s", text);
    bsw_prefix(&err, BSW_ERROR_IO, "clause of some length: ");
    assert_int_equal(strlen(err.message), BSW_ERROR_MESSAGE_BYTES - 1);
    assert_int_equal(strncmp(err.message, "clause of some length: xxx", 26), 0);
}

UNIT_TEST(prefix_keeps_status_and_message)
{
    struct bsw_error err;
    bsw_fail(&err, BSW_ERROR_BAD_DATA, "row %d is wrong", 3);
    assert_int_equal(bsw_prefix(&err, BSW_ERROR_BAD_DATA, "shard %d: ", 2), BSW_ERROR_BAD_DATA);
    assert_string_equal(err.message, "shard 2: row 3 is wrong");
    assert_int_equal(err.status, BSW_ERROR_BAD_DATA);
}

static enum bsw_status try_to_end(enum bsw_status given, int *reached)
{
    BSW_TRY(given);
    *reached = 1;
    return BSW_OK;
}

static enum bsw_status try_with_cleanup(enum bsw_status given, int *reached, int *cleaned)
{
    enum bsw_status status;
    BSW_TRY_GOTO(given, out);
    *reached = 1;
out:
    *cleaned = 1;
    return status;
}

UNIT_TEST(try_macros_leave_at_the_first_failure)
{
    int reached = 0, cleaned = 0;
    assert_int_equal(try_to_end(BSW_ERROR_PEER, &reached), BSW_ERROR_PEER);
    assert_int_equal(reached, 0);
    assert_int_equal(try_to_end(BSW_OK, &reached), BSW_OK);
    assert_int_equal(reached, 1);
    reached = 0;
    assert_int_equal(try_with_cleanup(BSW_ERROR_IO, &reached, &cleaned), BSW_ERROR_IO);
    assert_true(cleaned && !reached);
    assert_int_equal(try_with_cleanup(BSW_OK, &reached, &cleaned), BSW_OK);
    assert_int_equal(reached, 1);
}

// Threads come to their places in any order: the lowest that failed counts, its text whole.
UNIT_TEST(the_lowest_failure_is_reported)
{
    for (int run = 0; run < 50; run++) {
        struct bsw_first_failure failure = {0};
        struct bsw_error err = {.message = "as it was"};
        assert_int_equal(bsw_first_failure_report(&failure, &err), BSW_OK);
        assert_string_equal(err.message, "as it was");
#pragma omp parallel for schedule(dynamic) num_threads(4)
        for (int place = 199; place >= 7; place--) {
            struct bsw_error own;
            enum bsw_status status = place % 2 ? BSW_ERROR_IO : BSW_ERROR_BAD_DATA;
            bsw_first_failure_note(&failure, (uint64_t)place,
                                   bsw_fail(&own, status, "place %d", place), &own);
        }
        assert_int_equal(bsw_first_failure_report(&failure, &err), BSW_ERROR_IO);
        assert_string_equal(err.message, "place 7");
        assert_int_equal(bsw_first_failure_report(&failure, NULL), BSW_ERROR_IO);
    }
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
