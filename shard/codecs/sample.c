// SPDX-License-Identifier: Apache-2.0
#include "shard/codecs/sample.h"

#include <string.h>

#include "common/base/integer_hash.h"
#include "common/base/memory.h"
#include "kernels/encode/prepare_rows.h"

#define STRATUM_SEED 0x6269747377656570u

enum bsw_status bsw_sample_create(const bsw_vectors *vectors, enum bsw_metric metric,
                                  enum bsw_cpu_level level, struct bsw_sample *out,
                                  struct bsw_error *err)
{
    uint64_t num_rows = bsw_vectors_num_rows(vectors);
    *out = (struct bsw_sample){.vectors = vectors,
                               .table = bsw_encode_table_get(level),
                               .level = level,
                               .metric = metric,
                               .num_rows = num_rows < BSW_SAMPLE_ROWS ? num_rows : BSW_SAMPLE_ROWS};
    uint32_t dims = bsw_vectors_dims(vectors);
    BSW_TRY(bsw_allocate(&out->numbers, BSW_SAMPLE_TILE, bsw_vectors_row_bytes(vectors), "sample",
                         err));
    enum bsw_status status =
        bsw_allocate(&out->rows, (size_t)BSW_SAMPLE_TILE * dims, sizeof(float), "sample", err);
    if (status != BSW_OK) bsw_sample_deinit(out);
    return status;
}

void bsw_sample_deinit(struct bsw_sample *sample)
{
    bsw_progress_finish(sample->progress);
    bsw_free(&sample->numbers);
    bsw_free(&sample->rows);
}

void bsw_sample_rewind(struct bsw_sample *sample, const char *label)
{
    sample->next = 0;
    bsw_progress_begin(sample->progress, label, "rows", sample->num_rows);
}

// a * b / c without overflow; the result fits.
static uint64_t scale_row(uint64_t a, uint64_t b, uint64_t c)
{
    return (uint64_t)((unsigned __int128)a * b / c);
}

static uint64_t row_of_place(const struct bsw_sample *sample, uint64_t place)
{
    uint64_t all = bsw_vectors_num_rows(sample->vectors);
    uint64_t first = scale_row(place, all, sample->num_rows);
    uint64_t last = scale_row(place + 1, all, sample->num_rows);
    return first + bsw_hash2(STRATUM_SEED, place) % (last - first);
}

static enum bsw_status read_tile(struct bsw_sample *sample, size_t count, struct bsw_error *err)
{
    uint64_t first_row = bsw_vectors_first_row(sample->vectors);
    if (sample->num_rows == bsw_vectors_num_rows(sample->vectors)) {
        return bsw_vectors_read(sample->vectors, first_row + sample->next, count, sample->numbers,
                                err);
    }
    size_t row_bytes = bsw_vectors_row_bytes(sample->vectors);
    for (size_t i = 0; i < count; i++) {
        uint64_t row = first_row + row_of_place(sample, sample->next + i);
        BSW_TRY(bsw_vectors_read(sample->vectors, row, 1, sample->numbers + i * row_bytes, err));
    }
    return BSW_OK;
}

// Rows [count] that were read and prepared, less their centroids. A bad row stays one.
static void take_residuals(const struct bsw_sample *sample, size_t count, float *factors)
{
    uint32_t lists[BSW_SAMPLE_TILE], dims = bsw_vectors_dims(sample->vectors);
    const struct bsw_list_assignment assignment = {
        .rows = sample->numbers, .num_rows = count, .lists = lists};
    bsw_list_assigner_assign(sample->assigner, &assignment);
    for (size_t r = 0; r < count; r++) {
        const float *centroid = sample->centroids + (size_t)lists[r] * dims;
        float *row = sample->rows + r * dims;
        if (lists[r] == BSW_NO_LIST) continue;
        for (uint32_t d = 0; d < dims; d++)
            row[d] = (row[d] * factors[r] - centroid[d]) + sample->mean[d];
        factors[r] = 1.0f;
    }
}

enum bsw_status bsw_sample_next(struct bsw_sample *sample, const float **rows, float *factors,
                                size_t *num_rows, struct bsw_error *err)
{
    uint32_t dims = bsw_vectors_dims(sample->vectors);
    double norms[BSW_SAMPLE_TILE];
    enum bsw_row_fault faults[BSW_SAMPLE_TILE];
    *rows = sample->rows;
    *num_rows = 0;
    bsw_progress_update(sample->progress, sample->next);
    while (*num_rows == 0 && sample->next < sample->num_rows) {
        uint64_t left = sample->num_rows - sample->next;
        size_t count = left < BSW_SAMPLE_TILE ? (size_t)left : BSW_SAMPLE_TILE, good = 0;
        BSW_TRY(read_tile(sample, count, err));
        sample->next += count;
        bsw_prepare_rows(sample->table, sample->metric, bsw_vectors_type(sample->vectors),
                         sample->numbers, count, dims, sample->rows, norms, factors, faults);
        if (sample->mean) take_residuals(sample, count, factors);
        for (size_t r = 0; r < count; r++) { // close the gaps that bad rows leave
            if (faults[r] != BSW_ROW_GOOD) continue;
            if (good != r)
                memcpy(sample->rows + good * dims, sample->rows + r * dims, dims * sizeof(float));
            factors[good++] = factors[r];
        }
        *num_rows = good;
    }
    if (*num_rows == 0) bsw_progress_finish(sample->progress);
    return BSW_OK;
}

enum bsw_status bsw_sample_fail_empty(const struct bsw_sample *sample, struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: no good row in the sample",
                    bsw_vectors_name(sample->vectors));
}
