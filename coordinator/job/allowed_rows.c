// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/allowed_rows.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "common/base/file.h"
#include "common/rows/vectors.h"
#include "shard/scan/row_mask.h"

#define IDS_AT_A_TIME   8192
#define BOOLS_AT_A_TIME 16384 // a multiple of 32

// ---- masks ----

static void pack_mask(const uint8_t *bools, uint64_t num_rows, uint32_t *bits)
{
    for (uint64_t first = 0; first < num_rows; first += 32) {
        uint64_t left = num_rows - first, num = left < 32 ? left : 32;
        uint32_t word = 0;
        for (uint64_t i = 0; i < num; i++) word |= (uint32_t)(bools[first + i] != 0) << i;
        bits[first / 32] = word;
    }
}

enum bsw_status bsw_allowed_rows_read_part(const struct bsw_allowed_rows *allowed, uint64_t query,
                                           uint64_t first, size_t count, uint32_t *bits,
                                           struct bsw_error *err)
{
    uint8_t some[BOOLS_AT_A_TIME];
    uint64_t at = query * allowed->num_rows + first;
    if (allowed->bits) {
        memcpy(bits, allowed->bits + first / 32, bsw_row_bit_words(count) * sizeof *bits);
        return BSW_OK;
    }
    if (allowed->lists) {
        const uint64_t *own = allowed->wanted.first + query;
        bsw_row_tags_mask(allowed->lists, allowed->wanted.members + own[0], own[1] - own[0], first,
                          count, bits);
        return BSW_OK;
    }
    if (allowed->data) {
        pack_mask(allowed->data + at, count, bits);
        return BSW_OK;
    }
    for (size_t done = 0, num; done < count; done += num) {
        num = count - done < sizeof some ? count - done : sizeof some;
        BSW_TRY(bsw_file_read_at(allowed->fd, allowed->name, allowed->first_byte + at + done, some,
                                 num, err));
        pack_mask(some, num, bits + done / 32);
    }
    return BSW_OK;
}

enum bsw_status bsw_allowed_rows_read(const struct bsw_allowed_rows *allowed, uint64_t query,
                                      uint32_t *bits, struct bsw_error *err)
{
    return bsw_allowed_rows_read_part(allowed, query, 0, (size_t)allowed->num_rows, bits, err);
}

static enum bsw_status fail_shape(const char *name, enum bsw_status status, uint64_t num_masks,
                                  uint64_t num_rows, const struct bsw_allowed_base *base,
                                  struct bsw_error *err)
{
    char masks[32] = "one mask";
    if (num_masks != 1) snprintf(masks, sizeof masks, "%llu masks", (unsigned long long)num_masks);
    return bsw_fail(err, status,
                    "%s: %s of %llu rows: there are %llu rows, and either one mask or one for each "
                    "of the %llu queries",
                    name, masks, (unsigned long long)num_rows, (unsigned long long)base->num_rows,
                    (unsigned long long)base->num_queries);
}

// Counts and digests all of them; one is kept.
static enum bsw_status take_masks(struct bsw_allowed_rows *out, struct bsw_error *err)
{
    uint32_t *bits;
    size_t words = bsw_row_bit_words(out->num_rows);
    enum bsw_status status = BSW_OK;
    BSW_TRY(bsw_allocate_zero(&bits, words + 1, sizeof *bits, "a mask", err));
    for (uint64_t m = 0; m < out->num_masks && status == BSW_OK; m++) {
        status = bsw_allowed_rows_read(out, m, bits, err);
        for (size_t w = 0; w < words; w++)
            out->num_allowed += (uint64_t)__builtin_popcount(bits[w]);
        out->digest = XXH3_64bits_withSeed(bits, words * sizeof *bits, out->digest);
    }
    if (status == BSW_OK && out->num_masks == 1 && !out->bits)
        out->bits = bits;
    else
        bsw_free(&bits);
    return status;
}

// ---- ids ----

