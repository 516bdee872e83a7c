// SPDX-License-Identifier: Apache-2.0
#include "common/files/list_order.h"

#include <string.h>
#include <xxhash.h>

struct header {
    char magic[8];
    uint64_t build_digest, num_lists, num_rows, num_places;
};

_Static_assert(sizeof(struct header) == 40, "bsw_list_order_file_bytes counts it");

static const char magic[8] = "BSWLIST";

// ---- making ----

static enum bsw_status count_rows(const uint32_t *lists, uint64_t num_rows, uint32_t num_lists,
                                  uint32_t **counts, struct bsw_error *err)
{
    BSW_TRY(bsw_allocate_zero(counts, num_lists, sizeof **counts, "lists", err));
    for (uint64_t r = 0; r < num_rows; r++) {
        if (lists[r] != BSW_NO_LIST) (*counts)[lists[r]]++;
    }
    return BSW_OK;
}

enum bsw_status bsw_list_order_count(const uint32_t *lists, uint64_t num_rows, uint32_t num_lists,
                                     uint64_t *num_places, struct bsw_error *err)
{
    uint32_t *counts;
    uint64_t bundles = 0, least = bsw_num_bundles((size_t)num_rows);
    BSW_TRY(count_rows(lists, num_rows, num_lists, &counts, err));
    for (uint32_t l = 0; l < num_lists; l++) bundles += bsw_num_bundles(counts[l]);
    bsw_free(&counts);
    *num_places = (bundles > least ? bundles : least) * BSW_BUNDLE_ROWS;
    if (*num_places < UINT32_MAX) return BSW_OK;
    return bsw_fail(
        err, BSW_ERROR_USAGE,
        "%llu rows in %u lists take more than 2^32 - 1 places in a shard: more --shards",
        (unsigned long long)num_rows, num_lists);
}

static enum bsw_status allocate(struct bsw_list_order *order, struct bsw_error *err)
{
    BSW_TRY(bsw_allocate_zero(&order->first_bundles, order->num_lists + (size_t)1,
                              sizeof *order->first_bundles, "lists", err));
    BSW_TRY(bsw_allocate(&order->rows, order->num_places, sizeof *order->rows, "lists", err));
    BSW_TRY(bsw_allocate(&order->places, order->num_rows, sizeof *order->places, "lists", err));
    memset(order->rows, 0xff, order->num_places * sizeof *order->rows);
    memset(order->places, 0xff, order->num_rows * sizeof *order->places);
    return BSW_OK;
}

void bsw_list_order_deinit(struct bsw_list_order *order)
{
    bsw_free(&order->first_bundles);
    bsw_free(&order->rows);
    bsw_free(&order->places);
    *order = (struct bsw_list_order){0};
}

enum bsw_status bsw_list_order_make(const uint32_t *lists, uint64_t num_rows, uint32_t num_lists,
                                    uint64_t num_places, struct bsw_list_order *out,
                                    struct bsw_error *err)
{
    uint32_t *next = NULL; // the place that a list's next row gets
    *out = (struct bsw_list_order){num_lists, (uint32_t)num_rows, (uint32_t)num_places, 0, 0, 0};
    enum bsw_status status = allocate(out, err);
    if (status == BSW_OK) status = count_rows(lists, num_rows, num_lists, &next, err);
    if (status != BSW_OK) {
        bsw_list_order_deinit(out);
        return status;
    }
    for (uint32_t l = 0; l < num_lists; l++) {
        uint32_t first = out->first_bundles[l];
        out->first_bundles[l + 1] = first + (uint32_t)bsw_num_bundles(next[l]);
        next[l] = first * BSW_BUNDLE_ROWS;
    }
    for (uint32_t r = 0; r < num_rows; r++) {
        if (lists[r] == BSW_NO_LIST) continue;
        out->places[r] = next[lists[r]]++;
        out->rows[out->places[r]] = r;
    }
    bsw_free(&next);
    return BSW_OK;
}

