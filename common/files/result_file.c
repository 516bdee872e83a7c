// SPDX-License-Identifier: Apache-2.0
#include "common/files/result_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/base/fault_points.h"
#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/rows/vectors.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "result files are little endian");

// Where ids and values lie: ids at first_byte, values behind all ids.
struct result_layout {
    uint64_t num_queries;
    uint64_t k;
    uint64_t first_byte; // 8 or 16
    uint64_t id_bytes;   // 4 or 8
    uint64_t file_bytes;
};

// The layout of one form; 0 if the file would pass what an offset holds.
static int make_layout(uint64_t num_queries, uint64_t k, int is_wide, struct result_layout *out)
{
    uint64_t places, bytes;
    *out = (struct result_layout){.num_queries = num_queries,
                                  .k = k,
                                  .first_byte = is_wide ? 16 : 8,
                                  .id_bytes = is_wide ? 8 : 4};
    if (__builtin_mul_overflow(num_queries, k, &places)) return 0;
    if (__builtin_mul_overflow(places, out->id_bytes + sizeof(float), &bytes)) return 0;
    if (bytes > (uint64_t)INT64_MAX - out->first_byte) return 0;
    out->file_bytes = out->first_byte + bytes;
    return 1;
}

struct bsw_result_writer {
    char path[BSW_PATH_BYTES];
    char temporary[BSW_PATH_BYTES];
    int fd;            // -1 once finished
    int named_fd;      // of the file of the final name, while it is locked; else -1
    int has_temporary; // there is a file of that name, and it is ours
    struct result_layout layout;
    int64_t *piece;  // [PIECE_PLACES]: ids on their way, narrowed, or what is checked
    uint64_t digest; // of the last put
};

// Ids are narrowed, and digests made, by pieces of so many places.
#define PIECE_PLACES ((size_t)16384)

static enum bsw_status check_counts(const char *path, const struct result_layout *layout,
                                    int has_layout, struct bsw_error *err)
{
    if (layout->num_queries == 0 || layout->k == 0) {
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: %llu queries x %llu: nothing to write", path,
                        (unsigned long long)layout->num_queries, (unsigned long long)layout->k);
    }
    int too_narrow =
        layout->id_bytes == 4 && (layout->num_queries > UINT32_MAX || layout->k > UINT32_MAX);
    if (!has_layout || too_narrow) {
        return bsw_fail(err, BSW_ERROR_TOO_LARGE,
                        "%s: %llu queries x %llu are more than a result file holds", path,
                        (unsigned long long)layout->num_queries, (unsigned long long)layout->k);
    }
    return BSW_OK;
}

static enum bsw_status put_header(bsw_result_writer *writer, struct bsw_error *err)
{
    const struct result_layout *layout = &writer->layout;
    uint64_t wide[2] = {layout->num_queries, layout->k};
    uint32_t narrow[2] = {(uint32_t)layout->num_queries, (uint32_t)layout->k};
    const void *header = layout->id_bytes == 8 ? (const void *)wide : narrow;
    return bsw_file_write_at(writer->fd, writer->temporary, 0, header, (size_t)layout->first_byte,
                             err);
}

static enum bsw_status set_names(bsw_result_writer *writer, const char *path, int is_resumable,
                                 struct bsw_error *err)
{
    char suffix[40] = ".partial";
    if (!is_resumable) snprintf(suffix, sizeof suffix, ".tmp.%ld", (long)getpid());
    BSW_TRY(bsw_file_follow(path, writer->path, err));
    return bsw_path_format(writer->temporary, err, "%s%s", writer->path, suffix);
}

// All but the temporary file.
static enum bsw_status prepare(const char *path, const struct result_layout *layout, int has_layout,
                               int is_resumable, int force, bsw_result_writer **out,
                               struct bsw_error *err)
{
    bsw_result_writer *writer;
    *out = NULL;
    BSW_TRY(check_counts(path, layout, has_layout, err));
    BSW_TRY(bsw_new_file_check(path, force, err));
    BSW_TRY(bsw_allocate_zero(&writer, 1, sizeof *writer, "result writer", err));
    writer->fd = writer->named_fd = -1;
    writer->layout = *layout;
    enum bsw_status status = set_names(writer, path, is_resumable, err);
    if (status == BSW_OK)
        status = bsw_allocate(&writer->piece, PIECE_PLACES, sizeof(int64_t), "result writer", err);
    if (status != BSW_OK) bsw_result_writer_destroy(&writer);
    *out = writer;
    return status;
}

