// SPDX-License-Identifier: Apache-2.0
#include "common/files/row_tags.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/base/file.h"
#include "common/codes/code_layout.h"

#define MOST_BYTES ((uint64_t)1 << 40)

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files of tags are little endian");

void bsw_number_sets_deinit(struct bsw_number_sets *sets)
{
    bsw_free(&sets->first);
    bsw_free(&sets->members);
    *sets = (struct bsw_number_sets){0};
}

static enum bsw_status make_room(uint64_t num_sets, uint64_t num_members, uint64_t num_entries,
                                 struct bsw_number_sets *out, struct bsw_error *err)
{
    *out = (struct bsw_number_sets){.num_sets = num_sets, .num_members = num_members};
    BSW_TRY(bsw_allocate_zero(&out->first, (size_t)num_sets + 1, sizeof *out->first, "tags", err));
    return bsw_allocate(&out->members, (size_t)num_entries, sizeof *out->members, "tags", err);
}

// ---- what is given ----

enum { HEAD_NUMBERS = 3 };

struct matrix {
    int64_t rows, tags, entries;
    const unsigned char *starts, *indices;
};

static enum bsw_status find_matrix(const char *name, const unsigned char *data, size_t bytes,
                                   struct matrix *out, struct bsw_error *err)
{
    int64_t head[HEAD_NUMBERS] = {0};
    uint64_t starts, entries, expected = 0;
    if (bytes > 0) memcpy(head, data, bytes < sizeof head ? bytes : sizeof head);
    int is_good = bytes >= sizeof head && head[0] >= 0 && head[0] < UINT32_MAX && head[1] >= 0 &&
                  head[1] <= INT32_MAX && head[2] >= 0 &&
                  !__builtin_mul_overflow((uint64_t)head[0] + 1, sizeof(int64_t), &starts) &&
                  !__builtin_mul_overflow((uint64_t)head[2], 8, &entries) &&
                  !__builtin_add_overflow(starts, entries, &expected) &&
                  !__builtin_add_overflow(expected, sizeof head, &expected);
    if (!is_good || expected != bytes)
        return bsw_fail(err, BSW_ERROR_BAD_DATA,
                        "%s: no sparse matrix: its header says %lld rows, %lld tags and %lld "
                        "entries, the file has %zu bytes",
                        name, (long long)head[0], (long long)head[1], (long long)head[2], bytes);
    *out =
        (struct matrix){head[0], head[1], head[2], data + sizeof head, data + sizeof head + starts};
    return BSW_OK;
}

static int64_t start_at(const struct matrix *matrix, int64_t row)
{
    int64_t start;
    memcpy(&start, matrix->starts + row * (int64_t)sizeof start, sizeof start);
    return start;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

// The tags of a row, to *at members.
static enum bsw_status take_row(const char *name, const struct matrix *matrix, int64_t row,
                                struct bsw_number_sets *out, uint64_t *at, struct bsw_error *err)
{
    int64_t from = start_at(matrix, row), to = start_at(matrix, row + 1);
    uint32_t *own = out->members + *at;
    size_t count = 0;
    if (from > to || to > matrix->entries || (row == 0 && from != 0))
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: entries of row %lld are %lld to %lld", name,
                        (long long)row, (long long)from, (long long)to);
    for (int64_t i = from; i < to; i++) {
        int32_t tag;
        memcpy(&tag, matrix->indices + i * (int64_t)sizeof tag, sizeof tag);
        if (tag < 0 || tag >= matrix->tags)
            return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: row %lld has tag %d: there are %lld",
                            name, (long long)row, tag, (long long)matrix->tags);
        own[i - from] = (uint32_t)tag;
    }
    if (to > from) qsort(own, (size_t)(to - from), sizeof *own, compare);
    for (int64_t i = 0; i < to - from; i++) {
        if (i == 0 || own[i] != own[i - 1]) own[count++] = own[i];
    }
    *at += count;
    return BSW_OK;
}

