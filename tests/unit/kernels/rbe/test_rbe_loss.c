// SPDX-License-Identifier: Apache-2.0
// The losses of rbe training and their gradients, against the definitions in float64 and their
// finite differences.
#include <math.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "kernels/rbe/rbe_loss.h"
#include "unit_test.h"

enum { ROWS = 6, DIMS = 4, NEGATIVES = 3, COUNT = ROWS * DIMS };

static const size_t shifts[NEGATIVES] = {1, 3, 5};
static const double gamma_factor = 7;

static double unit(uint64_t seed, uint64_t i) // in [-1, 1)
{
    return (double)(bsw_hash2(seed, i) >> 11) * 0x1p-52 - 1.0;
}

static void expect_near(double value, double expected, const char *what, size_t i)
{
    if (fabs(value - expected) <= 2e-5 + 1e-4 * fabs(expected)) return;
    fail_msg("%s %zu: %.9g, not %.9g", what, i, value, expected);
}

static double dot(const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < DIMS; i++) sum += a[i] * b[i];
    return sum;
}

// What both losses are of: scores, and for similarities exact ones, targets of their softmax.
struct slow_group {
    double codes[2][COUNT], first[2][COUNT]; // first: where the weights were taken
    double weights[2][ROWS], offsets[ROWS], directions[COUNT], exact[ROWS * ROWS];
    int has_similarities;
};

// A query's weight falls as its norm rises, a document's as what it has along its direction.
static double slow_score(const struct slow_group *group, size_t i, size_t j)
{
    const double *q = group->codes[0] + i * DIMS, *d = group->codes[1] + j * DIMS;
    const double *q_first = group->first[0] + i * DIMS, *d_first = group->first[1] + j * DIMS,
                 *direction = group->directions + j * DIMS;
    if (!group->has_similarities) return dot(q, d) / sqrt(dot(q, q) * dot(d, d));
    double query = group->weights[0][i] * sqrt(dot(q_first, q_first) / dot(q, q));
    double document = group->weights[1][j] * dot(direction, d_first) / dot(direction, d);
    return group->offsets[j] + query * document * dot(q, d);
}

static double log_softmax(const double *values, size_t i)
{
    double sum = 0;
    for (size_t r = 0; r <= NEGATIVES; r++) sum += exp(values[r]);
    return values[i] - log(sum);
}

static double slow_loss(const struct slow_group *group)
{
    double total = 0;
    for (size_t i = 0; i < ROWS; i++) {
        double scores[NEGATIVES + 1], exact[NEGATIVES + 1];
        for (size_t r = 0; r <= NEGATIVES; r++) {
            size_t j = r == 0 ? i : (i + shifts[r - 1]) % ROWS;
            scores[r] = gamma_factor * slow_score(group, i, j);
            exact[r] = gamma_factor * group->exact[i * ROWS + j];
        }
        for (size_t r = 0; r <= NEGATIVES && group->has_similarities; r++) {
            double target = log_softmax(exact, r);
            total += exp(target) * (target - log_softmax(scores, r));
        }
        if (!group->has_similarities) total -= log_softmax(scores, 0);
    }
    return total / ROWS;
}

static void fill(uint64_t seed, size_t count, float *values, double *same, double from)
{
    for (size_t i = 0; i < count; i++)
        same[i] = (double)(values[i] = (float)(from + unit(seed, i)));
}

static void check(int has_similarities)
{
    static struct slow_group slow;
    float rows[2][COUNT], gradients[2][COUNT], weights[2][ROWS], offsets[ROWS], directions[COUNT],
        exact[ROWS * ROWS], scratch[ROWS * (ROWS + 6)];
    for (int side = 0; side < 2; side++) {
        fill(90 + (uint64_t)side, COUNT, rows[side], slow.codes[side], 0);
        fill(92 + (uint64_t)side, ROWS, weights[side], slow.weights[side], 1.5);
    }
    fill(94, ROWS, offsets, slow.offsets, 0);
    fill(95, ROWS * ROWS, exact, slow.exact, 0);
    for (int i = 0; i < COUNT; i++) // has something of the code
        slow.directions[i] =
            (double)(directions[i] = rows[1][i] + 0.3f * (float)unit(96, (uint64_t)i));
    memcpy(slow.first, slow.codes, sizeof slow.first);
    slow.has_similarities = has_similarities;
    const struct bsw_rbe_similarities similarities = {exact, weights[0], weights[1], offsets,
                                                      directions};
    const struct bsw_rbe_loss_group group = {rows[0],
                                             rows[1],
                                             ROWS,
                                             DIMS,
                                             shifts,
                                             NEGATIVES,
                                             (float)gamma_factor,
                                             has_similarities ? &similarities : NULL};
    assert_int_equal(sizeof scratch / sizeof scratch[0], bsw_rbe_loss_scratch_floats(ROWS));
    double loss = bsw_rbe_loss(&group, scratch, gradients[0], gradients[1]), step = 1e-6;
    expect_near(loss, slow_loss(&slow), "loss", 0);
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < COUNT; i++) {
            double kept = slow.codes[side][i];
            slow.codes[side][i] = kept + step;
            double above = slow_loss(&slow);
            slow.codes[side][i] = kept - step;
            double below = slow_loss(&slow);
            slow.codes[side][i] = kept;
            expect_near((double)gradients[side][i], (above - below) / (2 * step), "gradient", i);
        }
    }
}

UNIT_TEST(of_pairs_it_is_that_of_the_paper)
{
    check(0);
}

UNIT_TEST(of_similarities_it_is_the_divergence)
{
    check(1);
}

UNIT_TEST(right_estimates_have_no_loss)
{
    float rows[2][COUNT], ones[ROWS], zeros[ROWS] = {0}, exact[ROWS * ROWS], gradients[2][COUNT],
                                      scratch[ROWS * (ROWS + 6)];
    for (size_t i = 0; i < COUNT; i++) rows[0][i] = rows[1][i] = (float)unit(7, i);
    for (size_t i = 0; i < ROWS; i++) ones[i] = 1;
    for (size_t i = 0; i < ROWS * ROWS; i++) {
        exact[i] = 0;
        for (size_t d = 0; d < DIMS; d++)
            exact[i] += rows[0][i / ROWS * DIMS + d] * rows[1][i % ROWS * DIMS + d];
    }
    const struct bsw_rbe_similarities similarities = {exact, ones, ones, zeros, rows[1]};
    const struct bsw_rbe_loss_group group = {rows[0], rows[1],   ROWS, DIMS,
                                             shifts,  NEGATIVES, 30,   &similarities};
    assert_true(fabs(bsw_rbe_loss(&group, scratch, gradients[0], gradients[1])) < 1e-5);
    for (size_t i = 0; i < COUNT; i++) assert_true(fabsf(gradients[0][i]) < 1e-4f);
}

UNIT_TEST(rows_of_zeros_have_a_loss)
{
    float rows[2][8] = {{0}}, gradients[2][8], scratch[2 * (2 + 6)];
    const size_t shift = 1;
    const struct bsw_rbe_loss_group group = {rows[0], rows[1], 2, 4, &shift, 1, 10, NULL};
    double loss = bsw_rbe_loss(&group, scratch, gradients[0], gradients[1]);
    assert_true(fabs(loss - log(2.0)) < 1e-6);
    for (int i = 0; i < 8; i++) assert_true(isfinite(gradients[0][i]) && isfinite(gradients[1][i]));
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
