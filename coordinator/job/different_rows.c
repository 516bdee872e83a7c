// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/different_rows.h"

#include <math.h>
#include <xxhash.h>

#include "common/base/memory.h"
#include "kernels/encode/prepare_rows.h"

// Under cosine, of unit vectors: far above their roundings and below what codes can tell apart.
#define DIRECTION_UNITS 65536.0f

enum bsw_status bsw_different_rows_init(struct bsw_different_rows *rows, enum bsw_metric metric,
                                        enum bsw_cpu_level level, uint32_t dims, uint64_t most,
                                        struct bsw_error *err)
{
    uint64_t slots = 2;
    while (slots < 2 * most) slots *= 2;
    *rows = (struct bsw_different_rows){
        .metric = metric, .level = level, .dims = dims, .mask = slots - 1};
    BSW_TRY(bsw_allocate(&rows->floats, dims, sizeof *rows->floats, "row", err));
    BSW_TRY(bsw_allocate(&rows->coarse, dims, sizeof *rows->coarse, "row", err));
    return bsw_allocate_zero(&rows->slots, slots, sizeof *rows->slots, "rows", err);
}

void bsw_different_rows_deinit(struct bsw_different_rows *rows)
{
    bsw_free(&rows->floats);
    bsw_free(&rows->coarse);
    bsw_free(&rows->slots);
}

static uint64_t digest_of(const struct bsw_different_rows *rows, float factor)
{
    uint32_t dims = rows->dims;
    uint64_t digest;
    if (bsw_has_unit_rows(rows->metric)) {
        for (uint32_t d = 0; d < dims; d++)
            rows->coarse[d] = (int32_t)rintf(rows->floats[d] * factor * DIRECTION_UNITS);
        digest = XXH3_64bits(rows->coarse, dims * sizeof *rows->coarse);
    } else {
        for (uint32_t d = 0; d < dims; d++) rows->floats[d] += 0.0f; // -0 is 0
        digest = XXH3_64bits(rows->floats, dims * sizeof *rows->floats);
    }
    return digest > 0 ? digest : 1;
}

int bsw_different_rows_add(struct bsw_different_rows *rows, enum bsw_vector_type type,
                           const void *numbers)
{
    double norm;
    float factor;
    enum bsw_row_fault fault;
    bsw_prepare_rows(bsw_encode_table_get(rows->level), rows->metric, type, numbers, 1, rows->dims,
                     rows->floats, &norm, &factor, &fault);
    if (fault != BSW_ROW_GOOD) return 0;
    uint64_t digest = digest_of(rows, factor), slot = digest & rows->mask;
    for (; rows->slots[slot] != 0; slot = (slot + 1) & rows->mask) {
        if (rows->slots[slot] == digest) return 0;
    }
    rows->slots[slot] = digest;
    return 1;
}

// ---- a file of queries ----

static enum bsw_status mark(const bsw_vectors *queries, struct bsw_different_rows *rows,
                            unsigned char *is_copy, uint64_t *num_different, struct bsw_error *err)
{
    uint64_t first = bsw_vectors_first_row(queries);
    void *numbers;
    enum bsw_status status = BSW_OK;
    *num_different = 0;
    BSW_TRY(bsw_allocate(&numbers, bsw_vectors_row_bytes(queries), 1, "query", err));
    for (uint64_t i = 0; i < bsw_vectors_num_rows(queries) && status == BSW_OK; i++) {
        status = bsw_vectors_read(queries, first + i, 1, numbers, err);
        if (status != BSW_OK) break;
        int is_new = bsw_different_rows_add(rows, bsw_vectors_type(queries), numbers);
        is_copy[i] = (unsigned char)!is_new;
        *num_different += (uint64_t)is_new;
    }
    bsw_free(&numbers);
    return status;
}

enum bsw_status bsw_find_copies(const char *queries, enum bsw_metric metric,
                                enum bsw_cpu_level level, unsigned char **is_copy,
                                uint64_t *num_different, struct bsw_error *err)
{
    struct bsw_different_rows rows = {0};
    bsw_vectors *vectors;
    BSW_TRY(bsw_queries_open(queries, BSW_ALL_ROWS, &vectors, err));
    uint64_t num = bsw_vectors_num_rows(vectors);
    enum bsw_status status =
        bsw_different_rows_init(&rows, metric, level, bsw_vectors_dims(vectors), num, err);
    if (status == BSW_OK) status = bsw_allocate(is_copy, num, 1, "queries", err);
    if (status == BSW_OK) status = mark(vectors, &rows, *is_copy, num_different, err);
    bsw_different_rows_deinit(&rows);
    bsw_vectors_close(&vectors);
    return status;
}
