// SPDX-License-Identifier: Apache-2.0
#include "common/rows/vectors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/codes/code_layout.h"
#include "common/rows/synth.h"
#include "common/rows/text_lines.h"

struct bsw_vectors {
    char *name;
    struct bsw_vector_file file; // synth: fd -1, of the layout type, dims and num_rows only
    struct bsw_synth synth;
    const struct bsw_memory_rows *rows; // in memory, borrowed; the file as that of synth:
    const struct bsw_text_maker *maker; // of text, borrowed; the file likewise
    struct bsw_text_lines lines;
    int is_query;
    struct bsw_row_range range; // resolved: last <= num_rows of the layout
    uint64_t shift;             // ids are rows of the range and this
};

#define SYNTH_PREFIX "synth:"

// Rows of .vecs files come through a block of at most this size, which stays in the cache while the
// dims words are stripped.
#define STRIP_BLOCK_BYTES ((size_t)512 << 10)
_Static_assert(STRIP_BLOCK_BYTES >= 4 + 4 * (size_t)BSW_MAX_DIMS, "a block must hold a row");

static enum bsw_status open_synth(bsw_vectors *vectors, struct bsw_error *err)
{
    BSW_TRY(bsw_synth_parse(vectors->name + strlen(SYNTH_PREFIX), &vectors->synth, err));
    vectors->file.layout.type = vectors->synth.type;
    vectors->file.layout.dims = vectors->synth.dims;
    vectors->file.layout.num_rows = vectors->synth.count;
    return BSW_OK;
}

static enum bsw_status open_memory(bsw_vectors *vectors, struct bsw_error *err)
{
    const struct bsw_memory_rows *rows;
    BSW_TRY(bsw_memory_rows_find(vectors->name, &rows, err));
    vectors->file.layout.type = rows->type;
    vectors->file.layout.dims = rows->dims;
    vectors->file.layout.num_rows = rows->num_rows;
    vectors->rows = rows;
    return BSW_OK;
}

static enum bsw_status open_text(bsw_vectors *vectors, struct bsw_error *err)
{
    struct bsw_text_name name;
    const struct bsw_text_maker *maker = bsw_text_maker_lent();
    if (!maker)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%s: text becomes vectors by a model that train --text made: commands that "
                        "read rows take it by --model, search finds it in an index of texts",
                        vectors->name);
    if (!bsw_text_name_parse(vectors->name, &name)) return BSW_ERROR_USAGE; // it was one before
    BSW_TRY(bsw_text_lines_open(&name, &vectors->lines, err));
    vectors->maker = maker;
    vectors->file.layout.type = BSW_VECTOR_FLOAT32;
    vectors->file.layout.dims = maker->dims;
    vectors->file.layout.num_rows = vectors->lines.num_lines;
    vectors->file.bytes = vectors->lines.bytes;
    return BSW_OK;
}

static enum bsw_status read_layout(const char *source, int is_any, struct bsw_vector_file *file,
                                   struct bsw_error *err)
{
    unsigned char *head;
    BSW_TRY(bsw_file_open_read(source, &file->fd, &file->bytes, err));
    BSW_TRY(bsw_allocate(&head, BSW_VECTOR_HEAD_BYTES, 1, "vector file header", err));
    size_t head_bytes =
        file->bytes < BSW_VECTOR_HEAD_BYTES ? (size_t)file->bytes : BSW_VECTOR_HEAD_BYTES;
    enum bsw_status status = bsw_file_read_at(file->fd, source, 0, head, head_bytes, err);
    if (status == BSW_OK) {
        status = (is_any ? bsw_vector_layout_parse_any : bsw_vector_layout_parse)(
            source, head, head_bytes, file->bytes, &file->layout, err);
    }
    bsw_free(&head);
    if (status == BSW_OK && file->layout.type == BSW_VECTOR_INT32) {
        status = bsw_fail(err, BSW_ERROR_USAGE,
                          "%s: %s files hold the ids of a ground truth, not vectors", source,
                          strrchr(source, '.'));
    }
    return status;
}

