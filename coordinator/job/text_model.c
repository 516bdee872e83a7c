// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/text_model.h"

#include "common/files/index_manifest.h"

enum bsw_status bsw_text_model_lend(struct bsw_text_model *model, const char *path,
                                    enum bsw_cpu_level level, const char *const *names,
                                    size_t num_names, struct bsw_error *err)
{
    int is_wanted = 0;
    for (size_t i = 0; i < num_names; i++) is_wanted |= names[i] && bsw_name_is_text(names[i]);
    if (!is_wanted || !path || bsw_text_maker_lent()) return BSW_OK;
    enum bsw_status status = bsw_rbe_text_open(path, level, &model->text, err);
    if (status != BSW_OK) {
        bsw_rbe_text_close(&model->text);
        return status;
    }
    model->before = bsw_text_maker_lend(&model->text.maker);
    model->is_lent = 1;
    return BSW_OK;
}

void bsw_text_model_take_back(struct bsw_text_model *model)
{
    if (!model->is_lent) return;
    bsw_text_maker_lend(model->before);
    bsw_rbe_text_close(&model->text);
    *model = (struct bsw_text_model){0};
}

int bsw_text_model_of_index(const char *index, char out[BSW_PATH_BYTES])
{
    return bsw_path_join(out, index, BSW_INDEX_MODEL_NAME, NULL) == BSW_OK &&
           bsw_file_is_found(out);
}
