// SPDX-License-Identifier: Apache-2.0
#include "common/files/range_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/rows/vectors.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "result files are little endian");

// Places that are copied at a time.
#define PIECE_PLACES ((size_t)16384)

// ---- writing ----

struct bsw_range_writer {
    struct bsw_new_file file;
    int ids_fd, values_fd; // of files without a name: int64_t, float
    uint64_t num_queries, num_put, num_places;
    int64_t highest; // id
    uint64_t *counts;
    int64_t *piece; // [PIECE_PLACES]
};

// A file that is gone when it is closed.
static enum bsw_status create_nameless(const char *temporary, const char *what, int *fd,
                                       struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    BSW_TRY(bsw_path_format(path, err, "%s.%s", temporary, what));
    BSW_TRY(bsw_file_create(path, fd, err));
    unlink(path);
    return BSW_OK;
}

static enum bsw_status open_files(bsw_range_writer *writer, const char *path, int force,
                                  struct bsw_error *err)
{
    BSW_TRY(bsw_allocate(&writer->counts, (size_t)writer->num_queries, sizeof *writer->counts,
                         "counts of a range search", err));
    BSW_TRY(bsw_allocate(&writer->piece, PIECE_PLACES, sizeof *writer->piece, "a writer", err));
    BSW_TRY(bsw_new_file_create(path, force, &writer->file, err));
    BSW_TRY(create_nameless(writer->file.temporary, "ids", &writer->ids_fd, err));
    return create_nameless(writer->file.temporary, "values", &writer->values_fd, err);
}

enum bsw_status bsw_range_writer_create(const char *path, uint64_t num_queries, int force,
                                        bsw_range_writer **out, struct bsw_error *err)
{
    *out = NULL;
    if (bsw_name_is_ids(path) || bsw_name_is_vectors(path) || bsw_name_ends_with(path, ".npz"))
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%s: queries of a range search have any number of rows, for which there is "
                        "big-ann's layout alone: give another name",
                        path);
    BSW_TRY(bsw_allocate_zero(out, 1, sizeof **out, "range writer", err));
    (*out)->file.fd = (*out)->ids_fd = (*out)->values_fd = -1;
    (*out)->num_queries = num_queries;
    enum bsw_status status = open_files(*out, path, force, err);
    if (status != BSW_OK) bsw_range_writer_destroy(out);
    return status;
}

enum bsw_status bsw_range_writer_put(bsw_range_writer *writer, size_t num_queries,
                                     const uint64_t *lims, const int64_t *ids, const float *values,
                                     struct bsw_error *err)
{
    const char *name = writer->file.temporary;
    size_t num = (size_t)lims[num_queries];
    if (num_queries > writer->num_queries - writer->num_put)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: has %llu queries", writer->file.path,
                        (unsigned long long)writer->num_queries);
    BSW_TRY(bsw_file_write_at(writer->ids_fd, name, writer->num_places * sizeof *ids, ids,
                              num * sizeof *ids, err));
    BSW_TRY(bsw_file_write_at(writer->values_fd, name, writer->num_places * sizeof *values, values,
                              num * sizeof *values, err));
    for (size_t q = 0; q < num_queries; q++)
        writer->counts[writer->num_put++] = lims[q + 1] - lims[q];
    for (size_t i = 0; i < num; i++)
        writer->highest = ids[i] > writer->highest ? ids[i] : writer->highest;
    writer->num_places += num;
    return BSW_OK;
}

// Numbers of 64 bits, at most PIECE_PLACES, narrowed in place where that is the form.
static enum bsw_status write_numbers(bsw_range_writer *writer, uint64_t *at, const void *numbers,
                                     size_t count, int is_wide, struct bsw_error *err)
{
    size_t bytes = count * (is_wide ? sizeof(uint64_t) : sizeof(uint32_t));
    if (numbers != writer->piece) memcpy(writer->piece, numbers, count * sizeof(uint64_t));
    unsigned char *to = (unsigned char *)writer->piece;
    for (size_t i = 0; i < count && !is_wide; i++) {
        uint32_t narrow = (uint32_t)writer->piece[i];
        memcpy(to + i * sizeof narrow, &narrow, sizeof narrow);
    }
    BSW_TRY(
        bsw_file_write_at(writer->file.fd, writer->file.temporary, *at, writer->piece, bytes, err));
    *at += bytes;
    return BSW_OK;
}

