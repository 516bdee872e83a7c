// SPDX-License-Identifier: Apache-2.0
#include "shard/codecs/product_training.h"

#include <string.h>

#include "common/base/arithmetic.h"
#include "common/base/memory.h"
#include "common/job/stop_signal.h"

#define BLOCK_ROWS   1024
#define MOST_SQUARES 1e37 // of an entry, so that no key becomes Inf or NaN

// One part under way.
struct part {
    const struct bsw_training_rows *rows;
    const struct bsw_table_scan_table *kernels;
    const struct bsw_product_codes *codes;
    struct bsw_product_book book; // of this part alone
    float *entries, *norms;       // of the book
    size_t stride;
    const float *from; // of the first row
    uint8_t *nearest;  // [num_rows]
    double *sums;      // [part_dims][entries]
    size_t *counts;    // [entries]
};

static void find_norms(struct part *part)
{
    size_t num = bsw_product_entries(&part->book);
    for (size_t j = 0; j < num; j++) part->norms[j] = 0.0f;
    for (uint32_t d = 0; d < part->book.part_dims; d++)
        for (size_t j = 0; j < num; j++) {
            float e = part->entries[d * num + j];
            part->norms[j] = fmaf(e, e, part->norms[j]);
        }
}

// Entries that are rows, one of each equal part of them.
static void choose_rows(struct part *part, uint64_t seed)
{
    size_t num = bsw_product_entries(&part->book), num_rows = part->rows->num;
    for (size_t j = 0; j < num; j++) {
        uint64_t first = bsw_part_first(num_rows, j, num),
                 width = bsw_part_first(num_rows, j + 1, num) - first;
        size_t row = (size_t)(first + (width > 0 ? bsw_hash2(seed, j) % width : 0));
        const float *from = part->from + (row < num_rows ? row : num_rows - 1) * part->stride;
        for (uint32_t d = 0; d < part->book.part_dims; d++) part->entries[d * num + j] = from[d];
    }
}

// The rows' nearest entries; returns how many have another than before.
static size_t assign(struct part *part)
{
    size_t changes = 0;
    uint8_t nearest[BLOCK_ROWS];
    for (size_t first = 0; first < part->rows->num; first += BLOCK_ROWS) {
        size_t left = part->rows->num - first, count = left < BLOCK_ROWS ? left : BLOCK_ROWS;
        part->kernels->nearest(&part->book, part->from + first * part->stride, part->stride, count,
                               nearest);
        for (size_t r = 0; r < count; r++) changes += part->nearest[first + r] != nearest[r];
        memcpy(part->nearest + first, nearest, count);
    }
    return changes;
}

static void add_up(struct part *part)
{
    size_t num = bsw_product_entries(&part->book);
    memset(part->sums, 0, num * part->book.part_dims * sizeof *part->sums);
    memset(part->counts, 0, num * sizeof *part->counts);
    for (size_t r = 0; r < part->rows->num; r++) {
        const float *row = part->from + r * part->stride;
        double *sums = part->sums + part->nearest[r];
        for (uint32_t d = 0; d < part->book.part_dims; d++) sums[d * num] += (double)row[d];
        part->counts[part->nearest[r]]++;
    }
}

// An entry without rows goes beside the one that has most, which then share them.
static void split_largest(struct part *part, size_t empty)
{
    size_t num = bsw_product_entries(&part->book), largest = 0;
    for (size_t j = 1; j < num; j++)
        if (part->counts[j] > part->counts[largest]) largest = j;
    for (uint32_t d = 0; d < part->book.part_dims; d++) {
        float *e = part->entries + d * num, step = d % 2 ? 0x1p-10f : -0x1p-10f;
        e[empty] = e[largest] + e[largest] * step;
        e[largest] -= e[largest] * step;
    }
    part->counts[empty] = part->counts[largest] / 2;
    part->counts[largest] -= part->counts[empty];
}