static enum bsw_status open_file(const char *source, const char *dataset, int is_any,
                                 struct bsw_vector_file *out, struct bsw_error *err)
{
    struct bsw_hdf5_name hdf5;
    *out = (struct bsw_vector_file){.fd = -1};
    if (!bsw_hdf5_name_parse(source, dataset, &hdf5)) return read_layout(source, is_any, out, err);
    BSW_TRY(bsw_file_open_read(hdf5.file, &out->fd, &out->bytes, err));
    return bsw_hdf5_layout_read(source, hdf5.file, hdf5.dataset, out->bytes, &out->layout, err);
}

enum bsw_status bsw_vector_file_open(const char *source, const char *dataset,
                                     struct bsw_vector_file *out, struct bsw_error *err)
{
    return open_file(source, dataset, 0, out, err);
}

void bsw_vector_file_close(struct bsw_vector_file *file)
{
    bsw_file_close(&file->fd);
}

// What a source is opened for.
struct role {
    const char *dataset;     // of an HDF5 file whose name says none
    const char *rows_option; // by which the user picks a part of it
    int is_query;            // which side of a model makes a row of a text
    int is_any;              // what can be read at all
};

static const struct role base_role = {BSW_HDF5_BASE, "--rows", 0, 0},
                         queries_role = {BSW_HDF5_QUERIES, "--query-rows", 1, 0},
                         any_role = {BSW_HDF5_BASE, "--rows", 0, 1};

static enum bsw_status set_range(bsw_vectors *vectors, const struct role *role,
                                 struct bsw_row_range range, struct bsw_error *err)
{
    uint64_t num_rows = vectors->file.layout.num_rows;
    uint64_t last = range.last == UINT64_MAX ? num_rows : range.last;
    if (range.first < last && last <= num_rows) {
        vectors->range = (struct bsw_row_range){range.first, last};
        return BSW_OK;
    }
    char end[24] = "";
    if (range.last != UINT64_MAX) snprintf(end, sizeof end, "%llu", (unsigned long long)range.last);
    return bsw_fail(err, BSW_ERROR_USAGE, "%s %llu:%s%s: %s has %llu rows", role->rows_option,
                    (unsigned long long)range.first, end,
                    range.first >= range.last ? " is empty" : "", vectors->name,
                    (unsigned long long)num_rows);
}

static enum bsw_status open_source(const char *source, const struct role *role,
                                   struct bsw_row_range range, bsw_vectors **out,
                                   struct bsw_error *err)
{
    bsw_vectors *vectors;
    enum bsw_status status;
    size_t name_bytes = strlen(source) + 1;
    *out = NULL;
    BSW_TRY(bsw_allocate_zero(&vectors, 1, sizeof *vectors, "vector source", err));
    vectors->file.fd = vectors->lines.fd = -1;
    vectors->is_query = role->is_query;
    BSW_TRY_GOTO(bsw_allocate(&vectors->name, name_bytes, 1, "vector source", err), fail);
    memcpy(vectors->name, source, name_bytes);
    if (strncmp(source, SYNTH_PREFIX, strlen(SYNTH_PREFIX)) == 0)
        status = open_synth(vectors, err);
    else if (bsw_memory_rows_is_name(source))
        status = open_memory(vectors, err);
    else if (bsw_name_is_text(source))
        status = open_text(vectors, err);
    else
        status = open_file(vectors->name, role->dataset, role->is_any, &vectors->file, err);
    if (status != BSW_OK) goto fail;
    BSW_TRY_GOTO(set_range(vectors, role, range, err), fail);
    *out = vectors;
    return BSW_OK;
fail:
    bsw_vectors_close(&vectors);
    return status;
}

enum bsw_status bsw_vectors_open(const char *source, struct bsw_row_range range, bsw_vectors **out,
                                 struct bsw_error *err)
{
    return open_source(source, &base_role, range, out, err);
}

