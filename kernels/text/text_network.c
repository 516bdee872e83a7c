// SPDX-License-Identifier: Apache-2.0
#include "kernels/text/text_network.h"

#include <math.h>
#include <string.h>

#include "common/base/arithmetic.h"

BSW_KERNEL_TABLE_GET(text_pool, BSW_KERNEL_AVX2(text_pool) BSW_KERNEL_AVX512(text_pool)
                                    BSW_KERNEL_NEON(text_pool))

void bsw_text_initialize(uint32_t num_grams, uint32_t dims, uint64_t seed, float *parameters)
{
    size_t count = (size_t)num_grams * dims;
    float limit = sqrtf(6.0f / ((float)num_grams + (float)dims));
    for (size_t i = 0; i < count; i++) {
        float unit = (float)(bsw_hash2(seed, i) >> 40) * 0x1p-23f - 1.0f; // -1 .. 1
        parameters[i] = unit * limit;
    }
    memset(parameters + count, 0, dims * sizeof *parameters);
}

// ---- texts ----

enum bsw_status bsw_text_pass_init(const struct bsw_text_vocabulary *vocabulary, uint32_t dims,
                                   size_t max_texts, enum bsw_cpu_level level,
                                   struct bsw_text_pass *out, struct bsw_error *err)
{
    *out = (struct bsw_text_pass){.vocabulary = vocabulary,
                                  .table = bsw_text_pool_table_get(level),
                                  .dims = dims,
                                  .max_texts = max_texts};
    BSW_TRY(bsw_allocate(&out->places, max_texts, sizeof *out->places, "texts", err));
    BSW_TRY(bsw_allocate(&out->groups, max_texts, dims * sizeof *out->groups, "texts", err));
    return bsw_allocate(&out->scratch, BSW_TEXT_GROUP_WORDS + 1, dims * sizeof(float), "texts",
                        err);
}

void bsw_text_pass_deinit(struct bsw_text_pass *pass)
{
    bsw_text_grams_deinit(&pass->grams);
    bsw_buffer_deinit(&pass->ids);
    bsw_buffer_deinit(&pass->word_ends);
    bsw_free(&pass->places);
    bsw_free(&pass->groups);
    bsw_free(&pass->scratch);
}

void bsw_text_pass_clear(struct bsw_text_pass *pass)
{
    pass->num_texts = pass->ids.bytes = pass->word_ends.bytes = 0;
}

enum bsw_status bsw_text_pass_add(struct bsw_text_pass *pass, const char *text, size_t bytes,
                                  struct bsw_error *err)
{
    struct bsw_text_grams *grams = &pass->grams;
    size_t first_gram = pass->ids.bytes / sizeof(uint32_t), i = 0;
    BSW_TRY(bsw_text_grams_make(grams, text, bytes, err));
    BSW_TRY(
        bsw_buffer_reserve(&pass->ids, pass->ids.bytes + grams->num_grams * sizeof(uint32_t), err));
    uint32_t *ids = (uint32_t *)(void *)pass->ids.data + first_gram, known = 0;
    for (size_t w = 0; w < grams->num_words; w++) {
        for (; i < grams->word_ends[w]; i++) {
            uint32_t id = bsw_text_vocabulary_find(pass->vocabulary, grams->keys[i]);
            if (id != BSW_TEXT_UNKNOWN) ids[known++] = id;
        }
        grams->word_ends[w] = known;
    }
    pass->places[pass->num_texts++] = (struct bsw_text_place){
        first_gram, pass->word_ends.bytes / sizeof(uint32_t), grams->num_words};
    pass->ids.bytes += known * sizeof(uint32_t);
    return bsw_buffer_append(&pass->word_ends, grams->word_ends,
                             grams->num_words * sizeof(uint32_t), err);
}

static struct bsw_text_ids text_of(const struct bsw_text_pass *pass, size_t t)
{
    const struct bsw_text_place *place = &pass->places[t];
    return (struct bsw_text_ids){
        (const uint32_t *)(const void *)pass->ids.data + place->first_gram,
        (const uint32_t *)(const void *)pass->word_ends.data + place->first_word, place->num_words};
}

// ---- forward and backward ----

void bsw_text_forward(struct bsw_text_pass *pass, const float *parameters, float *outputs)
{
    size_t dims = pass->dims;
    const struct bsw_text_layer layer = {
        parameters, parameters + (size_t)pass->vocabulary->num_grams * dims, pass->dims};
    for (size_t t = 0; t < pass->num_texts; t++) {
        const struct bsw_text_ids text = text_of(pass, t);
        pass->table->pool(&layer, &text, pass->scratch, outputs + t * dims,
                          pass->groups + t * dims);
    }
}

// What the outputs give word w back: those whose largest group it is in.
static void word_gradient(const struct bsw_text_pass *pass, const uint32_t *groups, size_t w,
                          const float *from, float *out)
{
    for (uint32_t d = 0; d < pass->dims; d++)
        out[d] = groups[d] <= w && groups[d] + BSW_TEXT_GROUP_WORDS > w ? from[d] : 0;
}

static void add_to(float *sum, const float *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) sum[i] += numbers[i];
}

void bsw_text_backward(struct bsw_text_pass *pass, const float *outputs, float *output_gradient,
                       float *gradient)
{
    size_t dims = pass->dims;
    float *bias = gradient + (size_t)pass->vocabulary->num_grams * dims;
    for (size_t i = 0; i < pass->num_texts * dims; i++)
        output_gradient[i] *= 1.0f - outputs[i] * outputs[i];
    for (size_t t = 0; t < pass->num_texts; t++) {
        const struct bsw_text_ids text = text_of(pass, t);
        const float *from = output_gradient + t * dims;
        uint32_t i = 0;
        add_to(bias, from, dims);
        for (size_t w = 0; w < text.num_words; w++) {
            word_gradient(pass, pass->groups + t * dims, w, from, pass->scratch);
            for (; i < text.word_ends[w]; i++)
                add_to(gradient + (size_t)text.ids[i] * dims, pass->scratch, dims);
        }
    }
}
