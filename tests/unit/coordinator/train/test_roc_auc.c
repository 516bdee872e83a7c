// The area by sorting against its definition: every positive with every negative.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "common/base/integer_hash.h"
#include "coordinator/train/roc_auc.h"

enum { MOST = 300 };

static double by_definition(const float *positives, size_t num_positives, const float *negatives,
                            size_t num_negatives)
{
    double sum = 0;
    for (size_t i = 0; i < num_positives; i++) {
        for (size_t j = 0; j < num_negatives; j++)
            sum += positives[i] > negatives[j] ? 1.0 : positives[i] == negatives[j] ? 0.5 : 0.0;
    }
    return sum / ((double)num_positives * (double)num_negatives);
}

// One of so many values, the positives' a little higher; 0 of both signs among them.
static void fill(float *values, size_t count, uint64_t seed, uint64_t num_values, float shift)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t hash = bsw_hash2(seed, i);
        float value = (float)(hash % num_values) - (float)(num_values / 2) + shift;
        values[i] = value == 0 && (hash >> 40) % 2 ? -0.0f : value;
    }
}

static void it_is_what_the_definition_says(void **state)
{
    (void)state;
    float positives[MOST], negatives[MOST];
    const uint64_t num_values[] = {1, 2, 7, 100, 1u << 20};
    for (uint64_t seed = 0; seed < 200; seed++) {
        size_t num_positives = 1 + bsw_hash2(seed, 1) % MOST,
               num_negatives = 1 + bsw_hash2(seed, 2) % MOST;
        fill(positives, num_positives, bsw_hash2(seed, 3), num_values[seed % 5], (float)(seed % 3));
        fill(negatives, num_negatives, bsw_hash2(seed, 4), num_values[seed % 5], 0);
        if (seed % 4 == 0) positives[0] = -INFINITY;
        if (seed % 4 == 1) negatives[0] = INFINITY;
        double expected = by_definition(positives, num_positives, negatives, num_negatives);
        assert_true(bsw_roc_auc(positives, num_positives, negatives, num_negatives) == expected);
    }
}

static void the_ends_of_the_scale(void **state)
{
    (void)state;
    float high[] = {5, 3, 4}, low[] = {2, 1}, same[] = {7, 7, 7, 7};
    assert_true(bsw_roc_auc(high, 3, low, 2) == 1);
    assert_true(bsw_roc_auc(low, 2, high, 3) == 0);
    assert_true(bsw_roc_auc(same, 1, same + 1, 3) == 0.5);
    assert_true(bsw_roc_auc(high, 0, low, 2) == 0 && bsw_roc_auc(high, 3, low, 0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_what_the_definition_says),
        cmocka_unit_test(the_ends_of_the_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
