// SPDX-License-Identifier: Apache-2.0
#include "coordinator/train/text_pairs.h"

#include <stdio.h>

#include "coordinator/job/same_input.h"

static enum bsw_status read_texts(void *context, uint64_t pair, struct bsw_buffer *buffer,
                                  struct bsw_rbe_pair_text texts[BSW_RBE_NUM_SIDES],
                                  struct bsw_error *err)
{
    const struct bsw_text_pairs *pairs = context;
    BSW_TRY(bsw_text_lines_read(&pairs->lines, pair, buffer, err));
    for (uint32_t side = 0; side < BSW_RBE_NUM_SIDES; side++) // the query's is the first column
        BSW_TRY(bsw_text_lines_column(&pairs->lines, pair, side + 1, buffer, &texts[side].text,
                                      &texts[side].bytes, err));
    return BSW_OK;
}

// Looks at every line, also where nothing is learned: a bad one is found before the training.
static enum bsw_status count_grams(struct bsw_text_pairs *pairs, struct bsw_text_counts *counts,
                                   struct bsw_buffer *buffer, struct bsw_text_grams *grams,
                                   struct bsw_error *err)
{
    struct bsw_rbe_pair_text texts[BSW_RBE_NUM_SIDES];
    for (uint64_t pair = 0; pair < pairs->lines.num_lines; pair++) {
        BSW_TRY(read_texts(pairs, pair, buffer, texts, err));
        for (int side = 0; side < BSW_RBE_NUM_SIDES; side++) {
            BSW_TRY(bsw_text_grams_make(grams, texts[side].text, texts[side].bytes, err));
            BSW_TRY(bsw_text_counts_add(counts, grams, err));
        }
    }
    return BSW_OK;
}

static enum bsw_status open(const char *path, uint32_t most_grams, int is_hashed,
                            struct bsw_text_pairs *out, struct bsw_error *err)
{
    struct bsw_text_name name = {.column = 0};
    struct bsw_text_counts counts = {0};
    struct bsw_text_grams grams = {0};
    struct bsw_buffer buffer = {0};
    BSW_TRY(bsw_path_format(name.file, err, "%s", path));
    BSW_TRY(bsw_text_lines_open(&name, &out->lines, err));
    enum bsw_status status = count_grams(out, &counts, &buffer, &grams, err);
    if (status == BSW_OK && is_hashed)
        out->vocabulary.num_grams = most_grams;
    else if (status == BSW_OK)
        status = bsw_text_counts_choose(&counts, most_grams, &out->vocabulary, err);
    bsw_text_counts_deinit(&counts);
    bsw_text_grams_deinit(&grams);
    bsw_buffer_deinit(&buffer);
    return status;
}

enum bsw_status bsw_text_pairs_open(const char *path, uint32_t most_grams, int is_hashed,
                                    struct bsw_transport *transport, struct bsw_text_pairs *out,
                                    struct bsw_error *err)
{
    *out = (struct bsw_text_pairs){.lines = {.fd = -1}};
    BSW_TRY(bsw_transport_agree(transport, open(path, most_grams, is_hashed, out, err), err));
    return bsw_same_input_agree(transport, out->lines.digest, path, err);
}

void bsw_text_pairs_close(struct bsw_text_pairs *pairs)
{
    if (pairs->lines.starts) bsw_text_lines_close(&pairs->lines);
    bsw_text_vocabulary_deinit(&pairs->vocabulary);
}

struct bsw_rbe_pairs bsw_text_pairs_pairs(struct bsw_text_pairs *pairs)
{
    return (struct bsw_rbe_pairs){
        .context = pairs, .num_pairs = pairs->lines.num_lines, .read_texts = read_texts};
}
