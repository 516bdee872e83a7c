// SPDX-License-Identifier: Apache-2.0
#include "shard/lists/training_sample.h"

#include <math.h>
#include <string.h>

#include "common/base/integer_hash.h"
#include "common/base/memory.h"
#include "common/base/parts.h"
#include "common/job/stop_signal.h"
#include "kernels/encode/encode.h"
#include "kernels/encode/prepare_rows.h"

#define TILE_ROWS 128
// Strata of up to so many bytes are read whole: a page comes from the disk in any case.
#define WHOLE_BYTES 4096

struct reading {
    const struct bsw_training_sample_needs *needs;
    struct bsw_training_sample *sample;
    const struct bsw_encode_table *encode;
    size_t dims, row_bytes;
    uint64_t most_width; // rows of the widest stratum
    unsigned char *strata;
    float *rows; // [TILE_ROWS][dims]
};

// From the source's first row on.
static uint64_t first_of(const struct reading *reading, uint64_t stratum)
{
    return bsw_part_first(bsw_vectors_num_rows(reading->needs->vectors), stratum,
                          reading->needs->num_rows);
}

static uint64_t row_of(const struct reading *reading, uint64_t stratum)
{
    uint64_t first = first_of(reading, stratum), width = first_of(reading, stratum + 1) - first;
    return first + bsw_hash2(reading->needs->seed, stratum) % width;
}

// The rows of strata [first, first + count), at most a tile, to out.
static enum bsw_status read_tile(const struct reading *reading, uint64_t first, size_t count,
                                 unsigned char *out, struct bsw_error *err)
{
    const bsw_vectors *vectors = reading->needs->vectors;
    uint64_t first_row = bsw_vectors_first_row(vectors), start = first_of(reading, first);
    size_t row_bytes = reading->row_bytes;
    if (reading->strata)
        BSW_TRY(bsw_vectors_read(vectors, first_row + start,
                                 (size_t)(first_of(reading, first + count) - start),
                                 reading->strata, err));
    for (size_t i = 0; i < count; i++, out += row_bytes) {
        uint64_t row = row_of(reading, first + i);
        if (reading->strata)
            memcpy(out, reading->strata + (size_t)(row - start) * row_bytes, row_bytes);
        else
            BSW_TRY(bsw_vectors_read(vectors, first_row + row, 1, out, err));
    }
    return BSW_OK;
}

static void note_largest(const float *row, float factor, size_t dims, float *largest)
{
    for (size_t d = 0; d < dims; d++) {
        float absolute = fabsf(row[d] * factor);
        if (absolute > largest[d]) largest[d] = absolute;
    }
}

// Keeps the good ones of `count` rows that have been read behind those kept.
static void keep_good(struct reading *reading, size_t count)
{
    struct bsw_training_sample *sample = reading->sample;
    enum bsw_row_fault faults[TILE_ROWS];
    double norms[TILE_ROWS];
    float factors[TILE_ROWS];
    unsigned char *raw = sample->raw + sample->num_rows * reading->row_bytes, *to = raw;
    bsw_prepare_rows(reading->encode, reading->needs->metric,
                     bsw_vectors_type(reading->needs->vectors), raw, count, reading->dims,
                     reading->rows, norms, factors, faults);
    for (size_t r = 0; r < count; r++) {
        if (faults[r] != BSW_ROW_GOOD) continue;
        memmove(to, raw + r * reading->row_bytes, reading->row_bytes);
        to += reading->row_bytes;
        note_largest(reading->rows + r * reading->dims, factors[r], reading->dims, sample->largest);
        if (sample->factors) sample->factors[sample->num_rows] = factors[r];
        sample->num_rows++;
    }
}

static enum bsw_status read_part(struct reading *reading, uint64_t first, uint64_t last,
                                 struct bsw_error *err)
{
    struct bsw_training_sample *sample = reading->sample;
    for (uint64_t place = first; place < last; place += TILE_ROWS) {
        size_t count = last - place < TILE_ROWS ? (size_t)(last - place) : TILE_ROWS;
        if (bsw_stop_is_asked()) return bsw_stop_fail(err);
        BSW_TRY(read_tile(reading, place, count,
                          sample->raw + sample->num_rows * reading->row_bytes, err));
        keep_good(reading, count);
        bsw_progress_update(reading->needs->progress, place - first + count);
    }
    return BSW_OK;
}

enum bsw_status bsw_training_sample_open(const struct bsw_training_sample_needs *needs,
                                         struct bsw_training_sample *out, struct bsw_error *err)
{
    uint64_t ranks = (uint64_t)needs->num_ranks, all = bsw_vectors_num_rows(needs->vectors);
    uint64_t first = bsw_part_first(needs->num_rows, (uint64_t)needs->rank, ranks);
    uint64_t last = bsw_part_first(needs->num_rows, (uint64_t)needs->rank + 1, ranks);
    struct reading reading = {.needs = needs,
                              .sample = out,
                              .encode = bsw_encode_table_get(needs->level),
                              .dims = bsw_vectors_dims(needs->vectors),
                              .row_bytes = bsw_vectors_row_bytes(needs->vectors),
                              .most_width = (all + needs->num_rows - 1) / needs->num_rows};
    size_t count = (size_t)(last - first);
    *out = (struct bsw_training_sample){.raw = NULL};
    if (last - first >= UINT32_MAX)
        return bsw_fail(err, BSW_ERROR_TOO_LARGE,
                        "%s: lists are trained on %llu rows a rank, more than %llu",
                        bsw_vectors_name(needs->vectors), (unsigned long long)(last - first),
                        (unsigned long long)UINT32_MAX - 1);
    BSW_TRY(bsw_allocate(&out->raw, count, reading.row_bytes, "sample", err));
    BSW_TRY(bsw_allocate_zero(&out->largest, reading.dims, sizeof *out->largest, "sample", err));
    if (needs->metric == BSW_METRIC_COSINE)
        BSW_TRY(bsw_allocate(&out->factors, count, sizeof *out->factors, "sample", err));
    enum bsw_status status = bsw_allocate(&reading.rows, (size_t)TILE_ROWS * reading.dims,
                                          sizeof *reading.rows, "sample", err);
    if (status == BSW_OK && reading.most_width * reading.row_bytes <= WHOLE_BYTES)
        status = bsw_allocate(&reading.strata, TILE_ROWS * (size_t)reading.most_width,
                              reading.row_bytes, "sample", err);
    bsw_progress_begin(needs->progress, "lists, sample", "rows", last - first);
    if (status == BSW_OK) status = read_part(&reading, first, last, err);
    bsw_progress_finish(needs->progress);
    bsw_free(&reading.rows);
    bsw_free(&reading.strata);
    return status;
}

void bsw_training_sample_close(struct bsw_training_sample *sample)
{
    bsw_free(&sample->raw);
    bsw_free(&sample->factors);
    bsw_free(&sample->largest);
}
