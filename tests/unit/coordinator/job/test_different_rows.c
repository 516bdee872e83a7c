// SPDX-License-Identifier: Apache-2.0
// Rows that are copies of others, and the rows that a calibration draws where most are.
#include "unit_test.h"

#include <math.h>

#include "common/rows/vectors.h"
#include "coordinator/calibrate/calibrate_rows.h"
#include "coordinator/job/different_rows.h"
#include "temporary_folder.h"

enum { ROWS = 20000, DIMS = 4 };

static struct bsw_error err;
static float numbers[ROWS * DIMS];
static struct bsw_memory_rows base = {.name = BSW_MEMORY_PREFIX "base",
                                      .numbers = numbers,
                                      .type = BSW_VECTOR_FLOAT32,
                                      .dims = DIMS,
                                      .num_rows = ROWS};

// Which of rows [num][DIMS] are new, as bits.
static unsigned new_rows(enum bsw_metric metric, const float *rows, int num)
{
    struct bsw_different_rows different;
    unsigned bits = 0;
    assert_ok(
        bsw_different_rows_init(&different, metric, BSW_CPU_REFERENCE, DIMS, (uint64_t)num, &err),
        &err);
    for (int i = 0; i < num; i++)
        bits |= (unsigned)bsw_different_rows_add(&different, BSW_VECTOR_FLOAT32, rows + i * DIMS)
                << i;
    bsw_different_rows_deinit(&different);
    return bits;
}

UNIT_TEST(copies_are_known)
{
    const float rows[][DIMS] = {{1, 2, 3, 0}, {1, 2, 3, 1}, {1, 2, 3, -0.0f}, {1, NAN, 3, 0},
                                {3, 6, 9, 0}, {1, 2, 3, 1}, {0, 0, 0, 0}};
    assert_int_equal(new_rows(BSW_METRIC_L2, &rows[0][0], 7), 0x53);
    assert_int_equal(new_rows(BSW_METRIC_COSINE, &rows[0][0], 7), 0x03); // multiples, and no zeros
}

UNIT_TEST(queries_that_are_copies_are_marked)
{
    unsigned char *is_copy;
    uint64_t num_different;
    struct bsw_memory_rows lent = base;
    lent.num_rows = 6;
    for (int i = 0; i < 6 * DIMS; i++) numbers[i] = (float)(i / DIMS % 4);
    assert_ok(bsw_memory_rows_lend(&lent, &err), &err);
    assert_ok(bsw_find_copies(base.name, BSW_METRIC_IP, BSW_CPU_REFERENCE, &is_copy, &num_different,
                              &err),
              &err);
    bsw_memory_rows_take_back(&lent);
    assert_int_equal(num_different, 4);
    assert_memory_equal(is_copy, ((unsigned char[]){0, 0, 0, 0, 1, 1}), 6);
    bsw_free(&is_copy);
}

// Draws of rows of which every `one_in`-th is one of num_different, the rest a placeholder.
static void draw(int one_in, int num_different, uint64_t most, struct bsw_calibrate_rows *out)
{
    const struct bsw_manifest manifest = {
        .metric = BSW_METRIC_L2, .source_type = BSW_VECTOR_FLOAT32, .num_rows = ROWS};
    for (int row = 0; row < ROWS; row++) {
        for (int d = 0; d < DIMS; d++)
            numbers[row * DIMS + d] =
                row % one_in == 0 ? (float)(1 + row / one_in % num_different) : 0;
    }
    assert_ok(bsw_memory_rows_lend(&base, &err), &err);
    assert_ok(bsw_calibrate_rows_make(&manifest, path_of(""), base.name, most, BSW_CPU_REFERENCE,
                                      out, &err),
              &err);
    bsw_memory_rows_take_back(&base);
}

static void expect_different(const struct bsw_calibrate_rows *rows, uint64_t count)
{
    static unsigned char seen[ROWS + 1];
    memset(seen, 0, sizeof seen);
    assert_int_equal(rows->num_rows, count);
    for (uint64_t i = 0; i < count; i++) {
        int number = (int)numbers[rows->ids[i] * DIMS];
        assert_false(seen[number]);
        seen[number] = 1;
    }
}

UNIT_TEST(each_row_is_drawn_once)
{
    struct bsw_calibrate_rows rows;
    draw(1, ROWS, 1000, &rows); // no copies: one of each stratum, in order
    expect_different(&rows, 1000);
    for (uint64_t i = 0; i < 1000; i++) assert_int_equal(rows.ids[i] / (ROWS / 1000), i);
    bsw_calibrate_rows_deinit(&rows);
    draw(100, ROWS, 100, &rows); // 99 % are copies
    expect_different(&rows, 100);
    uint64_t in_the_first_half = 0;
    for (uint64_t i = 0; i < 100; i++) in_the_first_half += rows.ids[i] < ROWS / 2;
    assert_in_range(in_the_first_half, 35, 65);
    bsw_calibrate_rows_deinit(&rows);
    draw(2, 60, 100, &rows); // too few that differ
    expect_different(&rows, 61);
    assert_int_equal(rows.num_wanted, 100);
    bsw_calibrate_rows_deinit(&rows);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
