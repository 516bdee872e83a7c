// SPDX-License-Identifier: Apache-2.0
#include "common/files/shard_file.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "common/files/deleted_rows.h"

#define BLOCK_TARGET_BYTES (1u << 20)

// Both kinds of file begin with this; unused bytes up to BSW_SHARD_HEADER_BYTES are 0.
struct file_header {
    char magic[8];
    uint32_t version;
    uint32_t shard;
    uint32_t num_shards;
    uint32_t block_bundles; // 0 in .vectors
    uint64_t build_digest;
    uint64_t first_row;
    uint64_t num_rows;
    uint64_t bundle_bytes; // bytes of a row in .vectors
    uint64_t digest;       // XXH3 of the bytes before it
};

_Static_assert(sizeof(struct file_header) == 64, "header has no holes");

static const char codes_magic[8] = "BSWCODE";
static const char vectors_magic[8] = "BSWVECT";

static void add_array(size_t place, size_t bundle_bytes, enum bsw_code_part part, const char *name,
                      struct bsw_code_array_list *list)
{
    list->items[list->count++] = (struct bsw_code_array){place, bundle_bytes, part, name};
}

#define ADD_ARRAY(member, num, part, name)              \
    add_array(offsetof(struct bsw_code_arrays, member), \
              (num) * sizeof *((struct bsw_code_arrays *)NULL)->member, part, name, &list)

struct bsw_code_array_list bsw_code_arrays_list(const struct bsw_shard_shape *shape)
{
    struct bsw_code_array_list list = {0};
    for (uint32_t s = 0; s < shape->layout.num_segments; s++)
        ADD_ARRAY(planes[s], bsw_segment_bundle_words(&shape->layout.segments[s]), BSW_PART_CODES,
                  "codes");
    if (shape->has_affine) {
        ADD_ARRAY(scales, BSW_BUNDLE_ROWS, BSW_PART_CODES, "scales");
        ADD_ARRAY(tails, BSW_BUNDLE_ROWS, BSW_PART_TAILS, "tails");
    }
    if (shape->has_biases) ADD_ARRAY(biases, BSW_BUNDLE_ROWS, BSW_PART_CODES, "biases");
    if (shape->has_bytes) ADD_ARRAY(offsets, BSW_BUNDLE_ROWS, BSW_PART_CODES, "offsets");
    ADD_ARRAY(masks, 1, BSW_PART_CODES, "masks");
    ADD_ARRAY(row_digests, 1, BSW_PART_ROWS, "row digests");
    return list;
}

static void set_array(struct bsw_code_arrays *arrays, const struct bsw_code_array *array, void *to)
{
    memcpy((unsigned char *)arrays + array->place, &to, sizeof to);
}

void *bsw_code_array_at(const struct bsw_code_arrays *arrays, const struct bsw_code_array *array,
                        size_t bundle)
{
    unsigned char *at;
    memcpy(&at, (const unsigned char *)arrays + array->place, sizeof at);
    return at ? at + bundle * array->bundle_bytes : NULL;
}

void bsw_code_arrays_advance(const struct bsw_shard_shape *shape, size_t bundle,
                             struct bsw_code_arrays *arrays)
{
    const struct bsw_code_array_list list = bsw_code_arrays_list(shape);
    for (size_t i = 0; i < list.count; i++)
        set_array(arrays, &list.items[i], bsw_code_array_at(arrays, &list.items[i], bundle));
}

void bsw_shard_shape_init(struct bsw_shard_shape *shape, const struct bsw_manifest *manifest,
                          uint32_t shard)
{
    *shape = (struct bsw_shard_shape){.layout = manifest->layout,
                                      .has_affine = manifest->codec->has_affine,
                                      .has_biases = bsw_manifest_has_biases(manifest),
                                      .has_bytes = manifest->codec->has_bytes,
                                      .has_tables = manifest->codec->has_tables,
                                      .num_rows = manifest->shards[shard].num_rows,
                                      .num_places = bsw_shard_places(&manifest->shards[shard]),
                                      .num_lists = manifest->lists.count,
                                      .has_ordered_vectors =
                                          bsw_manifest_home(manifest, shard).has_ordered_vectors,
                                      .first_row = manifest->shards[shard].first_row};
    const struct bsw_code_array_list list = bsw_code_arrays_list(shape);
    for (size_t i = 0; i < list.count; i++) shape->bundle_bytes += list.items[i].bundle_bytes;
    size_t bundles = BLOCK_TARGET_BYTES / shape->bundle_bytes;
    // An even number keeps the 8-byte arrays behind the 4-byte ones aligned in every full block.
    shape->block_bundles = bundles < 2 ? 2 : (uint32_t)(bundles / 2 * 2);
    size_t num_bundles = bsw_num_bundles(shape->num_places);
    shape->num_blocks = (uint32_t)((num_bundles + shape->block_bundles - 1) / shape->block_bundles);
}

