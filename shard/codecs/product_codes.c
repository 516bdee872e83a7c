// SPDX-License-Identifier: Apache-2.0
#include "shard/codecs/product_codes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/codes/metric.h"
#include "shard/codecs/selective_table.h"

enum bsw_status bsw_product_codes_create(enum bsw_metric metric, uint32_t dims, uint32_t parts,
                                         uint32_t bits, const char *rotation,
                                         struct bsw_product_codes **out, struct bsw_error *err)
{
    struct bsw_product_codes *codes;
    uint32_t part_dims = (dims + parts - 1) / parts, all = parts * part_dims;
    *out = NULL;
    BSW_TRY(bsw_allocate_zero(&codes, 1, sizeof *codes, "codebooks", err));
    *codes = (struct bsw_product_codes){.metric = metric,
                                        .dims = dims,
                                        .projected_dims = (all + 31) / 32 * 32,
                                        .book = {parts, part_dims, bits, NULL, NULL}};
    snprintf(codes->rotation, sizeof codes->rotation, "%s", rotation);
    size_t numbers = bsw_product_numbers(&codes->book);
    enum bsw_status status = bsw_allocate_zero(&codes->mean, dims, sizeof(float), "codebooks", err);
    if (status == BSW_OK)
        status = bsw_allocate_zero(&codes->zeros, dims, sizeof(float), "codebooks", err);
    if (status == BSW_OK)
        status = bsw_allocate_zero(&codes->entries, numbers * part_dims, sizeof(float), "codebooks",
                                   err);
    if (status == BSW_OK)
        status = bsw_allocate_zero(&codes->norms, numbers, sizeof(float), "codebooks", err);
    codes->book.entries = codes->entries;
    codes->book.norms = codes->norms;
    if (status != BSW_OK) bsw_product_codes_destroy(&codes);
    *out = codes;
    return status;
}

void bsw_product_codes_destroy(struct bsw_product_codes **codes)
{
    if (!*codes) return;
    bsw_free(&(*codes)->mean);
    bsw_free(&(*codes)->zeros);
    bsw_free(&(*codes)->matrix);
    bsw_free(&(*codes)->entries);
    bsw_free(&(*codes)->norms);
    bsw_product_radii_destroy(&(*codes)->radii);
    bsw_free(codes);
}

void bsw_product_codes_norms(struct bsw_product_codes *codes)
{
    const struct bsw_product_book *book = &codes->book;
    size_t num = bsw_product_entries(book);
    memset(codes->norms, 0, bsw_product_numbers(book) * sizeof(float));
    for (uint32_t dim = 0; dim < book->parts * book->part_dims; dim++) {
        float *norms = codes->norms + dim / book->part_dims * num;
        for (size_t j = 0; j < num; j++) {
            float e = codes->entries[dim * num + j];
            norms[j] = fmaf(e, e, norms[j]);
        }
    }
}

// ---- rows and queries ----

void bsw_product_frame(const struct bsw_product_codes *codes, struct bsw_saq_frame *out)
{
    *out = (struct bsw_saq_frame){.metric = codes->metric,
                                  .mean = codes->mean,
                                  .rotation = codes->matrix,
                                  .stage_dims = codes->dims};
    out->layout.dims = codes->dims;
    out->layout.padded_dims = codes->projected_dims;
}

void bsw_product_project(const struct bsw_product_codes *codes,
                         const struct bsw_encode_table *kernels, const float *centred,
                         size_t num_rows, float *out)
{
    size_t dims = codes->dims, projected = codes->projected_dims;
    if (codes->matrix) {
        struct bsw_saq_frame frame;
        bsw_product_frame(codes, &frame);
        kernels->saq_project(&frame, centred, num_rows, out);
        return;
    }
    for (size_t r = 0; r < num_rows; r++) {
        memcpy(out + r * projected, centred + r * dims, dims * sizeof(float));
        memset(out + r * projected + dims, 0, (projected - dims) * sizeof(float));
    }
}

void bsw_product_project_vector(const struct bsw_product_codes *codes,
                                const struct bsw_encode_table *kernels, const float *vector,
                                float factor, const float *mean, float *room, float *out)
{
    for (uint32_t d = 0; d < codes->dims; d++) room[d] = vector[d] * factor - mean[d];
    bsw_product_project(codes, kernels, room, 1, out);
}

// ---- tables ----

static void multiply(const struct bsw_product_codes *codes, const float *from, float factor,
                     float *out)
{
    for (uint32_t d = 0; d < codes->book.parts * codes->book.part_dims; d++)
        out[d] = factor * from[d];
}

void bsw_product_query_term(const struct bsw_product_codes *codes,
                            const struct bsw_table_scan_table *kernels, const float *query,
                            float *room, float *out)
{
    multiply(codes, query, bsw_has_row_norms(codes->metric) ? -2.0f : 1.0f, room);
    kernels->products(&codes->book, room, NULL, out);
}

void bsw_product_list_term(const struct bsw_product_codes *codes,
                           const struct bsw_table_scan_table *kernels, const float *centroid,
                           float *room, float *out)
{
    if (!centroid) {
        memcpy(out, codes->norms, bsw_product_numbers(&codes->book) * sizeof *out);
        return;
    }
    multiply(codes, centroid, 2.0f, room);
    kernels->products(&codes->book, room, codes->norms, out);
}