static size_t piece_of(uint64_t left)
{
    return left < PIECE_PLACES ? (size_t)left : PIECE_PLACES;
}

static enum bsw_status assemble(bsw_range_writer *writer, int is_wide, struct bsw_error *err)
{
    const uint64_t head[2] = {writer->num_queries, writer->num_places};
    const char *name = writer->file.temporary;
    uint64_t at = 0;
    size_t part;
    BSW_TRY(write_numbers(writer, &at, head, 2, is_wide, err));
    for (uint64_t done = 0; done < writer->num_queries; done += part) {
        part = piece_of(writer->num_queries - done);
        BSW_TRY(write_numbers(writer, &at, writer->counts + done, part, is_wide, err));
    }
    for (uint64_t done = 0; done < writer->num_places; done += part) {
        part = piece_of(writer->num_places - done);
        BSW_TRY(bsw_file_read_at(writer->ids_fd, name, done * sizeof(int64_t), writer->piece,
                                 part * sizeof(int64_t), err));
        BSW_TRY(write_numbers(writer, &at, writer->piece, part, is_wide, err));
    }
    for (uint64_t done = 0; done < writer->num_places; done += part) {
        size_t bytes = (part = piece_of(writer->num_places - done)) * sizeof(float);
        BSW_TRY(bsw_file_read_at(writer->values_fd, name, done * sizeof(float), writer->piece,
                                 bytes, err));
        BSW_TRY(bsw_file_write_at(writer->file.fd, name, at + done * sizeof(float), writer->piece,
                                  bytes, err));
    }
    return BSW_OK;
}

enum bsw_status bsw_range_writer_finish(bsw_range_writer *writer, struct bsw_error *err)
{
    int is_wide = writer->highest > INT32_MAX || writer->num_places > INT32_MAX ||
                  writer->num_queries > INT32_MAX;
    if (writer->num_put != writer->num_queries)
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: %llu queries are missing", writer->file.path,
                        (unsigned long long)(writer->num_queries - writer->num_put));
    BSW_TRY(assemble(writer, is_wide, err));
    return bsw_new_file_finish(&writer->file, err);
}

void bsw_range_writer_destroy(bsw_range_writer **writer)
{
    if (!*writer) return;
    bsw_new_file_deinit(&(*writer)->file);
    bsw_file_close(&(*writer)->ids_fd);
    bsw_file_close(&(*writer)->values_fd);
    bsw_free(&(*writer)->counts);
    bsw_free(&(*writer)->piece);
    bsw_free(writer);
}

// ---- reading ----

// One form of a file.
struct layout {
    uint64_t num_queries, num_places;
    size_t number_bytes; // of counts and ids
    uint64_t bytes;      // of the file
};

// 0: it would be larger than any file.
static int make_layout(uint64_t num_queries, uint64_t num_places, size_t number_bytes,
                       struct layout *out)
{
    uint64_t counts, places;
    *out = (struct layout){num_queries, num_places, number_bytes, 0};
    return !__builtin_mul_overflow(num_queries, number_bytes, &counts) &&
           !__builtin_mul_overflow(num_places, number_bytes + sizeof(float), &places) &&
           !__builtin_add_overflow(counts, places, &out->bytes) &&
           !__builtin_add_overflow(out->bytes, 2 * number_bytes, &out->bytes);
}

static enum bsw_status find_layout(const char *name, const unsigned char *data, size_t bytes,
                                   struct layout *out, struct bsw_error *err)
{
    uint32_t narrow[2] = {0};
    uint64_t wide[2] = {0};
    if (bytes >= sizeof narrow) memcpy(narrow, data, sizeof narrow);
    if (bytes >= sizeof wide) memcpy(wide, data, sizeof wide);
    if (bytes >= sizeof wide && make_layout(wide[0], wide[1], sizeof(uint64_t), out) &&
        out->bytes == bytes)
        return BSW_OK;
    if (bytes >= sizeof narrow && make_layout(narrow[0], narrow[1], sizeof(uint32_t), out) &&
        out->bytes == bytes)
        return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA,
                    "%s: no result of a range search: its header says %u queries and %u rows, the "
                    "file has %zu bytes",
                    name, narrow[0], narrow[1], bytes);
}