size_t bsw_shard_block_bundles(const struct bsw_shard_shape *shape, uint32_t block)
{
    size_t left = bsw_num_bundles(shape->num_places) - (size_t)block * shape->block_bundles;
    return left < shape->block_bundles ? left : shape->block_bundles;
}

size_t bsw_shard_block_bytes(const struct bsw_shard_shape *shape, uint32_t block)
{
    size_t bytes = bsw_shard_block_bundles(shape, block) * shape->bundle_bytes;
    return bytes + (bytes % 8 ? 8 - bytes % 8 : 0); // the row digests are aligned
}

uint64_t bsw_shard_block_offset(const struct bsw_shard_shape *shape, uint32_t block)
{
    if (block == 0) return BSW_SHARD_HEADER_BYTES;
    return BSW_SHARD_HEADER_BYTES + (uint64_t)block * bsw_shard_block_bytes(shape, 0);
}

static size_t footer_bytes(const struct bsw_shard_shape *shape)
{
    return ((size_t)shape->num_blocks + 2) * sizeof(uint64_t);
}

uint64_t bsw_shard_codes_bytes(const struct bsw_shard_shape *shape)
{
    uint32_t last = shape->num_blocks - 1;
    return bsw_shard_block_offset(shape, last) + bsw_shard_block_bytes(shape, last) +
           footer_bytes(shape);
}

uint64_t bsw_shard_vectors_bytes(const struct bsw_shard_shape *shape, size_t row_bytes)
{
    uint64_t rows = shape->has_ordered_vectors ? shape->num_places : shape->num_rows;
    return BSW_SHARD_HEADER_BYTES + rows * row_bytes;
}

void bsw_code_arrays_in_block(const struct bsw_shard_shape *shape, void *block, size_t num_bundles,
                              struct bsw_code_arrays *out)
{
    unsigned char *at = block;
    const struct bsw_code_array_list list = bsw_code_arrays_list(shape);
    *out = (struct bsw_code_arrays){0};
    for (size_t i = 0; i < list.count; i++) {
        if (list.items[i].part == BSW_PART_ROWS)
            at += num_bundles % 2 * sizeof *out->masks; // aligned
        set_array(out, &list.items[i], at);
        at += num_bundles * list.items[i].bundle_bytes;
    }
}

void bsw_code_arrays_copy(const struct bsw_shard_shape *shape, const struct bsw_code_arrays *block,
                          size_t num_bundles, const struct bsw_code_arrays *resident,
                          size_t first_bundle)
{
    const struct bsw_code_array_list list = bsw_code_arrays_list(shape);
    for (size_t i = 0; i < list.count; i++) {
        void *to = bsw_code_array_at(resident, &list.items[i], first_bundle);
        const void *from = bsw_code_array_at(block, &list.items[i], 0);
        if (to) memcpy(to, from, num_bundles * list.items[i].bundle_bytes);
    }
}

uint64_t bsw_code_arrays_digest(const struct bsw_shard_shape *shape,
                                const struct bsw_code_arrays *arrays, size_t first_bundle,
                                size_t num_bundles, enum bsw_code_part part)
{
    const struct bsw_code_array_list list = bsw_code_arrays_list(shape);
    uint64_t digest = 0;
    for (size_t i = 0; i < list.count; i++) {
        const void *at = bsw_code_array_at(arrays, &list.items[i], first_bundle);
        if (at && list.items[i].part == part)
            digest = XXH3_64bits_withSeed(at, num_bundles * list.items[i].bundle_bytes, digest);
    }
    return digest;
}

// ---- headers ----

static void make_header(const struct bsw_manifest *manifest, uint32_t shard, const char magic[8],
                        uint32_t block_bundles, uint64_t unit_bytes, struct file_header *out)
{
    const struct bsw_shard_home home = bsw_manifest_home(manifest, shard);
    *out = (struct file_header){.version = BSW_INDEX_FORMAT_VERSION,
                                .shard = home.shard,
                                .num_shards = home.num_shards,
                                .block_bundles = block_bundles,
                                .build_digest = home.build_digest,
                                .first_row = manifest->shards[shard].first_row,
                                .num_rows = manifest->shards[shard].num_rows,
                                .bundle_bytes = unit_bytes};
    memcpy(out->magic, magic, sizeof out->magic);
    out->digest = XXH3_64bits(out, offsetof(struct file_header, digest));
}