enum bsw_status bsw_vectors_open_any(const char *source, struct bsw_row_range range,
                                     bsw_vectors **out, struct bsw_error *err)
{
    return open_source(source, &any_role, range, out, err);
}

enum bsw_status bsw_queries_open(const char *source, struct bsw_row_range range, bsw_vectors **out,
                                 struct bsw_error *err)
{
    return open_source(source, &queries_role, range, out, err);
}

void bsw_vectors_close(bsw_vectors **vectors)
{
    if (!*vectors) return;
    bsw_vector_file_close(&(*vectors)->file);
    bsw_text_lines_close(&(*vectors)->lines);
    bsw_free(&(*vectors)->name);
    bsw_free(vectors);
}

const char *bsw_vectors_name(const bsw_vectors *vectors)
{
    return vectors->name;
}

enum bsw_vector_type bsw_vectors_type(const bsw_vectors *vectors)
{
    return vectors->file.layout.type;
}

int bsw_vectors_is_double(const bsw_vectors *vectors)
{
    return vectors->file.layout.is_double;
}

uint32_t bsw_vectors_dims(const bsw_vectors *vectors)
{
    return vectors->file.layout.dims;
}

uint64_t bsw_vectors_first_row(const bsw_vectors *vectors)
{
    return vectors->range.first + vectors->shift;
}

void bsw_vectors_number(bsw_vectors *vectors, uint64_t first_id)
{
    vectors->shift = first_id - vectors->range.first;
}

uint64_t bsw_vectors_shift(const bsw_vectors *vectors)
{
    return vectors->shift;
}

uint64_t bsw_vectors_num_rows(const bsw_vectors *vectors)
{
    return vectors->range.last - vectors->range.first;
}

uint64_t bsw_vectors_source_rows(const bsw_vectors *vectors)
{
    return vectors->file.layout.num_rows;
}

size_t bsw_vectors_row_bytes(const bsw_vectors *vectors)
{
    return vectors->file.layout.dims * bsw_vector_type_bytes(vectors->file.layout.type);
}

uint64_t bsw_vectors_file_bytes(const bsw_vectors *vectors)
{
    return vectors->file.bytes;
}

enum bsw_status bsw_vectors_distance(const bsw_vectors *vectors, char out[BSW_DISTANCE_BYTES],
                                     struct bsw_error *err)
{
    struct bsw_hdf5_name hdf5;
    *out = '\0';
    if (!bsw_hdf5_name_parse(vectors->name, "", &hdf5)) return BSW_OK;
    return bsw_hdf5_distance_read(vectors->name, hdf5.file, out, err);
}

// Copies rows without their dims words from a block of the file that begins at `first_row`.
static enum bsw_status strip_rows(const bsw_vectors *vectors, const unsigned char *block,
                                  uint64_t first_row, size_t num_rows, unsigned char *out,
                                  struct bsw_error *err)
{
    size_t row_bytes = bsw_vectors_row_bytes(vectors);
    for (size_t i = 0; i < num_rows; i++, block += 4 + row_bytes, out += row_bytes) {
        int32_t dims;
        memcpy(&dims, block, sizeof dims);
        if (dims != (int32_t)vectors->file.layout.dims) {
            return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: row %llu says %d dims, the first row %u",
                            vectors->name, (unsigned long long)(first_row + i), dims,
                            vectors->file.layout.dims);
        }
        memcpy(out, block + 4, row_bytes);
    }
    return BSW_OK;
}

