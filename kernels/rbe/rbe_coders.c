#include "kernels/rbe/rbe_coders.h"

#include <math.h>

#include "common/code_layout.h"
#include "common/half.h"

// ---- making ready ----

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

// norm(c) >= sqrt(code_dims), so 2^-e / norm(c) <= 2^8 with 2^-e <= 2^8 * sqrt(code_dims).
int32_t bsw_rbe_scale_exponent(uint32_t code_dims)
{
    int32_t logarithm = 0; // floor(log2(code_dims))
    while (code_dims >>= 1) logarithm++;
    return -(8 + logarithm / 2);
}

static size_t component_bytes(const struct bsw_rbe_coder *coder)
{
    size_t bytes = coder->shape.code_dims * sizeof(int16_t);
    return (bytes + BSW_ALIGNMENT_BYTES - 1) / BSW_ALIGNMENT_BYTES * BSW_ALIGNMENT_BYTES;
}

size_t bsw_rbe_coders_scratch_bytes(const struct bsw_rbe_coders *coders)
{
    const struct bsw_rbe_coder *coder = &coders->sides[0]; // both have the same dims
    return component_bytes(coder) + bsw_rbe_scratch_floats(coder) * sizeof(float);
}

// ---- rows ----

// Components of a row at the beginning of scratch; returns the square of their norm, exact: at most
// 4096 * 255^2.
static int64_t encode_row(const struct bsw_rbe_coders *coders, const struct bsw_rbe_coder *coder,
                          const float *row, float factor, void *scratch)
{
    int16_t *components = scratch;
    float *floats = (float *)(void *)((unsigned char *)scratch + component_bytes(coder));
    int64_t square = 0;
    coders->table->encode(coder, row, factor, floats, components);
    for (uint32_t i = 0; i < coder->shape.code_dims; i++)
        square += (int64_t)components[i] * components[i];
    return square;
}

// Word `word` of plane p lies at planes[(p * words + word) * stride].
static void pack_components(const struct bsw_rbe_coder *coder, const int16_t *components,
                            size_t stride, uint32_t *planes)
{
    uint32_t bits = coder->shape.steps + 1, words = (coder->shape.code_dims + 31) / 32;
    for (uint32_t i = 0; i < coder->shape.code_dims; i++) {
        uint32_t u = (uint32_t)((int32_t)(1u << bits) - 1 - components[i]) / 2;
        for (uint32_t plane = 0; plane < bits; plane++) {
            uint32_t bit = (u >> (bits - 1 - plane)) & 1u;
            planes[((size_t)plane * words + i / 32) * stride] |= bit << (i % 32);
        }
    }
}

void bsw_rbe_encode_bundle(const struct bsw_rbe_coders *coders, const float *rows, size_t num_rows,
                           const float *factors, void *scratch, uint32_t *planes, uint16_t *scales)
{
    const struct bsw_rbe_coder *coder = &coders->sides[BSW_RBE_DOCUMENT];
    double unit = ldexp(1.0, -bsw_rbe_scale_exponent(coder->shape.code_dims));
    for (size_t r = 0; r < num_rows; r++) {
        scales[r] = 0;
        if (factors[r] == 0.0f) continue;
        int64_t square =
            encode_row(coders, coder, rows + r * coder->shape.dims, factors[r], scratch);
        pack_components(coder, scratch, BSW_BUNDLE_ROWS, planes + r);
        scales[r] = bsw_half_nearest(unit / sqrt((double)square));
    }
}

void bsw_rbe_encode_query(const struct bsw_rbe_coders *coders, const float *row, float factor,
                          void *scratch, uint32_t *words, float *scale)
{
    const struct bsw_rbe_coder *coder = &coders->sides[BSW_RBE_QUERY];
    double unit = ldexp(1.0, bsw_rbe_scale_exponent(coder->shape.code_dims));
    int64_t square = encode_row(coders, coder, row, factor, scratch);
    pack_components(coder, scratch, 1, words);
    *scale = (float)(unit / sqrt((double)square));
}
