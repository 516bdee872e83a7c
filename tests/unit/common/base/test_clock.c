// SPDX-License-Identifier: Apache-2.0
// Pauses between two looks: no nap while a wait is short.
#include "common/base/clock.h"

#include "unit_test.h"

static unsigned num_naps;

// Instead of the system's.
int nanosleep(const struct timespec *wanted, struct timespec *left)
{
    (void)left;
    assert_true(wanted->tv_sec == 0 && wanted->tv_nsec > 0);
    num_naps++;
    return 0;
}

UNIT_TEST(short_waits_have_no_naps)
{
    for (int64_t waited = 0; waited < 2000000; waited += 100000) bsw_clock_pause(waited);
    bsw_clock_pause(1999999);
    assert_int_equal(num_naps, 0);
}

UNIT_TEST(long_waits_have)
{
    bsw_clock_pause(2000000);
    bsw_clock_pause(INT64_MAX);
    assert_int_equal(num_naps, 2);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
