// SPDX-License-Identifier: Apache-2.0
#include "common/files/deleted_rows.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/codes/code_layout.h"
#include "common/files/list_order.h"

struct header {
    char magic[8];
    uint64_t build_digest, num_places;
};

static const char magic[8] = "BSWGONE";

static size_t num_bundles(const struct bsw_manifest *manifest, uint32_t shard)
{
    return bsw_num_bundles((size_t)bsw_shard_places(&manifest->shards[shard]));
}

static void name_of(uint64_t generation, uint32_t shard, char out[64])
{
    snprintf(out, 64, "deleted-%05llu-%05u.bits", (unsigned long long)generation, shard);
}

int bsw_deleted_rows_are_named(const char *name, uint64_t *generation, uint32_t *shard)
{
    unsigned long long found;
    unsigned of;
    char again[64];
    if (sscanf(name, "deleted-%19llu-%9u.bits", &found, &of) != 2) return 0;
    name_of(found, of, again);
    if (strcmp(name, again) != 0) return 0;
    if (generation) *generation = found;
    if (shard) *shard = of;
    return 1;
}

static struct header make_header(const struct bsw_manifest *manifest, uint32_t shard)
{
    struct header header = {.build_digest = bsw_manifest_home(manifest, shard).build_digest,
                            .num_places = bsw_shard_places(&manifest->shards[shard])};
    memcpy(header.magic, magic, sizeof magic);
    return header;
}

static enum bsw_status take(const struct bsw_manifest *manifest, uint32_t shard, const char *path,
                            const struct bsw_buffer *file, uint32_t **masks, struct bsw_error *err)
{
    const struct bsw_shard_entry *entry = &manifest->shards[shard];
    const struct header header = make_header(manifest, shard);
    size_t bundles = num_bundles(manifest, shard);
    uint64_t rows = 0;
    if (file->bytes != sizeof header + bundles * sizeof **masks ||
        XXH3_64bits(file->data, file->bytes) != entry->deleted_digest ||
        memcmp(file->data, &header, sizeof header) != 0)
        return bsw_fail(err, BSW_ERROR_BAD_DATA,
                        "%s: is damaged, or of another generation of the index", path);
    BSW_TRY(bsw_allocate(masks, bundles, sizeof **masks, "deleted rows", err));
    memcpy(*masks, file->data + sizeof header, bundles * sizeof **masks);
    for (size_t b = 0; b < bundles; b++) rows += (uint64_t)__builtin_popcount((*masks)[b]);
    if (rows == entry->deleted_rows) return BSW_OK;
    bsw_free(masks);
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %llu rows, the manifest says %llu", path,
                    (unsigned long long)rows, (unsigned long long)entry->deleted_rows);
}

enum bsw_status bsw_deleted_rows_read(const struct bsw_manifest *manifest, const char *folder,
                                      uint32_t shard, uint32_t **masks, struct bsw_error *err)
{
    const struct bsw_shard_entry *entry = &manifest->shards[shard];
    char name[64], path[BSW_PATH_BYTES];
    struct bsw_buffer file = {0};
    *masks = NULL;
    if (entry->deleted_rows == 0) return BSW_OK;
    name_of(entry->deleted_in, shard, name);
    BSW_TRY(bsw_path_join(path, folder, name, err));
    if (!bsw_file_exists(path))
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: missing from the index", path);
    size_t most = sizeof(struct header) + num_bundles(manifest, shard) * sizeof **masks;
    enum bsw_status status = bsw_file_read_all(path, most, &file, err);
    if (status == BSW_OK) status = take(manifest, shard, path, &file, masks, err);
    bsw_buffer_deinit(&file);
    return status;
}

enum bsw_status bsw_deleted_rows_write(struct bsw_manifest *manifest, const char *folder,
                                       uint32_t shard, const uint32_t *masks, struct bsw_error *err)
{
    struct bsw_shard_entry *entry = &manifest->shards[shard];
    const struct header header = make_header(manifest, shard);
    size_t bundles = num_bundles(manifest, shard);
    char name[64], path[BSW_PATH_BYTES];
    struct bsw_buffer file = {0};
    name_of(manifest->generation, shard, name);
    BSW_TRY(bsw_path_join(path, folder, name, err));
    enum bsw_status status = bsw_buffer_append(&file, &header, sizeof header, err);
    if (status == BSW_OK) status = bsw_buffer_append(&file, masks, bundles * sizeof *masks, err);
    if (status == BSW_OK) status = bsw_file_write_atomic(path, file.data, file.bytes, err);
    entry->deleted_in = manifest->generation;
    entry->deleted_digest = XXH3_64bits(file.data, file.bytes);
    entry->deleted_rows = 0;
    for (size_t b = 0; b < bundles; b++)
        entry->deleted_rows += (uint64_t)__builtin_popcount(masks[b]);
    bsw_buffer_deinit(&file);
    return status;
}

enum bsw_status bsw_deleted_rows_by_row(const struct bsw_manifest *manifest, const char *folder,
                                        uint32_t shard, uint32_t **rows, struct bsw_error *err)
{
    size_t words = bsw_row_bit_words(manifest->shards[shard].num_rows);
    struct bsw_list_order order = {0};
    uint32_t *masks;
    BSW_TRY(bsw_allocate_zero(rows, words, sizeof **rows, "deleted rows", err));
    enum bsw_status status = bsw_deleted_rows_read(manifest, folder, shard, &masks, err);
    if (status == BSW_OK && masks) {
        status = bsw_list_order_read(manifest, folder, shard, &order, err);
        if (status == BSW_OK)
            bsw_list_order_set_rows(&order, 0, masks, num_bundles(manifest, shard), *rows);
    }
    bsw_free(&masks);
    bsw_list_order_deinit(&order);
    if (status != BSW_OK) bsw_free(rows);
    return status;
}
