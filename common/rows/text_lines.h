// SPDX-License-Identifier: Apache-2.0
// Lines of a text file, or a column of them, by number: what texts are read as, whole corpora too.
//
// A line ends with a line feed, the last one perhaps with the file; a carriage return before that
// is no part of it. Where lines begin is found once, 8 bytes a line are kept, and lines are read as
// they are asked for.
//
// And text as a source of vectors (vectors.h): what makes a row of a line is lent by whoever has
// opened a model, so that no job knows where its rows come from.
#ifndef BITSWEEP_COMMON_TEXT_LINES_H
#define BITSWEEP_COMMON_TEXT_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/file.h"
#include "common/base/memory.h"

#define BSW_TEXT_MAX_LINE_BYTES ((uint64_t)16 << 20)
#define BSW_TEXT_MAX_COLUMN     1000

// FILE.txt: whole lines. FILE.tsv, FILE.tsv:COLUMN: what stands between tabs, columns from 1 on.
struct bsw_text_name {
    char file[BSW_PATH_BYTES];
    uint32_t column; // 0: the whole line
};

// 0 if `name` is not of this kind.
int bsw_text_name_parse(const char *name, struct bsw_text_name *out);
int bsw_name_is_text(const char *name);

struct bsw_text_lines {
    struct bsw_text_name name;
    int fd;
    uint64_t bytes, num_lines;
    uint64_t *starts; // [num_lines + 1]; owned
    uint64_t digest;  // of all bytes
};

// A file without a line, or with one above BSW_TEXT_MAX_LINE_BYTES, is BSW_ERROR_BAD_DATA. Reads
// the file once. bsw_text_lines_close frees, also after an error.
enum bsw_status bsw_text_lines_open(const struct bsw_text_name *name, struct bsw_text_lines *out,
                                    struct bsw_error *err);
void bsw_text_lines_close(struct bsw_text_lines *lines);

// Reads a line whole into buffer. Thread-safe, as is the next.
enum bsw_status bsw_text_lines_read(const struct bsw_text_lines *lines, uint64_t line,
                                    struct bsw_buffer *buffer, struct bsw_error *err);
// A column of a line that was read, or all of it: *text [*bytes] inside the buffer. A line without
// that column is BSW_ERROR_BAD_DATA.
enum bsw_status bsw_text_lines_column(const struct bsw_text_lines *lines, uint64_t line,
                                      uint32_t column, const struct bsw_buffer *buffer,
                                      const char **text, size_t *bytes, struct bsw_error *err);

// Makes rows of texts. One tenant: a model of kernels/rbe/rbe_text.h; tests have made-up ones.
struct bsw_text_maker {
    void *context;
    uint32_t dims;
    // text [bytes], any bytes, to row [dims], of the query's side or the document's. Called by
    // several threads at once.
    enum bsw_status (*make)(void *context, int is_query, const char *text, size_t bytes, float *row,
                            struct bsw_error *err);
};

// Lends it to the calling thread until another one, or NULL, is lent; returns what was lent before.
// Sources of text opened from now on by this thread use it, and must be closed before it goes.
const struct bsw_text_maker *bsw_text_maker_lend(const struct bsw_text_maker *maker);
const struct bsw_text_maker *bsw_text_maker_lent(void);

// Rows first_row .. of lines as rows [num_rows][dims].
enum bsw_status bsw_text_rows_make(const struct bsw_text_lines *lines,
                                   const struct bsw_text_maker *maker, int is_query,
                                   uint64_t first_row, size_t num_rows, float *out,
                                   struct bsw_error *err);

#endif
