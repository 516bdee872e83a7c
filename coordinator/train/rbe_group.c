// SPDX-License-Identifier: Apache-2.0
#include "coordinator/train/rbe_group.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

#include "common/base/arithmetic.h"

size_t bsw_rbe_training_text_offset(const struct bsw_rbe_training_options *options, int side)
{
    size_t first = 0, one = 0;
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++)
        first += bsw_rbe_num_parameters(&options->shapes[i]);
    if (options->vocabulary)
        one = bsw_text_num_parameters(options->vocabulary->num_grams, options->shapes[0].dims);
    return first + (size_t)side * one;
}

size_t bsw_rbe_training_parameters(const struct bsw_rbe_training_options *options)
{
    return bsw_rbe_training_text_offset(options, BSW_RBE_NUM_SIDES);
}

static enum bsw_status init_texts(const struct bsw_rbe_training_options *options, size_t max_pairs,
                                  struct bsw_rbe_worker *worker, struct bsw_error *err)
{
    uint32_t dims = options->shapes[0].dims;
    if (!options->vocabulary) return BSW_OK;
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++)
        BSW_TRY(bsw_text_pass_init(options->vocabulary, dims, max_pairs, bsw_cpu_level_detect(),
                                   &worker->texts[i], err));
    return bsw_allocate(&worker->input_gradient, max_pairs, dims * sizeof(float), "training", err);
}

enum bsw_status bsw_rbe_worker_init(const struct bsw_rbe_training_options *options,
                                    const struct bsw_rbe_pairs *pairs, size_t max_pairs,
                                    struct bsw_rbe_worker *out, struct bsw_error *err)
{
    const struct bsw_rbe_shape *shapes = options->shapes;
    size_t dims = shapes[0].dims, code_dims = shapes[0].code_dims;
    size_t similarity_floats =
        options->has_similarities ? max_pairs * (max_pairs + 3 + code_dims) : 0;
    size_t scratch_floats = bsw_rbe_loss_scratch_floats(max_pairs);
    *out = (struct bsw_rbe_worker){.options = options, .pairs = pairs};
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++)
        BSW_TRY(bsw_rbe_pass_init(&shapes[i], max_pairs, &out->passes[i], err));
    BSW_TRY(init_texts(options, max_pairs, out, err));
    BSW_TRY(bsw_allocate(&out->shifts, options->negatives, sizeof *out->shifts, "training", err));
    BSW_TRY(bsw_allocate(&out->memory,
                         BSW_RBE_NUM_SIDES * max_pairs * (dims + code_dims) + scratch_floats +
                             similarity_floats,
                         sizeof(float), "training", err));
    float *next = out->memory;
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        out->inputs[i] = next;
        out->gradients[i] = next + max_pairs * dims;
        next += max_pairs * (dims + code_dims);
    }
    out->scratch = next;
    next += scratch_floats;
    if (!options->has_similarities) return BSW_OK;
    out->exact = next;
    out->weights[0] = next + max_pairs * max_pairs;
    out->weights[1] = out->weights[0] + max_pairs;
    out->offsets = out->weights[1] + max_pairs;
    out->projected = out->offsets + max_pairs;
    return BSW_OK;
}

void bsw_rbe_worker_deinit(struct bsw_rbe_worker *worker)
{
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        bsw_rbe_pass_deinit(&worker->passes[i]);
        bsw_text_pass_deinit(&worker->texts[i]);
    }
    bsw_buffer_deinit(&worker->text);
    bsw_free(&worker->input_gradient);
    bsw_free(&worker->memory);
    bsw_free(&worker->shifts);
}

// Floyd's way to draw without replacement: one hash a number, whatever the share drawn.
void bsw_rbe_draw_shifts(uint64_t seed, size_t num_pairs, size_t count, size_t *shifts)
{
    for (size_t i = 0; i < count; i++) {
        size_t highest = num_pairs - count + i;
        size_t drawn = 1 + (size_t)(bsw_hash2(seed, i) % highest);
        for (size_t j = 0; j < i; j++) {
            if (shifts[j] != drawn) continue;
            drawn = highest;
            break;
        }
        shifts[i] = drawn;
    }
}

