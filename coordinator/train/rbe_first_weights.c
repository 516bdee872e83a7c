// SPDX-License-Identifier: Apache-2.0
#include "coordinator/train/rbe_first_weights.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/base/memory.h"
#include "kernels/rbe/rbe_start.h"
#include "shard/codecs/sample.h"
#include "shard/codecs/saq_training.h"

#define SEED_WEIGHTS  1 // what seeds are hashed with; others: rbe_training.c
#define SEED_TEXTS    201
#define START_ROWS    8192 // that principal axes are found of

#define MOST_COPIES   16
#define GAUSSIAN_ENDS 8.0
#define GAUSSIAN_BINS 4000

// ---- how many components for each axis ----

static double gaussian_error(uint32_t levels, double step)
{
    double error = 0, total = 0, last = step * (levels - 1) / 2;
    for (int i = 0; i <= GAUSSIAN_BINS; i++) {
        double x = GAUSSIAN_ENDS * (2.0 * i / GAUSSIAN_BINS - 1), weight = exp(-x * x / 2);
        double level = floor((x + last) / step + 0.5) * step - last;
        level = level < -last ? -last : level > last ? last : level;
        error += weight * (x - level) * (x - level);
        total += weight;
    }
    return error / total;
}

// Ternary search: the error falls to one lowest place and rises after it.
double bsw_gaussian_step(uint32_t levels, double *square_error)
{
    double low = 1e-3, high = 4.0;
    while (high - low > 1e-5) {
        double left = low + (high - low) / 3, right = high - (high - low) / 3;
        if (gaussian_error(levels, left) < gaussian_error(levels, right))
            high = right;
        else
            low = left;
    }
    *square_error = gaussian_error(levels, low);
    return low;
}

static uint32_t levels_of(uint32_t planes, uint32_t copies)
{
    return ((1u << planes) - 1) * copies + 1;
}

void bsw_rbe_deal_components(const double *energies, uint32_t dims, uint32_t planes,
                             uint32_t num_components, uint32_t most, uint32_t *counts)
{
    double errors[MOST_COPIES + 1] = {1};
    if (most > MOST_COPIES) most = MOST_COPIES;
    for (uint32_t m = 1; m <= most; m++) bsw_gaussian_step(levels_of(planes, m), &errors[m]);
    memset(counts, 0, dims * sizeof *counts);
    for (uint32_t dealt = 0; dealt < num_components; dealt++) {
        double best_gain = -1;
        uint32_t best = dims;
        for (uint32_t i = 0; i < dims; i++) {
            if (counts[i] == most) continue;
            double gain = energies[i] * (errors[counts[i]] - errors[counts[i] + 1]);
            if (gain <= best_gain) continue;
            best_gain = gain;
            best = i;
        }
        if (best == dims) return;
        counts[best]++;
    }
}

// ---- weights from principal axes ----

struct principal {
    const struct bsw_rbe_shape *shapes;
    uint32_t dims, code_dims;
    double *axes, *energies; // rows [dims][dims]; falling
    double *matrix;          // [dims][dims]: covariance, then rotations and products
    uint32_t *counts;        // [dims]: components of each axis
    double *spreads;         // [dims]: h
};

static enum bsw_status allocate(struct principal *start, struct bsw_error *err)
{
    size_t square = (size_t)start->dims * start->dims;
    BSW_TRY(bsw_allocate(&start->axes, square, sizeof(double), "first weights", err));
    BSW_TRY(bsw_allocate_zero(&start->matrix, 2 * square, sizeof(double), "first weights", err));
    BSW_TRY(bsw_allocate(&start->energies, start->dims, sizeof(double), "first weights", err));
    BSW_TRY(bsw_allocate(&start->spreads, start->dims, sizeof(double), "first weights", err));
    return bsw_allocate(&start->counts, start->dims, sizeof(uint32_t), "first weights", err);
}

static void deinit(struct principal *start)
{
    bsw_free(&start->axes);
    bsw_free(&start->matrix);
    bsw_free(&start->energies);
    bsw_free(&start->spreads);
    bsw_free(&start->counts);
}

static enum bsw_status find_axes(struct principal *start, const float *inputs, size_t num_rows,
                                 struct bsw_error *err)
{
    enum { TILE = 256 };
    int dims = (int)start->dims;
    double *block;
    BSW_TRY(bsw_allocate(&block, TILE * (size_t)dims, sizeof(double), "first weights", err));
    for (size_t first = 0; first < num_rows; first += TILE) {
        size_t count = num_rows - first < TILE ? num_rows - first : TILE;
        for (size_t i = 0; i < count * start->dims; i++)
            block[i] = (double)inputs[first * start->dims + i];
        cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, dims, (int)count,
                    1.0 / (double)num_rows, block, dims, 1.0, start->matrix, dims);
    }
    bsw_free(&block);
    BSW_TRY(bsw_principal_axes(start->dims, start->matrix, start->energies, start->axes, err));
    if (start->energies[0] > 0) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "all rows are the same, nothing to learn");
}

