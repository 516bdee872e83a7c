// SPDX-License-Identifier: Apache-2.0
#include "shard/lists/list_cells.h"

#include <math.h>
#include <string.h>

#include "common/base/integer_hash.h"
#include "common/base/memory.h"
#include "common/base/parts.h"
#include "shard/lists/list_assignment.h"

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
