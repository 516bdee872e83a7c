// Tuning tables: every row is sensible and found by its own layout; others get the nearest row.
#include <math.h>

#include "kernels/scan_tuning.h"
#include "kernels/scan_tuning_avx2.h"
#include "kernels/scan_tuning_avx512.h"
#include "kernels/scan_tuning_reference.h"
#include "unit_test.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

#define MAX_ROWS      64

static struct bsw_scan_tuning rows_of[BSW_CPU_NUM_LEVELS][MAX_ROWS];
static struct {
    const struct bsw_scan_tuning *rows; // of every pair of dims and bits
    size_t num;
} tables[BSW_CPU_NUM_LEVELS];

static void expand(int level, const struct bsw_scan_tuning_row *rows, size_t num_rows,
                   const uint32_t *bits, size_t num_bits)
{
    assert_in_range(num_bits, 1, BSW_TUNING_MAX_BITS);
    assert_in_range(num_rows * num_bits, 1, MAX_ROWS);
    for (size_t i = 0; i < num_rows * num_bits; i++) {
        const struct bsw_scan_tuning_row *row = &rows[i / num_bits];
        rows_of[level][i] = (struct bsw_scan_tuning){
            row->dims,     bits[i % num_bits],  row->matrix_from_queries[i % num_bits],
            row->tile_kib, row->stage_overhead, row->finish_factor};
    }
    tables[level].rows = rows_of[level];
    tables[level].num = num_rows * num_bits;
}

#define EXPAND(level, name)                                               \
    expand(level, bsw_scan_tuning_##name, LENGTH(bsw_scan_tuning_##name), \
           bsw_scan_tuning_##name##_bits, LENGTH(bsw_scan_tuning_##name##_bits))

static int expand_all(void **state)
{
    (void)state;
    EXPAND(BSW_CPU_REFERENCE, reference);
    EXPAND(BSW_CPU_AVX2, avx2);
    EXPAND(BSW_CPU_AVX512, avx512);
    EXPAND(BSW_CPU_NEON, avx2);
    EXPAND(BSW_CPU_I8MM, avx2);
    return 0;
}

static struct bsw_scan_tuning look_up(int level, const char *segments, uint32_t dims)
{
    struct bsw_code_layout layout;
    assert_int_equal(bsw_code_layout_parse(segments, dims, &layout, NULL), BSW_OK);
    return bsw_scan_tuning_of((enum bsw_cpu_level)level, &layout);
}

static struct bsw_scan_tuning look_up_plain(int level, uint32_t dims, uint32_t bits)
{
    struct bsw_code_layout layout;
    bsw_code_layout_init(&layout);
    assert_int_equal(bsw_code_layout_append(&layout, dims, bits, NULL), BSW_OK);
    return bsw_scan_tuning_of((enum bsw_cpu_level)level, &layout);
}

UNIT_TEST(rows_are_sensible)
{
    for (int level = 0; level < BSW_CPU_NUM_LEVELS; level++) {
        assert_true(tables[level].num > 0);
        for (size_t i = 0; i < tables[level].num; i++) {
            const struct bsw_scan_tuning *row = &tables[level].rows[i];
            assert_in_range(row->dims, 32, BSW_MAX_DIMS);
            assert_int_equal(row->dims % 32, 0);
            assert_in_range(row->bits, 1, BSW_MAX_CODE_BITS);
            assert_in_range(row->matrix_from_queries, 1, UINT32_MAX);
            assert_in_range(row->tile_kib, 1, 1024);
            assert_true(row->stage_overhead >= 0 && isfinite(row->stage_overhead));
            assert_true(row->finish_factor >= 0 && isfinite(row->finish_factor));
        }
    }
}

// Also says that no combination is there twice with different figures.
UNIT_TEST(a_row_is_found_by_its_own_layout)
{
    for (int level = 0; level < BSW_CPU_NUM_LEVELS; level++) {
        for (size_t i = 0; i < tables[level].num; i++) {
            const struct bsw_scan_tuning *row = &tables[level].rows[i];
            struct bsw_scan_tuning found = look_up_plain(level, row->dims, row->bits);
            assert_int_equal(found.dims, row->dims);
            assert_int_equal(found.bits, row->bits);
            assert_int_equal(found.matrix_from_queries, row->matrix_from_queries);
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
    for (size_t i = 0; i < tables[level].num; i++) {
        const struct bsw_scan_tuning *row = &tables[level].rows[i];
        double by_bits = distance(row->bits, bits), found_by_bits = distance(found.bits, bits);
        assert_true(by_bits > found_by_bits - 1e-9);
        if (row->bits == found.bits)
            assert_true(distance(row->dims, dims) > distance(found.dims, dims) - 1e-9);
    }
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

int main(void)
{
    return run_unit_tests(expand_all, NULL);
}