static enum bsw_status write_header(int fd, const char *path, const struct file_header *header,
                                    struct bsw_error *err)
{
    unsigned char bytes[BSW_SHARD_HEADER_BYTES] = {0};
    memcpy(bytes, header, sizeof *header);
    return bsw_file_write_at(fd, path, 0, bytes, sizeof bytes, err);
}

// Compares field by field, so that the message can say what differs.
static enum bsw_status check_header(int fd, const char *path, const struct file_header *expected,
                                    struct bsw_error *err)
{
    unsigned char bytes[BSW_SHARD_HEADER_BYTES];
    struct file_header header;
    BSW_TRY(bsw_file_read_at(fd, path, 0, bytes, sizeof bytes, err));
    memcpy(&header, bytes, sizeof header);
    const char *fault = NULL;
    if (memcmp(header.magic, expected->magic, sizeof header.magic) != 0)
        fault = "is no bitsweep shard";
    else if (header.digest != XXH3_64bits(&header, offsetof(struct file_header, digest)))
        fault = "header is corrupt";
    else if (header.version != expected->version)
        fault = "has another format version";
    else if (header.build_digest != expected->build_digest)
        fault = "belongs to another build of the index";
    else if (memcmp(&header, expected, sizeof header) != 0)
        fault = "does not fit the manifest";
    for (size_t i = sizeof header; i < sizeof bytes && !fault; i++) {
        if (bytes[i] != 0) fault = "header is corrupt";
    }
    return fault ? bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %s", path, fault) : BSW_OK;
}

// ---- writing ----

enum bsw_status bsw_shard_file_seal(int fd, const char *path, const struct bsw_shard_shape *shape,
                                    const struct bsw_manifest *manifest, uint32_t shard,
                                    const uint64_t *block_digests, uint64_t *codes_digest,
                                    struct bsw_error *err)
{
    struct file_header header;
    make_header(manifest, shard, codes_magic, shape->block_bundles, shape->bundle_bytes, &header);
    BSW_TRY(write_header(fd, path, &header, err));
    size_t bytes = footer_bytes(shape), words = bytes / sizeof(uint64_t);
    uint64_t *footer;
    BSW_TRY(bsw_allocate(&footer, words, sizeof *footer, "shard footer", err));
    footer[0] = header.digest;
    memcpy(footer + 1, block_digests, shape->num_blocks * sizeof(uint64_t));
    footer[words - 1] = XXH3_64bits(footer, bytes - sizeof(uint64_t));
    *codes_digest = XXH3_64bits(footer, bytes);
    enum bsw_status status =
        bsw_file_write_at(fd, path, bsw_shard_codes_bytes(shape) - bytes, footer, bytes, err);
    bsw_free(&footer);
    return status;
}

static size_t source_row_bytes(const struct bsw_manifest *manifest)
{
    return bsw_manifest_row_dims(manifest) * bsw_vector_type_bytes(manifest->source_type);
}

enum bsw_status bsw_vectors_file_seal(int fd, const char *path, const struct bsw_manifest *manifest,
                                      uint32_t shard, struct bsw_error *err)
{
    struct file_header header;
    make_header(manifest, shard, vectors_magic, 0, source_row_bytes(manifest), &header);
    return write_header(fd, path, &header, err);
}

// ---- reading ----

// A shard that is not there is a fault of the index, not of the system.
static enum bsw_status open_part(const char *path, uint64_t expected_bytes, int *fd,
                                 struct bsw_error *err)
{
    uint64_t bytes;
    if (!bsw_file_exists(path))
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: missing from the index", path);
    BSW_TRY(bsw_file_open_read(path, fd, &bytes, err));
    if (bytes == expected_bytes) return BSW_OK;
    bsw_file_close(fd);
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %llu bytes, the manifest says %llu", path,
                    (unsigned long long)bytes, (unsigned long long)expected_bytes);
}

static enum bsw_status read_footer(struct bsw_shard_file *file, const struct bsw_manifest *manifest,
                                   uint32_t shard, uint64_t header_digest, struct bsw_error *err)
{
    size_t bytes = footer_bytes(&file->shape), words = bytes / sizeof(uint64_t);
    uint64_t *footer;
    BSW_TRY(bsw_allocate(&footer, words, sizeof *footer, "shard footer", err));
    file->block_digests = footer;
    uint64_t offset = bsw_shard_codes_bytes(&file->shape) - bytes;
    BSW_TRY(bsw_file_read_at(file->fd, file->path, offset, footer, bytes, err));
    if (footer[words - 1] != XXH3_64bits(footer, bytes - sizeof(uint64_t)) ||
        footer[0] != header_digest) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: footer is corrupt", file->path);
    }
    if (manifest->shards[shard].codes_digest != XXH3_64bits(footer, bytes)) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: belongs to another build of the index",
                        file->path);
    }
    memmove(footer, footer + 1, file->shape.num_blocks * sizeof(uint64_t));
    return BSW_OK;
}

