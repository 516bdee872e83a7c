// SPDX-License-Identifier: Apache-2.0
#include "kernels/rbe/rbe_text.h"

#include <string.h>

#include "kernels/rbe_tanh.h"

// The last layer of a model of full precision.
static enum bsw_status finish_row(const struct bsw_rbe_text *text, int side, const float *f,
                                  float *row, struct bsw_error *err)
{
    const struct bsw_rbe_coder *coder = &text->sides[side];
    float *scratch;
    BSW_TRY(bsw_allocate(&scratch, bsw_rbe_scratch_floats(coder) + coder->padded_code_dims,
                         sizeof(float), "text", err));
    float *out = scratch + bsw_rbe_scratch_floats(coder);
    text->table->project(coder, f, 1.0f, scratch, out);
    for (uint32_t i = 0; i < coder->shape.code_dims; i++) row[i] = bsw_rbe_tanh(out[i]);
    bsw_free(&scratch);
    return BSW_OK;
}

static enum bsw_status run_network(const struct bsw_rbe_text *text, struct bsw_text_pass *pass,
                                   int side, const char *from, size_t bytes, float *row,
                                   struct bsw_error *err)
{
    const struct bsw_rbe_model *model = &text->model;
    float f[BSW_RBE_MAX_DIMS];
    BSW_TRY(bsw_text_pass_add(pass, from, bytes, err));
    bsw_text_forward(pass, model->text.parameters[side], f);
    if (model->is_smooth) return finish_row(text, side, f, row, err);
    memcpy(row, f, model->sides[side].shape.dims * sizeof *row);
    return BSW_OK;
}

static enum bsw_status make(void *context, int is_query, const char *from, size_t bytes, float *row,
                            struct bsw_error *err)
{
    const struct bsw_rbe_text *text = context;
    int side = is_query ? BSW_RBE_QUERY : BSW_RBE_DOCUMENT;
    struct bsw_text_pass pass;
    enum bsw_status status =
        bsw_text_pass_init(&text->model.text.vocabulary, text->model.sides[side].shape.dims, 1,
                           text->level, &pass, err);
    if (status == BSW_OK) status = run_network(text, &pass, side, from, bytes, row, err);
    bsw_text_pass_deinit(&pass);
    return status;
}

enum bsw_status bsw_rbe_text_open(const char *path, enum bsw_cpu_level level,
                                  struct bsw_rbe_text *out, struct bsw_error *err)
{
    *out = (struct bsw_rbe_text){.table = bsw_rbe_codes_table_get(level), .level = level};
    BSW_TRY(bsw_rbe_model_read(path, &out->model, err));
    if (out->model.text.vocabulary.num_grams == 0)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%s: a model of vectors: text needs one of train --text", path);
    for (int i = 0; i < BSW_RBE_NUM_SIDES && out->model.is_smooth; i++) {
        const struct bsw_rbe_side *side = &out->model.sides[i];
        BSW_TRY(bsw_allocate(&out->memory[i], bsw_rbe_coder_floats(&side->shape), sizeof(float),
                             "model", err));
        bsw_rbe_coder_init(&side->shape, side->parameters, side->mean, side->scale, out->memory[i],
                           &out->sides[i]);
    }
    const struct bsw_rbe_shape *shape = &out->model.sides[0].shape;
    out->maker =
        (struct bsw_text_maker){out, out->model.is_smooth ? shape->code_dims : shape->dims, make};
    return BSW_OK;
}

void bsw_rbe_text_close(struct bsw_rbe_text *text)
{
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) bsw_free(&text->memory[i]);
    bsw_rbe_model_deinit(&text->model);
    *text = (struct bsw_rbe_text){0};
}
