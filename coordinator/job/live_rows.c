// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/live_rows.h"

#include <string.h>

#include "common/files/list_order.h"
#include "common/files/shard_file.h"
#include "shard/host/raw_rows.h"

struct bsw_live_shard {
    uint64_t first;    // of all live rows
    uint32_t *rows;    // [live rows of the shard], ascending
    uint64_t *digests; // [bundles]
    struct bsw_list_order order;
    struct bsw_raw_rows raw;
    int is_open;
};

// ---- which rows ----

// Digests of all bundles, and bits of the rows.
static enum bsw_status read_masks(const struct bsw_shard_file *file, struct bsw_live_shard *shard,
                                  uint32_t *live, struct bsw_error *err)
{
    struct bsw_buffer buffer = {0};
    enum bsw_status status = BSW_OK;
    for (uint32_t block = 0; block < file->shape.num_blocks && status == BSW_OK; block++) {
        size_t num = bsw_shard_block_bundles(&file->shape, block),
               first = (size_t)block * file->shape.block_bundles;
        struct bsw_code_arrays arrays;
        status = bsw_buffer_reserve(&buffer, bsw_shard_block_bytes(&file->shape, block), err);
        if (status == BSW_OK) status = bsw_shard_file_read_block(file, block, buffer.data, err);
        if (status != BSW_OK) break;
        bsw_code_arrays_in_block(&file->shape, buffer.data, num, &arrays);
        memcpy(shard->digests + first, arrays.row_digests, num * sizeof *shard->digests);
        bsw_list_order_set_rows(&shard->order, first, arrays.masks, num, live);
    }
    bsw_buffer_deinit(&buffer);
    return status;
}

static uint64_t list_rows(const uint32_t *live, uint64_t num_rows, uint32_t *rows)
{
    uint64_t count = 0;
    for (uint64_t row = 0; row < num_rows; row++)
        if (bsw_row_bit(live, row)) rows[count++] = (uint32_t)row;
    return count;
}

static enum bsw_status find_rows(const struct bsw_manifest *manifest,
                                 const struct bsw_shard_file *file, uint32_t index,
                                 struct bsw_live_shard *shard, struct bsw_error *err)
{
    const struct bsw_shard_entry *entry = &manifest->shards[index];
    size_t words = bsw_row_bit_words(entry->num_rows);
    uint32_t *live;
    BSW_TRY(bsw_allocate(&shard->digests, bsw_num_bundles((size_t)file->shape.num_places),
                         sizeof *shard->digests, "digests", err));
    BSW_TRY(bsw_allocate(&shard->rows, (size_t)bsw_shard_live_rows(entry), sizeof *shard->rows,
                         "rows", err));
    BSW_TRY(bsw_allocate_zero(&live, words, sizeof *live, "rows", err));
    enum bsw_status status = read_masks(file, shard, live, err);
    uint64_t count = 0;
    for (size_t w = 0; w < words; w++) count += (uint64_t)__builtin_popcount(live[w]);
    if (status == BSW_OK && count != bsw_shard_live_rows(entry))
        status = bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: masks do not fit the manifest's rows",
                          file->path);
    if (status == BSW_OK) list_rows(live, entry->num_rows, shard->rows);
    bsw_free(&live);
    return status;
}

static enum bsw_status open_shard(const struct bsw_manifest *manifest, const char *index,
                                  uint32_t number, struct bsw_live_shard *shard,
                                  struct bsw_error *err)
{
    struct bsw_shard_file file;
    BSW_TRY(bsw_list_order_read(manifest, index, number, &shard->order, err));
    BSW_TRY(bsw_raw_rows_open(manifest, index, number, &shard->order, &shard->raw, err));
    shard->is_open = 1;
    BSW_TRY(bsw_shard_file_open(manifest, index, number, &file, err));
    enum bsw_status status = find_rows(manifest, &file, number, shard, err);
    bsw_shard_file_close(&file);
    return status;
}

// ---- reading ----

static const struct bsw_live_shard *shard_of(const struct bsw_live_rows *live, uint64_t place)
{
    uint32_t low = 0, high = live->manifest->num_shards - 1;
    while (low < high) {
        uint32_t middle = (low + high + 1) / 2;
        if (live->shards[middle].first <= place)
            low = middle;
        else
            high = middle - 1;
    }
    return &live->shards[low];
}

uint64_t bsw_live_rows_at(const struct bsw_live_rows *live, uint64_t place)
{
    const struct bsw_live_shard *shard = shard_of(live, place);
    return live->manifest->shards[shard - live->shards].first_row +
           shard->rows[place - shard->first];
}

static enum bsw_status read_rows(void *context, uint64_t first, size_t num_rows, void *out,
                                 struct bsw_error *err)
{
    const struct bsw_live_rows *live = context;
    size_t bytes = live->shards[0].raw.row_bytes;
    void *scratch;
    enum bsw_status status = BSW_OK;
    BSW_TRY(bsw_allocate(&scratch, bytes, 1, "row", err));
    for (size_t i = 0; i < num_rows && status == BSW_OK; i++) {
        const struct bsw_live_shard *shard = shard_of(live, first + i);
        uint32_t row = shard->rows[first + i - shard->first];
        const void *numbers;
        status = bsw_raw_rows_get(&shard->raw, row, shard->digests, scratch, &numbers, err);
        if (status == BSW_OK) memcpy((unsigned char *)out + i * bytes, numbers, bytes);
    }
    bsw_free(&scratch);
    return status;
}

enum bsw_status bsw_live_rows_open(const struct bsw_manifest *manifest, const char *index,
                                   struct bsw_live_rows *out, struct bsw_error *err)
{
    *out = (struct bsw_live_rows){.manifest = manifest, .num_shards = manifest->num_shards};
    BSW_TRY(
        bsw_allocate_zero(&out->shards, manifest->num_shards, sizeof *out->shards, "shards", err));
    for (uint32_t i = 0; i < manifest->num_shards; i++) {
        out->shards[i].first = out->num_rows;
        BSW_TRY(open_shard(manifest, index, i, &out->shards[i], err));
        out->num_rows += bsw_shard_live_rows(&manifest->shards[i]);
    }
    out->source = (struct bsw_memory_rows){.name = BSW_LIVE_ROWS_NAME,
                                           .type = manifest->source_type,
                                           .dims = bsw_manifest_row_dims(manifest),
                                           .num_rows = out->num_rows,
                                           .read = read_rows,
                                           .context = out};
    return BSW_OK;
}

void bsw_live_rows_close(struct bsw_live_rows *live)
{
    for (uint32_t i = 0; live->shards && i < live->num_shards; i++) {
        struct bsw_live_shard *shard = &live->shards[i];
        if (shard->is_open) bsw_raw_rows_close(&shard->raw);
        bsw_list_order_deinit(&shard->order);
        bsw_free(&shard->rows);
        bsw_free(&shard->digests);
    }
    bsw_free(&live->shards);
}