enum bsw_status bsw_result_writer_create(const char *path, uint64_t num_queries, uint64_t k,
                                         int wide_ids, int force, bsw_result_writer **out,
                                         struct bsw_error *err)
{
    struct result_layout layout;
    int has_layout = make_layout(num_queries, k, wide_ids, &layout);
    BSW_TRY(prepare(path, &layout, has_layout, 0, force, out, err));
    bsw_temporary_note((*out)->temporary);
    enum bsw_status status = bsw_file_create((*out)->temporary, &(*out)->fd, err);
    (*out)->has_temporary = status == BSW_OK;
    if (status == BSW_OK) status = put_header(*out, err);
    if (status != BSW_OK) bsw_result_writer_destroy(out);
    return status;
}

enum bsw_status bsw_result_writer_open(const char *path, uint64_t num_queries, uint64_t k,
                                       int wide_ids, bsw_result_writer **out, struct bsw_error *err)
{
    struct result_layout layout;
    struct stat facts;
    int has_layout = make_layout(num_queries, k, wide_ids, &layout);
    BSW_TRY(prepare(path, &layout, has_layout, 1, 1, out, err));
    enum bsw_status status = bsw_file_open_exclusive((*out)->temporary, &(*out)->fd, err);
    // An empty one is nobody's loss.
    if (status == BSW_OK)
        (*out)->has_temporary = fstat((*out)->fd, &facts) == 0 && facts.st_size == 0;
    if (status != BSW_OK) bsw_result_writer_destroy(out);
    return status;
}

enum bsw_status bsw_result_writer_check_name(const bsw_result_writer *writer, int force,
                                             struct bsw_error *err)
{
    return bsw_new_file_check(writer->path, force, err);
}

int bsw_result_writer_is_new(const bsw_result_writer *writer)
{
    return writer->has_temporary;
}

enum bsw_status bsw_result_writer_lock_name(bsw_result_writer *writer, struct bsw_error *err)
{
    return bsw_file_reopen_exclusive(writer->path, &writer->named_fd, err);
}

enum bsw_status bsw_result_writer_take_back(bsw_result_writer *writer, struct bsw_error *err)
{
    writer->has_temporary = 0; // from the rename on it is somebody's loss
    BSW_TRY(bsw_file_rename(writer->path, writer->temporary, err));
    bsw_file_close(&writer->fd);
    writer->fd = writer->named_fd;
    writer->named_fd = -1;
    return BSW_OK;
}

enum bsw_status bsw_result_writer_begin(bsw_result_writer *writer, int is_kept,
                                        struct bsw_error *err)
{
    struct stat facts;
    uint64_t most_bytes = is_kept ? writer->layout.file_bytes : 0;
    writer->has_temporary = 1;
    if (fstat(writer->fd, &facts) != 0 ||
        ((uint64_t)facts.st_size > most_bytes &&
         BSW_FAULT(WRITE, -1, ftruncate(writer->fd, (off_t)most_bytes)) != 0)) {
        return bsw_fail(err, BSW_ERROR_IO, "%s: cannot cut: %s", writer->temporary,
                        strerror(errno));
    }
    return put_header(writer, err);
}

static uint64_t ids_byte(const bsw_result_writer *writer, uint64_t place)
{
    return writer->layout.first_byte + place * writer->layout.id_bytes;
}

static uint64_t values_byte(const bsw_result_writer *writer, uint64_t place)
{
    return ids_byte(writer, writer->layout.num_queries * writer->layout.k) + place * sizeof(float);
}

static size_t piece_of(uint64_t left)
{
    return left < PIECE_PLACES ? (size_t)left : PIECE_PLACES;
}

static enum bsw_status narrow_ids(const bsw_result_writer *writer, const int64_t *ids, size_t count,
                                  int32_t *out, struct bsw_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (ids[i] > INT32_MAX || ids[i] < INT32_MIN) {
            return bsw_fail(err, BSW_ERROR_TOO_LARGE, "%s: id %lld needs the 64-bit form",
                            writer->path, (long long)ids[i]);
        }
        out[i] = (int32_t)ids[i];
    }
    return BSW_OK;
}

