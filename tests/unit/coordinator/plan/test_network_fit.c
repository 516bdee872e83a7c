// SPDX-License-Identifier: Apache-2.0
// The two numbers of a network: found again in exact times and between noisy ones, never negative,
// and what trees and gathers are to take by them.
#include "unit_test.h"

#include <math.h>

#include "coordinator/plan/cluster_model.h"

#define NUM_SIZES 8

static int is_near(double value, double expected, double tolerance)
{
    return fabs(value - expected) <= tolerance * fabs(expected);
}

static void make_sizes(double bytes[NUM_SIZES])
{
    for (size_t i = 0; i < NUM_SIZES; i++) bytes[i] = pow(8, (double)i + 1);
}

UNIT_TEST(exact_times_give_their_numbers)
{
    double bytes[NUM_SIZES], seconds[NUM_SIZES];
    struct bsw_network_fit fit;
    make_sizes(bytes);
    for (size_t i = 0; i < NUM_SIZES; i++) seconds[i] = 2e-6 + bytes[i] * 1e-10;
    assert_true(bsw_network_fit_make(bytes, seconds, NUM_SIZES, &fit));
    assert_true(is_near(fit.alpha_seconds, 2e-6, 1e-9));
    assert_true(is_near(fit.beta_seconds_per_byte, 1e-10, 1e-9));
    assert_true(fit.worst < 1e-9);
}

// Times off by a tenth, up and down in turns: plain least squares would miss alpha by far more, as
// an error of the largest size is a thousand alphas.
UNIT_TEST(small_and_large_sizes_count_alike)
{
    double bytes[NUM_SIZES], seconds[NUM_SIZES];
    struct bsw_network_fit fit;
    make_sizes(bytes);
    for (size_t i = 0; i < NUM_SIZES; i++)
        seconds[i] = (2e-6 + bytes[i] * 1e-10) * (i % 2 ? 1.1 : 0.9);
    assert_true(bsw_network_fit_make(bytes, seconds, NUM_SIZES, &fit));
    assert_true(is_near(fit.alpha_seconds, 2e-6, 0.1));
    assert_true(is_near(fit.beta_seconds_per_byte, 1e-10, 0.1));
    assert_true(fit.worst > 0.05 && fit.worst < 0.25);
}

// What the fit makes least.
static double sum_of_squares(double alpha, double beta, const double *bytes, const double *seconds)
{
    double sum = 0;
    for (size_t i = 0; i < NUM_SIZES; i++)
        sum += pow((alpha + beta * bytes[i] - seconds[i]) / seconds[i], 2);
    return sum;
}

UNIT_TEST(no_number_nearby_is_better)
{
    double bytes[NUM_SIZES],
        seconds[NUM_SIZES] = {3e-6, 2e-6, 2.2e-6, 9e-6, 5e-6, 4e-5, 1e-4, 2e-3};
    struct bsw_network_fit fit;
    make_sizes(bytes);
    assert_true(bsw_network_fit_make(bytes, seconds, NUM_SIZES, &fit));
    double a = fit.alpha_seconds, b = fit.beta_seconds_per_byte;
    double least = sum_of_squares(a, b, bytes, seconds);
    for (int i = 0; i < 9; i++) {
        if (i == 4) continue;
        assert_true(least < sum_of_squares(a * (1 + 0.01 * (i % 3 - 1)),
                                           b * (1 + 0.01 * (i / 3 - 1)), bytes, seconds));
    }
}

UNIT_TEST(neither_number_falls_below_nothing)
{
    struct bsw_network_fit fit;
    // A larger message that is faster: all is alpha.
    assert_true(bsw_network_fit_make((double[]){1, 2}, (double[]){4e-6, 2e-6}, 2, &fit));
    assert_true(fit.beta_seconds_per_byte == 0);
    assert_true(is_near(fit.alpha_seconds, (1 / 4e-6 + 1 / 2e-6) / (1 / 16e-12 + 1 / 4e-12), 1e-9));
    // Times that rise faster than sizes: all is beta.
    assert_true(bsw_network_fit_make((double[]){1, 2}, (double[]){1e-6, 3e-6}, 2, &fit));
    assert_true(fit.alpha_seconds == 0);
    assert_true(
        is_near(fit.beta_seconds_per_byte, (1 / 1e-6 + 2 / 3e-6) / (1 / 1e-12 + 4 / 9e-12), 1e-9));
}

UNIT_TEST(one_size_tells_nothing)
{
    struct bsw_network_fit fit;
    assert_false(bsw_network_fit_make((double[]){64}, (double[]){1e-6}, 1, &fit));
    assert_false(bsw_network_fit_make((double[]){64, 64}, (double[]){1e-6, 2e-6}, 2, &fit));
    assert_false(bsw_network_fit_make(NULL, NULL, 0, &fit));
}

UNIT_TEST(a_tree_is_as_deep_as_its_ranks_have_bits)
{
    const uint32_t ranks[] = {1, 2, 3, 4, 5, 8, 9, 1000, 1024, 1025};
    const uint32_t depths[] = {0, 1, 2, 2, 3, 3, 4, 10, 10, 11};
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++)
        assert_int_equal(bsw_tree_depth(ranks[i]), depths[i]);
}

UNIT_TEST(every_edge_of_the_tree_and_every_byte_of_a_gather_costs)
{
    const struct bsw_network_fit fit = {.alpha_seconds = 1, .beta_seconds_per_byte = 0.5};
    assert_true(bsw_network_broadcast_seconds(&fit, 8, 10) == 3 * (1 + 5));
    assert_true(bsw_network_broadcast_seconds(&fit, 1, 10) == 0);
    assert_true(bsw_network_gather_seconds(&fit, 8, 70) == 1 + 35);
    assert_true(bsw_network_gather_seconds(&fit, 1, 0) == 0);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
