// SPDX-License-Identifier: Apache-2.0
#include "kernels/rbe/rbe_gradient.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

// ---- memory ----

// With pass->memory NULL: only counts.
static size_t lay_out(struct bsw_rbe_pass *pass)
{
    size_t total = 0, rows = pass->max_rows;
    size_t m = rows * pass->shape.dims, n = rows * pass->shape.code_dims;
    float *memory = pass->memory;
#define TAKE(field, count) ((field) = memory ? memory + total : NULL, total += (count))
    TAKE(pass->base, n);
    TAKE(pass->codes[0], n);
    for (uint32_t t = 0; t < pass->shape.steps; t++) {
        TAKE(pass->back[t], m);
        TAKE(pass->difference[t], m);
        TAKE(pass->residual[t], n);
        TAKE(pass->codes[t + 1], n);
    }
    TAKE(pass->code_gradient, n);
    TAKE(pass->sum_gradient, n);
    TAKE(pass->back_gradient, m);
#undef TAKE
    return total;
}

enum bsw_status bsw_rbe_pass_init(const struct bsw_rbe_shape *shape, size_t max_rows,
                                  struct bsw_rbe_pass *out, struct bsw_error *err)
{
    *out = (struct bsw_rbe_pass){.shape = *shape, .max_rows = max_rows};
    BSW_TRY(bsw_allocate(&out->memory, lay_out(out), sizeof(float), "training", err));
    lay_out(out);
    return BSW_OK;
}

void bsw_rbe_pass_deinit(struct bsw_rbe_pass *pass)
{
    bsw_free(&pass->memory);
}

// ---- products ----

// out [rows][num_out] = in * weights^T + bias.
static void apply(const struct bsw_rbe_layer *layer, const float *in, size_t rows, float *out)
{
    for (size_t r = 0; r < rows; r++)
        memcpy(out + r * layer->num_out, layer->bias, layer->num_out * sizeof *out);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)layer->num_out,
                (int)layer->num_in, 1.0f, in, (int)layer->num_in, layer->weights,
                (int)layer->num_in, 1.0f, out, (int)layer->num_out);
}

// gradient (of the layer's parameters, weights then bias) += from output gradients and inputs.
static void add_layer_gradient(const struct bsw_rbe_layer *layer, const float *out_gradient,
                               const float *in, size_t rows, float *gradient)
{
    float *bias = gradient + (size_t)layer->num_out * layer->num_in;
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)layer->num_out, (int)layer->num_in,
                (int)rows, 1.0f, out_gradient, (int)layer->num_out, in, (int)layer->num_in, 1.0f,
                gradient, (int)layer->num_in);
    for (size_t r = 0; r < rows; r++) {
        for (uint32_t i = 0; i < layer->num_out; i++)
            bias[i] += out_gradient[r * layer->num_out + i];
    }
}

// in_gradient = out_gradient * weights, or added to it.
static void add_input_gradient(const struct bsw_rbe_layer *layer, const float *out_gradient,
                               size_t rows, float *in_gradient, int is_added)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)rows, (int)layer->num_in,
                (int)layer->num_out, 1.0f, out_gradient, (int)layer->num_out, layer->weights,
                (int)layer->num_in, is_added ? 1.0f : 0.0f, in_gradient, (int)layer->num_in);
}

// ---- rho and what stands in for its derivative ----

// NaN stays NaN, so that the loss shows it.
static float binarize(float x, enum bsw_rbe_estimator estimator, float slope)
{
    if (estimator == BSW_RBE_SMOOTH) return tanhf(slope * x);
    return x <= 0.0f ? -1.0f : x > 0.0f ? 1.0f : x;
}

static float derivative(float x, enum bsw_rbe_estimator estimator, float slope)
{
    if (estimator == BSW_RBE_STRAIGHT_THROUGH) return 1.0f;
    if (estimator == BSW_RBE_VARIANT) return fabsf(x) <= 1.0f ? 1.0f : 0.0f;
    float t = tanhf(slope * x);
    return slope * (1.0f - t * t);
}

// ---- forward ----

