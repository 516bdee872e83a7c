// Median: odd and even numbers, order, ties.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/median.h"

static void the_middle_one_of_an_odd_number(void **state)
{
    (void)state;
    double one[] = {3}, five[] = {9, -1, 4, 4, 100};
    assert_true(bsw_median(one, 1) == 3);
    assert_true(bsw_median(five, 5) == 4);
}

static void the_mean_of_the_middle_two_of_an_even_number(void **state)
{
    (void)state;
    double two[] = {5, 2}, four[] = {8, 1, 2, 4};
    assert_true(bsw_median(two, 2) == 3.5);
    assert_true(bsw_median(four, 4) == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_middle_one_of_an_odd_number),
        cmocka_unit_test(the_mean_of_the_middle_two_of_an_even_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