static enum bsw_status set_id(const struct bsw_allowed_base *base, enum bsw_status status,
                              int64_t id, int is_huge, struct bsw_allowed_rows *out,
                              struct bsw_error *err)
{
    if (!is_huge && id >= 0 && (uint64_t)id >= base->first_row &&
        (uint64_t)id - base->first_row < base->num_rows) {
        bsw_row_bit_set(out->bits, (uint64_t)id - base->first_row);
        return BSW_OK;
    }
    char text[24];
    snprintf(text, sizeof text, is_huge ? "%llu" : "%lld", (long long)id);
    return bsw_fail(err, status, "%s: id %s: ids are %llu to %llu", out->name, text,
                    (unsigned long long)base->first_row,
                    (unsigned long long)(base->first_row + base->num_rows - 1));
}

// `num` ids from a byte on, `stride` bytes apart.
static enum bsw_status read_ids(const struct bsw_allowed_base *base, struct bsw_integer_type type,
                                uint64_t at, uint64_t num, size_t stride,
                                struct bsw_allowed_rows *out, struct bsw_error *err)
{
    BSW_TRY(bsw_buffer_reserve(&out->row, IDS_AT_A_TIME * stride, err));
    for (uint64_t done = 0, count; done < num; done += count) {
        count = num - done < IDS_AT_A_TIME ? num - done : IDS_AT_A_TIME;
        size_t bytes = (size_t)(count - 1) * stride + type.bytes;
        BSW_TRY(
            bsw_file_read_at(out->fd, out->name, at + done * stride, out->row.data, bytes, err));
        for (uint64_t i = 0; i < count; i++) {
            int64_t id = bsw_integer_at(type, out->row.data + i * stride);
            BSW_TRY(set_id(base, BSW_ERROR_BAD_DATA, id, !type.is_signed && id < 0, out, err));
        }
    }
    return BSW_OK;
}

static enum bsw_status make_bits(struct bsw_allowed_rows *out, struct bsw_error *err)
{
    out->num_masks = 1;
    return bsw_allocate_zero(&out->bits, bsw_row_bit_words(out->num_rows) + 1, sizeof *out->bits,
                             "a mask", err);
}

static enum bsw_status fail_ids(const char *name, uint64_t rows, uint64_t columns,
                                struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_BAD_DATA,
                    "%s: %llu x %llu ids: must be one row or one column, the same for all queries; "
                    "a mask a query is a .npy of bools [queries, rows]",
                    name, (unsigned long long)rows, (unsigned long long)columns);
}

static enum bsw_status fail_size(const char *name, uint64_t bytes, uint64_t expected,
                                 struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %llu bytes, its header says %llu", name,
                    (unsigned long long)bytes, (unsigned long long)expected);
}

// ---- files ----

struct opened {
    const struct bsw_allowed_base *base;
    unsigned char *head; // [BSW_VECTOR_HEAD_BYTES]
    size_t head_bytes;
    uint64_t bytes;
};

// The numbers of a file of one row or column end where the file does.
static enum bsw_status check_ids(const struct opened *file, uint64_t rows, uint64_t columns,
                                 size_t width, uint64_t first_byte, const char *name,
                                 struct bsw_error *err)
{
    uint64_t num = rows == 1 ? columns : rows, bytes;
    if (rows > 1 && columns != 1) return fail_ids(name, rows, columns, err);
    if (__builtin_mul_overflow(num, width, &bytes) || bytes != file->bytes - first_byte)
        return fail_size(name, file->bytes, first_byte + num * width, err);
    return BSW_OK;
}

static enum bsw_status open_u32bin(const struct opened *file, struct bsw_allowed_rows *out,
                                   struct bsw_error *err)
{
    uint32_t shape[2];
    if (file->bytes < sizeof shape) return fail_size(out->name, file->bytes, sizeof shape, err);
    memcpy(shape, file->head, sizeof shape);
    BSW_TRY(check_ids(file, shape[0], shape[1], 4, sizeof shape, out->name, err));
    BSW_TRY(make_bits(out, err));
    uint64_t num = (file->bytes - sizeof shape) / 4;
    return read_ids(file->base, (struct bsw_integer_type){4, 0}, sizeof shape, num, 4, out, err);
}

