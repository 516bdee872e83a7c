// SPDX-License-Identifier: Apache-2.0
#include "kernels/rbe/rbe_coders.h"

#include <math.h>

#include "common/codes/code_layout.h"
#include "common/codes/half.h"
#include "kernels/rbe_tanh.h"

#define LARGEST_HALF 65504.0

// ---- making ready ----

// A model of texts takes rows as they are; a row that has no factor has none still.
static float factor_of(const struct bsw_rbe_coders *coders, float factor)
{
    return coders->model.text.vocabulary.num_grams > 0 && factor != 0.0f ? 1.0f : factor;
}

// norm(c) >= sqrt(code_dims), so 2^-e / norm(c) <= 2^8 with 2^-e <= 2^8 * sqrt(code_dims).
static int32_t norm_exponent(uint32_t code_dims)
{
    int32_t logarithm = 0; // floor(log2(code_dims))
    while (code_dims >>= 1) logarithm++;
    return -(8 + logarithm / 2);
}

enum bsw_status bsw_rbe_coders_create(struct bsw_rbe_model *model, const char *name,
                                      enum bsw_cpu_level level, struct bsw_rbe_coders **out,
                                      struct bsw_error *err)
{
    struct bsw_rbe_coders *coders;
    enum bsw_status status = bsw_allocate_zero(&coders, 1, sizeof *coders, "model", err);
    *out = NULL;
    if (status != BSW_OK) {
        bsw_rbe_model_deinit(model);
        return status;
    }
    coders->model = *model;
    coders->table = bsw_rbe_codes_table_get(level);
    coders->scale_exponent = model->has_projection
                                 ? model->scale_exponent
                                 : norm_exponent(model->sides[BSW_RBE_DOCUMENT].shape.code_dims);
    *model = (struct bsw_rbe_model){0};
    status = bsw_rbe_model_check_codes(&coders->model, name, err);
    for (int i = 0; i < BSW_RBE_NUM_SIDES && status == BSW_OK; i++) {
        const struct bsw_rbe_side *side = &coders->model.sides[i];
        status = bsw_allocate(&coders->memory[i], bsw_rbe_coder_floats(&side->shape), sizeof(float),
                              "model", err);
        if (status == BSW_OK)
            bsw_rbe_coder_init(&side->shape, side->parameters, side->mean, side->scale,
                               coders->memory[i], &coders->sides[i]);
    }
    if (status != BSW_OK) bsw_rbe_coders_destroy(&coders);
    *out = coders;
    return status;
}

void bsw_rbe_coders_destroy(struct bsw_rbe_coders **coders)
{
    if (!*coders) return;
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) bsw_free(&(*coders)->memory[i]);
    bsw_rbe_model_deinit(&(*coders)->model);
    bsw_free(coders);
}

static size_t component_bytes(const struct bsw_rbe_coder *coder)
{
    size_t bytes = coder->shape.code_dims * sizeof(int16_t);
    return (bytes + BSW_ALIGNMENT_BYTES - 1) / BSW_ALIGNMENT_BYTES * BSW_ALIGNMENT_BYTES;
}

size_t bsw_rbe_coders_scratch_bytes(const struct bsw_rbe_coders *coders)
{
    const struct bsw_rbe_coder *coder = &coders->sides[0]; // both have the same dims
    size_t floats = bsw_rbe_scratch_floats(coder) + coder->padded_code_dims;
    return component_bytes(coder) + floats * sizeof(float);
}

// ---- rows ----

// Where a thread's scratch has what.
struct row_scratch {
    int16_t *components;
    float *projected, *floats;
};

static struct row_scratch scratch_of(const struct bsw_rbe_coder *coder, void *scratch)
{
    float *floats = (float *)(void *)((unsigned char *)scratch + component_bytes(coder));
    return (struct row_scratch){scratch, floats, floats + coder->padded_code_dims};
}

// Exact: at most 4096 * 255^2.
static double square_of(const int16_t *components, uint32_t n)
{
    int64_t square = 0;
    for (uint32_t i = 0; i < n; i++) square += (int64_t)components[i] * components[i];
    return (double)square;
}

static double along_components(const float *projected, const int16_t *components, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum = fma((double)projected[i], components[i], sum);
    return sum;
}

// <x', x'> and <mean, x'>.
static double center(const struct bsw_rbe_coder *coder, const float *row, float factor,
                     double *mean_dot)
{
    double square = 0, dot = 0;
    for (uint32_t i = 0; i < coder->shape.dims; i++) {
        float centered = row[i] * factor - coder->mean[i];
        square = fma((double)centered, (double)centered, square);
        dot = fma((double)coder->mean[i], (double)centered, dot);
    }
    *mean_dot = dot;
    return square;
}

// Odd integers of `bits` planes. Word `word` of plane p lies at planes[(p * words + word) *
// stride].
static void pack_components(const int16_t *components, uint32_t n, uint32_t bits, size_t stride,
                            uint32_t *planes)
{
    uint32_t words = (n + 31) / 32;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t u = (uint32_t)((int32_t)(1u << bits) - 1 - components[i]) / 2;
        for (uint32_t plane = 0; plane < bits; plane++) {
            uint32_t bit = (u >> (bits - 1 - plane)) & 1u;
            planes[((size_t)plane * words + i / 32) * stride] |= bit << (i % 32);
        }
    }
}

