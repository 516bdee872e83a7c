// SPDX-License-Identifier: Apache-2.0
// True neighbours among a query's first candidates, of lists made by hand.
#include "unit_test.h"

#include "coordinator/calibrate/calibrate_steps.h"

static struct bsw_error err;

enum { K = 2 };

static void expect_found(const struct bsw_calibrate_found *found, uint64_t num_queries,
                         uint64_t num_sought, const uint64_t *expected)
{
    assert_int_equal(found->num_queries, num_queries);
    assert_int_equal(found->num_sought, num_sought);
    for (int x = 0; x < BSW_CALIBRATE_OVERSAMPLES; x++)
        assert_int_equal(found->num_found[x], expected[x]);
}

static void expect(const struct bsw_calibrate_lists *lists, uint64_t num_queries,
                   uint64_t num_sought, const uint64_t *expected)
{
    struct bsw_calibrate_found all, different;
    assert_ok(bsw_calibrate_count(lists, &all, &different, &err), &err);
    expect_found(&all, num_queries, num_sought, expected);
    if (!lists->is_copy) expect_found(&different, num_queries, num_sought, expected);
}

UNIT_TEST(neighbours_count_from_the_oversample_that_reaches_them)
{
    int64_t truth_ids[] = {5, 6, 7, 8}; // two queries
    float values[] = {1, 2, 1, 2};
    int64_t ids[] = {9, 5, 1, 6, 2, -1, 8, 3, 4, 10, 11, 7};
    struct bsw_results truth = {.num_queries = 2, .k = K, .ids = truth_ids, .values = values},
                       candidates = {.num_queries = 2, .k = 6, .ids = ids};
    const struct bsw_calibrate_lists lists = {.truth = &truth, .candidates = &candidates, .k = K};
    // For the first query 5 is second and 6 fourth, for the second 8 is first and 7 sixth.
    expect(&lists, 2, 4, (const uint64_t[]){2, 3, 4, 4, 4, 4});
}

UNIT_TEST(own_rows_and_the_nearest_do_not_count)
{
    int64_t truth_ids[] = {3, 20, 21, 22, 23};
    float values[] = {0, 1, 2, 3, 4};
    int64_t ids[] = {20, 3, 30, 22, 21, 31, 23, 32};
    const uint64_t own[] = {3};
    struct bsw_results truth = {.num_queries = 1, .k = 5, .ids = truth_ids, .values = values},
                       candidates = {.num_queries = 1, .k = 8, .ids = ids};
    const struct bsw_calibrate_lists lists = {.truth = &truth,
                                              .candidates = &candidates,
                                              .own = own,
                                              .k = K,
                                              .num_skipped = 2,
                                              .own_is_nearest = 1};
    // 22 and 23 are sought among 30 22 31 23 32.
    expect(&lists, 1, 2, (const uint64_t[]){1, 2, 2, 2, 2, 2});
}

// Rows 3 and 20 to 22 are equal, but one of a roundings' length.
UNIT_TEST(copies_of_own_rows_do_not_count)
{
    int64_t truth_ids[] = {3, 20, 21, 22, 23, 24, 25, 26};
    float values[] = {1, 1, 1, 0.9999999f, 0.9f, 0.8f, 0.7f, 0.6f};
    int64_t ids[] = {20, 21, 22, 3, 25, 30, 31, 26};
    const uint64_t own[] = {3};
    struct bsw_results truth = {.num_queries = 1, .k = 8, .ids = truth_ids, .values = values},
                       candidates = {.num_queries = 1, .k = 8, .ids = ids};
    struct bsw_calibrate_lists lists = {.truth = &truth,
                                        .candidates = &candidates,
                                        .own = own,
                                        .k = K,
                                        .num_skipped = 2,
                                        .own_is_nearest = 1};
    expect(&lists, 1, 2, (const uint64_t[]){1, 2, 2, 2, 2, 2}); // 25 and 26 of 25 30 31 26
    lists.keeps_copies = 1;                                     // 22 and 23 of 22 25 30 31 26
    expect(&lists, 1, 2, (const uint64_t[]){1, 1, 1, 1, 1, 1});
}

