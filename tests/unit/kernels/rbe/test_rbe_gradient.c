// SPDX-License-Identifier: Apache-2.0
// Gradients against finite differences of an independent model in float64: the equations one
// number at a time. Where rho is a step, the model is made differentiable as the estimator says: at
// each place rho(x) becomes rho(x0) + rho'(x0) * (x - x0), x0 the value at the parameters given.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "kernels/rbe/rbe_gradient.h"
#include "unit_test.h"

#define MOST_DIMS 40

static double unit(uint64_t seed, uint64_t i) // in [-1, 1)
{
    return (double)(bsw_hash2(seed, i) >> 11) * 0x1p-52 - 1.0;
}

// ---- the slow model ----

struct slow_model {
    struct bsw_rbe_shape shape;
    enum bsw_rbe_estimator estimator;
    double slope;
    int is_first; // takes down where rho is
    double *places;
    size_t next;
};

static double slow_rho(struct slow_model *model, double x)
{
    if (model->estimator == BSW_RBE_SMOOTH) return tanh(model->slope * x);
    if (model->is_first) model->places[model->next] = x;
    double at = model->places[model->next++], derivative = 1;
    if (model->estimator == BSW_RBE_VARIANT) derivative = fabs(at) <= 1;
    if (model->estimator == BSW_RBE_ANNEALING) {
        double t = tanh(model->slope * at);
        derivative = model->slope * (1 - t * t);
    }
    return (at <= 0 ? -1 : 1) + derivative * (x - at);
}

// Parameters are read in the documented order.
static const double *slow_layer(const double *p, uint32_t num_out, uint32_t num_in,
                                const double *in, double *out)
{
    const double *bias = p + (size_t)num_out * num_in;
    for (uint32_t i = 0; i < num_out; i++) {
        out[i] = bias[i];
        for (uint32_t j = 0; j < num_in; j++) out[i] += p[(size_t)i * num_in + j] * in[j];
    }
    return bias + num_out;
}

static void slow_forward(struct slow_model *model, const double *parameters, const double *input,
                         double *out)
{
    uint32_t m = model->shape.dims, n = model->shape.code_dims;
    double sums[MOST_DIMS], back[MOST_DIMS], difference[MOST_DIMS];
    const double *p = slow_layer(parameters, n, m, input, sums), *pair = p;
    for (uint32_t i = 0; i < n; i++) out[i] = slow_rho(model, sums[i]);
    for (uint32_t t = 0; t < model->shape.steps; t++) {
        p = slow_layer(model->shape.is_shared ? pair : p, m, n, out, back);
        for (uint32_t j = 0; j < m; j++) difference[j] = input[j] - tanh(back[j]);
        p = slow_layer(p, n, m, difference, sums);
        for (uint32_t i = 0; i < n; i++)
            out[i] += (model->shape.has_residual_weights ? pow(0.5, t + 1) : 1) *
                      slow_rho(model, sums[i]);
    }
}

// sum over rows and components of out * weights.
static double slow_sum(struct slow_model *model, const double *parameters, const double *inputs,
                       size_t rows, const float *weights)
{
    double out[MOST_DIMS], sum = 0;
    model->next = 0;
    for (size_t r = 0; r < rows; r++) {
        slow_forward(model, parameters, inputs + r * model->shape.dims, out);
        for (uint32_t i = 0; i < model->shape.code_dims; i++)
            sum += out[i] * (double)weights[r * model->shape.code_dims + i];
    }
    return sum;
}

// ---- comparison ----

static void expect_near(double value, double expected, const char *what, size_t i)
{
    if (fabs(value - expected) <= 2e-3 * (fabs(expected) + 0.05)) return;
    fail_msg("%s %zu: %g, by differences %g", what, i, value, expected);
}