// Axes [first, last) have equally many components: rotated, their energies the mean.
static enum bsw_status even_out(struct principal *start, uint32_t first, uint32_t last,
                                uint64_t seed, struct bsw_error *err)
{
    uint32_t n = last - first, dims = start->dims;
    double *rotation = start->matrix, *rotated = start->matrix + (size_t)dims * dims, mean = 0;
    double *axes = start->axes + (size_t)first * dims;
    BSW_TRY(bsw_random_rotation(bsw_hash2(seed, first), n, rotation, err));
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)dims, (int)n, 1.0, rotation,
                (int)n, axes, (int)dims, 0.0, rotated, (int)dims);
    memcpy(axes, rotated, (size_t)n * dims * sizeof *axes);
    for (uint32_t i = first; i < last; i++) mean += start->energies[i] / n;
    for (uint32_t i = first; i < last; i++) start->energies[i] = mean;
    return BSW_OK;
}

static enum bsw_status even_groups(struct principal *start, uint64_t seed, struct bsw_error *err)
{
    for (uint32_t first = 0, last; first < start->dims; first = last) {
        last = first + 1;
        while (last < start->dims && start->counts[last] == start->counts[first]) last++;
        if (start->counts[first] > 0) BSW_TRY(even_out(start, first, last, seed, err));
    }
    return BSW_OK;
}

// Levels of an axis lie h 2^-(planes - 2) apart.
static void fill_spreads(struct principal *start)
{
    uint32_t planes = start->shapes[BSW_RBE_DOCUMENT].steps + 1, known = 0;
    double step = 0, error;
    for (uint32_t i = 0; i < start->dims && start->counts[i] > 0; i++) {
        if (start->counts[i] != known)
            step = bsw_gaussian_step(levels_of(planes, start->counts[i]), &error);
        known = start->counts[i];
        start->spreads[i] = ldexp(step * sqrt(start->energies[i]), (int)planes - 2);
    }
}

// One component: rows of W and R are axis * in, its column of every B axis * out.
static void fill_component(const struct bsw_rbe_shape *shape, const double *axis,
                           uint32_t component, double in, double out, double offset,
                           float *parameters)
{
    uint32_t dims = shape->dims, n = shape->code_dims;
    uint32_t pairs = shape->is_shared && shape->steps > 0 ? 1 : shape->steps;
    for (uint32_t l = 0; l <= pairs; l++) {
        enum bsw_rbe_layer_kind kind = l == 0 ? BSW_RBE_BASE : BSW_RBE_RESIDUAL;
        float *to = parameters + bsw_rbe_layer_offset(shape, kind, l == 0 ? 0 : l - 1);
        for (uint32_t i = 0; i < dims; i++)
            to[(size_t)component * dims + i] = (float)(axis[i] * in);
        to[(size_t)n * dims + component] = (float)ldexp(-2 * offset, -(int)l);
        if (l == 0) continue;
        float *back = parameters + bsw_rbe_layer_offset(shape, BSW_RBE_RECONSTRUCTION, l - 1);
        for (uint32_t i = 0; i < dims; i++)
            back[(size_t)i * n + component] = (float)(axis[i] * out);
    }
}

// What a component's uniform quantizer of 2^(steps + 1) levels within +-2 leaves of a row's
// values / scale, as a share of the row.
static double range_error(const float *values, size_t count, double scale, uint32_t steps)
{
    double step = ldexp(1, 1 - (int)steps), last = 2 - step / 2, error = 0, square = 0;
    for (size_t i = 0; i < count; i++) {
        double x = (double)values[i] / scale, level = (floor(x / step) + 0.5) * step;
        double left = x - (level > last ? last : level);
        error += left * left;
        square += x * x;
    }
    return square > 0 ? error / square : 0;
}

// values: |a g| of a row for all components; returns the largest.
static double project(const struct principal *start, const float *row, float *values)
{
    double largest = 0;
    for (uint32_t i = 0; i < start->dims && start->counts[i] > 0; i++) {
        double along = 0;
        for (uint32_t d = 0; d < start->dims; d++)
            along += start->axes[(size_t)i * start->dims + d] * (double)row[d];
        for (uint32_t k = 0; k < start->counts[i]; k++)
            *values++ = (float)fabs(along * start->spreads[i]);
        largest = fmax(largest, fabs(along * start->spreads[i]));
    }
    return largest;
}