static void update(struct part *part)
{
    size_t num = bsw_product_entries(&part->book);
    add_up(part);
    for (size_t j = 0; j < num; j++) {
        if (part->counts[j] == 0) continue;
        for (uint32_t d = 0; d < part->book.part_dims; d++)
            part->entries[d * num + j] = (float)(part->sums[d * num + j] / (double)part->counts[j]);
    }
    for (size_t j = 0; j < num; j++)
        if (part->counts[j] == 0) split_largest(part, j);
    find_norms(part);
}

static enum bsw_status train_part(const struct bsw_book_training *training,
                                  const struct bsw_training_rows *rows,
                                  const struct bsw_table_scan_table *kernels,
                                  const struct bsw_product_codes *codes, uint32_t p,
                                  struct bsw_error *err)
{
    const struct bsw_product_book *book = &codes->book;
    size_t num = bsw_product_entries(book), part_dims = book->part_dims;
    struct part part = {.rows = rows,
                        .kernels = kernels,
                        .codes = codes,
                        .book = {1, book->part_dims, book->bits,
                                 codes->entries + p * num * part_dims, codes->norms + p * num},
                        .entries = codes->entries + p * num * part_dims,
                        .norms = codes->norms + p * num,
                        .stride = codes->projected_dims,
                        .from = rows->projected + p * part_dims,
                        .nearest = rows->codes + p * rows->num};
    BSW_TRY(bsw_allocate(&part.sums, num * part_dims, sizeof *part.sums, "codebooks", err));
    enum bsw_status status = bsw_allocate(&part.counts, num, sizeof *part.counts, "codebooks", err);
    if (status == BSW_OK && !training->goes_on) choose_rows(&part, bsw_hash2(training->seed, p));
    if (status == BSW_OK) find_norms(&part);
    if (status == BSW_OK && !training->goes_on) memset(part.nearest, 0, rows->num);
    for (uint32_t round = 0; round < training->rounds && status == BSW_OK; round++) {
        if (assign(&part) == 0 && round > 0) break;
        update(&part);
    }
    if (status == BSW_OK) assign(&part); // by the last entries
    bsw_free(&part.sums);
    bsw_free(&part.counts);
    return status;
}

static enum bsw_status check_range(const struct bsw_sample *sample,
                                   const struct bsw_product_codes *codes, struct bsw_error *err)
{
    double squares = 0;
    for (size_t i = 0; i < bsw_product_numbers(&codes->book); i++) // gcc 12 for Arm fails on fmax
        squares = (double)codes->norms[i] > squares ? (double)codes->norms[i] : squares;
    if (squares * codes->book.parts <= MOST_SQUARES) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: numbers too large for --codec pq",
                    bsw_vectors_name(sample->vectors));
}

enum bsw_status bsw_product_books_train(const struct bsw_book_training *training,
                                        const struct bsw_training_rows *rows,
                                        const struct bsw_sample *sample,
                                        struct bsw_product_codes *codes, struct bsw_error *err)
{
    const struct bsw_table_scan_table *kernels = bsw_table_scan_table_get(sample->level);
    enum bsw_status all = BSW_OK;
    struct bsw_error first;
    uint32_t done = 0;
    bsw_progress_begin(training->progress, "training, codebooks", "parts", codes->book.parts);
#pragma omp parallel for schedule(dynamic, 1) num_threads(training->num_threads)
    for (uint32_t p = 0; p < codes->book.parts; p++) {
        struct bsw_error own;
        enum bsw_status status = BSW_OK;
        if (!bsw_stop_is_asked()) status = train_part(training, rows, kernels, codes, p, &own);
#pragma omp critical
        {
            if (status != BSW_OK && all == BSW_OK) {
                all = status;
                first = own;
            }
            bsw_progress_update(training->progress, ++done);
        }
    }
    bsw_progress_finish(training->progress);
    if (all != BSW_OK) {
        if (err) *err = first;
        return all;
    }
    if (bsw_stop_is_asked()) return bsw_stop_fail(err);
    return check_range(sample, codes, err);
}
