// SPDX-License-Identifier: Apache-2.0
// Median: odd and even numbers, order, ties.
#include "common/base/arithmetic.h"
#include "unit_test.h"

UNIT_TEST(the_middle_one_of_an_odd_number)
{
    double one[] = {3}, five[] = {9, -1, 4, 4, 100};
    assert_true(bsw_median(one, 1) == 3);
    assert_true(bsw_median(five, 5) == 4);
}

UNIT_TEST(the_mean_of_the_middle_two_of_an_even_number)
{
    double two[] = {5, 2}, four[] = {8, 1, 2, 4};
    assert_true(bsw_median(two, 2) == 3.5);
    assert_true(bsw_median(four, 4) == 3);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
