// SPDX-License-Identifier: Apache-2.0
// The limit of open files is raised to what is needed, and no further than the hard one.
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "common/base/process.h"
#include "unit_test.h"

static struct bsw_error err;

static void set_limits(rlim_t soft, rlim_t hard)
{
    const struct rlimit limit = {soft, hard};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static rlim_t soft_limit(void)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    return limit.rlim_cur;
}

// The hard limit can only be lowered, so the order of the tests matters.
UNIT_TEST(the_soft_limit_is_raised_to_what_is_needed)
{
    set_limits(100, 1000);
    assert_int_equal(bsw_file_limit_raise(0, &err), BSW_OK);
    assert_int_equal(soft_limit(), 100); // enough
    assert_int_equal(bsw_file_limit_raise(500, &err), BSW_OK);
    assert_in_range(soft_limit(), 500 + BSW_FILES_TO_SPARE, 500 + BSW_FILES_TO_SPARE + 60);
    rlim_t before = soft_limit();
    assert_int_equal(bsw_file_limit_raise(300, &err), BSW_OK);
    assert_int_equal(soft_limit(), before); // never lowered
}

UNIT_TEST(files_that_are_open_count)
{
    FILE *files[40];
    set_limits(90, 1000);
    for (int i = 0; i < 40; i++) assert_non_null(files[i] = fopen("/dev/null", "r"));
    assert_int_equal(bsw_file_limit_raise(100, &err), BSW_OK);
    assert_in_range(soft_limit(), 40 + 100 + BSW_FILES_TO_SPARE,
                    40 + 100 + BSW_FILES_TO_SPARE + 60);
    for (int i = 0; i < 40; i++) fclose(files[i]);
}

UNIT_TEST(a_hard_limit_that_is_too_low_is_named_with_the_need)
{
    unsigned long long needed, most;
    set_limits(100, 200);
    assert_int_equal(bsw_file_limit_raise(4000, &err), BSW_ERROR_IO);
    assert_int_equal(sscanf(err.message,
                            "%llu files open at once are needed for the shards, the hard limit of "
                            "this process is %llu",
                            &needed, &most),
                     2);
    assert_in_range(needed, 4000 + BSW_FILES_TO_SPARE, 4000 + BSW_FILES_TO_SPARE + 60);
    assert_int_equal(most, 200);
    assert_int_equal(soft_limit(), 100);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