static enum bsw_status put_piece(bsw_result_writer *writer, uint64_t offset, const void *data,
                                 size_t bytes, struct bsw_error *err)
{
    writer->digest = XXH3_64bits_withSeed(data, bytes, writer->digest);
    return bsw_file_write_at(writer->fd, writer->temporary, offset, data, bytes, err);
}

static enum bsw_status check_range(const bsw_result_writer *writer, uint64_t first_query,
                                   uint64_t num_queries, struct bsw_error *err)
{
    uint64_t all = writer->layout.num_queries;
    if (writer->fd >= 0 && first_query <= all && num_queries <= all - first_query) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "%s: %llu queries from %llu: the open file has %llu",
                    writer->path, (unsigned long long)num_queries, (unsigned long long)first_query,
                    writer->fd < 0 ? 0 : (unsigned long long)all);
}

enum bsw_status bsw_result_writer_put(bsw_result_writer *writer, uint64_t first_query,
                                      size_t num_queries, const int64_t *ids, const float *values,
                                      struct bsw_error *err)
{
    const struct result_layout *layout = &writer->layout;
    BSW_TRY(check_range(writer, first_query, num_queries, err));
    uint64_t first = first_query * layout->k;
    size_t count = num_queries * (size_t)layout->k, part;
    int is_narrow = layout->id_bytes == sizeof(int32_t);
    writer->digest = 0;
    for (size_t done = 0; done < count; done += part) {
        part = piece_of(count - done);
        if (is_narrow) BSW_TRY(narrow_ids(writer, ids + done, part, (int32_t *)writer->piece, err));
        BSW_TRY(put_piece(writer, ids_byte(writer, first + done),
                          is_narrow ? (const void *)writer->piece : ids + done,
                          part * (size_t)layout->id_bytes, err));
    }
    for (size_t done = 0; done < count; done += part) {
        part = piece_of(count - done);
        BSW_TRY(put_piece(writer, values_byte(writer, first + done), values + done,
                          part * sizeof(float), err));
    }
    return BSW_OK;
}

uint64_t bsw_result_writer_digest(const bsw_result_writer *writer)
{
    return writer->digest;
}

enum bsw_status bsw_result_writer_check(bsw_result_writer *writer, uint64_t first_query,
                                        uint64_t num_queries, uint64_t digest, int *is_same,
                                        struct bsw_error *err)
{
    const struct result_layout *layout = &writer->layout;
    *is_same = 0;
    BSW_TRY(check_range(writer, first_query, num_queries, err));
    uint64_t first = first_query * layout->k, count = num_queries * layout->k, found = 0;
    for (int kind = 0; kind < 2; kind++) {
        size_t place_bytes = kind == 0 ? (size_t)layout->id_bytes : sizeof(float), part;
        for (uint64_t done = 0; done < count; done += part) {
            part = piece_of(count - done);
            uint64_t offset =
                kind == 0 ? ids_byte(writer, first + done) : values_byte(writer, first + done);
            enum bsw_status status = bsw_file_read_at(writer->fd, writer->temporary, offset,
                                                      writer->piece, part * place_bytes, err);
            if (status == BSW_ERROR_BAD_DATA) return BSW_OK; // the file ends before
            BSW_TRY(status);
            found = XXH3_64bits_withSeed(writer->piece, part * place_bytes, found);
        }
    }
    *is_same = found == digest;
    return BSW_OK;
}

enum bsw_status bsw_result_writer_sync(bsw_result_writer *writer, struct bsw_error *err)
{
    return bsw_file_sync(writer->fd, writer->temporary, err);
}

const char *bsw_result_writer_temporary(const bsw_result_writer *writer)
{
    return writer->temporary;
}

enum bsw_status bsw_result_writer_finish(bsw_result_writer *writer, struct bsw_error *err)
{
    if (writer->fd < 0) return bsw_fail(err, BSW_ERROR_USAGE, "%s: is closed", writer->path);
    BSW_TRY(bsw_file_sync(writer->fd, writer->temporary, err));
    BSW_TRY(bsw_file_rename(writer->temporary, writer->path, err));
    bsw_file_close(&writer->named_fd); // of what was replaced
    writer->named_fd = writer->fd;
    writer->fd = -1;
    writer->has_temporary = 0;
    bsw_temporary_forget(writer->temporary);
    return BSW_OK;
}

