// SPDX-License-Identifier: Apache-2.0
#include "common/files/shard_writer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { CODES, VECTORS, LISTS, NUM_KINDS };

static const char *const names[NUM_KINDS] = {".codes", ".vectors", ".lists"};
static const char *const temporaries[NUM_KINDS] = {".codes.tmp", ".vectors.tmp", ".lists.tmp"};

int bsw_shard_file_is_named(const char *name, int is_temporary)
{
    unsigned shard, num_shards;
    int end = -1;
    if (sscanf(name, "shard-%5u-of-%5u%n", &shard, &num_shards, &end) != 2 || end < 0) return 0;
    const char *const *endings = is_temporary ? temporaries : names;
    int kind = 0;
    while (kind < NUM_KINDS && strcmp(name + end, endings[kind]) != 0) kind++;
    return kind < NUM_KINDS;
}

void bsw_shard_writer_init(struct bsw_shard_writer *writer, const struct bsw_manifest *manifest,
                           const char *folder, uint32_t shard)
{
    *writer = (struct bsw_shard_writer){.manifest = manifest,
                                        .folder = folder,
                                        .shard = shard,
                                        .row_bytes = bsw_manifest_row_dims(manifest) *
                                                     bsw_vector_type_bytes(manifest->source_type),
                                        .codes_fd = -1,
                                        .vectors_fd = -1};
    bsw_shard_shape_init(&writer->shape, manifest, shard);
}

static int has_kind(const struct bsw_shard_writer *writer, int kind)
{
    return kind == CODES || (kind == VECTORS && writer->manifest->source_is_copied) ||
           (kind == LISTS && writer->manifest->lists.count > 0);
}

static enum bsw_status path_of(const struct bsw_shard_writer *writer, const char *ending,
                               char out[BSW_PATH_BYTES], struct bsw_error *err)
{
    return bsw_shard_path(out, writer->folder, writer->shard, writer->manifest->num_shards, ending,
                          err);
}

// ---- blocks and rows ----

static enum bsw_status create_file(const struct bsw_shard_writer *writer, int kind,
                                   struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    int fd;
    uint64_t bytes = kind == CODES ? bsw_shard_codes_bytes(&writer->shape)
                                   : bsw_shard_vectors_bytes(&writer->shape, writer->row_bytes);
    BSW_TRY(path_of(writer, temporaries[kind], path, err));
    enum bsw_status status = bsw_file_exists(path) ? bsw_file_open_write(path, &fd, err)
                                                   : bsw_file_create(path, &fd, err);
    if (status == BSW_OK && bsw_file_resize(fd, bytes) != 0) {
        status = bsw_fail(err, BSW_ERROR_IO, "%s: cannot make room for %llu bytes: %s", path,
                          (unsigned long long)bytes, strerror(errno));
    }
    bsw_file_close(&fd);
    return status;
}

enum bsw_status bsw_shard_writer_create(const struct bsw_shard_writer *writer,
                                        struct bsw_error *err)
{
    BSW_TRY(create_file(writer, CODES, err));
    return has_kind(writer, VECTORS) ? create_file(writer, VECTORS, err) : BSW_OK;
}

static enum bsw_status open_file(const struct bsw_shard_writer *writer, int kind,
                                 char path[BSW_PATH_BYTES], int *fd, struct bsw_error *err)
{
    BSW_TRY(path_of(writer, temporaries[kind], path, err));
    return bsw_file_open_write(path, fd, err);
}

enum bsw_status bsw_shard_writer_open(struct bsw_shard_writer *writer, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    BSW_TRY(open_file(writer, CODES, path, &writer->codes_fd, err));
    if (!has_kind(writer, VECTORS)) return BSW_OK;
    return open_file(writer, VECTORS, path, &writer->vectors_fd, err);
}

enum bsw_status bsw_shard_writer_put_block(const struct bsw_shard_writer *writer, uint32_t block,
                                           const void *bytes, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    BSW_TRY(path_of(writer, temporaries[CODES], path, err));
    return bsw_file_write_at(writer->codes_fd, path, bsw_shard_block_offset(&writer->shape, block),
                             bytes, bsw_shard_block_bytes(&writer->shape, block), err);
}

enum bsw_status bsw_shard_writer_put_rows(const struct bsw_shard_writer *writer, uint64_t first,
                                          const void *rows, size_t count, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    if (writer->vectors_fd < 0) return BSW_OK;
    BSW_TRY(path_of(writer, temporaries[VECTORS], path, err));
    return bsw_file_write_at(writer->vectors_fd, path,
                             BSW_SHARD_HEADER_BYTES + first * writer->row_bytes, rows,
                             count * writer->row_bytes, err);
}

enum bsw_status bsw_shard_writer_read_block(const struct bsw_shard_writer *writer, uint32_t block,
                                            void *out, struct bsw_error *err)
{
    return bsw_file_read_at(writer->codes_fd, "codes",
                            bsw_shard_block_offset(&writer->shape, block), out,
                            bsw_shard_block_bytes(&writer->shape, block), err);
}

// The digest of rows [first, first + count) of a .vectors file.
static uint64_t digest_rows(const struct bsw_shard_writer *writer,
                            const struct bsw_list_order *order, const unsigned char *rows,
                            uint64_t first, size_t count)
{
    uint64_t digest = 0;
    for (size_t r = 0; r < count; r++) {
        uint64_t row = first + r;
        if (writer->shape.has_ordered_vectors) row = order->rows[row];
        if (row == BSW_NO_ROW) continue;
        digest += bsw_row_digest(rows + r * writer->row_bytes, writer->row_bytes,
                                 writer->shape.first_row + row);
    }
    return digest;
}