uint32_t bsw_list_of_place(const struct bsw_list_order *order, uint32_t place)
{
    uint32_t bundle = place / BSW_BUNDLE_ROWS, low = 0, high = order->num_lists - 1;
    while (low < high) { // the last list that begins at or before the bundle
        uint32_t middle = low + (high - low + 1) / 2;
        if (order->first_bundles[middle] <= bundle)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

void bsw_list_order_set_rows(const struct bsw_list_order *order, size_t first_bundle,
                             const uint32_t *masks, size_t num_bundles, uint32_t *rows)
{
    for (size_t b = 0; b < num_bundles; b++) {
        for (uint32_t mask = masks[b]; mask; mask &= mask - 1) {
            size_t place = (first_bundle + b) * BSW_BUNDLE_ROWS + (size_t)__builtin_ctz(mask);
            size_t row = order->rows ? order->rows[place] : place;
            if (row != BSW_NO_ROW) bsw_row_bit_set(rows, row);
        }
    }
}

// ---- the file ----

enum bsw_status bsw_list_order_pack(const struct bsw_list_order *order, uint64_t build_digest,
                                    struct bsw_buffer *out, struct bsw_error *err)
{
    struct header header = {.build_digest = build_digest,
                            .num_lists = order->num_lists,
                            .num_rows = order->num_rows,
                            .num_places = order->num_places};
    memcpy(header.magic, magic, sizeof header.magic);
    out->bytes = 0;
    BSW_TRY(bsw_buffer_append(out, &header, sizeof header, err));
    BSW_TRY(bsw_buffer_append(out, order->first_bundles,
                              (order->num_lists + (size_t)1) * sizeof(uint32_t), err));
    return bsw_buffer_append(out, order->rows, order->num_places * sizeof(uint32_t), err);
}

// Whether lists follow each other and have rows in ascending order, none twice; fills places.
static int is_order(struct bsw_list_order *order)
{
    const uint32_t *first = order->first_bundles;
    uint32_t bundles = order->num_places / BSW_BUNDLE_ROWS;
    if (first[0] != 0 || first[order->num_lists] > bundles) return 0;
    for (uint32_t l = 0; l < order->num_lists; l++) {
        int64_t last = -1;
        if (first[l + 1] < first[l]) return 0;
        for (uint32_t p = first[l] * BSW_BUNDLE_ROWS; p < first[l + 1] * BSW_BUNDLE_ROWS; p++) {
            uint32_t row = order->rows[p];
            if (row == BSW_NO_ROW) continue;
            if (row >= order->num_rows || (int64_t)row <= last || order->places[row] != BSW_NO_ROW)
                return 0;
            order->places[row] = p;
            last = row;
        }
    }
    for (uint32_t p = first[order->num_lists] * BSW_BUNDLE_ROWS; p < order->num_places; p++) {
        if (order->rows[p] != BSW_NO_ROW) return 0;
    }
    return 1;
}

enum bsw_status bsw_list_order_parse(const char *name, const void *data, size_t bytes,
                                     uint64_t build_digest, uint32_t num_lists, uint64_t num_rows,
                                     uint64_t num_places, struct bsw_list_order *out,
                                     struct bsw_error *err)
{
    const unsigned char *at = data;
    size_t table = (num_lists + (size_t)1) * sizeof(uint32_t);
    struct header header, expected = {.build_digest = build_digest,
                                      .num_lists = num_lists,
                                      .num_rows = num_rows,
                                      .num_places = num_places};
    memcpy(expected.magic, magic, sizeof expected.magic);
    *out = (struct bsw_list_order){num_lists, (uint32_t)num_rows, (uint32_t)num_places, 0, 0, 0};
    if (bytes != bsw_list_order_file_bytes(num_lists, num_places))
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: its size does not fit the manifest", name);
    memcpy(&header, at, sizeof header);
    if (memcmp(&header, &expected, sizeof header) != 0)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: belongs to another build of the index", name);
    enum bsw_status status = allocate(out, err);
    if (status == BSW_OK) {
        memcpy(out->first_bundles, at + sizeof header, table);
        memcpy(out->rows, at + sizeof header + table, num_places * sizeof(uint32_t));
        if (!is_order(out))
            status = bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: is no order of the shard's rows", name);
    }
    if (status != BSW_OK) bsw_list_order_deinit(out);
    return status;
}

enum bsw_status bsw_list_order_read(const struct bsw_manifest *manifest, const char *folder,
                                    uint32_t shard, struct bsw_list_order *out,
                                    struct bsw_error *err)
{
    const struct bsw_shard_entry *entry = &manifest->shards[shard];
    char path[BSW_PATH_BYTES];
    struct bsw_buffer bytes = {0};
    *out = (struct bsw_list_order){0};
    if (manifest->lists.count == 0) return BSW_OK;
    BSW_TRY(bsw_manifest_shard_path(path, manifest, folder, shard, ".lists", err));
    if (!bsw_file_exists(path))
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: missing from the index", path);
    uint64_t most = bsw_list_order_file_bytes(manifest->lists.count, entry->num_places);
    enum bsw_status status = bsw_file_read_all(path, most, &bytes, err);
    if (status == BSW_OK && XXH3_64bits(bytes.data, bytes.bytes) != entry->lists_digest)
        status = bsw_fail(err, BSW_ERROR_BAD_DATA,
                          "%s: is damaged, or belongs to another index: bring back the file that "
                          "encode made with this manifest.pb, or encode again",
                          path);
    if (status == BSW_OK)
        status = bsw_list_order_parse(
            path, bytes.data, bytes.bytes, bsw_manifest_home(manifest, shard).build_digest,
            manifest->lists.count, entry->num_rows, entry->num_places, out, err);
    bsw_buffer_deinit(&bytes);
    return status;
}