static void check_side(struct bsw_rbe_shape shape, enum bsw_rbe_estimator estimator, uint64_t seed)
{
    enum { ROWS = 5 };
    const double slope = 1.5, step = 1e-6;
    size_t count = bsw_rbe_num_parameters(&shape), m = shape.dims, n = shape.code_dims;
    float *parameters = malloc(count * sizeof *parameters);
    float *gradient = calloc(count, sizeof *gradient);
    double *slow = malloc(count * sizeof *slow);
    float inputs[ROWS * MOST_DIMS], weights[ROWS * MOST_DIMS], input_gradient[ROWS * MOST_DIMS];
    double slow_inputs[ROWS * MOST_DIMS], places[ROWS * MOST_DIMS * (BSW_RBE_MAX_STEPS + 1)];
    bsw_rbe_initialize(&shape, seed, parameters);
    for (size_t i = 0; i < count; i++) {
        parameters[i] += (float)(0.1 * unit(seed + 1, i)); // biases too
        slow[i] = (double)parameters[i];
    }
    for (size_t i = 0; i < ROWS * m; i++) {
        inputs[i] = (float)(2 * unit(seed + 2, i));
        slow_inputs[i] = (double)inputs[i];
        input_gradient[i] = 0;
    }
    for (size_t i = 0; i < ROWS * n; i++) weights[i] = (float)unit(seed + 3, i);

    struct bsw_rbe_pass pass;
    assert_int_equal(bsw_rbe_pass_init(&shape, ROWS, &pass, NULL), BSW_OK);
    bsw_rbe_forward(&pass, parameters, estimator, (float)slope, inputs, ROWS);
    bsw_rbe_backward(&pass, parameters, estimator, (float)slope, inputs, ROWS, weights, gradient,
                     input_gradient);

    struct slow_model model = {shape, estimator, slope, 1, places, 0};
    slow_sum(&model, slow, slow_inputs, ROWS, weights);
    model.is_first = 0;
    for (size_t i = 0; i < count; i += 1 + count / 400) {
        double kept = slow[i];
        slow[i] = kept + step;
        double above = slow_sum(&model, slow, slow_inputs, ROWS, weights);
        slow[i] = kept - step;
        double below = slow_sum(&model, slow, slow_inputs, ROWS, weights);
        slow[i] = kept;
        expect_near((double)gradient[i], (above - below) / (2 * step), "parameter", i);
    }
    for (size_t i = 0; i < ROWS * m; i++) {
        double kept = slow_inputs[i];
        slow_inputs[i] = kept + step;
        double above = slow_sum(&model, slow, slow_inputs, ROWS, weights);
        slow_inputs[i] = kept - step;
        double below = slow_sum(&model, slow, slow_inputs, ROWS, weights);
        slow_inputs[i] = kept;
        expect_near((double)input_gradient[i], (above - below) / (2 * step), "input", i);
    }
    bsw_rbe_pass_deinit(&pass);
    free(parameters);
    free(gradient);
    free(slow);
}

UNIT_TEST(gradients_are_those_of_differences)
{
    uint64_t seed = 1;
    for (int estimator = 0; estimator < BSW_RBE_NUM_ESTIMATORS; estimator++) {
        for (uint32_t steps = 0; steps <= 3; steps++) {
            for (int kind = 0; kind < 4; kind++) {
                struct bsw_rbe_shape shape = {7, 5, steps, kind & 1, kind >> 1};
                check_side(shape, (enum bsw_rbe_estimator)estimator, seed++);
            }
        }
        struct bsw_rbe_shape wide = {33, 40, 2, 0, 1};
        check_side(wide, (enum bsw_rbe_estimator)estimator, seed++);
    }
}

// A sign would hide that weights ran away.
UNIT_TEST(a_nan_reaches_the_codes)
{
    const struct bsw_rbe_shape shape = {3, 2, 1, 0, 1};
    const float inputs[2][3] = {{1, 2, 3}, {1, NAN, 3}};
    float parameters[64];
    struct bsw_rbe_pass pass;
    assert_in_range(bsw_rbe_num_parameters(&shape), 1, 64);
    bsw_rbe_initialize(&shape, 1, parameters);
    assert_int_equal(bsw_rbe_pass_init(&shape, 2, &pass, NULL), BSW_OK);
    for (int estimator = 0; estimator < BSW_RBE_NUM_ESTIMATORS; estimator++) {
        bsw_rbe_forward(&pass, parameters, (enum bsw_rbe_estimator)estimator, 1, inputs[0], 2);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(isnan(pass.codes[0][i]) != 0, i >= 2);
            assert_int_equal(isnan(pass.codes[1][i]) != 0, i >= 2);
        }
    }
    bsw_rbe_pass_deinit(&pass);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