enum bsw_status bsw_shard_writer_digest_rows(const struct bsw_shard_writer *writer, uint32_t block,
                                             const struct bsw_list_order *order, uint64_t *out,
                                             struct bsw_error *err)
{
    const struct bsw_shard_shape *shape = &writer->shape;
    size_t num_bundles = bsw_shard_block_bundles(shape, block), row_bytes = writer->row_bytes;
    uint64_t first = (uint64_t)block * shape->block_bundles * BSW_BUNDLE_ROWS;
    uint64_t last = first + num_bundles * BSW_BUNDLE_ROWS;
    uint64_t end = shape->has_ordered_vectors ? shape->num_places : shape->num_rows;
    unsigned char *rows;
    if (last > end) last = end;
    *out = 0;
    if (first >= last) return BSW_OK; // places that only lists need
    BSW_TRY(bsw_allocate(&rows, BSW_BUNDLE_ROWS, row_bytes, "rows", err));
    enum bsw_status status = BSW_OK;
    for (uint64_t row = first; row < last && status == BSW_OK; row += BSW_BUNDLE_ROWS) {
        size_t count = last - row < BSW_BUNDLE_ROWS ? (size_t)(last - row) : BSW_BUNDLE_ROWS;
        status = bsw_file_read_at(writer->vectors_fd, "raw rows",
                                  BSW_SHARD_HEADER_BYTES + row * row_bytes, rows, count * row_bytes,
                                  err);
        if (status == BSW_OK) *out += digest_rows(writer, order, rows, row, count);
    }
    bsw_free(&rows);
    return status;
}

enum bsw_status bsw_shard_writer_sync(const struct bsw_shard_writer *writer, struct bsw_error *err)
{
    if (writer->codes_fd >= 0) BSW_TRY(bsw_file_sync(writer->codes_fd, writer->folder, err));
    return writer->vectors_fd >= 0 ? bsw_file_sync(writer->vectors_fd, writer->folder, err)
                                   : BSW_OK;
}

enum bsw_status bsw_shard_writer_close(struct bsw_shard_writer *writer, struct bsw_error *err)
{
    int *fds[] = {&writer->codes_fd, &writer->vectors_fd};
    enum bsw_status status = BSW_OK;
    for (int kind = CODES; kind <= VECTORS; kind++) {
        if (*fds[kind] < 0) continue;
        enum bsw_status closed =
            bsw_file_sync_close(fds[kind], writer->folder, status == BSW_OK ? err : NULL);
        if (status == BSW_OK) status = closed;
    }
    return status;
}

// ---- the end ----

static enum bsw_status seal_file(const struct bsw_shard_writer *writer, int kind,
                                 const uint64_t *block_digests, uint64_t *codes_digest,
                                 struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    int fd;
    BSW_TRY(open_file(writer, kind, path, &fd, err));
    enum bsw_status status =
        kind == CODES ? bsw_shard_file_seal(fd, path, &writer->shape, writer->manifest,
                                            writer->shard, block_digests, codes_digest, err)
                      : bsw_vectors_file_seal(fd, path, writer->manifest, writer->shard, err);
    enum bsw_status closed = bsw_file_sync_close(&fd, path, status == BSW_OK ? err : NULL);
    return status ? status : closed;
}

enum bsw_status bsw_shard_writer_seal(struct bsw_shard_writer *writer,
                                      const uint64_t *block_digests, uint64_t *codes_digest,
                                      struct bsw_error *err)
{
    BSW_TRY(seal_file(writer, CODES, block_digests, codes_digest, err));
    return has_kind(writer, VECTORS) ? seal_file(writer, VECTORS, NULL, NULL, err) : BSW_OK;
}

enum bsw_status bsw_shard_writer_put_lists(const struct bsw_shard_writer *writer,
                                           const struct bsw_list_order *order, uint64_t *digest,
                                           struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    struct bsw_buffer bytes = {0};
    int fd;
    BSW_TRY(path_of(writer, temporaries[LISTS], path, err));
    BSW_TRY(bsw_file_create(path, &fd, err));
    enum bsw_status status =
        bsw_list_order_pack(order, writer->manifest->build_digest, &bytes, err);
    if (status == BSW_OK) status = bsw_file_write_at(fd, path, 0, bytes.data, bytes.bytes, err);
    if (status == BSW_OK) *digest = XXH3_64bits(bytes.data, bytes.bytes);
    enum bsw_status closed = bsw_file_sync_close(&fd, path, status == BSW_OK ? err : NULL);
    bsw_buffer_deinit(&bytes);
    return status ? status : closed;
}

enum bsw_status bsw_shard_writer_name(const struct bsw_shard_writer *writer, struct bsw_error *err)
{
    char from[BSW_PATH_BYTES], to[BSW_PATH_BYTES];
    for (int kind = 0; kind < NUM_KINDS; kind++) {
        if (!has_kind(writer, kind)) continue;
        BSW_TRY(path_of(writer, temporaries[kind], from, err));
        BSW_TRY(path_of(writer, names[kind], to, err));
        BSW_TRY(bsw_file_rename(from, to, err));
    }
    return BSW_OK;
}

void bsw_shard_writer_remove(const struct bsw_shard_writer *writer)
{
    char path[BSW_PATH_BYTES];
    for (int kind = 0; kind < NUM_KINDS; kind++) {
        if (path_of(writer, temporaries[kind], path, NULL) == BSW_OK) unlink(path);
    }
}
