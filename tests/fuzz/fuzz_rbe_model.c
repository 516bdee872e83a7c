// SPDX-License-Identifier: Apache-2.0
// A learned model, as it lies in the file and with a checksum that fits.
#include <string.h>

#include "kernels/rbe/rbe_model_file.h"
#include "tests/fuzz/harness.h"

static void take(const void *data, size_t bytes)
{
    struct bsw_rbe_model model, again;
    struct bsw_buffer first = {0}, second = {0};
    struct bsw_error err;
    enum bsw_status status = bsw_rbe_model_parse("model.rbe", data, bytes, &model, &err);
    if (!fuzz_is_ok(status, &err, FUZZ_BIT(BSW_ERROR_BAD_DATA))) return;
    (void)fuzz_is_ok(bsw_rbe_model_check_codes(&model, "model.rbe", &err), &err,
                     FUZZ_BIT(BSW_ERROR_USAGE));
    FUZZ_REQUIRE(bsw_rbe_model_pack(&model, &first, &err) == BSW_OK);
    FUZZ_REQUIRE(bsw_rbe_model_parse("again", first.data, first.bytes, &again, &err) == BSW_OK);
    FUZZ_REQUIRE(bsw_rbe_model_pack(&again, &second, &err) == BSW_OK);
    FUZZ_REQUIRE(first.bytes == second.bytes);
    FUZZ_REQUIRE(memcmp(first.data, second.data, first.bytes) == 0);
    bsw_buffer_deinit(&first);
    bsw_buffer_deinit(&second);
    bsw_rbe_model_deinit(&again);
    bsw_rbe_model_deinit(&model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    return fuzz_take_sealed(take, data, bytes);
}

// 4 trigrams.
static void add_text(struct bsw_rbe_model *model, int is_hashed)
{
    struct bsw_text_vocabulary *vocabulary = &model->text.vocabulary;
    vocabulary->num_grams = 4;
    if (!is_hashed)
        FUZZ_REQUIRE(bsw_allocate(&vocabulary->keys, 4, sizeof(uint64_t), "seed", NULL) == BSW_OK);
    for (uint64_t i = 0; i < 4 && !is_hashed; i++) vocabulary->keys[i] = 5 * i;
    for (int i = 0; i < BSW_RBE_NUM_SIDES; i++) {
        size_t count = bsw_text_num_parameters(4, 3);
        FUZZ_REQUIRE(bsw_allocate(&model->text.parameters[i], count, sizeof(float), "seed", NULL) ==
                     BSW_OK);
        bsw_text_initialize(4, 3, (uint64_t)i, model->text.parameters[i]);
        model->sides[i].scale = 1;
    }
}

void fuzz_make_seeds(fuzz_put_fn put, void *context)
{
    for (uint32_t kind = 0; kind < 6; kind++) { // the last two are of texts
        struct bsw_rbe_model model = {.metric = BSW_METRIC_COSINE, .is_smooth = kind == 3};
        struct bsw_buffer file = {0};
        for (uint32_t i = 0; i < BSW_RBE_NUM_SIDES; i++) {
            struct bsw_rbe_side *side = &model.sides[i];
            side->shape = (struct bsw_rbe_shape){3, 2, kind == 3 ? 0 : 2 - i, kind == 1, kind != 2};
            side->scale = 1.5f;
            FUZZ_REQUIRE(bsw_rbe_side_allocate(side, NULL) == BSW_OK);
            memset(side->mean, 0, 3 * sizeof(float));
            bsw_rbe_initialize(&side->shape, i, side->parameters);
        }
        if (kind >= 4) add_text(&model, kind == 5);
        FUZZ_REQUIRE(bsw_rbe_model_pack(&model, &file, NULL) == BSW_OK);
        put(context, file.data, file.bytes);
        put(context, file.data, file.bytes - 9);
        bsw_buffer_deinit(&file);
        bsw_rbe_model_deinit(&model);
    }
}