static enum bsw_status read_vecs(const bsw_vectors *vectors, uint64_t first_row, size_t num_rows,
                                 unsigned char *out, struct bsw_error *err)
{
    size_t stride = (size_t)vectors->file.layout.stride_bytes;
    size_t block_rows = STRIP_BLOCK_BYTES / stride;
    if (block_rows > num_rows) block_rows = num_rows;
    unsigned char *block;
    enum bsw_status status = BSW_OK;
    BSW_TRY(bsw_allocate(&block, block_rows, stride, "block of vectors", err));
    while (num_rows > 0 && status == BSW_OK) {
        size_t rows = num_rows < block_rows ? num_rows : block_rows;
        status = bsw_file_read_at(vectors->file.fd, vectors->name, first_row * stride, block,
                                  rows * stride, err);
        if (status == BSW_OK) status = strip_rows(vectors, block, first_row, rows, out, err);
        first_row += rows;
        num_rows -= rows;
        out += rows * (stride - 4);
    }
    bsw_free(&block);
    return status;
}

// Numbers of a file that lie side by side, on their way to rows.
struct strip {
    unsigned char *numbers; // float64, or of the type
    size_t count;
    uint64_t first_row;
    size_t first_dim, dims; // of the rows that the strip goes through; 1: down a column
};

// Puts them `step_bytes` apart.
static enum bsw_status put_strip(const bsw_vectors *vectors, const struct strip *strip,
                                 unsigned char *out, size_t step_bytes, struct bsw_error *err)
{
    const struct bsw_vector_layout *layout = &vectors->file.layout;
    size_t bytes = bsw_vector_type_bytes(layout->type);
    for (size_t i = 0; i < strip->count; i++, out += step_bytes) {
        double wide;
        if (!layout->is_double) {
            memcpy(out, strip->numbers + i * bytes, bytes);
            continue;
        }
        memcpy(&wide, strip->numbers + i * sizeof wide, sizeof wide);
        float single = (float)wide;
        if (isinf(single) && !isinf(wide))
            return bsw_fail(err, BSW_ERROR_BAD_DATA,
                            "%s: row %llu: number %zu is %.9g, which float32 has not",
                            vectors->name, (unsigned long long)(strip->first_row + i / strip->dims),
                            strip->first_dim + i % strip->dims, wide);
        memcpy(out, &single, sizeof single);
    }
    return BSW_OK;
}

// One strip has all rows of float64 in C order; in Fortran order each dimension has its own.
static enum bsw_status read_any(const bsw_vectors *vectors, uint64_t first_row, size_t num_rows,
                                unsigned char *out, struct bsw_error *err)
{
    const struct bsw_vector_layout *layout = &vectors->file.layout;
    size_t dims = layout->dims, bytes = bsw_vector_type_bytes(layout->type);
    size_t file_bytes = (size_t)layout->stride_bytes / dims; // of a number there
    size_t num_strips = layout->is_fortran ? dims : 1;
    struct strip strip = {.count = num_rows * dims / num_strips,
                          .first_row = first_row,
                          .dims = layout->is_fortran ? 1 : dims};
    BSW_TRY(bsw_allocate(&strip.numbers, strip.count, file_bytes, "block of vectors", err));
    enum bsw_status status = BSW_OK;
    for (; strip.first_dim < num_strips && status == BSW_OK; strip.first_dim++) {
        uint64_t place =
            layout->is_fortran ? strip.first_dim * layout->num_rows + first_row : first_row * dims;
        status = bsw_file_read_at(vectors->file.fd, vectors->name,
                                  layout->first_byte + place * file_bytes, strip.numbers,
                                  strip.count * file_bytes, err);
        if (status == BSW_OK)
            status = put_strip(vectors, &strip, out + strip.first_dim * bytes,
                               layout->is_fortran ? dims * bytes : bytes, err);
    }
    bsw_free(&strip.numbers);
    return status;
}

static enum bsw_status read_memory(const bsw_vectors *vectors, uint64_t first_row, size_t num_rows,
                                   void *out, struct bsw_error *err)
{
    const struct bsw_memory_rows *rows = vectors->rows;
    size_t row_bytes = bsw_vectors_row_bytes(vectors);
    if (!rows->numbers) return rows->read(rows->context, first_row, num_rows, out, err);
    memcpy(out, (const unsigned char *)rows->numbers + first_row * row_bytes, num_rows * row_bytes);
    return BSW_OK;
}

