// SPDX-License-Identifier: Apache-2.0
#include "common/files/row_ids.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/files/deleted_rows.h"
#include "common/rows/vectors.h"

#define MOST_BYTES  ((uint64_t)1 << 40)
#define HEAD_BYTES  128
#define MOST_DIGITS 19

// ---- files of numbers ----

static enum bsw_status fail_number(const char *path, uint64_t place, const char *what,
                                   struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: number %llu %s", path,
                    (unsigned long long)place + 1, what);
}

static enum bsw_status take_npy(const char *path, const struct bsw_buffer *file, int64_t **out,
                                uint64_t *count, struct bsw_error *err)
{
    struct bsw_npy_integers numbers;
    BSW_TRY(bsw_npy_integers_parse(path, file->data, file->bytes, &numbers, err));
    BSW_TRY(bsw_allocate(out, numbers.count, sizeof **out, "ids", err));
    *count = numbers.count;
    for (uint64_t i = 0; i < numbers.count; i++) {
        const unsigned char *at = file->data + numbers.first_byte + i * numbers.type.bytes;
        (*out)[i] = bsw_integer_at(numbers.type, at);
        if ((*out)[i] < 0) return fail_number(path, i, "is not 0 to 2^63 - 1", err);
    }
    return BSW_OK;
}

// A word of digits; 0: it is none.
static int take_word(const char *at, const char *end, int64_t *out)
{
    uint64_t value = 0;
    if (end - at > MOST_DIGITS) return 0;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9') return 0;
        value = 10 * value + (uint64_t)(*at - '0');
    }
    *out = (int64_t)value;
    return value <= INT64_MAX;
}

// Words of the text; counts only where out is NULL.
static enum bsw_status take_text(const char *path, const struct bsw_buffer *file, int64_t *out,
                                 uint64_t *count, struct bsw_error *err)
{
    const char *at = (const char *)file->data, *last = at + file->bytes;
    int64_t value;
    *count = 0;
    for (;;) {
        while (at < last && isspace((unsigned char)*at)) at++;
        if (at == last) return BSW_OK;
        const char *end = at;
        while (end < last && !isspace((unsigned char)*end)) end++;
        if (!take_word(at, end, &value))
            return fail_number(path, *count, "is no whole number of 0 to 2^63 - 1", err);
        if (out) out[*count] = value;
        ++*count;
        at = end;
    }
}

static enum bsw_status take_numbers(const char *path, const struct bsw_buffer *file, int64_t **out,
                                    uint64_t *count, struct bsw_error *err)
{
    if (bsw_name_ends_with(path, ".npy")) return take_npy(path, file, out, count, err);
    BSW_TRY(take_text(path, file, NULL, count, err));
    BSW_TRY(bsw_allocate(out, *count, sizeof **out, "ids", err));
    return take_text(path, file, *out, count, err);
}

enum bsw_status bsw_integers_read(const char *path, int64_t **out, uint64_t *count,
                                  struct bsw_error *err)
{
    struct bsw_buffer file = {0};
    *out = NULL;
    *count = 0;
    enum bsw_status status = bsw_file_read_all(path, MOST_BYTES, &file, err);
    if (status == BSW_OK) status = take_numbers(path, &file, out, count, err);
    bsw_buffer_deinit(&file);
    if (status == BSW_OK && *count == 0)
        status = bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: has no numbers", path);
    if (status != BSW_OK) bsw_free(out);
    return status;
}

// ---- numbers and places ----