// q: where the mean of that share is least. Not of the error itself: a few long rows would ask for
// a range that leaves the others few levels.
static enum bsw_status query_scale(const struct principal *start, const float *inputs,
                                   size_t num_rows, double *out, struct bsw_error *err)
{
    uint32_t steps = start->shapes[BSW_RBE_QUERY].steps, count = 0;
    double largest = 0, least = INFINITY;
    float *values;
    for (uint32_t i = 0; i < start->dims; i++) count += start->counts[i];
    BSW_TRY(bsw_allocate(&values, num_rows * count, sizeof *values, "first weights", err));
    for (size_t r = 0; r < num_rows; r++)
        largest =
            fmax(largest, project(start, inputs + r * start->dims, values + r * (size_t)count));
    *out = largest;
    for (double scale = largest / 2; scale > largest / 100; scale *= 0.95) {
        double error = 0;
        for (size_t r = 0; r < num_rows; r++)
            error += range_error(values + r * (size_t)count, count, scale, steps);
        if (error >= least) continue;
        least = error;
        *out = scale;
    }
    bsw_free(&values);
    return BSW_OK;
}

static void fill_weights(const struct principal *start, double scale, float *parameters)
{
    const struct bsw_rbe_shape *query = &start->shapes[BSW_RBE_QUERY],
                               *document = &start->shapes[BSW_RBE_DOCUMENT];
    size_t num_query = bsw_rbe_num_parameters(query);
    uint32_t component = 0;
    memset(parameters, 0, (num_query + bsw_rbe_num_parameters(document)) * sizeof *parameters);
    for (uint32_t i = 0; i < start->dims && start->counts[i] > 0; i++) {
        const double *axis = start->axes + (size_t)i * start->dims;
        double spread = start->spreads[i], worth = spread / scale;
        uint32_t copies = start->counts[i];
        for (uint32_t k = 0; k < copies; k++, component++) {
            double offset = k - (copies - 1) / 2.0;
            fill_component(query, axis, component, worth, 1 / (worth * copies), 0, parameters);
            fill_component(document, axis, component, 1 / spread, spread, offset,
                           parameters + num_query);
        }
    }
}

static enum bsw_status run(struct principal *start, const float *inputs, size_t num_rows,
                           uint64_t seed, float *parameters, struct bsw_error *err)
{
    enum { SCALE_ROWS = 1024 };
    double scale;
    int is_shared = start->shapes[0].is_shared || start->shapes[1].is_shared;
    BSW_TRY(allocate(start, err));
    BSW_TRY(find_axes(start, inputs, num_rows, err));
    bsw_rbe_deal_components(start->energies, start->dims, start->shapes[BSW_RBE_DOCUMENT].steps + 1,
                            start->code_dims, is_shared ? 1 : MOST_COPIES, start->counts);
    BSW_TRY(even_groups(start, seed, err));
    fill_spreads(start);
    BSW_TRY(query_scale(start, inputs, num_rows < SCALE_ROWS ? num_rows : SCALE_ROWS, &scale, err));
    fill_weights(start, scale, parameters);
    return BSW_OK;
}

enum bsw_status bsw_rbe_start_principal(const struct bsw_rbe_shape *shapes, const float *inputs,
                                        size_t num_rows, uint64_t seed, float *parameters,
                                        struct bsw_error *err)
{
    struct principal start = {
        .shapes = shapes, .dims = shapes[0].dims, .code_dims = shapes[0].code_dims};
    enum bsw_status status = run(&start, inputs, num_rows, seed, parameters, err);
    deinit(&start);
    return status;
}

// ---- all starts ----

static void initialize(const struct bsw_rbe_training_options *o, float *parameters)
{
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        const struct bsw_rbe_shape *shape = &o->shapes[i];
        uint64_t side = o->start == BSW_RBE_START_SAME ? 0 : (uint64_t)i;
        if (o->start == BSW_RBE_START_QUANTIZER) {
            bsw_rbe_initialize_quantizer(shape, bsw_hash2(o->seed, SEED_WEIGHTS),
                                         o->input_rms * bsw_quantizer_half_steps[shape->steps + 1],
                                         parameters);
        } else {
            bsw_rbe_initialize(shape, bsw_hash2(o->seed, SEED_WEIGHTS + side), parameters);
        }
        parameters += bsw_rbe_num_parameters(shape);
    }
    for (int i = 0; o->vocabulary && i < BSW_RBE_NUM_SIDES; i++) {
        uint32_t num_grams = o->vocabulary->num_grams, dims = o->shapes[i].dims;
        uint64_t side = o->start == BSW_RBE_START_SAME ? 0 : (uint64_t)i;
        bsw_text_initialize(num_grams, dims, bsw_hash2(o->seed, SEED_TEXTS + side), parameters);
        parameters += bsw_text_num_parameters(num_grams, dims);
    }
}

