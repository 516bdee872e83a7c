// SPDX-License-Identifier: Apache-2.0
// Lines and columns of text files, and rows made of them.
#include "common/rows/text_lines.h"

#include <string.h>

#include "common/rows/vectors.h"
#include "temporary_folder.h"

static struct bsw_error err;

static const char *write_file(const char *name, const char *text, size_t bytes)
{
    const char *path = path_of(name);
    assert_ok(bsw_file_write_atomic(path, text, bytes, &err), &err);
    return path;
}

static enum bsw_status open_lines(const char *path, struct bsw_text_lines *lines)
{
    struct bsw_text_name name;
    assert_true(bsw_text_name_parse(path, &name));
    return bsw_text_lines_open(&name, lines, &err);
}

static void expect_line(const struct bsw_text_lines *lines, uint64_t line, uint32_t column,
                        const char *expected)
{
    struct bsw_buffer buffer = {0};
    const char *text;
    size_t bytes;
    assert_ok(bsw_text_lines_read(lines, line, &buffer, &err), &err);
    assert_ok(bsw_text_lines_column(lines, line, column, &buffer, &text, &bytes, &err), &err);
    assert_int_equal(bytes, strlen(expected));
    assert_memory_equal(text, expected, bytes);
    bsw_buffer_deinit(&buffer);
}

UNIT_TEST(names_say_file_and_column)
{
    struct bsw_text_name name;
    assert_true(bsw_text_name_parse("a/b.txt", &name));
    assert_int_equal(name.column, 0);
    assert_true(bsw_text_name_parse("a/b.tsv", &name));
    assert_int_equal(name.column, 1);
    assert_true(bsw_text_name_parse("c:d/b.tsv:12", &name));
    assert_int_equal(name.column, 12);
    assert_string_equal(name.file, "c:d/b.tsv");
    static const char *const others[] = {"b.fbin",
                                         ".txt",
                                         ".tsv",
                                         "b.tsv:",
                                         "b.tsv:0",
                                         "b.tsv:x",
                                         "b.tsv:1x",
                                         "b.tsv:1001",
                                         "b.txt:2",
                                         "synth:a",
                                         "b.tsv:-1",
                                         "b.tsv: 1",
                                         "x.tsv:99999999999999999999"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(bsw_name_is_text(others[i]));
}

UNIT_TEST(lines_end_as_anybody_ends_them)
{
    struct bsw_text_lines lines;
    const char text[] = "one\r\n\ntwo\t2\tzwei\n\xff\nlast";
    assert_ok(open_lines(write_file("lines.tsv", text, sizeof text - 1), &lines), &err);
    assert_int_equal(lines.num_lines, 5);
    expect_line(&lines, 0, 0, "one");
    expect_line(&lines, 1, 0, "");
    expect_line(&lines, 2, 0, "two\t2\tzwei");
    expect_line(&lines, 2, 1, "two");
    expect_line(&lines, 2, 2, "2");
    expect_line(&lines, 2, 3, "zwei");
    expect_line(&lines, 3, 1, "\xff");
    expect_line(&lines, 4, 1, "last");
    struct bsw_buffer buffer = {0};
    const char *column;
    size_t bytes;
    assert_ok(bsw_text_lines_read(&lines, 1, &buffer, &err), &err);
    assert_int_equal(bsw_text_lines_column(&lines, 1, 2, &buffer, &column, &bytes, &err),
                     BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, "line 2 has no column 2"));
    bsw_buffer_deinit(&buffer);
    bsw_text_lines_close(&lines);
}

UNIT_TEST(empty_files_and_endless_lines_are_refused)
{
    struct bsw_text_lines lines;
    assert_int_equal(open_lines(write_file("empty.txt", "", 0), &lines), BSW_ERROR_BAD_DATA);
    bsw_text_lines_close(&lines);
    size_t bytes = (size_t)BSW_TEXT_MAX_LINE_BYTES + 1;
    char *text = allocate_or_fail(bytes, 1);
    memset(text, 'a', bytes);
    assert_int_equal(open_lines(write_file("long.txt", text, bytes), &lines), BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, "line 1 is longer"));
    bsw_text_lines_close(&lines);
    text[bytes - 1] = '\n';
    assert_ok(open_lines(write_file("long.txt", text, bytes - 1), &lines), &err);
    assert_int_equal(lines.num_lines, 1);
    bsw_text_lines_close(&lines);
    bsw_free(&text);
}

// ---- rows ----

// Length and first byte, and the side; "bad" is refused.
static enum bsw_status make(void *context, int is_query, const char *text, size_t bytes, float *row,
                            struct bsw_error *error)
{
    (void)context;
    if (bytes == 3 && memcmp(text, "bad", 3) == 0)
        return bsw_fail(error, BSW_ERROR_BAD_DATA, "bad text");
    row[0] = (float)bytes;
    row[1] = bytes > 0 ? (float)text[0] : 0;
    row[2] = (float)is_query;
    return BSW_OK;
}

UNIT_TEST(text_is_a_source_where_a_maker_is_lent)
{
    const struct bsw_text_maker maker = {NULL, 3, make};
    const char *path = write_file("rows.txt", "abc\n\nde\nbad\n", 12);
    bsw_vectors *vectors;
    float rows[9];
    assert_int_equal(bsw_vectors_open(path, BSW_ALL_ROWS, &vectors, &err), BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "model"));
    assert_null(bsw_text_maker_lend(&maker));
    assert_ok(bsw_queries_open(path, (struct bsw_row_range){0, 3}, &vectors, &err), &err);
    assert_int_equal(bsw_vectors_type(vectors), BSW_VECTOR_FLOAT32);
    assert_int_equal(bsw_vectors_dims(vectors), 3);
    assert_int_equal(bsw_vectors_source_rows(vectors), 4);
    assert_int_equal(bsw_vectors_file_bytes(vectors), 12);
    assert_ok(bsw_vectors_read(vectors, 0, 3, rows, &err), &err);
    const float expected[9] = {3, 'a', 1, 0, 0, 1, 2, 'd', 1};
    assert_memory_equal(rows, expected, sizeof rows);
    bsw_vectors_close(&vectors);
    assert_ok(bsw_vectors_open(path, BSW_ALL_ROWS, &vectors, &err), &err);
    assert_ok(bsw_vectors_read(vectors, 2, 1, rows, &err), &err);
    assert_true(rows[0] == 2 && rows[2] == 0);
    assert_int_equal(bsw_vectors_read(vectors, 2, 2, rows, &err), BSW_ERROR_BAD_DATA);
    bsw_vectors_close(&vectors);
    assert_ptr_equal(bsw_text_maker_lend(NULL), &maker);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
