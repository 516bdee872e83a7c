// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/index_rows.h"

#include <string.h>

#include "common/files/list_order.h"
#include "common/files/row_ids.h"
#include "common/files/shard_file.h"
#include "shard/host/raw_rows.h"

// A shard while its rows are read.
struct reader {
    struct bsw_list_order order;
    struct bsw_raw_rows rows;
    struct bsw_shard_file codes;
    uint64_t *digests;      // [bundles]: of the blocks that were read
    unsigned char *is_read; // [blocks]
    void *block, *scratch;
};

static void close_shard(struct reader *reader)
{
    bsw_free(&reader->digests);
    bsw_free(&reader->is_read);
    bsw_free(&reader->block);
    bsw_free(&reader->scratch);
    bsw_shard_file_close(&reader->codes);
    bsw_raw_rows_close(&reader->rows);
    bsw_list_order_deinit(&reader->order);
}

static enum bsw_status open_shard(const struct bsw_manifest *manifest, const char *index,
                                  uint32_t shard, struct reader *reader, struct bsw_error *err)
{
    *reader = (struct reader){.codes = {.fd = -1}};
    const struct bsw_shard_shape *shape = &reader->codes.shape;
    BSW_TRY(bsw_list_order_read(manifest, index, shard, &reader->order, err));
    BSW_TRY(bsw_raw_rows_open(manifest, index, shard, &reader->order, &reader->rows, err));
    BSW_TRY(bsw_shard_file_open(manifest, index, shard, &reader->codes, err));
    BSW_TRY(bsw_allocate(&reader->digests, bsw_num_bundles(shape->num_places),
                         sizeof *reader->digests, "digests", err));
    BSW_TRY(bsw_allocate_zero(&reader->is_read, shape->num_blocks, 1, "digests", err));
    BSW_TRY(bsw_allocate(&reader->block, bsw_shard_block_bytes(shape, 0), 1, "block", err));
    return bsw_allocate(&reader->scratch, reader->rows.row_bytes, 1, "row", err);
}

// What the row at a place is checked by.
static enum bsw_status read_digests(struct reader *reader, uint64_t place, struct bsw_error *err)
{
    const struct bsw_shard_shape *shape = &reader->codes.shape;
    uint32_t block = (uint32_t)(place / BSW_BUNDLE_ROWS / shape->block_bundles);
    size_t num_bundles = bsw_shard_block_bundles(shape, block);
    struct bsw_code_arrays arrays;
    if (reader->is_read[block]) return BSW_OK;
    BSW_TRY(bsw_shard_file_read_block(&reader->codes, block, reader->block, err));
    bsw_code_arrays_in_block(shape, reader->block, num_bundles, &arrays);
    memcpy(reader->digests + (size_t)block * shape->block_bundles, arrays.row_digests,
           num_bundles * sizeof *reader->digests);
    reader->is_read[block] = 1;
    return BSW_OK;
}

static enum bsw_status read_row(struct reader *reader, uint32_t row, void *out,
                                struct bsw_error *err)
{
    const struct bsw_raw_rows *rows = &reader->rows;
    uint64_t place = rows->places ? rows->places[row] : row;
    const void *numbers;
    if (place != BSW_NO_ROW) BSW_TRY(read_digests(reader, place, err));
    BSW_TRY(bsw_raw_rows_get(rows, row, reader->digests, reader->scratch, &numbers, err));
    memcpy(out, numbers, rows->row_bytes);
    return BSW_OK;
}

static int has(const struct bsw_shard_entry *shard, int64_t id)
{
    return id >= 0 && (uint64_t)id >= shard->first_row &&
           (uint64_t)id - shard->first_row < shard->num_rows;
}

// Those of the ids that are rows of the shard.
static enum bsw_status read_shard(const struct bsw_manifest *manifest, const char *index,
                                  uint32_t shard, const int64_t *ids, uint64_t num_ids,
                                  unsigned char *out, struct bsw_error *err)
{
    const struct bsw_shard_entry *entry = &manifest->shards[shard];
    struct reader reader = {.codes = {.fd = -1}};
    enum bsw_status status = BSW_OK;
    int is_open = 0;
    for (uint64_t i = 0; status == BSW_OK && i < num_ids; i++) {
        if (!has(entry, ids[i])) continue;
        if (!is_open) status = open_shard(manifest, index, shard, &reader, err);
        is_open = 1;
        if (status == BSW_OK)
            status = read_row(&reader, (uint32_t)((uint64_t)ids[i] - entry->first_row),
                              out + i * reader.rows.row_bytes, err);
    }
    if (is_open) close_shard(&reader);
    return status;
}

static enum bsw_status read_rows(const struct bsw_manifest *manifest, const char *index,
                                 const int64_t *ids, uint64_t num_ids, void *out,
                                 struct bsw_error *err)
{
    for (uint32_t shard = 0; shard < manifest->num_shards; shard++)
        BSW_TRY(read_shard(manifest, index, shard, ids, num_ids, out, err));
    return BSW_OK;
}

// Numbers of the rows that have these ids.
static enum bsw_status find_rows(const struct bsw_manifest *manifest, const char *index,
                                 const int64_t *ids, uint64_t num_ids, int64_t *rows,
                                 struct bsw_error *err)
{
    struct bsw_placed_id *live;
    uint64_t num_live;
    enum bsw_status status = bsw_row_ids_live(manifest, index, &live, &num_live, err);
    for (uint64_t i = 0; i < num_ids && status == BSW_OK; i++) {
        const struct bsw_placed_id *found = bsw_placed_ids_find(live, num_live, ids[i]);
        if (!found)
            status = bsw_fail(err, BSW_ERROR_USAGE, "id %lld: %s has no row of this id",
                              (long long)ids[i], index);
        else
            rows[i] = (int64_t)found->place;
    }
    bsw_free(&live);
    return status;
}

static enum bsw_status read_ids(const struct bsw_manifest *manifest, const char *index,
                                const int64_t *ids, uint64_t num_ids, void *out,
                                struct bsw_error *err)
{
    int64_t *rows;
    BSW_TRY(bsw_allocate(&rows, num_ids, sizeof *rows, "rows", err));
    enum bsw_status status = find_rows(manifest, index, ids, num_ids, rows, err);
    if (status == BSW_OK) status = read_rows(manifest, index, rows, num_ids, out, err);
    bsw_free(&rows);
    return status;
}

enum bsw_status bsw_index_rows_read(const struct bsw_manifest *manifest, const char *index,
                                    const int64_t *ids, uint64_t num_ids, void *out,
                                    struct bsw_error *err)
{
    uint64_t first = manifest->first_row, num = manifest->num_rows;
    if (bsw_manifest_has_ids(manifest)) return read_ids(manifest, index, ids, num_ids, out, err);
    for (uint64_t i = 0; i < num_ids; i++) {
        if (ids[i] < 0 || (uint64_t)ids[i] < first || (uint64_t)ids[i] - first >= num)
            return bsw_fail(err, BSW_ERROR_USAGE, "id %lld: %s has rows %llu to %llu",
                            (long long)ids[i], index, (unsigned long long)first,
                            (unsigned long long)(first + num - 1));
    }
    return read_rows(manifest, index, ids, num_ids, out, err);
}