static enum bsw_status start_principal(const struct bsw_rbe_training_options *o,
                                       const struct bsw_rbe_pairs *pairs, const uint64_t *trained,
                                       uint64_t num_trained, float *parameters,
                                       struct bsw_error *err)
{
    size_t dims = o->shapes[0].dims;
    size_t count = (size_t)(num_trained < START_ROWS ? num_trained : START_ROWS);
    float *inputs, query[BSW_RBE_MAX_DIMS];
    BSW_TRY(bsw_allocate(&inputs, count * dims, sizeof *inputs, "first weights", err));
    enum bsw_status status = BSW_OK;
    for (size_t i = 0; i < count && status == BSW_OK; i++) {
        uint64_t pair = trained[bsw_part_first(num_trained, i, count)];
        status = pairs->read(pairs->context, pair, 0, query, inputs + i * dims, err);
    }
    if (status == BSW_OK)
        status = bsw_rbe_start_principal(o->shapes, inputs, count, bsw_hash2(o->seed, SEED_WEIGHTS),
                                         parameters, err);
    bsw_free(&inputs);
    return status;
}

enum bsw_status bsw_rbe_first_weights(const struct bsw_rbe_training_options *options,
                                      const struct bsw_rbe_pairs *pairs, const uint64_t *trained,
                                      uint64_t num_trained, float *parameters,
                                      struct bsw_error *err)
{
    if (options->start == BSW_RBE_START_PRINCIPAL)
        return start_principal(options, pairs, trained, num_trained, parameters, err);
    initialize(options, parameters);
    return BSW_OK;
}

// Sets the rate of `count` weights, stride apart, that belong to one component.
static void set_component_rate(const struct bsw_rbe_layer *layer, size_t first, size_t count,
                               size_t stride, float *rates)
{
    double square = 0, random = 2.0 / ((double)layer->num_out + layer->num_in); // Glorot's
    for (size_t i = 0; i < count; i++) {
        double weight = (double)layer->weights[first + i * stride];
        square += weight * weight / (double)count;
    }
    for (size_t i = 0; i < count; i++) rates[first + i * stride] = (float)sqrt(square / random);
}

static void set_rates_of(const struct bsw_rbe_training_options *o,
                         const struct bsw_rbe_layer *layer, enum bsw_rbe_layer_kind kind,
                         float *rates)
{
    size_t outs = layer->num_out, ins = layer->num_in;
    int is_random = bsw_rbe_start_is_random(o->start), is_back = kind == BSW_RBE_RECONSTRUCTION;
    for (size_t i = 0; i < outs * ins; i++) rates[i] = 1;
    for (size_t i = 0; i < outs; i++)
        rates[outs * ins + i] = is_random || !is_back ? 1 : (float)o->input_rms;
    if (is_random) return;
    for (size_t i = 0; i < (is_back ? ins : outs); i++) {
        if (is_back)
            set_component_rate(layer, i, outs, ins, rates);
        else
            set_component_rate(layer, i * ins, ins, 1, rates);
    }
}

void bsw_rbe_first_rates(const struct bsw_rbe_training_options *options, const float *parameters,
                         float *rates)
{
    size_t first = 0;
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        const struct bsw_rbe_shape *shape = &options->shapes[i];
        uint32_t pairs = shape->is_shared && shape->steps > 0 ? 1 : shape->steps;
        for (uint32_t l = 0; l < 1 + 2 * pairs; l++) {
            enum bsw_rbe_layer_kind kind = l == 0       ? BSW_RBE_BASE
                                           : l % 2 == 1 ? BSW_RBE_RECONSTRUCTION
                                                        : BSW_RBE_RESIDUAL;
            uint32_t step = l == 0 ? 0 : (l - 1) / 2;
            struct bsw_rbe_layer layer = bsw_rbe_layer_of(shape, parameters + first, kind, step);
            set_rates_of(options, &layer, kind,
                         rates + first + bsw_rbe_layer_offset(shape, kind, step));
        }
        first += bsw_rbe_num_parameters(shape);
    }
    for (size_t count = bsw_rbe_training_parameters(options); first < count; first++)
        rates[first] = 1;
}
