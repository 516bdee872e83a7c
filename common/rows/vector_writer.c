// SPDX-License-Identifier: Apache-2.0
#include "common/rows/vector_writer.h"

#include <stdio.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/codes/code_layout.h"
#include "common/job/new_file.h"
#include "common/rows/source_name.h"

#define BLOCK_BYTES     ((size_t)512 << 10) // rows of .vecs get their dims words in such a block
#define MOST_HEAD_BYTES 128
_Static_assert(BLOCK_BYTES >= 4 + 4 * (size_t)BSW_MAX_DIMS, "a block must hold a row");

struct bsw_vector_writer {
    struct bsw_new_file file;
    enum bsw_vector_form form;
    uint32_t dims;
    uint64_t num_rows;
    size_t head_bytes, row_bytes;
    unsigned char *block; // BSW_FORM_VECS: BLOCK_BYTES
};

static enum bsw_status find_format(const char *path, const struct bsw_vector_format **out,
                                   struct bsw_error *err)
{
    *out = bsw_vector_format_of(path);
    if (*out) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "%s: to write vectors the name must end in " BSW_WRITTEN_ENDINGS
                    " or .npy, ids in .ivecs or .ibin",
                    path);
}

enum bsw_status bsw_vector_writer_type(const char *path, enum bsw_vector_type fallback,
                                       enum bsw_vector_type *out, struct bsw_error *err)
{
    const struct bsw_vector_format *format;
    BSW_TRY(find_format(path, &format, err));
    *out = format->form == BSW_FORM_NPY ? fallback : format->type;
    return BSW_OK;
}

// ---- headers ----

static size_t make_bin_head(uint64_t num_rows, uint32_t dims, unsigned char head[MOST_HEAD_BYTES])
{
    const uint64_t wide[2] = {num_rows, dims};
    const uint32_t narrow[2] = {(uint32_t)num_rows, dims};
    if (num_rows > UINT32_MAX) {
        memcpy(head, wide, sizeof wide);
        return sizeof wide;
    }
    memcpy(head, narrow, sizeof narrow);
    return sizeof narrow;
}

// Version 1.0, padded to 128 bytes with spaces as NumPy does.
static size_t make_npy_head(enum bsw_vector_type type, uint64_t num_rows, uint32_t dims,
                            unsigned char head[MOST_HEAD_BYTES])
{
    static const char *const descr[BSW_VECTOR_NUM_TYPES] = {[BSW_VECTOR_FLOAT32] = "<f4",
                                                            [BSW_VECTOR_FLOAT16] = "<f2",
                                                            [BSW_VECTOR_UINT8] = "|u1",
                                                            [BSW_VECTOR_INT8] = "|i1"};
    static const unsigned char start[10] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, MOST_HEAD_BYTES - 10, 0};
    char text[MOST_HEAD_BYTES - 10 + 1];
    int length = snprintf(text, sizeof text,
                          "{'descr': '%s', 'fortran_order': False, 'shape': (%llu, %u), }",
                          descr[type], (unsigned long long)num_rows, dims);
    memset(text + length, ' ', sizeof text - (size_t)length);
    text[sizeof text - 2] = '\n';
    memcpy(head, start, sizeof start);
    memcpy(head + sizeof start, text, sizeof text - 1);
    return MOST_HEAD_BYTES;
}

static size_t make_head(const struct bsw_vector_writer *writer, enum bsw_vector_type type,
                        unsigned char head[MOST_HEAD_BYTES])
{
    if (writer->form == BSW_FORM_VECS) return 0;
    if (writer->form == BSW_FORM_NPY)
        return make_npy_head(type, writer->num_rows, writer->dims, head);
    return make_bin_head(writer->num_rows, writer->dims, head);
}

// ---- writing ----