static enum bsw_status read_inputs(struct bsw_rbe_worker *worker, const struct bsw_rbe_group *group,
                                   struct bsw_error *err)
{
    const struct bsw_rbe_pairs *pairs = worker->pairs;
    size_t dims = worker->options->shapes[0].dims;
    for (size_t i = 0; i < group->num_pairs; i++) {
        BSW_TRY(pairs->read(pairs->context, group->pairs[i], group->draw,
                            worker->inputs[BSW_RBE_QUERY] + i * dims,
                            worker->inputs[BSW_RBE_DOCUMENT] + i * dims, err));
    }
    return BSW_OK;
}

// The same by the text network, whose parameters are given with all others.
static enum bsw_status make_inputs(struct bsw_rbe_worker *worker, const float *parameters,
                                   const struct bsw_rbe_group *group, struct bsw_error *err)
{
    const struct bsw_rbe_pairs *pairs = worker->pairs;
    struct bsw_rbe_pair_text texts[BSW_RBE_NUM_SIDES];
    for (int side = 0; side < BSW_RBE_NUM_SIDES; side++) bsw_text_pass_clear(&worker->texts[side]);
    for (size_t i = 0; i < group->num_pairs; i++) {
        BSW_TRY(pairs->read_texts(pairs->context, group->pairs[i], &worker->text, texts, err));
        for (int side = 0; side < BSW_RBE_NUM_SIDES; side++)
            BSW_TRY(
                bsw_text_pass_add(&worker->texts[side], texts[side].text, texts[side].bytes, err));
    }
    for (int side = 0; side < BSW_RBE_NUM_SIDES; side++)
        bsw_text_forward(&worker->texts[side],
                         parameters + bsw_rbe_training_text_offset(worker->options, side),
                         worker->inputs[side]);
    return BSW_OK;
}

// ---- similarities (rbe_coders.h has the formulas) ----

static float dot_of(const float *a, const float *b, size_t n)
{
    return cblas_sdot((int)n, a, 1, b, 1);
}

// The exact similarities, less what is the same for all documents of a query.
static void fill_exact(struct bsw_rbe_worker *worker, size_t count)
{
    size_t dims = worker->options->shapes[0].dims;
    float unit = 1 / worker->pairs->scale;
    const float *q = worker->inputs[BSW_RBE_QUERY], *d = worker->inputs[BSW_RBE_DOCUMENT];
    for (size_t i = 0; i < count; i++)
        memcpy(worker->exact + i * count, worker->offsets, count * sizeof(float));
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)count, (int)count, (int)dims,
                unit * unit, q, (int)dims, d, (int)dims, 1.0f, worker->exact, (int)count);
}

// Scales that search will have of queries and documents, and its biases; a document without a scale
// counts by its bias alone.
static void fill_weights(struct bsw_rbe_worker *worker, const float *parameters, size_t count,
                         const float *const *codes)
{
    const struct bsw_rbe_shape *shapes = worker->options->shapes;
    const struct bsw_rbe_pairs *pairs = worker->pairs;
    size_t n = shapes[0].code_dims, dims = shapes[0].dims;
    const float *projected = worker->passes[BSW_RBE_QUERY].base;
    float square_unit = 1 / (pairs->scale * pairs->scale);
    for (size_t i = 0; i < count; i++) {
        const float *b = codes[BSW_RBE_QUERY] + i * n;
        worker->weights[BSW_RBE_QUERY][i] = dot_of(projected + i * n, b, n) / dot_of(b, b, n);
    }
    bsw_rbe_project(&shapes[BSW_RBE_QUERY], parameters, worker->inputs[BSW_RBE_DOCUMENT], count,
                    worker->projected);
    for (size_t j = 0; j < count; j++) {
        const float *input = worker->inputs[BSW_RBE_DOCUMENT] + j * dims;
        worker->offsets[j] = dot_of(pairs->mean, input, dims) / pairs->scale;
        float along = dot_of(worker->projected + j * n, codes[BSW_RBE_DOCUMENT] + j * n, n);
        worker->weights[BSW_RBE_DOCUMENT][j] =
            along > 0 ? square_unit * dot_of(input, input, dims) / along : 0;
    }
}

// What stands for the sign of a side; the slope of a smooth one stays 1.
static enum bsw_rbe_estimator estimator_of(const struct bsw_rbe_training_options *o, int side)
{
    return side == BSW_RBE_QUERY && o->has_float_queries ? BSW_RBE_SMOOTH : o->estimator;
}

static float slope_of(const struct bsw_rbe_training_options *o, int side, float slope)
{
    return estimator_of(o, side) == BSW_RBE_SMOOTH ? 1 : slope;
}