// scale_d, and the bias; the components are there.
static double document_scale(const struct bsw_rbe_coders *coders, const float *row, float factor,
                             const struct row_scratch *scratch, float *bias)
{
    const struct bsw_rbe_coder *document = &coders->sides[BSW_RBE_DOCUMENT];
    uint32_t n = document->shape.code_dims;
    *bias = 0;
    if (!coders->model.has_projection) return 1 / sqrt(square_of(scratch->components, n));
    double mean_dot, square = center(document, row, factor, &mean_dot);
    coders->table->project(&coders->sides[BSW_RBE_QUERY], row, factor, scratch->floats,
                           scratch->projected);
    double along = along_components(scratch->projected, scratch->components, n);
    *bias = (float)mean_dot + 0.0f;
    return along > 0 ? square / along : 0;
}

void bsw_rbe_encode_bundle(const struct bsw_rbe_coders *coders, const float *rows, size_t num_rows,
                           const float *factors, void *scratch, uint32_t *planes, uint16_t *scales,
                           float *biases)
{
    const struct bsw_rbe_coder *coder = &coders->sides[BSW_RBE_DOCUMENT];
    struct row_scratch at = scratch_of(coder, scratch);
    double unit = ldexp(1.0, -coders->scale_exponent);
    for (size_t r = 0; r < num_rows; r++) {
        const float *row = rows + r * coder->shape.dims;
        float bias, factor = factor_of(coders, factors[r]);
        scales[r] = 0;
        if (biases) biases[r] = 0;
        if (factor == 0.0f) continue;
        coders->table->encode(coder, row, factor, at.floats, at.components);
        pack_components(at.components, coder->shape.code_dims, coder->shape.steps + 1,
                        BSW_BUNDLE_ROWS, planes + r);
        double scale = unit * document_scale(coders, row, factor, &at, &bias);
        if (biases) biases[r] = bias;
        scales[r] = bsw_half_nearest(scale < LARGEST_HALF ? scale : LARGEST_HALF);
    }
}

// What components and the code's length are in units of; 0 for numbers that are all 0.
static double fill_float_query(const struct bsw_rbe_coder *coder, const struct row_scratch *at,
                               double *square)
{
    uint32_t n = coder->shape.code_dims;
    int32_t largest = (1 << BSW_MAX_QUERY_BITS) - 1;
    double most = 0;
    *square = 0;
    for (uint32_t i = 0; i < n; i++) {
        at->projected[i] = bsw_rbe_tanh(at->projected[i]);
        most = fmax(most, fabs((double)at->projected[i]));
        *square = fma((double)at->projected[i], (double)at->projected[i], *square);
    }
    double unit = most / largest;
    for (uint32_t i = 0; i < n; i++) {
        int32_t c = most > 0 ? 2 * (int32_t)floor(at->projected[i] / (2 * unit)) + 1 : 1;
        at->components[i] = (int16_t)(c < largest ? c : largest);
    }
    return unit;
}

static void encode_float_query(const struct bsw_rbe_coders *coders, const float *row, float factor,
                               const struct row_scratch *at, uint32_t *words, float *scale)
{
    const struct bsw_rbe_coder *coder = &coders->sides[BSW_RBE_QUERY];
    double square;
    coders->table->project(coder, row, factor, at->floats, at->projected);
    double unit = fill_float_query(coder, at, &square);
    pack_components(at->components, coder->shape.code_dims, BSW_MAX_QUERY_BITS, 1, words);
    *scale = square > 0 ? (float)(ldexp(unit, coders->scale_exponent) / sqrt(square)) : 0;
}

void bsw_rbe_encode_query(const struct bsw_rbe_coders *coders, const float *row, float factor,
                          void *scratch, uint32_t *words, float *scale, float *addend)
{
    const struct bsw_rbe_coder *coder = &coders->sides[BSW_RBE_QUERY];
    struct row_scratch at = scratch_of(coder, scratch);
    uint32_t n = coder->shape.code_dims;
    double unit = ldexp(1.0, coders->scale_exponent), mean_dot, mean_square = 0;
    factor = factor_of(coders, factor);
    *addend = 0;
    if (coders->model.has_float_queries) {
        encode_float_query(coders, row, factor, &at, words, scale);
        return;
    }
    coders->table->encode(coder, row, factor, at.floats, at.components);
    pack_components(at.components, n, coder->shape.steps + 1, 1, words);
    double square = square_of(at.components, n);
    *scale = (float)(unit / sqrt(square));
    if (!coders->model.has_projection) return;
    coders->table->project(coder, row, factor, at.floats, at.projected);
    *scale = (float)(unit * along_components(at.projected, at.components, n) / square);
    center(coder, row, factor, &mean_dot);
    for (uint32_t i = 0; i < coder->shape.dims; i++)
        mean_square = fma((double)coder->mean[i], (double)coder->mean[i], mean_square);
    *addend = (float)(mean_dot + mean_square);
}
