// SPDX-License-Identifier: Apache-2.0
// bitsweep.h: rows of texts by a model.
#include "coordinator/bitsweep_call.h"
#include "coordinator/job/text_model.h"

struct bitsweep_text_model {
    struct bsw_rbe_text text;
};

// The model that an index keeps, or the file that was named.
static enum bsw_status find_model(const char *path, char out[BSW_PATH_BYTES], struct bsw_error *err)
{
    char manifest[BSW_PATH_BYTES];
    if (!path) return bsw_fail(err, BSW_ERROR_USAGE, "no model of texts is given");
    if (bsw_text_model_of_index(path, out)) return BSW_OK;
    if (bsw_path_join(manifest, path, "manifest.pb", NULL) == BSW_OK && bsw_file_is_found(manifest))
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: is no index of texts, it has no model", path);
    return bsw_path_format(out, err, "%s", path);
}

static enum bsw_status open_model(const char *path, bitsweep_text_model **out,
                                  struct bsw_error *err)
{
    char file[BSW_PATH_BYTES];
    BSW_TRY(find_model(path, file, err));
    BSW_TRY(bsw_allocate_zero(out, 1, sizeof **out, "model", err));
    return bsw_rbe_text_open(file, bsw_cpu_level_detect(), &(*out)->text, err);
}

static void destroy(bitsweep_text_model *model)
{
    if (!model) return;
    bsw_rbe_text_close(&model->text);
    bsw_free(&model);
}

int bitsweep_text_open(const char *path, bitsweep_text_model **out, uint32_t *dims,
                       struct bitsweep_error *error)
{
    struct bsw_library_call call;
    bitsweep_text_model *model = NULL;
    *out = NULL;
    enum bsw_status status = bsw_library_call_begin(&call, &(struct bsw_library_call_needs){0});
    if (status == BSW_OK) status = open_model(path, &model, &call.err);
    if (status == BSW_OK) {
        *out = model;
        if (dims) *dims = model->text.maker.dims;
    } else {
        destroy(model);
    }
    return bsw_library_call_end(&call, status, error);
}

void bitsweep_text_close(bitsweep_text_model **model)
{
    bitsweep_text_model *own = *model;
    *model = NULL;
    if (bsw_fork_check(NULL) == BSW_OK) destroy(own);
}

int bitsweep_text_row(const bitsweep_text_model *model, int is_query, const char *text,
                      uint64_t num_bytes, float *out, struct bitsweep_error *error)
{
    struct bsw_library_call call;
    enum bsw_status status = bsw_library_call_begin(&call, &(struct bsw_library_call_needs){0});
    const struct bsw_text_maker *maker = &model->text.maker;
    if (status == BSW_OK && ((!text && num_bytes > 0) || !out))
        status = bsw_fail(&call.err, BSW_ERROR_USAGE, "no text, or no place for its row");
    if (status == BSW_OK)
        status = maker->make(maker->context, is_query, text ? text : "", (size_t)num_bytes, out,
                             &call.err);
    return bsw_library_call_end(&call, status, error);
}
