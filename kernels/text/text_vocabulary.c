// SPDX-License-Identifier: Apache-2.0
#include "kernels/text/text_vocabulary.h"

#include <stdlib.h>

#include "common/base/arithmetic.h"

uint32_t bsw_text_vocabulary_find(const struct bsw_text_vocabulary *vocabulary, uint64_t key)
{
    if (!vocabulary->keys) return (uint32_t)(bsw_hash(key) % vocabulary->num_grams);
    uint32_t first = 0, count = vocabulary->num_grams;
    while (count > 1) { // keys[first] <= key, if any is
        uint32_t half = count / 2;
        first += vocabulary->keys[first + half] <= key ? half : 0;
        count -= half;
    }
    return vocabulary->keys[first] == key ? first : BSW_TEXT_UNKNOWN;
}

void bsw_text_vocabulary_deinit(struct bsw_text_vocabulary *vocabulary)
{
    bsw_free(&vocabulary->keys);
    vocabulary->num_grams = 0;
}

// ---- counting ----

static struct bsw_text_count *place_of(const struct bsw_text_counts *counts, uint64_t key)
{
    size_t i = (size_t)bsw_hash(key) & (counts->num_places - 1);
    while (counts->places[i].count > 0 && counts->places[i].key != key)
        i = (i + 1) & (counts->num_places - 1);
    return &counts->places[i];
}

static enum bsw_status grow(struct bsw_text_counts *counts, struct bsw_error *err)
{
    struct bsw_text_counts larger = {.num_places =
                                         counts->num_places ? 2 * counts->num_places : 4096,
                                     .num_keys = counts->num_keys};
    BSW_TRY(bsw_allocate_zero(&larger.places, larger.num_places, sizeof *larger.places, "trigrams",
                              err));
    for (size_t i = 0; i < counts->num_places; i++)
        if (counts->places[i].count > 0)
            *place_of(&larger, counts->places[i].key) = counts->places[i];
    bsw_free(&counts->places);
    *counts = larger;
    return BSW_OK;
}

enum bsw_status bsw_text_counts_add(struct bsw_text_counts *counts,
                                    const struct bsw_text_grams *grams, struct bsw_error *err)
{
    for (size_t i = 0; i < grams->num_grams; i++) {
        if (2 * counts->num_keys >= counts->num_places) BSW_TRY(grow(counts, err));
        struct bsw_text_count *place = place_of(counts, grams->keys[i]);
        counts->num_keys += place->count == 0;
        place->key = grams->keys[i];
        place->count++;
    }
    return BSW_OK;
}

static int compare_counts(const void *a, const void *b)
{
    const struct bsw_text_count *x = a, *y = b;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    return x->key < y->key ? -1 : x->key > y->key;
}

static int compare_keys(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

enum bsw_status bsw_text_counts_choose(struct bsw_text_counts *counts, uint32_t most,
                                       struct bsw_text_vocabulary *out, struct bsw_error *err)
{
    *out = (struct bsw_text_vocabulary){0};
    if (counts->num_keys == 0)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "the texts have no words to learn from");
    qsort(counts->places, counts->num_places, sizeof *counts->places, compare_counts);
    out->num_grams = counts->num_keys < most ? (uint32_t)counts->num_keys : most;
    BSW_TRY(bsw_allocate(&out->keys, out->num_grams, sizeof *out->keys, "trigrams", err));
    for (uint32_t i = 0; i < out->num_grams; i++) out->keys[i] = counts->places[i].key;
    qsort(out->keys, out->num_grams, sizeof *out->keys, compare_keys);
    return BSW_OK;
}

void bsw_text_counts_deinit(struct bsw_text_counts *counts)
{
    bsw_free(&counts->places);
    *counts = (struct bsw_text_counts){0};
}
