// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "kernels/table_bounds/table_bounds.h"

static float least_of(const float *numbers, size_t num, float *most)
{
    float least = numbers[0];
    *most = numbers[0];
    for (size_t j = 1; j < num; j++) {
        least = numbers[j] < least ? numbers[j] : least;
        *most = numbers[j] > *most ? numbers[j] : *most;
    }
    return least;
}

static struct bsw_bound_scale reference_narrow(const struct bsw_product_book *book,
                                               const float *terms, uint8_t *numbers)
{
    struct bsw_bound_scale scale = {0, 0};
    size_t num = bsw_product_entries(book);
    float range = 0.0f, inverse, most;
    for (uint32_t p = 0; p < book->parts; p++) {
        float least = least_of(terms + p * num, num, &most);
        scale.least += (double)least;
        range = most - least > range ? most - least : range;
    }
    scale.unit = bsw_bound_unit(range, &inverse);
    for (uint32_t p = 0; p < book->parts; p++) {
        float least = least_of(terms + p * num, num, &most);
        for (size_t i = p * num; i < (p + 1) * num; i++) {
            float number = (terms[i] - least) * inverse;
            numbers[i] = (uint8_t)(number > 255.0f ? 255.0f : number);
        }
    }
    for (size_t i = book->parts * num; i < bsw_bound_bytes(book); i++) numbers[i] = 0;
    return scale;
}

static size_t code_of(uint32_t bits, const uint8_t *codes, size_t bundle_bytes, uint32_t p,
                      size_t place)
{
    const uint8_t *bundle = codes + place / BSW_BUNDLE_ROWS * bundle_bytes;
    size_t lane = place % BSW_BUNDLE_ROWS;
    if (bits == 8) return bundle[p * BSW_BUNDLE_ROWS + lane];
    uint8_t both = bundle[p / 2 * BSW_BUNDLE_ROWS + lane];
    return p % 2 ? both >> 4 : both & 15;
}

static void reference_pass(const struct bsw_bound_rows *rows, const struct bsw_bound_query *queries,
                           size_t num_queries, void *room, uint32_t *masks)
{
    (void)room;
    for (size_t q = 0; q < num_queries; q++) {
        uint32_t *out = masks + q * rows->num_bundles;
        for (size_t i = 0; i < rows->num_bundles * BSW_BUNDLE_ROWS; i++) {
            uint32_t sum = 0, bit = 1u << i % BSW_BUNDLE_ROWS, *word = &out[i / BSW_BUNDLE_ROWS];
            for (uint32_t p = 0; p < rows->parts; p++)
                sum +=
                    queries[q].numbers[((size_t)p << rows->bits) +
                                       code_of(rows->bits, rows->codes, rows->bundle_bytes, p, i)];
            if (bit == 1) *word = 0;
            if (fmaf(queries[q].unit, (float)sum, rows->terms[i]) <= queries[q].most)
                *word |= bit & rows->masks[i / BSW_BUNDLE_ROWS];
        }
    }
}

static float reference_gap(const float *x, const float *y, size_t dims)
{
    float lanes[16] = {0}, sum = 0.0f;
    for (size_t d = 0; d < dims; d++) {
        float gap = x[d] - y[d];
        lanes[d % 16] = fmaf(gap, gap, lanes[d % 16]);
    }
    for (int i = 0; i < 16; i++) sum += lanes[i];
    return sum;
}

static void reference_bases(const struct bsw_product_book *book, const float *x, const float *y,
                            float *bases)
{
    for (uint32_t p = 0; p < book->parts; p++) {
        bases[p] = 0.0f;
        for (size_t d = (size_t)p * book->part_dims; d < (size_t)(p + 1) * book->part_dims; d++) {
            float gap = x[d] - y[d];
            bases[p] = fmaf(gap, gap, bases[p]);
        }
    }
}

static void reference_sums(const struct bsw_bound_terms *terms, const uint8_t *codes,
                           size_t bundle_bytes, const uint32_t *places, size_t num_places,
                           float *sums)
{
    const struct bsw_product_book *book = terms->book;
    size_t num = bsw_product_entries(book), dims = book->part_dims;
    for (size_t i = 0; i < num_places; i++) {
        float sum = 0.0f;
        for (uint32_t p = 0; p < book->parts; p++) {
            size_t j = code_of(book->bits, codes, bundle_bytes, p, places[i]);
            float product = 0.0f;
            for (size_t d = p * dims; d < (p + 1) * dims; d++)
                product = fmaf(terms->query[d], book->entries[d * num + j], product);
            float distance = (terms->list[p * num + j] + product) + terms->bases[p];
            sum += distance > 0.0f ? distance : 0.0f;
        }
        sums[i] = sum;
    }
}

const struct bsw_table_bounds_table bsw_table_bounds_reference = {.level = "reference",
                                                                  .narrow = reference_narrow,
                                                                  .pass = reference_pass,
                                                                  .gap = reference_gap,
                                                                  .bases = reference_bases,
                                                                  .sums = reference_sums};

BSW_KERNEL_TABLE_GET(table_bounds, BSW_KERNEL_AVX2(table_bounds) BSW_KERNEL_AVX512(table_bounds)
                                       BSW_KERNEL_NEON(table_bounds))
