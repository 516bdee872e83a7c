// SPDX-License-Identifier: Apache-2.0
// Tuning tables: every row is sensible and found by its own layout; others get the nearest row; a
// text that is none of tables is refused by its line; a user's file goes first.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "kernels/tuning/scan_tuning.h"
#include "unit_test.h"

#define MAX_TABLES 16

static const struct bsw_scan_tuning_table *tables; // those in the program
static size_t num_tables;

static int get_tables(void **state)
{
    (void)state;
    tables = bsw_scan_tuning_built_in(&num_tables);
    return 0;
}

static struct bsw_scan_tuning look_up(int level, const char *segments, uint32_t dims)
{
    struct bsw_code_layout layout;
    assert_int_equal(bsw_code_layout_parse(segments, dims, &layout, NULL), BSW_OK);
    return bsw_scan_tuning_of((enum bsw_cpu_level)level, &layout);
}

static struct bsw_code_layout plain_layout(uint32_t dims, uint32_t bits)
{
    struct bsw_code_layout layout;
    bsw_code_layout_init(&layout);
    assert_int_equal(bsw_code_layout_append(&layout, dims, bits, NULL), BSW_OK);
    return layout;
}

static struct bsw_scan_tuning look_up_plain(int level, uint32_t dims, uint32_t bits)
{
    struct bsw_code_layout layout = plain_layout(dims, bits);
    return bsw_scan_tuning_of((enum bsw_cpu_level)level, &layout);
}

// The one a level has on this CPU: its own, or the first of its vendor, or the first.
static const struct bsw_scan_tuning_table *table_of(int level)
{
    const struct bsw_scan_tuning_table *first = NULL, *alike = NULL, *own = NULL;
    struct bsw_cpu_identity cpu;
    bsw_cpu_identity_read(&cpu);
    for (; !first && level >= 0; level--) {
        for (size_t t = num_tables; t-- > 0;) {
            if ((int)tables[t].level != level) continue;
            first = &tables[t];
            if (strcmp(tables[t].cpu.vendor, cpu.vendor) == 0) alike = &tables[t];
            if (bsw_cpu_is_same(&tables[t].cpu, &cpu)) own = &tables[t];
        }
    }
    assert_non_null(first);
    return own ? own : alike ? alike : first;
}

UNIT_TEST(rows_are_sensible)
{
    assert_true(num_tables >= 3);
    for (size_t t = 0; t < num_tables; t++) {
        assert_in_range(tables[t].num_bits, 1, BSW_TUNING_MAX_BITS);
        assert_in_range(tables[t].num_rows, 1, BSW_TUNING_MAX_ROWS);
        for (size_t other = 0; other < t; other++)
            assert_false(tables[other].level == tables[t].level &&
                         bsw_cpu_is_same(&tables[other].cpu, &tables[t].cpu));
        for (size_t i = 1; i < tables[t].num_rows; i++)
            assert_true(tables[t].rows[i].dims > tables[t].rows[i - 1].dims);
        for (size_t i = 1; i < tables[t].num_bits; i++)
            assert_true(tables[t].bits[i] > tables[t].bits[i - 1]);
    }
}

UNIT_TEST(a_row_is_found_by_its_own_layout)
{
    for (int level = 0; level < BSW_CPU_NUM_LEVELS; level++) {
        const struct bsw_scan_tuning_table *table = table_of(level);
        for (size_t i = 0; i < table->num_rows * table->num_bits; i++) {
            const struct bsw_scan_tuning_row *row = &table->rows[i / table->num_bits];
            size_t column = i % table->num_bits;
            struct bsw_scan_tuning found = look_up_plain(level, row->dims, table->bits[column]);
            assert_int_equal(found.dims, row->dims);
            assert_int_equal(found.bits, table->bits[column]);
            assert_int_equal(found.matrix_from_queries, row->matrix_from_queries[column]);
            assert_int_equal(found.tile_kib, row->tile_kib);
            assert_true(found.stage_overhead == row->stage_overhead);
            assert_true(found.finish_factor == row->finish_factor);
        }
    }
}

static double distance(double a, double b)
{
    return fabs(log(a / b));
}

