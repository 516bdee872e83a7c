// SPDX-License-Identifier: Apache-2.0
#include "common/rows/text_lines.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/rows/vectors.h"

#define SCAN_BYTES ((size_t)1 << 20)

// ---- names ----

int bsw_text_name_parse(const char *name, struct bsw_text_name *out)
{
    const char *end = strrchr(name, ':');
    size_t length = strlen(name);
    out->column = bsw_name_ends_with(name, ".txt") ? 0 : 1;
    if (end && end - name > 4 && strncmp(end - 4, ".tsv", 4) == 0) {
        char *rest;
        unsigned long column = strtoul(end + 1, &rest, 10);
        if (end[1] < '1' || end[1] > '9' || *rest || column > BSW_TEXT_MAX_COLUMN) return 0;
        out->column = (uint32_t)column;
        length = (size_t)(end - name);
    } else if (out->column == 1 && !bsw_name_ends_with(name, ".tsv")) {
        return 0;
    }
    if (length >= sizeof out->file) return 0;
    memcpy(out->file, name, length);
    out->file[length] = '\0';
    return 1;
}

int bsw_name_is_text(const char *name)
{
    struct bsw_text_name parsed;
    return bsw_text_name_parse(name, &parsed);
}

// ---- lines ----

struct scan {
    struct bsw_text_lines *lines;
    struct bsw_buffer starts;
    uint64_t line_start;
};

static enum bsw_status end_line(struct scan *scan, uint64_t next, struct bsw_error *err)
{
    if (next - scan->line_start > BSW_TEXT_MAX_LINE_BYTES)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: line %llu is longer than %llu bytes",
                        scan->lines->name.file, (unsigned long long)scan->lines->num_lines + 1,
                        (unsigned long long)BSW_TEXT_MAX_LINE_BYTES);
    scan->line_start = next;
    scan->lines->num_lines++;
    return bsw_buffer_append(&scan->starts, &next, sizeof next, err);
}

static enum bsw_status scan_block(struct scan *scan, const unsigned char *block, size_t bytes,
                                  uint64_t first, struct bsw_error *err)
{
    for (size_t at = 0; at < bytes;) {
        const unsigned char *end = memchr(block + at, '\n', bytes - at);
        if (!end) return BSW_OK;
        at = (size_t)(end - block) + 1;
        BSW_TRY(end_line(scan, first + at, err));
    }
    return BSW_OK;
}

static enum bsw_status scan_file(struct scan *scan, unsigned char *block, XXH3_state_t *hash,
                                 struct bsw_error *err)
{
    struct bsw_text_lines *lines = scan->lines;
    const uint64_t zero = 0;
    BSW_TRY(bsw_buffer_append(&scan->starts, &zero, sizeof zero, err));
    for (uint64_t first = 0; first < lines->bytes; first += SCAN_BYTES) {
        uint64_t left = lines->bytes - first;
        size_t bytes = left < SCAN_BYTES ? (size_t)left : SCAN_BYTES;
        BSW_TRY(bsw_file_read_at(lines->fd, lines->name.file, first, block, bytes, err));
        XXH3_64bits_update(hash, block, bytes);
        BSW_TRY(scan_block(scan, block, bytes, first, err));
    }
    if (scan->line_start < lines->bytes) BSW_TRY(end_line(scan, lines->bytes, err));
    if (lines->num_lines > 0) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: is empty, has no line of text", lines->name.file);
}

enum bsw_status bsw_text_lines_open(const struct bsw_text_name *name, struct bsw_text_lines *out,
                                    struct bsw_error *err)
{
    struct scan scan = {.lines = out};
    unsigned char *block;
    *out = (struct bsw_text_lines){.name = *name, .fd = -1};
    BSW_TRY(bsw_file_open_read(name->file, &out->fd, &out->bytes, err));
    BSW_TRY(bsw_allocate(&block, SCAN_BYTES, 1, "text", err));
    XXH3_state_t *hash = XXH3_createState();
    enum bsw_status status = BSW_OK;
    if (!hash) status = bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "no memory for a text");
    if (hash) XXH3_64bits_reset(hash);
    if (hash) status = scan_file(&scan, block, hash, err);
    if (hash) out->digest = XXH3_64bits_digest(hash);
    XXH3_freeState(hash);
    bsw_free(&block);
    out->starts = (uint64_t *)(void *)scan.starts.data; // the buffer's memory is freed by bsw_free
    return status;
}