enum bsw_status bsw_shard_file_open(const struct bsw_manifest *manifest, const char *folder,
                                    uint32_t shard, struct bsw_shard_file *out,
                                    struct bsw_error *err)
{
    *out = (struct bsw_shard_file){.fd = -1};
    bsw_shard_shape_init(&out->shape, manifest, shard);
    BSW_TRY(bsw_manifest_shard_path(out->path, manifest, folder, shard, ".codes", err));
    uint64_t bytes = bsw_shard_codes_bytes(&out->shape);
    if (manifest->shards[shard].codes_bytes != bytes) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: the manifest's size does not fit its rows",
                        out->path);
    }
    struct file_header expected;
    make_header(manifest, shard, codes_magic, out->shape.block_bundles, out->shape.bundle_bytes,
                &expected);
    enum bsw_status status = open_part(out->path, bytes, &out->fd, err);
    if (status == BSW_OK) status = check_header(out->fd, out->path, &expected, err);
    if (status == BSW_OK) status = read_footer(out, manifest, shard, expected.digest, err);
    if (status == BSW_OK)
        status = bsw_deleted_rows_read(manifest, folder, shard, &out->deleted, err);
    if (status != BSW_OK) bsw_shard_file_close(out);
    return status;
}

// A mask with rows that do not exist would lead a scan to memory behind the last row; a digest does
// not tell, if who made the file meant it so.
static int has_rows_behind(const struct bsw_shard_shape *shape, uint32_t block, void *bytes)
{
    struct bsw_code_arrays arrays;
    size_t num_bundles = bsw_shard_block_bundles(shape, block);
    unsigned rest = (unsigned)(shape->num_places % BSW_BUNDLE_ROWS);
    if (block + 1 < shape->num_blocks || rest == 0) return 0;
    bsw_code_arrays_in_block(shape, bytes, num_bundles, &arrays);
    return arrays.masks[num_bundles - 1] >> rest != 0;
}

// Rows that were deleted are masked, as those are that were dropped.
static void mask_deleted(const struct bsw_shard_file *file, uint32_t block, void *bytes)
{
    struct bsw_code_arrays arrays;
    size_t num_bundles = bsw_shard_block_bundles(&file->shape, block);
    if (!file->deleted) return;
    bsw_code_arrays_in_block(&file->shape, bytes, num_bundles, &arrays);
    for (size_t b = 0; b < num_bundles; b++)
        arrays.masks[b] &= ~file->deleted[(size_t)block * file->shape.block_bundles + b];
}

enum bsw_status bsw_shard_file_read_block(const struct bsw_shard_file *file, uint32_t block,
                                          void *out, struct bsw_error *err)
{
    size_t bytes = bsw_shard_block_bytes(&file->shape, block);
    uint64_t offset = bsw_shard_block_offset(&file->shape, block);
    BSW_TRY(bsw_file_read_at(file->fd, file->path, offset, out, bytes, err));
    const char *fault = NULL;
    if (XXH3_64bits(out, bytes) != file->block_digests[block])
        fault = "is corrupt";
    else if (has_rows_behind(&file->shape, block, out))
        fault = "has rows behind the last";
    if (!fault) mask_deleted(file, block, out);
    if (!fault) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: block %u of %u (bytes %llu to %llu) %s",
                    file->path, block, file->shape.num_blocks, (unsigned long long)offset,
                    (unsigned long long)(offset + bytes), fault);
}

void bsw_shard_file_close(struct bsw_shard_file *file)
{
    bsw_file_close(&file->fd);
    bsw_free(&file->block_digests);
    bsw_free(&file->deleted);
}

enum bsw_status bsw_vectors_file_open(const struct bsw_manifest *manifest, const char *folder,
                                      uint32_t shard, int *fd, char path[BSW_PATH_BYTES],
                                      struct bsw_error *err)
{
    struct bsw_shard_shape shape;
    struct file_header expected;
    *fd = -1;
    bsw_shard_shape_init(&shape, manifest, shard);
    make_header(manifest, shard, vectors_magic, 0, source_row_bytes(manifest), &expected);
    BSW_TRY(bsw_manifest_shard_path(path, manifest, folder, shard, ".vectors", err));
    uint64_t bytes = bsw_shard_vectors_bytes(&shape, source_row_bytes(manifest));
    if (manifest->shards[shard].vectors_bytes != bytes) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: the manifest's size does not fit its rows",
                        path);
    }
    BSW_TRY(open_part(path, bytes, fd, err));
    enum bsw_status status = check_header(*fd, path, &expected, err);
    if (status != BSW_OK) bsw_file_close(fd);
    return status;
}
