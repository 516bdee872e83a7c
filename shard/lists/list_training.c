// SPDX-License-Identifier: Apache-2.0
#include "shard/lists/list_training.h"

#include <math.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/base/memory.h"
#include "common/job/stop_signal.h"
#include "kernels/encode/encode.h"
#include "kernels/encode/prepare_rows.h"
#include "shard/lists/list_assignment.h"
#include "shard/lists/lloyd_rounds.h"

#define SAMPLE_SEED UINT64_C(0x6c6973747361) // so that rows of the sample are not those of lists

struct training {
    const struct bsw_list_training *needs;
    struct bsw_training_sample sample;
    struct bsw_lloyd lloyd;
    struct bsw_row_counts counts;
};

static struct bsw_list_rows rows_of(const struct bsw_training_sample *sample)
{
    return (struct bsw_list_rows){sample->raw, sample->factors, sample->num_rows};
}

static enum bsw_status check(const struct bsw_list_training *needs, struct bsw_error *err)
{
    uint64_t num_rows = bsw_vectors_num_rows(needs->vectors);
    if (needs->num_lists >= 1 && needs->num_lists <= num_rows) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "%s: %lu lists of %llu rows; there are from 1 to %llu",
                    bsw_vectors_name(needs->vectors), (unsigned long)needs->num_lists,
                    (unsigned long long)num_rows, (unsigned long long)num_rows);
}

static enum bsw_status open_sample(struct training *training, struct bsw_error *err)
{
    const struct bsw_list_training *needs = training->needs;
    uint64_t all = bsw_vectors_num_rows(needs->vectors);
    uint64_t most = (uint64_t)needs->num_lists * BSW_LIST_SAMPLE_ROWS;
    const struct bsw_training_sample_needs sample = {
        .vectors = needs->vectors,
        .metric = needs->metric,
        .level = needs->level,
        .seed = bsw_hash2(needs->seed, SAMPLE_SEED),
        .num_rows = all < most ? all : most,
        .rank = training->lloyd.transport->rank,
        .num_ranks = training->lloyd.transport->num_ranks,
        .progress = needs->progress,
    };
    BSW_TRY(check(needs, err));
    BSW_TRY(bsw_training_sample_open(&sample, &training->sample, err));
    return bsw_allocate(&training->lloyd.scales.components, training->lloyd.dims, sizeof(double),
                        "sums of lists", err);
}

// ---- what all ranks know ----

// The largest component of each dimension to sample.largest.
static enum bsw_status share_largest(struct training *training, struct bsw_error *err)
{
    size_t dims = training->lloyd.dims;
    int64_t *words;
    enum bsw_status status = bsw_allocate(&words, dims, sizeof *words, "sums of lists", err);
    status = bsw_transport_agree(training->lloyd.transport, status, err);
    // The bits of numbers that are not negative have their order.
    for (size_t d = 0; d < dims && status == BSW_OK; d++) {
        uint32_t bits;
        memcpy(&bits, &training->sample.largest[d], sizeof bits);
        words[d] = (int64_t)bits;
    }
    if (status == BSW_OK)
        status = bsw_lloyd_combine(&training->lloyd, BSW_COMBINE_MOST, words, dims, err);
    for (size_t d = 0; d < dims && status == BSW_OK; d++) {
        uint32_t bits = (uint32_t)words[d];
        memcpy(&training->sample.largest[d], &bits, sizeof bits);
    }
    bsw_free(&words);
    return status;
}

static void find_scales(struct training *training)
{
    struct bsw_list_scales *scales = &training->lloyd.scales;
    double most = 0.0; // squared: a centroid has no larger components than rows, but for a split's
                       // step, which is less than the rest
    for (size_t d = 0; d < training->lloyd.dims; d++) {
        double largest = (double)training->sample.largest[d];
        scales->components[d] = bsw_list_scale(largest, training->counts.total);
        most += 8.0 * largest * largest;
    }
    if (bsw_has_unit_rows(training->lloyd.metric)) most = 5.0;
    scales->distance = bsw_list_scale(sqrt(most), training->counts.total);
}

static enum bsw_status train(struct training *training, float *centroids, struct bsw_error *err)
{
    struct bsw_lloyd *lloyd = &training->lloyd;
    const struct bsw_list_training *needs = training->needs;
    struct bsw_list_rows rows = rows_of(&training->sample);
    BSW_TRY(share_largest(training, err));
    BSW_TRY(bsw_lloyd_count(lloyd, rows.num_rows, &training->counts, err));
    if (training->counts.total == 0)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: no good row in the sample",
                        bsw_vectors_name(needs->vectors));
    find_scales(training);
    if (needs->num_lists > BSW_FLAT_LISTS)
        return bsw_list_cells_train(lloyd, &rows, needs->num_lists, needs->seed, centroids, err);
    bsw_progress_begin(lloyd->progress, "lists, training", "rows",
                       (uint64_t)rows.num_rows * lloyd->rounds);
    return bsw_lloyd_run(lloyd, &rows, needs->num_lists, needs->seed, centroids, err);
}

