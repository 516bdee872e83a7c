// SPDX-License-Identifier: Apache-2.0
// The Pareto front against its definition.
#include "unit_test.h"

#include <stdio.h>

#include "common/base/integer_hash.h"
#include "coordinator/sweep/sweep_report.h"

static double number_of(const json_t *row, const char *name)
{
    return json_number_value(json_object_get(row, name));
}

// Few values, so that there are ties of one and of both.
static json_t *random_rows(uint64_t seed, int count)
{
    json_t *rows = json_object();
    for (int i = 0; i < count; i++) {
        uint64_t hash = bsw_hash2(seed, (uint64_t)i);
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        json_object_set_new(rows, name,
                            json_pack("{s:I, s:f, s:f}", "count", (json_int_t)(10 + hash % 2),
                                      "recall", (double)(hash / 2 % 6) / 8, "qps",
                                      (double)(hash / 64 % 6)));
    }
    return rows;
}

UNIT_TEST(the_front_is_what_the_definition_says)
{
    int num_front = 0, num_behind = 0;
    for (uint64_t seed = 0; seed < 50; seed++) {
        json_t *a, *b, *rows = random_rows(seed, 20);
        const char *name, *other;
        assert_int_equal(bsw_sweep_mark_front(rows, NULL), BSW_OK);
        json_object_foreach(rows, name, a)
        {
            int expected = 1;
            json_object_foreach(rows, other, b)
            {
                if (number_of(a, "count") != number_of(b, "count")) continue;
                double recall = number_of(b, "recall") - number_of(a, "recall"),
                       qps = number_of(b, "qps") - number_of(a, "qps");
                if (recall >= 0 && qps >= 0 && recall + qps > 0) expected = 0;
            }
            assert_int_equal(number_of(a, "pareto"), expected);
            num_front += expected;
            num_behind += !expected;
        }
        json_decref(rows);
    }
    assert_true(num_front > 50 && num_behind > 50);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
