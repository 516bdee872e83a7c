// SPDX-License-Identifier: Apache-2.0
// Half precision: all 65536 values, and rounding against the neighbours.
#include <math.h>

#include "common/base/arithmetic.h"
#include "common/codes/half.h"
#include "unit_test.h"

#define HALF_TOP      0x7bff // 65504
#define HALF_INFINITY 0x7c00

// The value by the definition of the format.
static double half_value(uint16_t half)
{
    int exponent = half >> 10 & 31, mantissa = half & 1023;
    double value;
    if (exponent == 31)
        value = mantissa ? NAN : INFINITY;
    else if (exponent == 0)
        value = ldexp(mantissa, -24);
    else
        value = ldexp(1024 + mantissa, exponent - 25);
    return half & 0x8000 ? -value : value;
}

UNIT_TEST(every_half_has_its_value)
{
    for (uint32_t half = 0; half < 65536; half++) {
        double expected = half_value((uint16_t)half), got = bsw_half_to_float((uint16_t)half);
        if (isnan(expected)) {
            assert_true(isnan(got));
            continue;
        }
        if (got != expected || signbit(got) != signbit(expected))
            fail_msg("%04x: %g, not %g", half, got, expected);
    }
    assert_true(bsw_half_to_float(HALF_TOP) == BSW_HALF_MAX);
}

UNIT_TEST(every_positive_half_comes_back)
{
    for (uint32_t half = 0; half <= HALF_TOP; half++) {
        double value = bsw_half_to_float((uint16_t)half);
        assert_int_equal(bsw_half_floor(value), half);
        assert_int_equal(bsw_half_nearest(value), half);
        assert_int_equal(bsw_half_up(value), half);
    }
}

static void assert_between(double value, uint16_t below)
{
    double low = half_value(below), high = half_value((uint16_t)(below + 1));
    uint16_t nearest = value - low < high - value   ? below
                       : value - low > high - value ? (uint16_t)(below + 1)
                                                    : (uint16_t)(below + (below & 1));
    if (bsw_half_floor(value) != below || bsw_half_up(value) != below + 1 ||
        bsw_half_nearest(value) != nearest)
        fail_msg("%a between %04x and %04x", value, below, below + 1);
}

UNIT_TEST(middles_go_to_the_even_half_and_their_sides_apart)
{
    for (uint32_t half = 0; half < HALF_TOP; half++) {
        double low = half_value((uint16_t)half), high = half_value((uint16_t)(half + 1));
        double middle = low + (high - low) / 2;
        assert_between(middle, (uint16_t)half);
        assert_between(nextafter(middle, 0), (uint16_t)half);
        assert_between(nextafter(middle, 1e9), (uint16_t)half);
        assert_between(nextafter(low, 1e9), (uint16_t)half);
        assert_between(nextafter(high, 0), (uint16_t)half);
        assert_int_equal(bsw_half_nearest(middle) & 1, 0);
    }
}

UNIT_TEST(random_numbers_go_to_their_neighbours)
{
    for (uint64_t run = 0; run < 200000; run++) {
        uint64_t bits = bsw_hash(run);
        double value = ldexp((double)(bits >> 11), (int)(bits % 50) - 86); // 2^-33 to 2^16
        uint16_t below = bsw_half_floor(value);
        if (value >= 65504.0) {
            assert_int_equal(below, HALF_TOP);
            continue;
        }
        assert_true(half_value(below) <= value && value < half_value((uint16_t)(below + 1)));
        if (half_value(below) < value) assert_between(value, below);
    }
}

UNIT_TEST(beyond_the_range_is_as_stated)
{
    static const double values[] = {65504.0 + 1e-9, 65519.9, 65520.0, 65536.0, 1e30, 1e300};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        assert_int_equal(bsw_half_floor(values[i]), HALF_TOP);
        assert_int_equal(bsw_half_nearest(values[i]), HALF_TOP);
        assert_int_equal(bsw_half_up(values[i]), HALF_INFINITY);
    }
    assert_int_equal(bsw_half_up(65504.0), HALF_TOP);
    assert_int_equal(bsw_half_up(5e-324), 1);
    assert_int_equal(bsw_half_nearest(5e-324), 0);
    assert_int_equal(bsw_half_floor(0.0), 0);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