enum bsw_status bsw_lists_train(const struct bsw_list_training *needs,
                                struct bsw_transport *transport, float *centroids,
                                struct bsw_error *err)
{
    struct training training = {
        .needs = needs,
        .lloyd = {.metric = needs->metric,
                  .type = bsw_vectors_type(needs->vectors),
                  .dims = bsw_vectors_dims(needs->vectors),
                  .rounds = needs->rounds > 0 ? needs->rounds : BSW_LIST_ROUNDS,
                  .level = needs->level,
                  .num_threads = needs->num_threads,
                  .finder = needs->finder,
                  .transport = transport,
                  .progress = needs->progress,
                  .is_kept = needs->is_kept,
                  .journal = needs->journal},
    };
    enum bsw_status status = open_sample(&training, err);
    status = bsw_transport_agree(transport, status, err);
    if (status == BSW_OK) status = train(&training, centroids, err);
    bsw_progress_finish(needs->progress);
    bsw_training_sample_close(&training.sample);
    bsw_free(&training.lloyd.scales.components);
    return status;
}

// ---- training sample ----------------------------------------------------------------------------

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
    if (bsw_has_unit_rows(needs->metric))
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

// ---- two levels ----

struct cells {
    struct bsw_lloyd *lloyd;
    const struct bsw_list_rows *rows;
    struct bsw_row_counts counts; // of rows
    size_t num_cells, num_lists;
    uint64_t seed;
    float *centers;  // [num_cells][dims]
    int64_t *totals; // [num_cells]: rows of all ranks
    // This rank's rows by cell.
    uint32_t *cell_of; // [num_rows]
    uint32_t *order;   // [num_rows]
    size_t *firsts;    // [num_cells + 1]
    // Rows of one cell, or of the sample.
    struct room {
        unsigned char *raw;
        float *factors;
        size_t num_rows;
    } room;
};

// ---- some of the rows, dense ----

static enum bsw_status open_room(struct cells *cells, size_t most_rows, struct bsw_error *err)
{
    size_t row_bytes = cells->lloyd->dims * bsw_vector_type_bytes(cells->lloyd->type);
    bsw_free(&cells->room.raw);
    bsw_free(&cells->room.factors);
    cells->room.num_rows = 0;
    BSW_TRY(bsw_allocate(&cells->room.raw, most_rows, row_bytes, "rows of a cell", err));
    if (!cells->rows->factors) return BSW_OK;
    return bsw_allocate(&cells->room.factors, most_rows, sizeof(float), "rows of a cell", err);
}

static void put_row(struct cells *cells, size_t i)
{
    size_t row_bytes = cells->lloyd->dims * bsw_vector_type_bytes(cells->lloyd->type);
    struct room *room = &cells->room;
    memcpy(room->raw + room->num_rows * row_bytes, cells->rows->raw + i * row_bytes, row_bytes);
    if (room->factors) room->factors[room->num_rows] = cells->rows->factors[i];
    room->num_rows++;
}

static enum bsw_status train_room(struct cells *cells, size_t num_lists, uint64_t seed,
                                  float *centroids, struct bsw_error *err)
{
    const struct bsw_list_rows rows = {cells->room.raw, cells->room.factors, cells->room.num_rows};
    return bsw_lloyd_run(cells->lloyd, &rows, num_lists, seed, centroids, err);
}

// ---- the first level ----

static uint64_t sample_rows(const struct cells *cells)
{
    uint64_t most = (uint64_t)cells->num_cells * BSW_CELL_SAMPLE_ROWS;
    return cells->counts.total < most ? cells->counts.total : most;
}

// One row of each equal part of all ranks' rows, where it is of this rank.
static enum bsw_status take_sample(struct cells *cells, struct bsw_error *err)
{
    uint64_t total = cells->counts.total, parts = sample_rows(cells);
    uint64_t before = cells->counts.before, num_rows = cells->rows->num_rows;
    uint64_t part = bsw_part_first(parts, before, total); // of this or an earlier row
    size_t most = (size_t)(bsw_part_first(parts, before + num_rows, total) - part) + 2;
    BSW_TRY(open_room(cells, most, err));
    for (; part < parts; part++) {
        uint64_t first = bsw_part_first(total, part, parts);
        uint64_t width = bsw_part_first(total, part + 1, parts) - first;
        uint64_t row = first + bsw_hash2(bsw_hash(cells->seed), part) % width;
        if (first >= before + num_rows) break;
        if (row >= before && row < before + num_rows) put_row(cells, (size_t)(row - before));
    }
    return BSW_OK;
}

static void order_rows(struct cells *cells)
{
    size_t num_cells = cells->num_cells, *firsts = cells->firsts;
    memset(firsts, 0, (num_cells + 1) * sizeof *firsts);
    for (size_t i = 0; i < cells->rows->num_rows; i++) firsts[cells->cell_of[i] + 1]++;
    for (size_t c = 0; c < num_cells; c++) cells->totals[c] = (int64_t)firsts[c + 1];
    for (size_t c = 0; c < num_cells; c++) firsts[c + 1] += firsts[c];
    for (size_t i = 0; i < cells->rows->num_rows; i++)
        cells->order[firsts[cells->cell_of[i]]++] = (uint32_t)i;
    memmove(firsts + 1, firsts, num_cells * sizeof *firsts);
    firsts[0] = 0;
}

