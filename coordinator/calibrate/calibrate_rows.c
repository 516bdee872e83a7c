// SPDX-License-Identifier: Apache-2.0
#include "coordinator/calibrate/calibrate_rows.h"

#include <stdio.h>
#include <unistd.h>

#include "common/base/integer_hash.h"
#include "common/base/memory.h"
#include "common/base/parts.h"
#include "common/base/temporary_files.h"
#include "common/rows/vector_writer.h"
#include "kernels/encode/prepare_rows.h"

#define ROW_SEED 0x63616c6962726174u

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

// Numbers of the good rows among those that are drawn.
struct draw {
    const struct bsw_manifest *manifest;
    const bsw_vectors *source;
    const struct bsw_encode_table *table;
    unsigned char *numbers; // [rows drawn]
    float *floats;          // of a row
    struct bsw_calibrate_rows *out;
};

static enum bsw_status draw_row(struct draw *draw, uint64_t row, struct bsw_error *err)
{
    struct bsw_calibrate_rows *out = draw->out;
    size_t row_bytes = bsw_vectors_row_bytes(draw->source);
    unsigned char *numbers = draw->numbers + out->num_rows * row_bytes;
    double norm;
    float factor;
    enum bsw_row_fault fault;
    BSW_TRY(bsw_vectors_read(draw->source, row, 1, numbers, err));
    bsw_prepare_rows(draw->table, draw->manifest->metric, bsw_vectors_type(draw->source), numbers,
                     1, bsw_vectors_dims(draw->source), draw->floats, &norm, &factor, &fault);
    if (fault == BSW_ROW_GOOD) out->ids[out->num_rows++] = row;
    return BSW_OK;
}

static enum bsw_status draw_rows(struct draw *draw, uint64_t count, struct bsw_error *err)
{
    const struct bsw_manifest *manifest = draw->manifest;
    BSW_TRY(bsw_allocate(&draw->out->ids, count, sizeof *draw->out->ids, "queries", err));
    BSW_TRY(
        bsw_allocate(&draw->numbers, count, bsw_vectors_row_bytes(draw->source), "queries", err));
    BSW_TRY(bsw_allocate(&draw->floats, bsw_vectors_dims(draw->source), sizeof *draw->floats,
                         "queries", err));
    for (uint64_t i = 0; i < count; i++) {
        uint64_t first = bsw_part_first(manifest->num_rows, i, count),
                 next = bsw_part_first(manifest->num_rows, i + 1, count);
        uint64_t row = first + bsw_hash2(ROW_SEED, i) % (next - first);
        BSW_TRY(draw_row(draw, manifest->first_row + row, err));
    }
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
    struct draw draw = {.manifest = manifest, .table = bsw_encode_table_get(level), .out = out};
    bsw_vectors *vectors;
    *out = (struct bsw_calibrate_rows){0};
    BSW_TRY(bsw_vectors_open(source, range, &vectors, err));
    draw.source = vectors;
    enum bsw_status status =
        draw_rows(&draw, most < manifest->num_rows ? most : manifest->num_rows, err);
    if (status == BSW_OK) status = bsw_calibrate_rows_path(manifest, index, out->path, err);
    if (status == BSW_OK && out->num_rows > 0) status = write_rows(&draw, err);
    bsw_vectors_close(&vectors);
    bsw_free(&draw.numbers);
    bsw_free(&draw.floats);
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
