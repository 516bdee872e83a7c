// SPDX-License-Identifier: Apache-2.0
// First weights from principal axes: components go where they remove most error, together they are
// the uniform quantizer that the header promises, and its estimates beat those of random axes.
#include <math.h>
#include <stdlib.h>

#include "common/base/arithmetic.h"
#include "coordinator/train/rbe_first_weights.h"
#include "kernels/rbe/rbe_gradient.h"
#include "kernels/rbe/rbe_start.h"
#include "unit_test.h"

static struct bsw_error err;

static double gaussian(uint64_t seed, uint64_t i)
{
    double sum = 0;
    for (uint64_t k = 0; k < 12; k++)
        sum += (double)(bsw_hash2(seed, 12 * i + k) >> 11) * 0x1p-53 - 0.5;
    return sum;
}

// Max (1960): levels, distance, error.
UNIT_TEST(steps_are_those_of_the_table)
{
    static const double table[][3] = {
        {2, 1.596, 0.3634}, {4, 0.9957, 0.1188}, {8, 0.5860, 0.03744}, {16, 0.3352, 0.01154}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        double error, step = bsw_gaussian_step((uint32_t)table[i][0], &error);
        assert_true(fabs(step - table[i][1]) < 0.002 * step);
        assert_true(fabs(error - table[i][2]) < 0.002 * error);
    }
}

UNIT_TEST(components_go_where_the_energy_is)
{
    const double energies[4] = {100, 10, 1, 0.001};
    uint32_t counts[4];
    bsw_rbe_deal_components(energies, 4, 2, 4, 16, counts);
    assert_int_equal(counts[0] + counts[1] + counts[2] + counts[3], 4);
    assert_true(counts[0] > counts[1] && counts[1] >= counts[2] && counts[3] == 0);
    bsw_rbe_deal_components(energies, 4, 2, 4, 1, counts);
    for (int i = 0; i < 4; i++) assert_int_equal(counts[i], 1);
    bsw_rbe_deal_components(energies, 4, 2, 50, 3, counts); // more than there is room for
    for (int i = 0; i < 4; i++) assert_int_equal(counts[i], 3);
}

// One axis, two components, two planes: seven levels, each the nearest.
UNIT_TEST(components_of_an_axis_share_its_levels)
{
    enum { ROWS = 4000 };
    const struct bsw_rbe_shape shapes[BSW_RBE_NUM_SIDES] = {{1, 2, 5, 0, 1}, {1, 2, 1, 0, 1}};
    static float inputs[ROWS];
    float parameters[128];
    struct bsw_rbe_pass pass;
    double error, step = bsw_gaussian_step(7, &error), square = 0;
    for (size_t i = 0; i < ROWS; i++) inputs[i] = 1e-3f * (float)gaussian(3, i);
    for (size_t i = 0; i < ROWS; i++) square += (double)inputs[i] * (double)inputs[i] / ROWS;
    size_t num_query = bsw_rbe_num_parameters(&shapes[0]);
    assert_in_range(num_query + bsw_rbe_num_parameters(&shapes[1]), 1, 128);
    assert_int_equal(bsw_rbe_start_principal(shapes, inputs, ROWS, 1, parameters, &err), BSW_OK);
    assert_int_equal(bsw_rbe_pass_init(&shapes[1], ROWS, &pass, &err), BSW_OK);
    bsw_rbe_forward(&pass, parameters + num_query, BSW_RBE_VARIANT, 1, inputs, ROWS);
    double sign = parameters[num_query] > 0 ? 1 : -1; // an axis may point either way
    for (size_t i = 0; i < ROWS; i++) {
        double sum = (double)pass.codes[1][2 * i] + (double)pass.codes[1][2 * i + 1];
        double level = floor(sign * (double)inputs[i] / (step * sqrt(square)) + 0.5);
        level = level < -3 ? -3 : level > 3 ? 3 : level;
        double x = fabs((double)inputs[i] / (step * sqrt(square)));
        if (fabs(x - floor(x) - 0.5) > 1e-3) assert_true(fabs(sum - level) < 1e-6);
    }
    bsw_rbe_pass_deinit(&pass);
}

// ---- estimates ----