static void forward_step(struct bsw_rbe_pass *pass, const float *parameters,
                         enum bsw_rbe_estimator estimator, float slope, const float *inputs,
                         size_t rows, uint32_t t)
{
    const struct bsw_rbe_shape *shape = &pass->shape;
    struct bsw_rbe_layer back = bsw_rbe_layer_of(shape, parameters, BSW_RBE_RECONSTRUCTION, t);
    struct bsw_rbe_layer residual = bsw_rbe_layer_of(shape, parameters, BSW_RBE_RESIDUAL, t);
    float weight = bsw_rbe_residual_weight(shape, t);
    apply(&back, pass->codes[t], rows, pass->back[t]);
    for (size_t i = 0; i < rows * shape->dims; i++) {
        pass->back[t][i] = tanhf(pass->back[t][i]);
        pass->difference[t][i] = inputs[i] - pass->back[t][i];
    }
    apply(&residual, pass->difference[t], rows, pass->residual[t]);
    for (size_t i = 0; i < rows * shape->code_dims; i++) {
        pass->codes[t + 1][i] =
            pass->codes[t][i] + weight * binarize(pass->residual[t][i], estimator, slope);
    }
}

void bsw_rbe_forward(struct bsw_rbe_pass *pass, const float *parameters,
                     enum bsw_rbe_estimator estimator, float slope, const float *inputs,
                     size_t num_rows)
{
    const struct bsw_rbe_shape *shape = &pass->shape;
    struct bsw_rbe_layer base = bsw_rbe_layer_of(shape, parameters, BSW_RBE_BASE, 0);
    apply(&base, inputs, num_rows, pass->base);
    for (size_t i = 0; i < num_rows * shape->code_dims; i++)
        pass->codes[0][i] = binarize(pass->base[i], estimator, slope);
    for (uint32_t t = 0; t < shape->steps; t++)
        forward_step(pass, parameters, estimator, slope, inputs, num_rows, t);
}

void bsw_rbe_project(const struct bsw_rbe_shape *shape, const float *parameters,
                     const float *inputs, size_t num_rows, float *out)
{
    struct bsw_rbe_layer base = bsw_rbe_layer_of(shape, parameters, BSW_RBE_BASE, 0);
    apply(&base, inputs, num_rows, out);
}

// ---- backward ----

// code_gradient is that of b^{t+1} on the way in and of b^t on the way out.
static void backward_step(struct bsw_rbe_pass *pass, const float *parameters,
                          enum bsw_rbe_estimator estimator, float slope, size_t rows, uint32_t t,
                          float *gradient, float *input_gradient)
{
    const struct bsw_rbe_shape *shape = &pass->shape;
    struct bsw_rbe_layer back = bsw_rbe_layer_of(shape, parameters, BSW_RBE_RECONSTRUCTION, t);
    struct bsw_rbe_layer residual = bsw_rbe_layer_of(shape, parameters, BSW_RBE_RESIDUAL, t);
    float weight = bsw_rbe_residual_weight(shape, t);
    for (size_t i = 0; i < rows * shape->code_dims; i++) {
        pass->sum_gradient[i] =
            weight * pass->code_gradient[i] * derivative(pass->residual[t][i], estimator, slope);
    }
    add_layer_gradient(&residual, pass->sum_gradient, pass->difference[t], rows,
                       gradient + bsw_rbe_layer_offset(shape, BSW_RBE_RESIDUAL, t));
    add_input_gradient(&residual, pass->sum_gradient, rows, pass->back_gradient, 0);
    for (size_t i = 0; i < rows * shape->dims; i++) {
        float f = pass->back[t][i], g = pass->back_gradient[i];
        if (input_gradient) input_gradient[i] += g;
        pass->back_gradient[i] = -g * (1.0f - f * f);
    }
    add_layer_gradient(&back, pass->back_gradient, pass->codes[t], rows,
                       gradient + bsw_rbe_layer_offset(shape, BSW_RBE_RECONSTRUCTION, t));
    add_input_gradient(&back, pass->back_gradient, rows, pass->code_gradient, 1);
}

void bsw_rbe_backward(struct bsw_rbe_pass *pass, const float *parameters,
                      enum bsw_rbe_estimator estimator, float slope, const float *inputs,
                      size_t num_rows, const float *output_gradient, float *gradient,
                      float *input_gradient)
{
    const struct bsw_rbe_shape *shape = &pass->shape;
    struct bsw_rbe_layer base = bsw_rbe_layer_of(shape, parameters, BSW_RBE_BASE, 0);
    size_t count = num_rows * shape->code_dims;
    memcpy(pass->code_gradient, output_gradient, count * sizeof(float));
    for (uint32_t t = shape->steps; t-- > 0;)
        backward_step(pass, parameters, estimator, slope, num_rows, t, gradient, input_gradient);
    for (size_t i = 0; i < count; i++)
        pass->sum_gradient[i] =
            pass->code_gradient[i] * derivative(pass->base[i], estimator, slope);
    add_layer_gradient(&base, pass->sum_gradient, inputs, num_rows, gradient);
    if (input_gradient) add_input_gradient(&base, pass->sum_gradient, num_rows, input_gradient, 1);
}