static enum bsw_status check_shape(const char *path, enum bsw_vector_type type, uint32_t dims,
                                   uint64_t num_rows, struct bsw_error *err)
{
    enum bsw_vector_type expected;
    uint64_t bytes;
    BSW_TRY(bsw_vector_writer_type(path, type, &expected, err));
    if (type != expected || (type == BSW_VECTOR_INT32 && !bsw_name_is_ids(path))) {
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: a file of this name does not hold %s", path,
                        bsw_vector_type_name(type));
    }
    if (dims < 1 || dims > BSW_MAX_DIMS || num_rows < 1 ||
        __builtin_mul_overflow(num_rows, 4 + 4 * (uint64_t)dims, &bytes) || bytes > INT64_MAX / 2) {
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "%s: %llu x %u cannot be written", path,
                        (unsigned long long)num_rows, dims);
    }
    return BSW_OK;
}

enum bsw_status bsw_vector_writer_create(const char *path, enum bsw_vector_type type, uint32_t dims,
                                         uint64_t num_rows, int force, bsw_vector_writer **out,
                                         struct bsw_error *err)
{
    const struct bsw_vector_format *format;
    unsigned char head[MOST_HEAD_BYTES];
    bsw_vector_writer *writer;
    enum bsw_status status;
    *out = NULL;
    BSW_TRY(check_shape(path, type, dims, num_rows, err));
    BSW_TRY(find_format(path, &format, err));
    BSW_TRY(bsw_allocate_zero(&writer, 1, sizeof *writer, "vector writer", err));
    writer->file.fd = -1;
    writer->form = format->form;
    writer->dims = dims;
    writer->num_rows = num_rows;
    writer->row_bytes = dims * bsw_vector_type_bytes(type);
    writer->head_bytes = make_head(writer, type, head);
    if (writer->form == BSW_FORM_VECS)
        BSW_TRY_GOTO(bsw_allocate(&writer->block, BLOCK_BYTES, 1, "block of vectors", err), fail);
    BSW_TRY_GOTO(bsw_new_file_create(path, force, &writer->file, err), fail);
    BSW_TRY_GOTO(bsw_file_write_at(writer->file.fd, writer->file.temporary, 0, head,
                                   writer->head_bytes, err),
                 fail);
    *out = writer;
    return BSW_OK;
fail:
    bsw_vector_writer_destroy(&writer);
    return status;
}

static enum bsw_status put_vecs(bsw_vector_writer *writer, uint64_t first_row, size_t num_rows,
                                const unsigned char *numbers, struct bsw_error *err)
{
    const int32_t dims = (int32_t)writer->dims;
    size_t stride = 4 + writer->row_bytes, block_rows = BLOCK_BYTES / stride;
    while (num_rows > 0) {
        size_t rows = num_rows < block_rows ? num_rows : block_rows;
        for (size_t i = 0; i < rows; i++, numbers += writer->row_bytes) {
            memcpy(writer->block + i * stride, &dims, sizeof dims);
            memcpy(writer->block + i * stride + 4, numbers, writer->row_bytes);
        }
        BSW_TRY(bsw_file_write_at(writer->file.fd, writer->file.temporary, first_row * stride,
                                  writer->block, rows * stride, err));
        first_row += rows;
        num_rows -= rows;
    }
    return BSW_OK;
}

enum bsw_status bsw_vector_writer_put(bsw_vector_writer *writer, uint64_t first_row,
                                      size_t num_rows, const void *numbers, struct bsw_error *err)
{
    if (first_row > writer->num_rows || num_rows > writer->num_rows - first_row) {
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: %zu rows from %llu: it has %llu",
                        writer->file.path, num_rows, (unsigned long long)first_row,
                        (unsigned long long)writer->num_rows);
    }
    if (writer->form == BSW_FORM_VECS) return put_vecs(writer, first_row, num_rows, numbers, err);
    return bsw_file_write_at(writer->file.fd, writer->file.temporary,
                             writer->head_bytes + first_row * writer->row_bytes, numbers,
                             num_rows * writer->row_bytes, err);
}

enum bsw_status bsw_vector_writer_finish(bsw_vector_writer *writer, struct bsw_error *err)
{
    return bsw_new_file_finish(&writer->file, err);
}

void bsw_vector_writer_destroy(bsw_vector_writer **writer)
{
    if (!*writer) return;
    bsw_new_file_deinit(&(*writer)->file);
    bsw_free(&(*writer)->block);
    bsw_free(writer);
}