enum bsw_status bsw_vectors_read(const bsw_vectors *vectors, uint64_t first_row, size_t num_rows,
                                 void *out, struct bsw_error *err)
{
    const struct bsw_vector_layout *layout = &vectors->file.layout;
    first_row -= vectors->shift;
    if (first_row < vectors->range.first || first_row > vectors->range.last ||
        num_rows > vectors->range.last - first_row) {
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: %zu rows from %llu are not inside %llu:%llu",
                        vectors->name, num_rows, (unsigned long long)first_row,
                        (unsigned long long)vectors->range.first,
                        (unsigned long long)vectors->range.last);
    }
    if (num_rows == 0) return BSW_OK;
    if (vectors->rows) return read_memory(vectors, first_row, num_rows, out, err);
    if (vectors->maker)
        return bsw_text_rows_make(&vectors->lines, vectors->maker, vectors->is_query, first_row,
                                  num_rows, out, err);
    if (vectors->file.fd < 0) {
        bsw_synth_rows(&vectors->synth, first_row, num_rows, out);
        return BSW_OK;
    }
    if (layout->is_double || layout->is_fortran)
        return read_any(vectors, first_row, num_rows, out, err);
    if (layout->is_vecs) return read_vecs(vectors, first_row, num_rows, out, err);
    return bsw_file_read_at(vectors->file.fd, vectors->name,
                            layout->first_byte + first_row * layout->stride_bytes, out,
                            num_rows * (size_t)layout->stride_bytes, err);
}

// ---- rows in memory ----

static _Thread_local struct bsw_memory_rows *lent; // the last one first

int bsw_memory_rows_is_name(const char *name)
{
    return strncmp(name, BSW_MEMORY_PREFIX, strlen(BSW_MEMORY_PREFIX)) == 0;
}

static enum bsw_status check_lent(const struct bsw_memory_rows *rows, struct bsw_error *err)
{
    size_t bytes;
    if (!rows->numbers && !rows->read)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: no array and no file", rows->name);
    if ((unsigned)rows->type >= BSW_VECTOR_INT32)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: unknown type %d of numbers", rows->name,
                        (int)rows->type);
    if (rows->dims < 1 || rows->dims > BSW_MAX_DIMS)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: %u dims, must be 1 to %d", rows->name,
                        rows->dims, BSW_MAX_DIMS);
    if (rows->num_rows < 1) return bsw_fail(err, BSW_ERROR_USAGE, "%s: 0 rows", rows->name);
    if (rows->num_rows > SIZE_MAX ||
        !bsw_multiply_size((size_t)rows->num_rows, rows->dims * bsw_vector_type_bytes(rows->type),
                           &bytes))
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: %llu rows are more than memory holds",
                        rows->name, (unsigned long long)rows->num_rows);
    return BSW_OK;
}

enum bsw_status bsw_memory_rows_lend(struct bsw_memory_rows *rows, struct bsw_error *err)
{
    BSW_TRY(check_lent(rows, err));
    rows->next = lent;
    lent = rows;
    return BSW_OK;
}

void bsw_memory_rows_take_back(struct bsw_memory_rows *rows)
{
    for (struct bsw_memory_rows **place = &lent; *place; place = &(*place)->next) {
        if (*place != rows) continue;
        *place = rows->next;
        return;
    }
}

enum bsw_status bsw_memory_rows_find(const char *name, const struct bsw_memory_rows **out,
                                     struct bsw_error *err)
{
    *out = NULL;
    for (const struct bsw_memory_rows *rows = lent; rows; rows = rows->next) {
        if (strcmp(rows->name, name) != 0) continue;
        *out = rows;
        return BSW_OK;
    }
    return bsw_fail(err, BSW_ERROR_IO,
                    "%s: rows in the memory of the program that made this; they are gone", name);
}