// One record of all ids, or one of each: any other width would be lists of several queries.
static enum bsw_status open_ivecs(const struct opened *file, struct bsw_allowed_rows *out,
                                  struct bsw_error *err)
{
    int32_t first = 0;
    if (file->bytes > 0 && file->bytes < sizeof first)
        return fail_size(out->name, file->bytes, 4, err);
    memcpy(&first, file->head, file->bytes > 0 ? sizeof first : 0);
    uint64_t record = 4 + 4 * (uint64_t)(first < 0 ? 0 : first),
             num = file->bytes > 0 ? file->bytes / record : 0;
    if (first < 0 || num * record != file->bytes)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: no whole records of %d ids", out->name,
                        first);
    if (num > 1 && first != 1) return fail_ids(out->name, num, (uint64_t)first, err);
    BSW_TRY(make_bits(out, err));
    const struct bsw_integer_type type = {4, 1};
    if (num == 1) return read_ids(file->base, type, 4, (uint64_t)first, 4, out, err);
    for (uint64_t i = 0; i < num; i++) { // each with its own head
        int32_t record_head[2];
        BSW_TRY(bsw_file_read_at(out->fd, out->name, i * 8, record_head, 8, err));
        if (record_head[0] != 1) return fail_ids(out->name, num, (uint64_t)record_head[0], err);
        BSW_TRY(set_id(file->base, BSW_ERROR_BAD_DATA, record_head[1], 0, out, err));
    }
    return BSW_OK;
}

static enum bsw_status open_bools(const struct opened *file, const struct bsw_npy_header *header,
                                  struct bsw_allowed_rows *out, struct bsw_error *err)
{
    uint64_t masks = header->num_axes == 2 ? header->shape[0] : 1,
             rows = header->shape[header->num_axes - 1], bytes;
    if (header->is_fortran && header->num_axes == 2)
        return bsw_fail(err, BSW_ERROR_BAD_DATA,
                        "%s: Fortran order: masks must lie one after another (C order)", out->name);
    if (rows != file->base->num_rows || (masks != 1 && masks != file->base->num_queries))
        return fail_shape(out->name, BSW_ERROR_BAD_DATA, masks, rows, file->base, err);
    if (__builtin_mul_overflow(masks, rows, &bytes) || bytes != file->bytes - header->first_byte)
        return fail_size(out->name, file->bytes, header->first_byte + bytes, err);
    out->num_masks = masks;
    out->first_byte = header->first_byte;
    return BSW_OK;
}

static enum bsw_status open_npy(const struct opened *file, struct bsw_allowed_rows *out,
                                struct bsw_error *err)
{
    struct bsw_npy_header header;
    struct bsw_integer_type type;
    BSW_TRY(
        bsw_npy_header_parse(out->name, file->head, file->head_bytes, file->bytes, &header, err));
    if (header.num_axes < 1 || header.num_axes > 2)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %zu axes, must be 1 or 2", out->name,
                        header.num_axes);
    if (bsw_npy_is_type(&header, "b1")) return open_bools(file, &header, out, err);
    if (bsw_npy_integer_type(&header, &type)) {
        uint64_t rows = header.num_axes == 2 ? header.shape[0] : 1,
                 columns = header.shape[header.num_axes - 1];
        BSW_TRY(check_ids(file, rows, columns, type.bytes, header.first_byte, out->name, err));
        BSW_TRY(make_bits(out, err));
        return read_ids(file->base, type, header.first_byte, rows == 1 ? columns : rows, type.bytes,
                        out, err);
    }
    return bsw_fail(err, BSW_ERROR_BAD_DATA,
                    "%s: numbers are of type '%.*s': bool (masks), int32, int64, uint32 and uint64 "
                    "(ids) are read",
                    out->name, header.descr_length < 32 ? header.descr_length : 32, header.descr);
}

static enum bsw_status open_file(struct opened *file, struct bsw_allowed_rows *out,
                                 struct bsw_error *err)
{
    static const struct {
        const char *ending;
        enum bsw_status (*open)(const struct opened *file, struct bsw_allowed_rows *out,
                                struct bsw_error *err);
    } formats[] = {{".npy", open_npy}, {".u32bin", open_u32bin}, {".ivecs", open_ivecs}};
    size_t f = 0, num = sizeof formats / sizeof formats[0];
    while (f < num && !bsw_name_ends_with(out->name, formats[f].ending)) f++;
    if (f == num)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--allow %s: the name must end in .npy, .u32bin or "
                        ".ivecs",
                        out->name);
    BSW_TRY(bsw_file_open_read(out->name, &out->fd, &file->bytes, err));
    BSW_TRY(bsw_allocate(&file->head, BSW_VECTOR_HEAD_BYTES, 1, "a mask", err));
    file->head_bytes =
        file->bytes < BSW_VECTOR_HEAD_BYTES ? (size_t)file->bytes : BSW_VECTOR_HEAD_BYTES;
    enum bsw_status status =
        bsw_file_read_at(out->fd, out->name, 0, file->head, file->head_bytes, err);
    if (status == BSW_OK) status = formats[f].open(file, out, err);
    bsw_free(&file->head);
    return status;
}

