// SPDX-License-Identifier: Apache-2.0
// The order of scores and packed candidates is the order of keys, then of rows; both come back.
#include <float.h>
#include <math.h>

#include "common/base/arithmetic.h"
#include "common/codes/metric.h"
#include "unit_test.h"

UNIT_TEST(float_scores_keep_the_order)
{
    static const float rising[] = {
        -INFINITY,          -FLT_MAX, -1e10f,    -1.5f,   -1.0f, -FLT_MIN,
        -0x1p-149f,         0.0f,     0x1p-149f, FLT_MIN, 0.5f,  1.0f,
        1.0f + FLT_EPSILON, 3e7f,     FLT_MAX,   INFINITY};
    for (size_t i = 0; i < sizeof rising / sizeof rising[0]; i++) {
        uint32_t score = bsw_score_from_float(rising[i]);
        assert_true(bsw_score_to_float(score) == rising[i]);
        if (i > 0) assert_true(bsw_score_from_float(rising[i - 1]) < score);
    }
}

// All scores between those of the infinities, in large steps.
UNIT_TEST(float_scores_come_back)
{
    float before = -INFINITY;
    for (uint64_t score = 0x007fffffu; score <= 0xff800000u; score += 997) {
        float key = bsw_score_to_float((uint32_t)score);
        assert_int_equal(bsw_score_from_float(key), (uint32_t)score);
        assert_true(key >= before);
        before = key;
    }
    assert_true(isnan(bsw_score_to_float(0)));
    assert_true(isnan(bsw_score_to_float(UINT32_MAX)));
}

UNIT_TEST(integer_scores_keep_the_order)
{
    static const int32_t rising[] = {INT32_MIN, INT32_MIN + 1, -70000,   -1, 0, 1,
                                     2,         70000,         INT32_MAX};
    for (size_t i = 0; i < sizeof rising / sizeof rising[0]; i++) {
        uint32_t score = bsw_score_from_integer(rising[i]);
        assert_int_equal(bsw_score_to_integer(score), rising[i]);
        if (i > 0) assert_true(bsw_score_from_integer(rising[i - 1]) < score);
    }
}

// Few scores and few rows, so that ties are met.
UNIT_TEST(candidates_order_by_score_then_smaller_row)
{
    for (uint64_t run = 0; run < 100000; run++) {
        uint64_t a = bsw_hash2(1, run), b = bsw_hash2(2, run);
        uint32_t a_score = (uint32_t)(a % 3) * 0x7fffffffu,
                 b_score = (uint32_t)(b % 3) * 0x7fffffffu;
        uint32_t a_row = (uint32_t)(a >> 8) % 3 * 0x7fffffffu,
                 b_row = (uint32_t)(b >> 8) % 3 * 0x7fffffffu;
        uint64_t a_packed = bsw_candidate_pack(a_score, a_row);
        uint64_t b_packed = bsw_candidate_pack(b_score, b_row);
        assert_int_equal(bsw_candidate_score(a_packed), a_score);
        assert_int_equal(bsw_candidate_row(a_packed), a_row);
        int a_better = a_score > b_score || (a_score == b_score && a_row < b_row);
        int same = a_score == b_score && a_row == b_row;
        assert_int_equal(a_packed > b_packed, a_better);
        assert_int_equal(a_packed == b_packed, same);
    }
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
