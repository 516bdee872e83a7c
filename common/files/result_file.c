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
#include "common/files/npz_file.h"
#include "common/files/result_layout.h"
#include "common/rows/vectors.h"

struct bsw_result_writer {
    char path[BSW_PATH_BYTES];
    char temporary[BSW_PATH_BYTES];
    int fd;            // -1 once finished
    int named_fd;      // of the file of the final name, while it is locked; else -1
    int has_temporary; // there is a file of that name, and it is ours
    struct bsw_result_layout layout;
    int64_t *piece;  // [PIECE_PLACES]: ids on their way, narrowed, or what is checked
    uint64_t digest; // of the last put
};

// Ids are narrowed, and digests made, by pieces of so many places.
#define PIECE_PLACES ((size_t)16384)

static enum bsw_status check_counts(const char *path, const struct bsw_result_layout *layout,
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
    const struct bsw_result_layout *layout = &writer->layout;
    if (layout->is_npz) return BSW_OK; // it has checksums of what is yet to come
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
static enum bsw_status prepare(const char *path, const struct bsw_result_layout *layout,
                               int has_layout, int is_resumable, int force, bsw_result_writer **out,
                               struct bsw_error *err)
{
    bsw_result_writer *writer;
    *out = NULL;
    if (bsw_name_ends_with(path, ".npy"))
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%s: a result is two arrays, which .npz holds: 'ids' and 'values' of "
                        "numpy.load('X.npz')",
                        path);
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
    struct bsw_result_layout layout;
    int has_layout = bsw_result_layout_make(path, num_queries, k, wide_ids, &layout);
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
    struct bsw_result_layout layout;
    struct stat facts;
    int has_layout = bsw_result_layout_make(path, num_queries, k, wide_ids, &layout);
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
    const struct bsw_result_layout *layout = &writer->layout;
    return ids_byte(writer, layout->num_queries * layout->k) + layout->between_bytes +
           place * sizeof(float);
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
    const struct bsw_result_layout *layout = &writer->layout;
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
    const struct bsw_result_layout *layout = &writer->layout;
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

// Goes on with a CRC-32 by so many bytes of the file.
static enum bsw_status sum_up(const bsw_result_writer *writer, uint64_t first, uint64_t bytes,
                              uint32_t *sum, struct bsw_error *err)
{
    for (uint64_t done = 0; done < bytes;) {
        uint64_t left = bytes - done, most = PIECE_PLACES * sizeof *writer->piece;
        size_t part = (size_t)(left < most ? left : most);
        BSW_TRY(bsw_file_read_at(writer->fd, writer->temporary, first + done, writer->piece, part,
                                 err));
        *sum = bsw_npz_sum(*sum, writer->piece, part);
        done += part;
    }
    return BSW_OK;
}

// What stands before, between and behind the arrays of a .npz file.
static enum bsw_status seal(const bsw_result_writer *writer, struct bsw_error *err)
{
    const struct bsw_result_layout *layout = &writer->layout;
    uint64_t places = layout->num_queries * layout->k;
    struct bsw_npz_frame frame = {.layout = layout};
    bsw_npz_frame_begin(&frame);
    BSW_TRY(sum_up(writer, ids_byte(writer, 0), places * layout->id_bytes, &frame.sums[0], err));
    BSW_TRY(sum_up(writer, values_byte(writer, 0), places * sizeof(float), &frame.sums[1], err));
    bsw_npz_frame_end(&frame);
    BSW_TRY(bsw_file_write_at(writer->fd, writer->temporary, 0, frame.before, sizeof frame.before,
                              err));
    BSW_TRY(bsw_file_write_at(writer->fd, writer->temporary, ids_byte(writer, places),
                              frame.between, sizeof frame.between, err));
    return bsw_file_write_at(writer->fd, writer->temporary, values_byte(writer, places),
                             frame.behind, sizeof frame.behind, err);
}

enum bsw_status bsw_result_writer_finish(bsw_result_writer *writer, struct bsw_error *err)
{
    if (writer->fd < 0) return bsw_fail(err, BSW_ERROR_USAGE, "%s: is closed", writer->path);
    if (writer->layout.is_npz) BSW_TRY(seal(writer, err));
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