// ---- all ----

static enum bsw_status open_memory(const struct bsw_allowed_memory *memory,
                                   const struct bsw_allowed_base *base,
                                   struct bsw_allowed_rows *out, struct bsw_error *err)
{
    out->name = "allow";
    if (memory->masks) {
        uint64_t masks = memory->num_masks;
        if (memory->mask_rows != base->num_rows || (masks != 1 && masks != base->num_queries))
            return fail_shape(out->name, BSW_ERROR_USAGE, masks, memory->mask_rows, base, err);
        out->num_masks = masks;
        out->data = memory->masks;
        return BSW_OK;
    }
    BSW_TRY(make_bits(out, err));
    for (uint64_t i = 0; i < memory->num_ids; i++)
        BSW_TRY(set_id(base, BSW_ERROR_USAGE, memory->ids[i], 0, out, err));
    return BSW_OK;
}

enum bsw_status bsw_allowed_rows_open(const char *path, const struct bsw_allowed_memory *memory,
                                      const struct bsw_allowed_base *base,
                                      struct bsw_allowed_rows *out, struct bsw_error *err)
{
    struct opened file = {.base = base};
    *out = (struct bsw_allowed_rows){.is_given = 1,
                                     .num_rows = base->num_rows,
                                     .fd = -1,
                                     .name = path,
                                     .digest = base->num_rows};
    enum bsw_status status =
        path ? open_file(&file, out, err) : open_memory(memory, base, out, err);
    if (status == BSW_OK) status = take_masks(out, err);
    if (status != BSW_OK) bsw_allowed_rows_close(out);
    return status;
}

static enum bsw_status check_tags(const struct bsw_allowed_rows *allowed,
                                  const struct bsw_allowed_base *base, struct bsw_error *err)
{
    const struct bsw_number_sets *wanted = &allowed->wanted, *lists = allowed->lists;
    if (lists->num_members != base->num_rows)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "--tags: tags of %llu rows, there are %llu",
                        (unsigned long long)lists->num_members, (unsigned long long)base->num_rows);
    if (wanted->num_sets != base->num_queries)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: tags of %llu queries, there are %llu",
                        allowed->name, (unsigned long long)wanted->num_sets,
                        (unsigned long long)base->num_queries);
    if (wanted->num_members == lists->num_sets) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: %llu tags, rows have %llu", allowed->name,
                    (unsigned long long)wanted->num_members, (unsigned long long)lists->num_sets);
}

enum bsw_status bsw_allowed_rows_open_tags(const char *path, const struct bsw_number_sets *lists,
                                           const struct bsw_allowed_base *base,
                                           struct bsw_allowed_rows *out, struct bsw_error *err)
{
    *out = (struct bsw_allowed_rows){.is_given = 1,
                                     .num_rows = base->num_rows,
                                     .num_masks = base->num_queries,
                                     .fd = -1,
                                     .name = path,
                                     .lists = lists,
                                     .digest = base->num_rows};
    enum bsw_status status = bsw_tags_read(path, &out->wanted, err);
    if (status == BSW_OK) status = check_tags(out, base, err);
    if (status == BSW_OK) status = take_masks(out, err);
    if (status != BSW_OK) bsw_allowed_rows_close(out);
    return status;
}

void bsw_allowed_rows_identify(const struct bsw_allowed_rows *allowed,
                               struct bsw_journal_fields *fields)
{
    if (allowed->is_given)
        bsw_journal_field_digest(fields, "allow", allowed->digest);
    else
        bsw_journal_field_text(fields, "allow", "all");
}

void bsw_allowed_rows_close(struct bsw_allowed_rows *allowed)
{
    if (!allowed->is_given) return;
    bsw_file_close(&allowed->fd);
    bsw_free(&allowed->bits);
    bsw_buffer_deinit(&allowed->row);
    bsw_number_sets_deinit(&allowed->wanted);
    *allowed = (struct bsw_allowed_rows){0};
}