// By bits, then by dims; a little slack where the logarithms round.
static void no_row_is_nearer(int level, double dims, double bits, struct bsw_scan_tuning found)
{
    const struct bsw_scan_tuning_table *table = table_of(level);
    for (size_t i = 0; i < table->num_bits; i++)
        assert_true(distance(table->bits[i], bits) > distance(found.bits, bits) - 1e-9);
    for (size_t i = 0; i < table->num_rows; i++)
        assert_true(distance(table->rows[i].dims, dims) > distance(found.dims, dims) - 1e-9);
}

UNIT_TEST(the_nearest_row_is_found)
{
    for (int level = 0; level < BSW_CPU_NUM_LEVELS; level++) {
        for (uint32_t bits = 1; bits <= BSW_MAX_CODE_BITS; bits++) {
            uint32_t last = 0;
            for (uint32_t dims = 32; dims <= 8192; dims += 32) {
                struct bsw_scan_tuning found = look_up_plain(level, dims, bits);
                no_row_is_nearer(level, dims, bits, found);
                assert_true(found.dims >= last); // more dims never find fewer
                last = found.dims;
            }
        }
    }
}

// The average of the segments counts, padding included.
UNIT_TEST(segments_count_by_their_average)
{
    for (int level = 0; level < BSW_CPU_NUM_LEVELS; level++) {
        no_row_is_nearer(level, 128, 2, look_up(level, "32x4,32x2,64x1", 128));
        no_row_is_nearer(level, 128, 2.5, look_up(level, "64x4,64x1", 128));
        no_row_is_nearer(level, 64, 5, look_up(level, "20x8,20x2", 40));
        no_row_is_nearer(level, 224, 3, look_up(level, "200x3", 200));
    }
}

// What indexes hold may not depend on the machine: the figures that are in indexes already.
UNIT_TEST(the_standard_is_the_same_everywhere)
{
    struct bsw_code_layout layout = plain_layout(96, 3);
    const struct bsw_scan_tuning standard = bsw_scan_tuning_standard(&layout);
    assert_int_equal(standard.dims, 96);
    assert_true(standard.stage_overhead == 7.4f && standard.finish_factor == 5.99f);
}

UNIT_TEST(a_text_is_read)
{
    static const char text[] = "# a comment\n\ntable avx2 AuthenticAMD 26 2 8 # Ryzen\r\n"
                               "row 32 16 0.5 1.25 - 4\nrow 64\t32 0 0 1 2\n"
                               "table later Maker 1 1\nrow 32 1 0 0 1\ntable reference x 0 1\n"
                               "row 8192 1024 1 1 4294967294";
    struct bsw_scan_tuning_table found[MAX_TABLES];
    size_t num;
    assert_int_equal(bsw_scan_tuning_parse("t", text, found, MAX_TABLES, &num, NULL), BSW_OK);
    assert_int_equal(num, 2);
    assert_int_equal(found[0].level, BSW_CPU_AVX2);
    assert_string_equal(found[0].cpu.vendor, "AuthenticAMD");
    assert_int_equal(found[0].cpu.family, 26);
    assert_int_equal(found[0].num_bits, 2);
    assert_int_equal(found[0].num_rows, 2);
    assert_true(found[0].rows[0].stage_overhead == 0.5f);
    assert_true(found[0].rows[0].finish_factor == 1.25f);
    assert_int_equal(found[0].rows[0].matrix_from_queries[0], UINT32_MAX);
    assert_int_equal(found[0].rows[0].matrix_from_queries[1], 4);
    assert_int_equal(found[0].rows[1].tile_kib, 32);
    assert_int_equal(found[1].level, BSW_CPU_REFERENCE);
}

