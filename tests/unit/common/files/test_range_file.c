// SPDX-License-Identifier: Apache-2.0
// Results of range searches: written batch by batch in the form that their numbers need, read back,
// refused when wrong.
#include <math.h>

#include "common/files/range_file.h"
#include "tests/unit/temporary_folder.h"
#include "unit_test.h"

static struct bsw_error err;

static bsw_range_writer *create(const char *name, uint64_t num_queries)
{
    bsw_range_writer *writer;
    assert_ok(bsw_range_writer_create(path_of(name), num_queries, 0, &writer, &err), &err);
    return writer;
}

// Three queries of 2, 0 and 1 rows, in two batches.
static void write_three(const char *name, int64_t last_id)
{
    const uint64_t two[] = {0, 2, 2}, one[] = {0, 1};
    const int64_t ids[] = {7, 5, last_id};
    const float values[] = {0.5f, 1.5f, -INFINITY};
    bsw_range_writer *writer = create(name, 3);
    assert_ok(bsw_range_writer_put(writer, 2, two, ids, values, &err), &err);
    assert_ok(bsw_range_writer_put(writer, 1, one, ids + 2, values + 2, &err), &err);
    assert_ok(bsw_range_writer_finish(writer, &err), &err);
    bsw_range_writer_destroy(&writer);
    assert_null(writer);
}

UNIT_TEST(a_file_is_as_big_ann_has_it)
{
    const uint32_t head[] = {3, 3, 2, 0, 1, 7, 5, 9};
    const float values[] = {0.5f, 1.5f, -INFINITY};
    struct bsw_buffer file = {0};
    write_three("narrow", 9);
    read_test_file("narrow", &file);
    assert_int_equal(file.bytes, sizeof head + sizeof values);
    assert_memory_equal(file.data, head, sizeof head);
    assert_memory_equal(file.data + sizeof head, values, sizeof values);
    bsw_buffer_deinit(&file);
    assert_int_equal(count_test_files(), 1);
    unlink(path_of("narrow"));
}

UNIT_TEST(both_forms_come_back)
{
    const int64_t last_ids[] = {INT32_MAX, (int64_t)INT32_MAX + 1};
    const uint64_t lims[] = {0, 2, 2, 3};
    for (int wide = 0; wide < 2; wide++) {
        struct bsw_ranges ranges;
        struct stat facts;
        write_three("either", last_ids[wide]);
        assert_int_equal(stat(path_of("either"), &facts), 0);
        assert_int_equal(facts.st_size, (wide ? 8 : 4) * 8 + 12);
        assert_ok(bsw_ranges_read(path_of("either"), &ranges, &err), &err);
        assert_int_equal(ranges.num_queries, 3);
        assert_memory_equal(ranges.lims, lims, sizeof lims);
        assert_true(ranges.ids[0] == 7 && ranges.ids[2] == last_ids[wide]);
        assert_true(ranges.values[1] == 1.5f && ranges.values[2] == -INFINITY);
        bsw_ranges_deinit(&ranges);
        unlink(path_of("either"));
    }
}

// More than is copied at a time.
UNIT_TEST(many_rows_and_many_queries)
{
    enum { QUERIES = 20000, ROWS = 3 };
    int64_t ids[ROWS];
    float values[ROWS];
    const uint64_t lims[] = {0, ROWS};
    struct bsw_ranges ranges;
    bsw_range_writer *writer = create("many", QUERIES);
    for (int q = 0; q < QUERIES; q++) {
        for (int i = 0; i < ROWS; i++) ids[i] = q * ROWS + i, values[i] = (float)ids[i];
        assert_ok(bsw_range_writer_put(writer, 1, lims, ids, values, &err), &err);
    }
    assert_ok(bsw_range_writer_finish(writer, &err), &err);
    bsw_range_writer_destroy(&writer);
    assert_ok(bsw_ranges_read(path_of("many"), &ranges, &err), &err);
    for (int i = 0; i < QUERIES * ROWS; i++)
        assert_true(ranges.ids[i] == i && ranges.values[i] == (float)i);
    assert_int_equal(ranges.lims[QUERIES], QUERIES * ROWS);
    bsw_ranges_deinit(&ranges);
    unlink(path_of("many"));
}

UNIT_TEST(nothing_is_left_of_what_was_not_finished)
{
    const uint64_t lims[] = {0, 0};
    bsw_range_writer *writer = create("gone", 2);
    assert_ok(bsw_range_writer_put(writer, 1, lims, NULL, NULL, &err), &err);
    assert_int_equal(bsw_range_writer_finish(writer, &err), BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "1 queries are missing"));
    bsw_range_writer_destroy(&writer);
    assert_int_equal(count_test_files(), 0);
    assert_int_equal(bsw_range_writer_create(path_of("gone.npz"), 2, 0, &writer, &err),
                     BSW_ERROR_USAGE);
    assert_int_equal(bsw_range_writer_create(path_of("none/gone"), 2, 0, &writer, &err),
                     BSW_ERROR_IO);
    assert_null(writer);
    bsw_range_writer_destroy(&writer);
}

static void refused(const uint32_t *numbers, size_t count, const char *text)
{
    struct bsw_ranges ranges;
    uint32_t *exact = malloc(count * sizeof *exact + 1); // so that a sanitizer sees every byte
    assert_non_null(exact);
    memcpy(exact, numbers, count * sizeof *exact);
    assert_int_equal(bsw_ranges_parse("f", exact, count * sizeof *exact, &ranges, &err),
                     BSW_ERROR_BAD_DATA);
    free(exact);
    assert_null(ranges.ids);
    if (!strstr(err.message, text)) fail_msg("'%s' is not in '%s'", text, err.message);
}

UNIT_TEST(what_is_wrong_is_named)
{
    const uint32_t few[] = {2, 1, 1, 1, 5, 0}, fewer[] = {2, 2, 1, 0, 5, 6, 0, 0},
                   negative[] = {1, 1, 1, UINT32_MAX, 0}, nan[] = {1, 1, 1, 5, 0x7fc00000},
                   huge[] = {UINT32_MAX, UINT32_MAX, 0, 0};
    refused(few, 6, "f: query 1: its 1 rows pass the 1 that there are");
    refused(fewer, 8, "f: queries have 1 rows, the header says 2");
    refused(negative, 5, "row 0 of all: an id below 0");
    refused(nan, 5, "row 0 of all: the value is NaN");
    refused(huge, 4, "its header says 4294967295 queries and 4294967295 rows, the file has 16");
    refused(few, 1, "the file has 4 bytes");
    refused(few, 0, "the file has 0 bytes");
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