enum bsw_status bsw_rbe_group_forward(struct bsw_rbe_worker *worker, const float *parameters,
                                      const struct bsw_rbe_group *group,
                                      const float *outputs[BSW_RBE_NUM_SIDES],
                                      struct bsw_error *err)
{
    const struct bsw_rbe_training_options *o = worker->options;
    const struct bsw_rbe_shape *shapes = o->shapes;
    const float *first = parameters;
    BSW_TRY(o->vocabulary ? make_inputs(worker, parameters, group, err)
                          : read_inputs(worker, group, err));
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        bsw_rbe_forward(&worker->passes[i], parameters, estimator_of(o, i),
                        slope_of(o, i, group->slope), worker->inputs[i], group->num_pairs);
        outputs[i] = worker->passes[i].codes[shapes[i].steps];
        parameters += bsw_rbe_num_parameters(&shapes[i]);
    }
    if (o->has_similarities) fill_weights(worker, first, group->num_pairs, outputs);
    return BSW_OK;
}

enum bsw_status bsw_rbe_group_largest_scale(struct bsw_rbe_worker *worker, const float *parameters,
                                            const struct bsw_rbe_group *group, double *largest,
                                            struct bsw_error *err)
{
    uint32_t steps = worker->options->shapes[BSW_RBE_DOCUMENT].steps;
    const float *outputs[BSW_RBE_NUM_SIDES];
    *largest = 0;
    BSW_TRY(bsw_rbe_group_forward(worker, parameters, group, outputs, err));
    for (size_t i = 0; i < group->num_pairs; i++) {
        double scale = ldexp((double)worker->weights[BSW_RBE_DOCUMENT][i], -(int)steps);
        *largest = scale > *largest ? scale : *largest;
    }
    return BSW_OK;
}

// After the loss. gradient: [all parameters], zeros.
static void add_gradients(struct bsw_rbe_worker *worker, const float *parameters,
                          const struct bsw_rbe_group *group, float *gradient)
{
    const struct bsw_rbe_training_options *o = worker->options;
    size_t first = 0, num_inputs = group->num_pairs * o->shapes[0].dims;
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        if (o->vocabulary) memset(worker->input_gradient, 0, num_inputs * sizeof(float));
        bsw_rbe_backward(&worker->passes[i], parameters + first, estimator_of(o, i),
                         slope_of(o, i, group->slope), worker->inputs[i], group->num_pairs,
                         worker->gradients[i], gradient + first, worker->input_gradient);
        if (o->vocabulary)
            bsw_text_backward(&worker->texts[i], worker->inputs[i], worker->input_gradient,
                              gradient + bsw_rbe_training_text_offset(o, i));
        first += bsw_rbe_num_parameters(&o->shapes[i]);
    }
}

enum bsw_status bsw_rbe_group_run(struct bsw_rbe_worker *worker, const float *parameters,
                                  const struct bsw_rbe_group *group, float share, float *gradient,
                                  double *loss, struct bsw_error *err)
{
    size_t count = group->num_pairs, code_dims = worker->options->shapes[0].code_dims;
    const float *outputs[BSW_RBE_NUM_SIDES];
    BSW_TRY(bsw_rbe_group_forward(worker, parameters, group, outputs, err));
    bsw_rbe_draw_shifts(group->shift_seed, count, (size_t)worker->options->negatives,
                        worker->shifts);
    const struct bsw_rbe_similarities similarities = {
        worker->exact, worker->weights[0], worker->weights[1], worker->offsets, worker->projected};
    if (worker->options->has_similarities) fill_exact(worker, count);
    const struct bsw_rbe_loss_group loss_group = {
        .queries = outputs[0],
        .documents = outputs[1],
        .num_rows = count,
        .code_dims = code_dims,
        .shifts = worker->shifts,
        .num_negatives = (size_t)worker->options->negatives,
        .gamma = (float)worker->options->gamma,
        .similarities = worker->options->has_similarities ? &similarities : NULL};
    *loss = bsw_rbe_loss(&loss_group, worker->scratch, worker->gradients[0], worker->gradients[1]);
    if (!gradient) return BSW_OK;
    memset(gradient, 0, bsw_rbe_training_parameters(worker->options) * sizeof *gradient);
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++)
        for (size_t k = 0; k < count * code_dims; k++) worker->gradients[i][k] *= share;
    add_gradients(worker, parameters, group, gradient);
    return BSW_OK;
}