void bsw_result_writer_destroy(bsw_result_writer **writer)
{
    if (!*writer) return;
    if ((*writer)->has_temporary) unlink((*writer)->temporary); // while it is locked: nobody else's
    bsw_temporary_forget((*writer)->temporary);
    bsw_file_close(&(*writer)->fd);
    bsw_file_close(&(*writer)->named_fd);
    bsw_free(&(*writer)->piece);
    bsw_free(writer);
}

void bsw_result_writer_leave(bsw_result_writer **writer)
{
    if (*writer) (*writer)->has_temporary = 0;
    bsw_result_writer_destroy(writer);
}

// The header of big-ann's layout; head has the file's first 16 bytes, or all if it is shorter.
static enum bsw_status read_header(const char *name, const unsigned char *head, uint64_t file_bytes,
                                   struct result_layout *out, struct bsw_error *err)
{
    uint32_t narrow[2] = {0};
    uint64_t wide[2] = {0};
    struct result_layout narrow_form, wide_form;
    if (file_bytes == 0) return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: empty", name);
    if (file_bytes >= sizeof narrow) memcpy(narrow, head, sizeof narrow);
    if (file_bytes >= sizeof wide) memcpy(wide, head, sizeof wide);
    if (file_bytes < sizeof narrow || (narrow[1] == 0 && file_bytes < sizeof wide)) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: truncated inside the header: %llu bytes",
                        name, (unsigned long long)file_bytes);
    }
    int is_narrow = make_layout(narrow[0], narrow[1], 0, &narrow_form) && narrow[1] != 0 &&
                    narrow_form.file_bytes == file_bytes;
    int is_wide =
        make_layout(wide[0], wide[1], 1, &wide_form) && wide_form.file_bytes == file_bytes;
    *out = is_narrow || (narrow[1] != 0 && !is_wide) ? narrow_form : wide_form;
    if (is_narrow || is_wide) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA,
                    "%s: the header says %llu queries x %llu (%llu bytes), the file has %llu", name,
                    (unsigned long long)out->num_queries, (unsigned long long)out->k,
                    (unsigned long long)out->file_bytes, (unsigned long long)file_bytes);
}

static enum bsw_status check_header(const char *name, const unsigned char *head,
                                    uint64_t file_bytes, struct result_layout *out,
                                    struct bsw_error *err)
{
    *out = (struct result_layout){0};
    BSW_TRY(read_header(name, head, file_bytes, out, err));
    if (out->num_queries > 0 && out->k > 0) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: the header says %llu queries x %llu", name,
                    (unsigned long long)out->num_queries, (unsigned long long)out->k);
}

static enum bsw_status check_id(const char *name, int64_t id, uint64_t place, uint64_t k,
                                struct bsw_error *err)
{
    if (id >= -1) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: query %llu, place %llu: id %lld", name,
                    (unsigned long long)(place / k), (unsigned long long)(place % k),
                    (long long)id);
}

// ids of `count` places, int32 or int64 by id_bytes, widened; first_place is for messages.
static enum bsw_status take_ids(const char *name, const unsigned char *from, uint64_t id_bytes,
                                uint64_t first_place, size_t count, struct bsw_results *out,
                                struct bsw_error *err)
{
    int64_t *ids = out->ids + first_place;
    for (size_t i = 0; i < count; i++) {
        if (id_bytes == 8) {
            memcpy(&ids[i], from + i * 8, 8);
        } else {
            int32_t id;
            memcpy(&id, from + i * 4, 4);
            ids[i] = id;
        }
        BSW_TRY(check_id(name, ids[i], first_place + i, out->k, err));
    }
    return BSW_OK;
}

static enum bsw_status take_values(const char *name, const unsigned char *from,
                                   struct bsw_results *out, struct bsw_error *err)
{
    size_t count = (size_t)(out->num_queries * out->k);
    memcpy(out->values, from, count * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        if (!isnan(out->values[i])) continue;
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: query %llu, place %llu: the value is NaN",
                        name, (unsigned long long)(i / out->k), (unsigned long long)(i % out->k));
    }
    return BSW_OK;
}