enum { DIMS = 24, SAMPLE = 600, QUERIES = 40 };

// The root mean square error of scores by projection, of the first QUERIES rows with all.
static double estimate_error(const struct bsw_rbe_shape *shapes, const float *parameters,
                             const float *inputs)
{
    struct bsw_rbe_pass passes[2];
    static float projected[SAMPLE * DIMS];
    double error = 0, squares = 0;
    bsw_rbe_project(&shapes[0], parameters, inputs, SAMPLE, projected);
    for (int side = 0; side < 2; side++) {
        assert_int_equal(bsw_rbe_pass_init(&shapes[side], SAMPLE, &passes[side], &err), BSW_OK);
        bsw_rbe_forward(&passes[side], parameters + (side ? bsw_rbe_num_parameters(&shapes[0]) : 0),
                        BSW_RBE_VARIANT, 1, inputs, SAMPLE);
    }
    for (size_t i = 0; i < QUERIES; i++) {
        for (size_t j = 0; j < SAMPLE; j++) {
            const float *q = passes[0].codes[shapes[0].steps] + i * DIMS,
                        *d = passes[1].codes[shapes[1].steps] + j * DIMS;
            double pq = 0, qq = 0, pd = 0, qd = 0, xx = 0, exact = 0;
            for (size_t k = 0; k < DIMS; k++) {
                pq += (double)projected[i * DIMS + k] * (double)q[k];
                qq += (double)q[k] * (double)q[k];
                pd += (double)projected[j * DIMS + k] * (double)d[k];
                qd += (double)q[k] * (double)d[k];
                xx += (double)inputs[j * DIMS + k] * (double)inputs[j * DIMS + k];
                exact += (double)inputs[i * DIMS + k] * (double)inputs[j * DIMS + k];
            }
            double estimate = pq / qq * (xx / pd) * qd;
            error += (estimate - exact) * (estimate - exact);
            squares += exact * exact;
        }
    }
    for (int side = 0; side < 2; side++) bsw_rbe_pass_deinit(&passes[side]);
    return sqrt(error / squares);
}

UNIT_TEST(estimates_beat_those_of_random_axes)
{
    const struct bsw_rbe_shape shapes[BSW_RBE_NUM_SIDES] = {{DIMS, DIMS, 6, 0, 1},
                                                            {DIMS, DIMS, 1, 0, 1}};
    static float inputs[SAMPLE * DIMS];
    size_t num_query = bsw_rbe_num_parameters(&shapes[0]);
    float *parameters = calloc(num_query + bsw_rbe_num_parameters(&shapes[1]), sizeof *parameters);
    assert_non_null(parameters);
    for (size_t i = 0; i < SAMPLE * DIMS; i++) // energies fall by 10^4
        inputs[i] = (float)(1e-3 * gaussian(5, i) * pow(100, -(double)(i % DIMS) / DIMS));
    assert_int_equal(bsw_rbe_start_principal(shapes, inputs, SAMPLE, 1, parameters, &err), BSW_OK);
    double principal = estimate_error(shapes, parameters, inputs), rms = 0;
    for (size_t i = 0; i < SAMPLE * DIMS; i++)
        rms += (double)inputs[i] * (double)inputs[i] / (SAMPLE * DIMS);
    bsw_rbe_initialize_quantizer(&shapes[0], 1, sqrt(rms) * 0.0283, parameters);
    bsw_rbe_initialize_quantizer(&shapes[1], 1, sqrt(rms) * 0.4980, parameters + num_query);
    double random = estimate_error(shapes, parameters, inputs);
    free(parameters);
    if (!(principal < 0.8 * random))
        fail_msg("%g of principal axes, %g of random", principal, random);
}

UNIT_TEST(rows_without_energy_are_refused)
{
    const struct bsw_rbe_shape shapes[BSW_RBE_NUM_SIDES] = {{2, 2, 1, 0, 1}, {2, 2, 1, 0, 1}};
    const float inputs[8] = {0};
    float parameters[128];
    assert_int_equal(bsw_rbe_start_principal(shapes, inputs, 4, 1, parameters, &err),
                     BSW_ERROR_BAD_DATA);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