static uint64_t number_at(const struct layout *layout, const unsigned char *from, uint64_t i)
{
    uint64_t wide;
    uint32_t narrow;
    if (layout->number_bytes == sizeof wide) {
        memcpy(&wide, from + i * sizeof wide, sizeof wide);
        return wide;
    }
    memcpy(&narrow, from + i * sizeof narrow, sizeof narrow);
    return narrow;
}

static enum bsw_status take_counts(const char *name, const struct layout *layout,
                                   const unsigned char *from, struct bsw_ranges *out,
                                   struct bsw_error *err)
{
    out->lims[0] = 0;
    for (uint64_t q = 0; q < layout->num_queries; q++) {
        uint64_t count = number_at(layout, from, q);
        if (count > layout->num_places - out->lims[q])
            return bsw_fail(err, BSW_ERROR_BAD_DATA,
                            "%s: query %llu: its %llu rows pass the %llu that there are", name,
                            (unsigned long long)q, (unsigned long long)count,
                            (unsigned long long)layout->num_places);
        out->lims[q + 1] = out->lims[q] + count;
    }
    if (out->lims[layout->num_queries] == layout->num_places) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: queries have %llu rows, the header says %llu",
                    name, (unsigned long long)out->lims[layout->num_queries],
                    (unsigned long long)layout->num_places);
}

static enum bsw_status take_places(const char *name, const struct layout *layout,
                                   const unsigned char *from, struct bsw_ranges *out,
                                   struct bsw_error *err)
{
    uint64_t most = layout->number_bytes == sizeof(uint64_t) ? INT64_MAX : INT32_MAX;
    memcpy(out->values, from + layout->num_places * layout->number_bytes,
           (size_t)layout->num_places * sizeof *out->values);
    for (uint64_t i = 0; i < layout->num_places; i++) {
        uint64_t id = number_at(layout, from, i);
        if (id > most || isnan(out->values[i]))
            return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: row %llu of all: %s", name,
                            (unsigned long long)i,
                            id > most ? "an id below 0" : "the value is NaN");
        out->ids[i] = (int64_t)id;
    }
    return BSW_OK;
}

static enum bsw_status parse(const char *name, const unsigned char *data, size_t bytes,
                             struct bsw_ranges *out, struct bsw_error *err)
{
    struct layout layout = {0};
    BSW_TRY(find_layout(name, data, bytes, &layout, err));
    const unsigned char *counts = data + 2 * layout.number_bytes;
    size_t num = (size_t)layout.num_queries, places = (size_t)layout.num_places;
    out->num_queries = num;
    BSW_TRY(bsw_allocate(&out->lims, num + 1, sizeof *out->lims, "a range result", err));
    BSW_TRY(bsw_allocate(&out->ids, places, sizeof *out->ids, "a range result", err));
    BSW_TRY(bsw_allocate(&out->values, places, sizeof *out->values, "a range result", err));
    BSW_TRY(take_counts(name, &layout, counts, out, err));
    return take_places(name, &layout, counts + num * layout.number_bytes, out, err);
}

enum bsw_status bsw_ranges_parse(const char *name, const void *data, size_t bytes,
                                 struct bsw_ranges *out, struct bsw_error *err)
{
    *out = (struct bsw_ranges){0};
    enum bsw_status status = parse(name, data, bytes, out, err);
    if (status != BSW_OK) bsw_ranges_deinit(out);
    return status;
}

enum bsw_status bsw_ranges_read(const char *path, struct bsw_ranges *out, struct bsw_error *err)
{
    struct bsw_buffer buffer = {0};
    *out = (struct bsw_ranges){0};
    enum bsw_status status = bsw_file_read_all(path, UINT64_MAX, &buffer, err);
    if (status == BSW_OK) status = bsw_ranges_parse(path, buffer.data, buffer.bytes, out, err);
    bsw_buffer_deinit(&buffer);
    return status;
}

void bsw_ranges_deinit(struct bsw_ranges *ranges)
{
    bsw_free(&ranges->lims);
    bsw_free(&ranges->ids);
    bsw_free(&ranges->values);
    *ranges = (struct bsw_ranges){0};
}