void bsw_text_lines_close(struct bsw_text_lines *lines)
{
    bsw_file_close(&lines->fd);
    bsw_free(&lines->starts);
}

enum bsw_status bsw_text_lines_read(const struct bsw_text_lines *lines, uint64_t line,
                                    struct bsw_buffer *buffer, struct bsw_error *err)
{
    uint64_t first = lines->starts[line];
    size_t bytes = (size_t)(lines->starts[line + 1] - first);
    BSW_TRY(bsw_buffer_reserve(buffer, bytes, err));
    BSW_TRY(bsw_file_read_at(lines->fd, lines->name.file, first, buffer->data, bytes, err));
    if (bytes > 0 && buffer->data[bytes - 1] == '\n') bytes--;
    if (bytes > 0 && buffer->data[bytes - 1] == '\r') bytes--;
    buffer->bytes = bytes;
    return BSW_OK;
}

enum bsw_status bsw_text_lines_column(const struct bsw_text_lines *lines, uint64_t line,
                                      uint32_t column, const struct bsw_buffer *buffer,
                                      const char **text, size_t *bytes, struct bsw_error *err)
{
    const char *start = (const char *)buffer->data, *end = start + buffer->bytes;
    for (uint32_t at = 1; at < column; at++) {
        const char *tab = start < end ? memchr(start, '\t', (size_t)(end - start)) : NULL;
        if (!tab)
            return bsw_fail(err, BSW_ERROR_BAD_DATA,
                            "%s: line %llu has no column %u: columns are divided by tabs",
                            lines->name.file, (unsigned long long)line + 1, column);
        start = tab + 1;
    }
    const char *tab = column > 0 && start < end ? memchr(start, '\t', (size_t)(end - start)) : NULL;
    *text = start;
    *bytes = (size_t)((tab ? tab : end) - start);
    return BSW_OK;
}

// ---- rows ----

static _Thread_local const struct bsw_text_maker *lent;

const struct bsw_text_maker *bsw_text_maker_lend(const struct bsw_text_maker *maker)
{
    const struct bsw_text_maker *before = lent;
    lent = maker;
    return before;
}

const struct bsw_text_maker *bsw_text_maker_lent(void)
{
    return lent;
}

static enum bsw_status make_row(const struct bsw_text_lines *lines,
                                const struct bsw_text_maker *maker, int is_query, uint64_t row,
                                float *out, struct bsw_error *err)
{
    struct bsw_buffer buffer = {0};
    const char *text = "";
    size_t bytes = 0;
    enum bsw_status status = bsw_text_lines_read(lines, row, &buffer, err);
    if (status == BSW_OK)
        status = bsw_text_lines_column(lines, row, lines->name.column, &buffer, &text, &bytes, err);
    if (status == BSW_OK) status = maker->make(maker->context, is_query, text, bytes, out, err);
    bsw_buffer_deinit(&buffer);
    return status;
}

enum bsw_status bsw_text_rows_make(const struct bsw_text_lines *lines,
                                   const struct bsw_text_maker *maker, int is_query,
                                   uint64_t first_row, size_t num_rows, float *out,
                                   struct bsw_error *err)
{
    struct bsw_first_failure failure = {0};
#pragma omp parallel for schedule(dynamic, 16) if (num_rows > 16)
    for (size_t i = 0; i < num_rows; i++) {
        struct bsw_error row_error;
        enum bsw_status status =
            make_row(lines, maker, is_query, first_row + i, out + i * maker->dims, &row_error);
        if (status != BSW_OK) bsw_first_failure_note(&failure, i, status, &row_error);
    }
    return bsw_first_failure_report(&failure, err);
}