// Rows to their cells; then room for the largest one.
static enum bsw_status fill_cells(struct cells *cells, struct bsw_error *err)
{
    int64_t num_changes;
    const struct bsw_lloyd_lists lists = {cells->cell_of, NULL, 0, &num_changes};
    size_t most = 0;
    memset(cells->cell_of, 0, cells->rows->num_rows * sizeof *cells->cell_of);
    BSW_TRY(
        bsw_lloyd_assign(cells->lloyd, cells->rows, cells->centers, cells->num_cells, &lists, err));
    order_rows(cells);
    for (size_t c = 0; c < cells->num_cells; c++) {
        size_t count = cells->firsts[c + 1] - cells->firsts[c];
        most = count > most ? count : most;
    }
    return open_room(cells, most, err);
}

static enum bsw_status train_centers(struct cells *cells, struct bsw_error *err)
{
    struct bsw_transport *transport = cells->lloyd->transport;
    BSW_TRY(bsw_transport_agree(transport, take_sample(cells, err), err));
    BSW_TRY(train_room(cells, cells->num_cells, cells->seed, cells->centers, err));
    BSW_TRY(bsw_transport_agree(transport, fill_cells(cells, err), err));
    return bsw_lloyd_combine(cells->lloyd, BSW_COMBINE_SUM, cells->totals, cells->num_cells, err);
}

// ---- the second level ----

// The first list of a cell that `rows` rows of others come before.
static size_t first_list(const struct cells *cells, uint64_t rows)
{
    return (size_t)bsw_part_first(cells->num_lists, rows, cells->counts.total);
}

static enum bsw_status train_cells(struct cells *cells, float *centroids, struct bsw_error *err)
{
    uint64_t rows = 0;
    for (size_t c = 0; c < cells->num_cells; c++) {
        size_t first = first_list(cells, rows);
        rows += (uint64_t)cells->totals[c];
        size_t count = first_list(cells, rows) - first;
        if (count == 0) continue; // fewer rows than a list has on average
        cells->room.num_rows = 0;
        for (size_t at = cells->firsts[c]; at < cells->firsts[c + 1]; at++)
            put_row(cells, cells->order[at]);
        BSW_TRY(train_room(cells, count, bsw_hash2(cells->seed, c),
                           centroids + first * cells->lloyd->dims, err));
    }
    return BSW_OK;
}

static enum bsw_status open_cells(struct cells *cells, struct bsw_error *err)
{
    size_t num_cells = cells->num_cells, num_rows = cells->rows->num_rows;
    size_t dims = cells->lloyd->dims;
    BSW_TRY(bsw_allocate(&cells->centers, num_cells * dims, sizeof(float), "cells", err));
    BSW_TRY(bsw_allocate(&cells->totals, num_cells, sizeof *cells->totals, "cells", err));
    BSW_TRY(bsw_allocate(&cells->cell_of, num_rows, sizeof *cells->cell_of, "cells", err));
    BSW_TRY(bsw_allocate(&cells->order, num_rows, sizeof *cells->order, "cells", err));
    return bsw_allocate(&cells->firsts, num_cells + 1, sizeof *cells->firsts, "cells", err);
}

static void close_cells(struct cells *cells)
{
    bsw_free(&cells->centers);
    bsw_free(&cells->totals);
    bsw_free(&cells->cell_of);
    bsw_free(&cells->order);
    bsw_free(&cells->firsts);
    bsw_free(&cells->room.raw);
    bsw_free(&cells->room.factors);
}

enum bsw_status bsw_list_cells_train(struct bsw_lloyd *lloyd, const struct bsw_list_rows *rows,
                                     size_t num_lists, uint64_t seed, float *centroids,
                                     struct bsw_error *err)
{
    struct cells cells = {.lloyd = lloyd,
                          .rows = rows,
                          .num_cells = (size_t)sqrt((double)num_lists),
                          .num_lists = num_lists,
                          .seed = seed};
    BSW_TRY(bsw_lloyd_count(lloyd, rows->num_rows, &cells.counts, err));
    uint64_t share = sample_rows(&cells) / (uint64_t)lloyd->transport->num_ranks;
    bsw_progress_begin(lloyd->progress, "lists, training", "rows",
                       share * lloyd->rounds + rows->num_rows * (1 + (uint64_t)lloyd->rounds));
    enum bsw_status status = open_cells(&cells, err);
    status = bsw_transport_agree(lloyd->transport, status, err);
    if (status == BSW_OK) status = train_centers(&cells, err);
    lloyd->keeps_last = 1; // a cell takes little time
    if (status == BSW_OK) status = train_cells(&cells, centroids, err);
    close_cells(&cells);
    return status;
}
