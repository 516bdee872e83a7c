// SPDX-License-Identifier: Apache-2.0
#include "coordinator/calibrate/calibrate_rows.h"

#include <stdio.h>
#include <unistd.h>

#include "common/base/integer_hash.h"
#include "common/base/memory.h"
#include "common/base/parts.h"
#include "common/base/temporary_files.h"
#include "common/rows/vector_writer.h"
#include "coordinator/job/different_rows.h"

#define ROW_SEED 0x63616c6962726174u
#define NO_ROW   UINT64_MAX
enum { MOST_ROUNDS = 256 };

// Files that hold each type.
static const char *const endings[BSW_VECTOR_NUM_TYPES] = {[BSW_VECTOR_FLOAT32] = "fbin",
                                                          [BSW_VECTOR_FLOAT16] = "npy",
                                                          [BSW_VECTOR_UINT8] = "u8bin",
                                                          [BSW_VECTOR_INT8] = "i8bin"};

enum bsw_status bsw_calibrate_rows_path(const struct bsw_manifest *manifest, const char *index,
                                        char out[BSW_PATH_BYTES], struct bsw_error *err)
{
    char name[64];
    snprintf(name, sizeof name, "encode.tmp.queries.%s", endings[manifest->source_type]);
    return bsw_path_join(out, index, name, err);
}

// Numbers of the rows that are drawn.
struct draw {
    const struct bsw_manifest *manifest;
    const bsw_vectors *source;
    struct bsw_different_rows different;
    unsigned char *numbers; // [num_wanted]
    struct bsw_calibrate_rows *out;
};

static enum bsw_status draw_row(struct draw *draw, uint64_t row, struct bsw_error *err)
{
    struct bsw_calibrate_rows *out = draw->out;
    unsigned char *numbers = draw->numbers + out->num_rows * bsw_vectors_row_bytes(draw->source);
    BSW_TRY(bsw_vectors_read(draw->source, row, 1, numbers, err));
    if (bsw_different_rows_add(&draw->different, bsw_vectors_type(draw->source), numbers))
        out->ids[out->num_rows++] = row;
    return BSW_OK;
}

// The row of a stratum in a round: the first by a hash, the others evenly behind it, none twice.
static uint64_t row_of(const struct draw *draw, uint64_t stratum, uint64_t round)
{
    uint64_t num_rows = draw->manifest->num_rows, count = draw->out->num_wanted;
    uint64_t first = bsw_part_first(num_rows, stratum, count),
             size = bsw_part_first(num_rows, stratum + 1, count) - first;
    uint64_t rounds = size < MOST_ROUNDS ? size : MOST_ROUNDS;
    if (round >= rounds) return NO_ROW;
    uint64_t start = bsw_hash2(ROW_SEED, stratum);
    return first + (start % size + bsw_part_first(size, round, rounds)) % size;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b > 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// Strata come one by one at first. Later rounds may end before the last of them, so there they come
// by large steps, from somewhere.
static enum bsw_status draw_round(struct draw *draw, uint64_t round, struct bsw_error *err)
{
    struct bsw_calibrate_rows *out = draw->out;
    uint64_t count = out->num_wanted, step = 1, at = 0;
    if (round > 0) {
        step = (uint64_t)(0.618 * (double)count);
        while (common_divisor(step, count) > 1) step++;
        at = bsw_hash2(ROW_SEED + 1, round) % count;
    }
    for (uint64_t i = 0; i < count && out->num_rows < count; i++, at = (at + step) % count) {
        uint64_t row = row_of(draw, at, round);
        if (row != NO_ROW) BSW_TRY(draw_row(draw, draw->manifest->first_row + row, err));
    }
    return BSW_OK;
}

static enum bsw_status draw_rows(struct draw *draw, enum bsw_cpu_level level, struct bsw_error *err)
{
    struct bsw_calibrate_rows *out = draw->out;
    uint64_t count = out->num_wanted;
    BSW_TRY(bsw_different_rows_init(&draw->different, draw->manifest->metric, level,
                                    bsw_vectors_dims(draw->source), count, err));
    BSW_TRY(bsw_allocate(&out->ids, count, sizeof *out->ids, "queries", err));
    BSW_TRY(
        bsw_allocate(&draw->numbers, count, bsw_vectors_row_bytes(draw->source), "queries", err));
    for (uint64_t round = 0; round < MOST_ROUNDS && out->num_rows < count; round++)
        BSW_TRY(draw_round(draw, round, err));
    return BSW_OK;
}

static enum bsw_status write_rows(const struct draw *draw, struct bsw_error *err)
{
    const struct bsw_calibrate_rows *out = draw->out;
    bsw_vector_writer *writer;
    bsw_temporary_note(out->path);
    enum bsw_status status =
        bsw_vector_writer_create(out->path, bsw_vectors_type(draw->source),
                                 bsw_vectors_dims(draw->source), out->num_rows, 1, &writer, err);
    if (status == BSW_OK)
        status = bsw_vector_writer_put(writer, 0, (size_t)out->num_rows, draw->numbers, err);
    if (status == BSW_OK) status = bsw_vector_writer_finish(writer, err);
    bsw_vector_writer_destroy(&writer);
    return status;
}

enum bsw_status bsw_calibrate_rows_make(const struct bsw_manifest *manifest, const char *index,
                                        const char *source, uint64_t most, enum bsw_cpu_level level,
                                        struct bsw_calibrate_rows *out, struct bsw_error *err)
{
    const struct bsw_row_range range = {manifest->first_row,
                                        manifest->first_row + manifest->num_rows};
    struct draw draw = {.manifest = manifest, .out = out};
    bsw_vectors *vectors;
    *out = (struct bsw_calibrate_rows){.num_wanted =
                                           most < manifest->num_rows ? most : manifest->num_rows};
    BSW_TRY(bsw_vectors_open(source, range, &vectors, err));
    draw.source = vectors;
    enum bsw_status status = draw_rows(&draw, level, err);
    if (status == BSW_OK) status = bsw_calibrate_rows_path(manifest, index, out->path, err);
    if (status == BSW_OK && out->num_rows > 0) status = write_rows(&draw, err);
    bsw_vectors_close(&vectors);
    bsw_different_rows_deinit(&draw.different);
    bsw_free(&draw.numbers);
    return status;
}

void bsw_calibrate_rows_deinit(struct bsw_calibrate_rows *rows)
{
    if (rows->path[0]) {
        unlink(rows->path);
        bsw_temporary_forget(rows->path);
    }
    bsw_free(&rows->ids);
    *rows = (struct bsw_calibrate_rows){0};
}