static int compare(const void *a, const void *b)
{
    const struct bsw_placed_id *x = a, *y = b;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

void bsw_placed_ids_sort(struct bsw_placed_id *ids, uint64_t count)
{
    if (count > 0) qsort(ids, (size_t)count, sizeof *ids, compare);
}

const struct bsw_placed_id *bsw_placed_ids_find(const struct bsw_placed_id *ids, uint64_t count,
                                                int64_t id)
{
    uint64_t low = 0, high = count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (ids[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && ids[low].id == id ? &ids[low] : NULL;
}

enum bsw_status bsw_integers_check_different(const char *name, const int64_t *ids, uint64_t count,
                                             struct bsw_error *err)
{
    struct bsw_placed_id *placed;
    enum bsw_status status = BSW_OK;
    BSW_TRY(bsw_allocate(&placed, count, sizeof *placed, "ids", err));
    for (uint64_t i = 0; i < count; i++) placed[i] = (struct bsw_placed_id){ids[i], i};
    bsw_placed_ids_sort(placed, count);
    if (count > 0 && placed[0].id < 0)
        status = bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: id %lld must be 0 to 2^63 - 1", name,
                          (long long)placed[0].id);
    for (uint64_t i = 1; i < count && status == BSW_OK; i++) {
        if (placed[i].id == placed[i - 1].id)
            status = bsw_fail(err, BSW_ERROR_BAD_DATA,
                              "%s: id %lld is given twice, as number %llu and number %llu", name,
                              (long long)placed[i].id, (unsigned long long)placed[i - 1].place + 1,
                              (unsigned long long)placed[i].place + 1);
    }
    bsw_free(&placed);
    return status;
}

// ---- of an index ----

enum bsw_status bsw_row_ids_pack(const int64_t *ids, uint64_t count, struct bsw_buffer *out,
                                 struct bsw_error *err)
{
    char head[HEAD_BYTES + 1];
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10); // 0x76: bytes of text
    int length = snprintf(head + 10, sizeof head - 10,
                          "{'descr': '<i8', 'fortran_order': False, 'shape': (%llu,), }",
                          (unsigned long long)count);
    memset(head + 10 + length, ' ', (size_t)(HEAD_BYTES - 10 - length));
    head[HEAD_BYTES - 1] = '\n';
    BSW_TRY(bsw_buffer_append(out, head, HEAD_BYTES, err));
    return bsw_buffer_append(out, ids, count * sizeof *ids, err);
}

// Rows of a part, whose shards begin at `shard`.
static uint64_t rows_of_part(const struct bsw_manifest *manifest, uint32_t shard,
                             uint32_t num_shards)
{
    uint64_t rows = 0;
    for (uint32_t i = shard; i < shard + num_shards; i++) rows += manifest->shards[i].num_rows;
    return rows;
}

static enum bsw_status read_part(const char *folder, const struct bsw_index_part *part,
                                 uint64_t num_rows, int64_t *out, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    struct bsw_buffer file = {0};
    BSW_TRY(bsw_path_format(path, err, "%s/%s%s" BSW_ROW_IDS_NAME, folder, part->folder,
                            part->folder[0] ? "/" : ""));
    if (!bsw_file_exists(path))
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: missing from the index", path);
    enum bsw_status status = bsw_file_read_all(path, MOST_BYTES, &file, err);
    if (status == BSW_OK && (XXH3_64bits(file.data, file.bytes) != part->ids_digest ||
                             file.bytes != HEAD_BYTES + num_rows * sizeof *out))
        status =
            bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: is damaged, or belongs to another index", path);
    if (status == BSW_OK) memcpy(out, file.data + HEAD_BYTES, num_rows * sizeof *out);
    bsw_buffer_deinit(&file);
    return status;
}

enum bsw_status bsw_row_ids_read(const struct bsw_manifest *manifest, const char *folder,
                                 int64_t **out, struct bsw_error *err)
{
    struct bsw_index_part *own;
    uint64_t row = 0;
    uint32_t shard = 0;
    *out = NULL;
    if (!bsw_manifest_has_ids(manifest)) return BSW_OK;
    BSW_TRY(bsw_allocate(&own, 1, sizeof *own, "ids", err));
    bsw_manifest_as_part(manifest, own);
    const struct bsw_index_part *parts = manifest->num_parts > 0 ? manifest->parts : own;
    uint32_t num_parts = manifest->num_parts > 0 ? manifest->num_parts : 1;
    enum bsw_status status = bsw_allocate(out, manifest->num_rows, sizeof **out, "ids", err);
    for (uint32_t p = 0; p < num_parts && status == BSW_OK; p++) {
        uint64_t rows = rows_of_part(manifest, shard, parts[p].num_shards);
        status = read_part(folder, &parts[p], rows, *out + row, err);
        row += rows;
        shard += parts[p].num_shards;
    }
    bsw_free(&own);
    if (status != BSW_OK) bsw_free(out);
    return status;
}

static enum bsw_status place_live(const struct bsw_manifest *manifest, const char *folder,
                                  const int64_t *ids, struct bsw_placed_id *out, uint64_t *count,
                                  struct bsw_error *err)
{
    *count = 0;
    for (uint32_t i = 0; i < manifest->num_shards; i++) {
        const struct bsw_shard_entry *entry = &manifest->shards[i];
        uint64_t first = entry->first_row - manifest->first_row;
        uint32_t *deleted;
        BSW_TRY(bsw_deleted_rows_by_row(manifest, folder, i, &deleted, err));
        for (uint64_t row = 0; row < entry->num_rows; row++) {
            if (bsw_row_bit(deleted, row)) continue;
            out[(*count)++] = (struct bsw_placed_id){ids[first + row], entry->first_row + row};
        }
        bsw_free(&deleted);
    }
    return BSW_OK;
}

enum bsw_status bsw_row_ids_live(const struct bsw_manifest *manifest, const char *folder,
                                 struct bsw_placed_id **out, uint64_t *count, struct bsw_error *err)
{
    int64_t *ids;
    *out = NULL;
    *count = 0;
    BSW_TRY(bsw_row_ids_read(manifest, folder, &ids, err));
    if (!ids) return BSW_OK;
    enum bsw_status status = bsw_allocate(out, manifest->num_rows, sizeof **out, "ids", err);
    if (status == BSW_OK) status = place_live(manifest, folder, ids, *out, count, err);
    if (status == BSW_OK) bsw_placed_ids_sort(*out, *count);
    bsw_free(&ids);
    if (status != BSW_OK) bsw_free(out);
    return status;
}