// By ip other rows may be nearer than copies, and the row itself far away.
UNIT_TEST(copies_are_of_the_value_that_the_own_row_has)
{
    int64_t truth_ids[] = {7, 8, 3, 9, 10, 11, 12, 13, 14, 15};
    float values[] = {9, 9, 5, 5, 4, 9, 9, 9, 9, 9}; // 3 is a query, and so is 99
    int64_t ids[] = {8, 9, 10, 3, 12, -1};
    const uint64_t own[] = {3, 99};
    struct bsw_results truth = {.num_queries = 2, .k = 5, .ids = truth_ids, .values = values},
                       candidates = {.num_queries = 2, .k = 3, .ids = ids};
    const struct bsw_calibrate_lists lists = {
        .truth = &truth, .candidates = &candidates, .own = own, .k = K, .num_skipped = 1};
    expect(&lists, 2, 4, (const uint64_t[]){3, 3, 3, 3, 3, 3}); // 8, 10; 12
}

UNIT_TEST(queries_whose_copies_take_all_places_do_not_count)
{
    int64_t truth_ids[] = {20, 21, 22, 23, 24, 98, 30, 31, 32, 33}; // row 99 is like the first five
    float values[] = {0, 0, 0, 0, 0, 0, 1, 2, 3, 4};
    int64_t ids[] = {99, 20, 21, 22, 23, 24, 98, 30, 31, 32, 33, 34};
    const uint64_t own[] = {99, 98};
    struct bsw_results truth = {.num_queries = 2, .k = 5, .ids = truth_ids, .values = values},
                       candidates = {.num_queries = 2, .k = 6, .ids = ids};
    struct bsw_calibrate_lists lists = {.truth = &truth,
                                        .candidates = &candidates,
                                        .own = own,
                                        .k = K,
                                        .num_skipped = 2,
                                        .own_is_nearest = 1};
    expect(&lists, 1, 2, (const uint64_t[]){2, 2, 2, 2, 2, 2});
    lists.keeps_copies = 1;
    expect(&lists, 2, 4, (const uint64_t[]){4, 4, 4, 4, 4, 4});
    lists.keeps_copies = 0;
    lists.has_all = 1;
    expect(&lists, 2, 2, (const uint64_t[]){2, 2, 2, 2, 2, 2});
}

UNIT_TEST(what_is_as_near_as_the_last_neighbour_is_one)
{
    int64_t truth_ids[] = {5, 6, 7, 8, 9};
    float values[] = {1, 2, 2, 2, 3};
    int64_t ids[] = {9, 8, 7, 6, 5};
    struct bsw_results truth = {.num_queries = 1, .k = 5, .ids = truth_ids, .values = values},
                       candidates = {.num_queries = 1, .k = 5, .ids = ids};
    const struct bsw_calibrate_lists lists = {.truth = &truth, .candidates = &candidates, .k = K};
    expect(&lists, 1, 2, (const uint64_t[]){1, 2, 2, 2, 2, 2});
}

UNIT_TEST(copies_of_queries_are_told_apart)
{
    int64_t truth_ids[] = {5, 6, 5, 6, 7, 8};
    float values[] = {1, 2, 1, 2, 1, 2};
    int64_t ids[] = {5, 6, 5, 6, 7, 9};
    const unsigned char is_copy[] = {0, 1, 0};
    struct bsw_results truth = {.num_queries = 3, .k = K, .ids = truth_ids, .values = values},
                       candidates = {.num_queries = 3, .k = 2, .ids = ids};
    const struct bsw_calibrate_lists lists = {
        .truth = &truth, .candidates = &candidates, .is_copy = is_copy, .k = K};
    struct bsw_calibrate_found all, different;
    assert_ok(bsw_calibrate_count(&lists, &all, &different, &err), &err);
    expect_found(&all, 3, 6, (const uint64_t[]){5, 5, 5, 5, 5, 5});
    expect_found(&different, 2, 4, (const uint64_t[]){3, 3, 3, 3, 3, 3});
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