static enum bsw_status parse(const char *name, const unsigned char *data, size_t bytes,
                             struct bsw_number_sets *out, struct bsw_error *err)
{
    struct matrix matrix = {0};
    uint64_t at = 0;
    BSW_TRY(find_matrix(name, data, bytes, &matrix, err));
    BSW_TRY(make_room((uint64_t)matrix.rows, (uint64_t)matrix.tags, (uint64_t)matrix.entries, out,
                      err));
    for (int64_t row = 0; row < matrix.rows; row++) {
        BSW_TRY(take_row(name, &matrix, row, out, &at, err));
        out->first[row + 1] = at;
    }
    if (start_at(&matrix, matrix.rows) == matrix.entries) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: rows have %lld entries, the header says %lld",
                    name, (long long)start_at(&matrix, matrix.rows), (long long)matrix.entries);
}

enum bsw_status bsw_tags_parse(const char *name, const unsigned char *data, size_t bytes,
                               struct bsw_number_sets *out, struct bsw_error *err)
{
    *out = (struct bsw_number_sets){0};
    enum bsw_status status = parse(name, data, bytes, out, err);
    if (status != BSW_OK) bsw_number_sets_deinit(out);
    return status;
}

enum bsw_status bsw_tags_read(const char *path, struct bsw_number_sets *out, struct bsw_error *err)
{
    struct bsw_buffer file = {0};
    *out = (struct bsw_number_sets){0};
    enum bsw_status status = bsw_file_read_all(path, MOST_BYTES, &file, err);
    if (status == BSW_OK) status = bsw_tags_parse(path, file.data, file.bytes, out, err);
    bsw_buffer_deinit(&file);
    return status;
}

enum bsw_status bsw_number_sets_turn(const struct bsw_number_sets *sets,
                                     struct bsw_number_sets *out, struct bsw_error *err)
{
    uint64_t entries = sets->first ? sets->first[sets->num_sets] : 0;
    enum bsw_status status = make_room(sets->num_members, sets->num_sets, entries, out, err);
    if (status != BSW_OK) {
        bsw_number_sets_deinit(out);
        return status;
    }
    for (uint64_t i = 0; i < entries; i++) out->first[sets->members[i] + 1]++;
    for (uint64_t m = 0; m < out->num_sets; m++) out->first[m + 1] += out->first[m];
    for (uint64_t s = 0; s < sets->num_sets; s++) {
        for (uint64_t i = sets->first[s]; i < sets->first[s + 1]; i++)
            out->members[out->first[sets->members[i]]++] = (uint32_t)s;
    }
    for (uint64_t m = out->num_sets; m > 0; m--) out->first[m] = out->first[m - 1]; // were ends
    out->first[0] = 0;
    return BSW_OK;
}

enum bsw_status bsw_row_tags_of_file(const char *path, struct bsw_number_sets *out,
                                     struct bsw_error *err)
{
    struct bsw_number_sets rows;
    *out = (struct bsw_number_sets){0};
    BSW_TRY(bsw_tags_read(path, &rows, err));
    enum bsw_status status = bsw_number_sets_turn(&rows, out, err);
    bsw_number_sets_deinit(&rows);
    return status;
}

// ---- of an index ----

enum bsw_status bsw_row_tags_pack(const struct bsw_number_sets *lists, struct bsw_buffer *out,
                                  struct bsw_error *err)
{
    const uint64_t head[HEAD_NUMBERS] = {lists->num_sets, lists->num_members,
                                         lists->first[lists->num_sets]};
    BSW_TRY(bsw_buffer_append(out, head, sizeof head, err));
    BSW_TRY(bsw_buffer_append(out, lists->first,
                              (size_t)(lists->num_sets + 1) * sizeof *lists->first, err));
    return bsw_buffer_append(out, lists->members, (size_t)head[2] * sizeof *lists->members, err);
}

