// SPDX-License-Identifier: Apache-2.0
#include "coordinator/encode/encode_text.h"

enum bsw_status bsw_encode_text_settle(struct bsw_encode_text *text,
                                       struct bsw_encode_settings *settings, struct bsw_error *err)
{
    if (!bsw_name_is_text(settings->base)) return BSW_OK;
    if (!settings->code.model)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: text needs --model, from bitsweep train --text",
                        settings->base);
    text->path = settings->code.model;
    if (!settings->codec->table->has_model) {
        settings->code.model = NULL;
        settings->copy_vectors = 1;
    }
    if (settings->copy_vectors) return BSW_OK;
    if (settings->lists > 0)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--lists: codes of texts that a model has learned have no lists without "
                        "--copy-vectors");
    settings->checks_codes = 0;
    return BSW_OK;
}

enum bsw_status bsw_encode_text_open(struct bsw_encode_text *text,
                                     const struct bsw_encode_settings *settings, int rank,
                                     struct bsw_error *err)
{
    if (!text->path) return BSW_OK;
    BSW_TRY(
        bsw_text_model_lend(&text->model, text->path, settings->level, &settings->base, 1, err));
    if (settings->codec->table->has_model || rank != 0) return BSW_OK;
    return bsw_file_read_all(text->path, BSW_RBE_MODEL_MAX_BYTES, &text->bytes, err);
}

void bsw_encode_text_close(struct bsw_encode_text *text)
{
    bsw_text_model_take_back(&text->model);
    bsw_buffer_deinit(&text->bytes);
}