UNIT_TEST(what_is_no_table_is_refused_by_its_line)
{
#define TABLE "table avx2 GenuineIntel 6 1 2\n"
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"row 32 16 0 0 1 2\n", "t: line 1: neither a table nor one of its rows"},
        {"\nhello\n", "t: line 2: neither a table"},
        {"table avx2 GenuineIntel 6\n", "t: line 1: not 'table LEVEL VENDOR FAMILY BITS...'"},
        {"table avx2 GenuineIntelGenuineIntel 6 1\n", "t: line 1: not 'table"},
        {"table avx2 GenuineIntel six 1\n", "t: line 1: the CPU's family"},
        {"table avx2 GenuineIntel 6 1 9\n", "t: line 1: bits are not"},
        {"table avx2 GenuineIntel 6 1 2 3 4 5 6 7 8 1\n", "t: line 1: not 'table"},
        {"table avx2 GenuineIntel 6 1 2 3 4 5 6 7 8 1 2\n", "t: line 1: not 'table"},
        {"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 "
         "33",
         "t: line 1: too many words"},
        {TABLE, "t: line 1: the table before this line has no row"},
        {TABLE TABLE "row 32 16 0 0 1 2\n", "t: line 2: the table before this line has no row"},
        {TABLE "row 32 16 0 0 1\n", "t: line 2: not 'row"},
        {TABLE "row 33 16 0 0 1 2\n", "t: line 2: dims are not"},
        {TABLE "row 0 16 0 0 1 2\n", "t: line 2: dims are not"},
        {TABLE "row 32 0 0 0 1 2\n", "t: line 2: a tile is not"},
        {TABLE "row 32 -1 0 0 1 2\n", "t: line 2: a tile is not"},
        {TABLE "row 32 16 nan 0 1 2\n", "t: line 2: the stage's"},
        {TABLE "row 32 16 0 -1 1 2\n", "t: line 2: the stage's"},
        {TABLE "row 32 16 0 0 0 2\n", "t: line 2: a number of queries"},
        {TABLE "row 32 16 0 0 1 2x\n", "t: line 2: a number of queries"},
    };
    struct bsw_scan_tuning_table found[MAX_TABLES];
    size_t num;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bsw_error err = {0};
        assert_int_equal(bsw_scan_tuning_parse("t", cases[i].text, found, MAX_TABLES, &num, &err),
                         BSW_ERROR_BAD_DATA);
        if (!strstr(err.message, cases[i].message))
            fail_msg("case %zu: '%s', not '%s'", i, err.message, cases[i].message);
    }
    char line[1400];
    memset(line, ' ', sizeof line);
    line[sizeof line - 1] = '\0';
    assert_int_equal(bsw_scan_tuning_parse("t", line, found, MAX_TABLES, &num, NULL),
                     BSW_ERROR_BAD_DATA);
}

// The last test: what it reads stays.
UNIT_TEST(the_tables_of_a_user_go_first)
{
    const struct bsw_scan_tuning before = look_up_plain(BSW_CPU_REFERENCE, 96, 3);
    char path[64], text[256];
    struct bsw_cpu_identity cpu;
    bsw_cpu_identity_read(&cpu);
    snprintf(path, sizeof path, "tuning.%ld", (long)getpid());
    snprintf(text, sizeof text,
             "table avx512 other 1 3\nrow 96 1 0 0 1\ntable avx2 %s %u 3\nrow 96 77 0 0 5\n",
             cpu.vendor, cpu.family);
    assert_int_equal(bsw_file_write_atomic(path, text, strlen(text), NULL), BSW_OK);
    assert_int_equal(bsw_scan_tuning_read(path, NULL), BSW_OK);
    assert_int_equal(look_up_plain(BSW_CPU_AVX2, 128, 1).tile_kib, 77);
    assert_int_equal(look_up_plain(BSW_CPU_AVX2, 128, 1).matrix_from_queries, 5);
    assert_int_not_equal(look_up_plain(BSW_CPU_AVX512, 96, 3).tile_kib, 1); // another CPU's
    const struct bsw_scan_tuning after = look_up_plain(BSW_CPU_REFERENCE, 96, 3);
    assert_int_equal(after.matrix_from_queries, before.matrix_from_queries);
    assert_int_equal(after.tile_kib, before.tile_kib);
    struct bsw_code_layout layout = plain_layout(96, 3);
    assert_true(bsw_scan_tuning_standard(&layout).stage_overhead == 7.4f);
    unlink(path);
    assert_int_equal(bsw_scan_tuning_read(path, NULL), BSW_ERROR_IO);
}

int main(void)
{
    return run_unit_tests(get_tables, NULL);
}