// A part's lists in its file.
struct part_lists {
    struct bsw_buffer file;
    uint64_t num_tags, num_rows, num_entries, first_row;
    const unsigned char *first, *rows;
};

static uint64_t first_of(const struct part_lists *part, uint64_t tag)
{
    uint64_t first;
    if (tag > part->num_tags) tag = part->num_tags;
    memcpy(&first, part->first + tag * sizeof first, sizeof first);
    return first;
}

static uint32_t row_at(const struct part_lists *part, uint64_t place)
{
    uint32_t row;
    memcpy(&row, part->rows + place * sizeof row, sizeof row);
    return row;
}

// Whether lists follow each other to the last entry, and have rows of the part in order.
static int are_lists(const struct part_lists *part)
{
    if (first_of(part, 0) != 0 || first_of(part, part->num_tags) != part->num_entries) return 0;
    for (uint64_t tag = 0; tag < part->num_tags; tag++) {
        uint64_t first = first_of(part, tag), end = first_of(part, tag + 1);
        if (first > end || end > part->num_entries) return 0;
        for (uint64_t i = first; i < end; i++) {
            if (row_at(part, i) >= part->num_rows) return 0;
            if (i > first && row_at(part, i - 1) >= row_at(part, i)) return 0;
        }
    }
    return 1;
}

static enum bsw_status open_part(const char *folder, const struct bsw_index_part *part,
                                 struct part_lists *out, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    uint64_t head[HEAD_NUMBERS] = {0};
    BSW_TRY(bsw_path_format(path, err, "%s/%s%s" BSW_ROW_TAGS_NAME, folder, part->folder,
                            part->folder[0] ? "/" : ""));
    if (!bsw_file_exists(path))
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: missing from the index", path);
    BSW_TRY(bsw_file_read_all(path, MOST_BYTES, &out->file, err));
    size_t bytes = out->file.bytes;
    if (bytes > 0) memcpy(head, out->file.data, bytes < sizeof head ? bytes : sizeof head);
    if (XXH3_64bits(out->file.data, bytes) != part->tags_digest || bytes < sizeof head ||
        head[0] > bytes / 8 || head[2] > bytes / 4 ||
        bytes != sizeof head + (head[0] + 1) * 8 + head[2] * 4 || head[1] != out->num_rows)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: is damaged, or belongs to another index",
                        path);
    out->num_tags = head[0];
    out->num_entries = head[2];
    out->first = out->file.data + sizeof head;
    out->rows = out->first + (head[0] + 1) * 8;
    if (are_lists(out)) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: its lists are none of %llu rows", path,
                    (unsigned long long)out->num_rows);
}

static enum bsw_status join(const struct part_lists *parts, uint32_t num_parts, uint64_t num_rows,
                            struct bsw_number_sets *out, struct bsw_error *err)
{
    uint64_t tags = 0, entries = 0, at = 0;
    for (uint32_t p = 0; p < num_parts; p++) {
        tags = parts[p].num_tags > tags ? parts[p].num_tags : tags;
        entries += parts[p].num_entries;
    }
    BSW_TRY(make_room(tags, num_rows, entries, out, err));
    for (uint64_t tag = 0; tag < tags; tag++) {
        for (uint32_t p = 0; p < num_parts; p++) {
            for (uint64_t i = first_of(&parts[p], tag); i < first_of(&parts[p], tag + 1); i++) {
                out->members[at++] = (uint32_t)(parts[p].first_row + row_at(&parts[p], i));
            }
        }
        out->first[tag + 1] = at;
    }
    return BSW_OK;
}

