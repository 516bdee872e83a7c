// SPDX-License-Identifier: Apache-2.0
// What a sweep says of how far it is: no time before it knows one, then points and indexes by what
// they took so far.
#include "unit_test.h"

#include "coordinator/sweep/sweep_job.h"

static void expect(const struct bsw_sweep_pace *pace, struct bsw_sweep_place place,
                   const char *expected)
{
    char text[BSW_SWEEP_PACE_BYTES];
    bsw_sweep_pace_text(pace, &place, text);
    assert_string_equal(text, expected);
}

UNIT_TEST(time_left_is_told_once_it_is_known)
{
    struct bsw_sweep_pace pace;
    bsw_sweep_pace_begin(&pace, NULL, 45);
    const struct bsw_sweep_place first = {
        .point = 1, .index = "saq-2", .is_made = 1, .points_left = 45, .indexes_left = 3};
    expect(&pace, first, "point 1 of 45, making index saq-2");
    pace.num_indexes = 1;
    pace.index_seconds = 60;
    expect(&pace, first, "point 1 of 45, making index saq-2");
    pace.num_measured = 2;
    pace.point_seconds = 20;
    const struct bsw_sweep_place later = {
        .point = 12, .index = "saq-2", .points_left = 30, .indexes_left = 1};
    expect(&pace, later, "point 12 of 45, index saq-2, about 6 min left");
    pace.index_seconds = 36000;
    expect(&pace, later, "point 12 of 45, index saq-2, about 10 h left");
    expect(&pace, (struct bsw_sweep_place){.point = 45, .index = "saq-3", .points_left = 1},
           "point 45 of 45, index saq-3, about 10 s left");
}

// A sweep that goes on and makes no index knows a time all the same.
UNIT_TEST(indexes_that_are_there_take_no_time)
{
    struct bsw_sweep_pace pace;
    bsw_sweep_pace_begin(&pace, NULL, 4);
    pace.num_measured = 1;
    pace.point_seconds = 0.1;
    expect(&pace, (struct bsw_sweep_place){.point = 2, .index = "pq-8", .points_left = 3},
           "point 2 of 4, index pq-8, about 1 s left");
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