static enum bsw_status parse_big_ann(const char *name, const unsigned char *data, size_t bytes,
                                     struct bsw_results *out, struct bsw_error *err)
{
    struct result_layout layout = {0};
    BSW_TRY(check_header(name, data, bytes, &layout, err));
    size_t count = (size_t)(layout.num_queries * layout.k);
    const unsigned char *ids = data + layout.first_byte;
    out->num_queries = layout.num_queries;
    out->k = layout.k;
    BSW_TRY(bsw_allocate(&out->ids, count, sizeof(int64_t), "result ids", err));
    BSW_TRY(bsw_allocate(&out->values, count, sizeof(float), "result values", err));
    BSW_TRY(take_ids(name, ids, layout.id_bytes, 0, count, out, err));
    return take_values(name, ids + count * layout.id_bytes, out, err);
}

// The int32 that stands before each row of .ivecs.
static enum bsw_status check_row_head(const char *name, const struct bsw_vector_layout *layout,
                                      uint64_t row, const unsigned char *ids, struct bsw_error *err)
{
    int32_t dims;
    if (!layout->is_vecs) return BSW_OK;
    memcpy(&dims, ids - 4, sizeof dims);
    if (dims == (int32_t)layout->dims) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: row %llu says %d ids, the first row %u", name,
                    (unsigned long long)row, dims, layout->dims);
}

static enum bsw_status parse_ids(const char *name, const unsigned char *data, size_t bytes,
                                 struct bsw_results *out, struct bsw_error *err)
{
    struct bsw_vector_layout layout;
    BSW_TRY(bsw_vector_layout_parse(name, data, bytes, bytes, &layout, err));
    out->num_queries = layout.num_rows;
    out->k = layout.dims;
    BSW_TRY(bsw_allocate(&out->ids, (size_t)(layout.num_rows * layout.dims), sizeof(int64_t),
                         "result ids", err));
    for (uint64_t row = 0; row < layout.num_rows; row++) {
        const unsigned char *ids = data + layout.first_byte + row * layout.stride_bytes;
        BSW_TRY(check_row_head(name, &layout, row, ids, err));
        BSW_TRY(take_ids(name, ids, 4, row * layout.dims, layout.dims, out, err));
    }
    return BSW_OK;
}

enum bsw_status bsw_results_parse(const char *name, const void *data, size_t bytes,
                                  struct bsw_results *out, struct bsw_error *err)
{
    struct bsw_results results = {0};
    enum bsw_status status = bsw_name_is_ids(name)
                                 ? parse_ids(name, data, bytes, &results, err)
                                 : parse_big_ann(name, data, bytes, &results, err);
    if (status != BSW_OK) bsw_results_deinit(&results);
    *out = results;
    return status;
}

// No header of ours is: it would count hundreds of millions of queries and of neighbours.
static int is_text(const unsigned char *head, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if ((head[i] < ' ' || head[i] > '~') && !strchr("\t\r\n", head[i])) return 0;
    }
    return bytes > 0;
}

// What a file is, where it is no result, and what to do with it.
static enum bsw_status explain(const char *path, const unsigned char *head, size_t bytes,
                               enum bsw_status status, struct bsw_error *err)
{
    if (!err) return status;
    if (status != BSW_ERROR_BAD_DATA || bytes == 0) return status;
    if (bsw_name_is_vectors(path))
        return bsw_fail(err, status,
                        "%s: holds vectors, not neighbours: `bitsweep groundtruth` makes true "
                        "neighbours, `bitsweep search` a result",
                        path);
    if (is_text(head, bytes))
        return bsw_fail(err, status,
                        "%s: is text, which is not read; vectors in it become a file that is by "
                        "Python's numpy.save('X.npy', numpy.loadtxt(FILE, 'f4'))",
                        path);
    const struct bsw_error why = *err;
    return bsw_fail(err, status, "%.160s: no result; names of vectors end in " BSW_VECTOR_ENDINGS,
                    why.message);
}