static void find_bases(const struct bsw_product_codes *codes, const struct bsw_product_terms *terms,
                       float *bases)
{
    uint32_t part_dims = codes->book.part_dims;
    for (uint32_t p = 0; p < codes->book.parts; p++) {
        float sum = 0.0f;
        for (uint32_t d = p * part_dims; d < (p + 1) * part_dims; d++) {
            float x = terms->query[d] - (terms->centroid ? terms->centroid[d] : 0.0f);
            sum = fmaf(x, x, sum);
        }
        bases[p] = sum;
    }
}

static float largest_of(const float *numbers, size_t num)
{
    float largest = 0.0f;
    for (size_t i = 0; i < num; i++)
        largest = fabsf(numbers[i]) > largest ? fabsf(numbers[i]) : largest;
    return largest;
}

float bsw_product_table(const struct bsw_product_codes *codes,
                        const struct bsw_table_scan_table *kernels, enum bsw_table_type type,
                        const struct bsw_product_terms *terms, float *bases, float *out)
{
    size_t numbers = bsw_product_numbers(&codes->book);
    int is_l2 = bsw_has_row_norms(codes->metric);
    const float *floats = terms->query_term;
    float largest = 0.0f;
    if (is_l2) {
        find_bases(codes, terms, bases);
        largest = kernels->distances(&codes->book, terms->list_term, terms->query_term, bases, out);
        floats = out;
    } else if (type != BSW_TABLE_FLOAT32) {
        largest = largest_of(floats, numbers);
    }
    int exponent = bsw_table_exponent(type, largest);
    if (type != BSW_TABLE_FLOAT32)
        kernels->round_numbers(type, !is_l2, exponent, floats, numbers, out);
    else if (floats != out)
        memcpy(out, floats, numbers * sizeof *out);
    return is_l2 ? -bsw_table_power(-exponent) : bsw_table_power(-exponent);
}

// ---- plainly ----

// Parts of the memory of a plain score.
struct plain_memory {
    float *centroid, *room, *query_term, *list_term, *bases;
    float *table;
    uint32_t *hits;
};

static size_t divide(const struct bsw_product_codes *codes, unsigned char *at,
                     struct plain_memory *out)
{
    size_t numbers = bsw_product_numbers(&codes->book) * sizeof(float),
           dims = (size_t)codes->projected_dims * sizeof(float);
    const struct bsw_memory_part parts[] = {{&out->centroid, dims},
                                            {&out->room, dims + codes->dims * sizeof(float)},
                                            {&out->query_term, numbers},
                                            {&out->list_term, numbers},
                                            {&out->bases, codes->book.parts * sizeof(float)},
                                            {&out->table, bsw_table_bytes(&codes->book)},
                                            {&out->hits, bsw_selective_hits_bytes(codes)}};
    return bsw_divide_memory(parts, sizeof parts / sizeof parts[0], at);
}

// The reference's table of a query; returns its multiplier.
static float plain_table(const struct bsw_product_codes *codes, enum bsw_table_type type,
                         const struct bsw_selection *selection, const float *query,
                         const float *centroid, const struct plain_memory *memory)
{
    const struct bsw_table_scan_table *kernels = &bsw_table_scan_reference;
    struct bsw_product_terms terms = {query, memory->query_term, NULL, memory->list_term};
    if (centroid && bsw_has_row_norms(codes->metric)) {
        bsw_product_project_vector(codes, &bsw_encode_reference, centroid, 1.0f, codes->mean,
                                   memory->room, memory->centroid);
        terms.centroid = memory->centroid;
    }
    bsw_product_query_term(codes, kernels, query, memory->room, memory->query_term);
    bsw_product_list_term(codes, kernels, terms.centroid, memory->room, memory->list_term);
    if (selection) return bsw_selective_plain_table(selection, &terms, memory->table, memory->hits);
    return bsw_product_table(codes, kernels, type, &terms, memory->bases, memory->table);
}

enum bsw_status bsw_product_plain_scores(const struct bsw_product_codes *codes,
                                         enum bsw_table_type type,
                                         const struct bsw_selection *selection, const float *query,
                                         const float *centroid, const struct bsw_product_rows *rows,
                                         uint32_t *out, struct bsw_error *err)
{
    const struct bsw_table_scan_table *kernels = &bsw_table_scan_reference;
    struct plain_memory memory;
    unsigned char *all;
    BSW_TRY(bsw_allocate(&all, divide(codes, NULL, &memory), 1, "table", err));
    divide(codes, all, &memory);
    float multiplier = plain_table(codes, type, selection, query, centroid, &memory);
    const struct bsw_code_table table = bsw_product_code_table(codes, memory.table);
    for (size_t i = 0; i < rows->num; i++) {
        uint32_t row = rows->rows[i], mask = 1u << row % BSW_BUNDLE_ROWS;
        float sums[BSW_BUNDLE_ROWS];
        uint64_t found;
        kernels->sums(&table, rows->bundles + row / BSW_BUNDLE_ROWS * rows->bundle_bytes, 0, 1,
                      sums);
        kernels->filter(sums, multiplier, 0.0f, &mask, 1, 0, 0, &found);
        found = found >> 32 << 32 | bsw_candidate_pack(0, row);
        size_t is_kept = !selection || bsw_selective_keep(codes, memory.hits, rows->bundles,
                                                          rows->bundle_bytes, &found, 1);
        out[i] = is_kept ? bsw_candidate_score(found) : 0;
    }
    bsw_free(&all);
    return BSW_OK;
}