static enum bsw_status read_parts(const struct bsw_manifest *manifest, const char *folder,
                                  const struct bsw_index_part *all, uint32_t num_parts,
                                  struct part_lists *parts, struct bsw_number_sets *out,
                                  struct bsw_error *err)
{
    uint64_t row = 0;
    for (uint32_t p = 0, shard = 0; p < num_parts; shard += all[p++].num_shards) {
        parts[p].first_row = row;
        for (uint32_t s = shard; s < shard + all[p].num_shards; s++)
            parts[p].num_rows += manifest->shards[s].num_rows;
        row += parts[p].num_rows;
        BSW_TRY(open_part(folder, &all[p], &parts[p], err));
    }
    if (row >= UINT32_MAX)
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "%s: tags of %llu rows are too many", folder,
                        (unsigned long long)row);
    return join(parts, num_parts, row, out, err);
}

enum bsw_status bsw_row_tags_read(const struct bsw_manifest *manifest, const char *folder,
                                  struct bsw_number_sets *out, struct bsw_error *err)
{
    struct bsw_index_part *own;
    struct part_lists *parts = NULL;
    uint32_t num_parts = manifest->num_parts > 0 ? manifest->num_parts : 1;
    *out = (struct bsw_number_sets){0};
    if (!bsw_manifest_has_tags(manifest))
        return bsw_fail(err, BSW_ERROR_USAGE, "%s: its rows have no tags: encode --tags gives some",
                        folder);
    BSW_TRY(bsw_allocate(&own, 1, sizeof *own, "tags", err));
    bsw_manifest_as_part(manifest, own);
    enum bsw_status status = bsw_allocate_zero(&parts, num_parts, sizeof *parts, "tags", err);
    if (status == BSW_OK)
        status = read_parts(manifest, folder, manifest->num_parts > 0 ? manifest->parts : own,
                            num_parts, parts, out, err);
    for (uint32_t p = 0; parts && p < num_parts; p++) bsw_buffer_deinit(&parts[p].file);
    bsw_free(&parts);
    bsw_free(&own);
    if (status != BSW_OK) bsw_number_sets_deinit(out);
    return status;
}

// ---- masks ----

// The first place of a list whose row is not below `row`.
static uint64_t place_of(const struct bsw_number_sets *lists, uint32_t tag, uint64_t row)
{
    uint64_t low = lists->first[tag], high = lists->first[tag + 1];
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (lists->members[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int has_row(const struct bsw_number_sets *lists, uint32_t tag, uint32_t row)
{
    uint64_t place = place_of(lists, tag, row);
    return place < lists->first[tag + 1] && lists->members[place] == row;
}

static uint64_t length_of(const struct bsw_number_sets *lists, uint32_t tag)
{
    return lists->first[tag + 1] - lists->first[tag];
}

static int has_all(const struct bsw_number_sets *lists, const uint32_t *tags, uint64_t num_tags,
                   uint32_t known, uint32_t row)
{
    for (uint64_t t = 0; t < num_tags; t++) {
        if (tags[t] != known && !has_row(lists, tags[t], row)) return 0;
    }
    return 1;
}

static void set_all(uint64_t count, uint32_t *bits)
{
    memset(bits, 0xff, bsw_row_bit_words(count) * sizeof *bits);
    if (count % 32 > 0) bits[count / 32] = (1u << count % 32) - 1;
}

void bsw_row_tags_mask(const struct bsw_number_sets *lists, const uint32_t *tags, uint64_t num_tags,
                       uint64_t first, uint64_t count, uint32_t *bits)
{
    uint32_t rarest = num_tags > 0 ? tags[0] : 0;
    if (num_tags == 0) {
        set_all(count, bits);
        return;
    }
    memset(bits, 0, bsw_row_bit_words(count) * sizeof *bits);
    for (uint64_t t = 1; t < num_tags; t++) {
        if (length_of(lists, tags[t]) < length_of(lists, rarest)) rarest = tags[t];
    }
    for (uint64_t i = place_of(lists, rarest, first); i < lists->first[rarest + 1]; i++) {
        uint32_t row = lists->members[i];
        if (row >= first + count) return;
        if (has_all(lists, tags, num_tags, rarest, row)) bsw_row_bit_set(bits, row - first);
    }
}
