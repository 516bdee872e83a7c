// SPDX-License-Identifier: Apache-2.0
// True neighbours among a query's first candidates, of lists made by hand.
#include "unit_test.h"

#include "coordinator/calibrate/calibrate_count.h"

static struct bsw_error err;

enum { K = 2 };

static void expect(const struct bsw_calibrate_lists *lists, const uint64_t *expected)
{
    uint64_t found[BSW_CALIBRATE_OVERSAMPLES];
    assert_ok(bsw_calibrate_count(lists, found, &err), &err);
    for (int x = 0; x < BSW_CALIBRATE_OVERSAMPLES; x++) assert_int_equal(found[x], expected[x]);
}

UNIT_TEST(neighbours_count_from_the_oversample_that_reaches_them)
{
    int64_t truth_ids[] = {5, 6, 7, 8}; // two queries
    int64_t ids[] = {9, 5, 1, 6, 2, -1, 8, 3, 4, 10, 11, 7};
    struct bsw_results truth = {.num_queries = 2, .k = K, .ids = truth_ids},
                       candidates = {.num_queries = 2, .k = 6, .ids = ids};
    const struct bsw_calibrate_lists lists = {.truth = &truth, .candidates = &candidates, .k = K};
    // Of the first query 5 is second and 6 fourth, of the second 8 is first and 7 sixth.
    expect(&lists, (const uint64_t[]){2, 3, 4, 4, 4, 4});
}

UNIT_TEST(own_rows_and_the_nearest_do_not_count)
{
    int64_t truth_ids[] = {3, 20, 21, 22, 23};
    int64_t ids[] = {20, 3, 30, 22, 21, 31, 23, 32};
    const uint64_t own[] = {3};
    struct bsw_results truth = {.num_queries = 1, .k = 5, .ids = truth_ids},
                       candidates = {.num_queries = 1, .k = 8, .ids = ids};
    const struct bsw_calibrate_lists lists = {
        .truth = &truth, .candidates = &candidates, .own = own, .k = K, .num_skipped = 2};
    // 22 and 23 are sought among 30 22 31 23 32.
    expect(&lists, (const uint64_t[]){1, 2, 2, 2, 2, 2});
}

UNIT_TEST(an_own_row_may_be_behind_others)
{
    int64_t truth_ids[] = {20, 21, 22, 23, 24}; // all equal to row 99
    int64_t ids[] = {99, 20, 21, 22, 23, 24};
    const uint64_t own[] = {99};
    struct bsw_results truth = {.num_queries = 1, .k = 5, .ids = truth_ids},
                       candidates = {.num_queries = 1, .k = 6, .ids = ids};
    const struct bsw_calibrate_lists lists = {
        .truth = &truth, .candidates = &candidates, .own = own, .k = K, .num_skipped = 2};
    expect(&lists, (const uint64_t[]){2, 2, 2, 2, 2, 2});
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
