// SPDX-License-Identifier: Apache-2.0
// The tuner: a row for each combination, in order, with figures it can have; what they are is not
// judged.
#include <math.h>

#include "bench/host/scan_tuner.h"
#include "unit_test.h"

struct taken {
    struct bsw_scan_tuner_row rows[8];
    size_t num;
};

static void take(void *context, const struct bsw_scan_tuner_row *row)
{
    struct taken *taken = context;
    assert_true(taken->num < 8);
    taken->rows[taken->num++] = *row;
}

static int is_time(double ns)
{
    return isfinite(ns) && ns > 0;
}

static void check_row(const struct bsw_scan_tuner_row *row, uint32_t dims, uint32_t bits)
{
    const struct bsw_scan_tuning *tuning = &row->tuning;
    assert_int_equal(tuning->dims, dims);
    assert_int_equal(tuning->bits, bits);
    assert_true(tuning->matrix_from_queries >= 1);
    assert_true(tuning->tile_kib >= 16 && tuning->tile_kib <= 128);
    assert_int_equal(tuning->tile_kib & (tuning->tile_kib - 1), 0);
    assert_true(tuning->stage_overhead >= 0 && isfinite(tuning->stage_overhead));
    assert_true(tuning->finish_factor >= 0 && isfinite(tuning->finish_factor));
    assert_true(is_time(row->plane_ns) && is_time(row->matrix_ns) && is_time(row->full_ns));
}

UNIT_TEST(every_combination_has_a_row)
{
    for (int level = 0; level < BSW_CPU_NUM_LEVELS; level = bsw_cpu_level_next(level)) {
        // The middle bits stand for all of a dims: after 8 bits the tile holds numbers too large.
        const struct bsw_scan_tuner_options options = {.level = (enum bsw_cpu_level)level,
                                                       .seconds = 1e-4,
                                                       .dims = {96, 32},
                                                       .bits = {1, 2, 8},
                                                       .num_dims = 2,
                                                       .num_bits = 3};
        struct taken taken = {0};
        assert_int_equal(bsw_scan_tuner_run(&options, take, &taken, NULL), BSW_OK);
        assert_int_equal(taken.num, 6);
        for (size_t i = 0; i < 6; i++)
            check_row(&taken.rows[i], options.dims[i / 3], options.bits[i % 3]);
        // 32 dims have no stage; tile and stage are measured once for all bits.
        assert_true(taken.rows[3].tuning.stage_overhead == 0);
        assert_true(taken.rows[3].tuning.finish_factor == 1);
        assert_int_equal(taken.rows[0].tuning.tile_kib, taken.rows[2].tuning.tile_kib);
        assert_true(taken.rows[0].full_ns == taken.rows[2].full_ns);
    }
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