// Looks at the header alone first: a base file given by mistake is refused before it is loaded.
static enum bsw_status check_header_of_file(const char *path, struct bsw_error *err)
{
    unsigned char head[16] = {0};
    struct result_layout layout;
    struct bsw_vector_layout ids;
    uint64_t file_bytes;
    int fd;
    BSW_TRY(bsw_file_open_read(path, &fd, &file_bytes, err));
    size_t head_bytes = file_bytes < sizeof head ? (size_t)file_bytes : sizeof head;
    enum bsw_status status = bsw_file_read_at(fd, path, 0, head, head_bytes, err);
    bsw_file_close(&fd);
    BSW_TRY(status);
    if (bsw_name_is_ids(path))
        return bsw_vector_layout_parse(path, head, head_bytes, file_bytes, &ids, err);
    status = check_header(path, head, file_bytes, &layout, err);
    return explain(path, head, head_bytes, status, err);
}

static enum bsw_status read_hdf5(const char *name, const struct bsw_hdf5_name *hdf5,
                                 struct bsw_results *out, struct bsw_error *err)
{
    uint64_t file_bytes;
    int fd;
    BSW_TRY(bsw_file_open_read(hdf5->file, &fd, &file_bytes, err));
    enum bsw_status status = bsw_hdf5_ids_read(name, hdf5->file, hdf5->dataset, fd, file_bytes,
                                               &out->num_queries, &out->k, &out->ids, err);
    bsw_file_close(&fd);
    BSW_TRY(status);
    for (uint64_t i = 0; i < out->num_queries * out->k; i++)
        BSW_TRY(check_id(name, out->ids[i], i, out->k, err));
    return BSW_OK;
}

int bsw_split_values_path(const char *ids_path, char out[BSW_PATH_BYTES])
{
    static const char ids_ending[] = ".neighbors.ibin";
    if (!bsw_name_ends_with(ids_path, ids_ending)) return 0;
    int stem = (int)(strlen(ids_path) - strlen(ids_ending));
    return snprintf(out, BSW_PATH_BYTES, "%.*s.distances.fbin", stem, ids_path) < BSW_PATH_BYTES;
}

// The values of split files, if they are there.
static enum bsw_status read_split_values(const char *ids_path, struct bsw_results *out,
                                         struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    struct bsw_buffer buffer = {0};
    struct bsw_vector_layout layout;
    if (!bsw_split_values_path(ids_path, path) || !bsw_file_exists(path)) return BSW_OK;
    enum bsw_status status = bsw_file_read_all(path, UINT64_MAX, &buffer, err);
    if (status == BSW_OK) {
        status =
            bsw_vector_layout_parse(path, buffer.data, buffer.bytes, buffer.bytes, &layout, err);
    }
    if (status == BSW_OK && (layout.num_rows != out->num_queries || layout.dims != out->k)) {
        status = bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %llu x %u values, %s has %llu x %llu", path,
                          (unsigned long long)layout.num_rows, layout.dims, ids_path,
                          (unsigned long long)out->num_queries, (unsigned long long)out->k);
    }
    if (status == BSW_OK)
        status = bsw_allocate(&out->values, buffer.bytes, 1, "result values", err);
    if (status == BSW_OK) status = take_values(path, buffer.data + layout.first_byte, out, err);
    bsw_buffer_deinit(&buffer);
    return status;
}

static enum bsw_status read_file(const char *path, struct bsw_results *out, struct bsw_error *err)
{
    struct bsw_buffer buffer = {0};
    BSW_TRY(check_header_of_file(path, err));
    enum bsw_status status = bsw_file_read_all(path, UINT64_MAX, &buffer, err);
    if (status == BSW_OK) status = bsw_results_parse(path, buffer.data, buffer.bytes, out, err);
    bsw_buffer_deinit(&buffer);
    return status == BSW_OK ? read_split_values(path, out, err) : status;
}

enum bsw_status bsw_results_read(const char *path, struct bsw_results *out, struct bsw_error *err)
{
    struct bsw_hdf5_name hdf5;
    *out = (struct bsw_results){0};
    enum bsw_status status = bsw_hdf5_name_parse(path, BSW_HDF5_NEIGHBORS, &hdf5)
                                 ? read_hdf5(path, &hdf5, out, err)
                                 : read_file(path, out, err);
    if (status != BSW_OK) bsw_results_deinit(out);
    return status;
}

void bsw_results_deinit(struct bsw_results *results)
{
    bsw_free(&results->ids);
    bsw_free(&results->values);
    *results = (struct bsw_results){0};
}
