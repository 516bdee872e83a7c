// SPDX-License-Identifier: Apache-2.0
// The table of device_tuning.h: that it is one, and which row a device finds.
#include "kernels/device_scan/device_tuning.h"
#include "unit_test.h"

static int is_below(const struct bsw_device_tuning *a, const struct bsw_device_tuning *b)
{
    return a->major < b->major || (a->major == b->major && a->minor < b->minor);
}

UNIT_TEST(test_rows_rise)
{
    assert_true(bsw_num_device_tunings > 0);
    for (size_t i = 1; i < bsw_num_device_tunings; i++)
        assert_true(is_below(&bsw_device_tunings[i - 1], &bsw_device_tunings[i]));
}

UNIT_TEST(test_rows_are_in_range)
{
    for (size_t i = 0; i < bsw_num_device_tunings; i++) {
        const struct bsw_device_tuning *row = &bsw_device_tunings[i];
        const struct bsw_device_division divisions[] = {row->plane, row->matrix, row->hopper};
        for (size_t d = 0; d < 3; d++) {
            assert_true(divisions[d].most_steps >= 1 && divisions[d].waves >= 1);
            // A chunk of that many tiles of 8 bundles must not pass 32 bits.
            assert_true(divisions[d].most_steps <= 1u << 16 && divisions[d].waves <= 1u << 16);
        }
        assert_true(row->matrix_from_queries >= 1);
        for (size_t t = 1; t < BSW_MATRIX_TILES; t++)
            assert_true(row->tile_queries[t - 1] < row->tile_queries[t]);
        assert_int_equal(row->tile_queries[BSW_MATRIX_TILES - 1], UINT32_MAX);
        assert_true(row->plane_group_bytes <= 48 << 10);
        // Its kernels are for 9.0 alone.
        assert_true(row->matrix_kernel == BSW_DEVICE_MATRIX_MMA || row->major == 9);
        assert_true(row->stage_kernel == BSW_DEVICE_MATRIX_MMA || row->major == 9);
        assert_true(row->list_kernel == BSW_DEVICE_MATRIX_MMA || row->major == 9);
    }
}

static void assert_finds(int major, int minor, int row_major, int row_minor)
{
    const struct bsw_device_tuning *row = bsw_device_tuning_find(major, minor);
    assert_int_equal(row->major, row_major);
    assert_int_equal(row->minor, row_minor);
}

UNIT_TEST(test_devices_find_their_row)
{
    for (size_t i = 0; i < bsw_num_device_tunings; i++) {
        const struct bsw_device_tuning *row = &bsw_device_tunings[i];
        assert_finds(row->major, row->minor, row->major, row->minor);
    }
    assert_finds(7, 5, 8, 0); // older than all
    assert_finds(8, 7, 8, 6); // between two
    assert_finds(8, 9, 8, 6);
    assert_finds(10, 1, 10, 0);
    assert_finds(99, 0, bsw_device_tunings[bsw_num_device_tunings - 1].major,
                 bsw_device_tunings[bsw_num_device_tunings - 1].minor);
}

UNIT_TEST(test_lists_take_what_pays)
{
    struct bsw_device_tuning row = {.hopper_list_bundles = {UINT32_MAX, 3, 1, 1}};
    assert_false(bsw_device_lists_take_hopper(&row, 10, 1000, 1)); // by mma alone
    row.list_kernel = BSW_DEVICE_MATRIX_HOPPER;
    assert_false(bsw_device_lists_take_hopper(&row, 1, UINT64_MAX, 0)); // never
    assert_false(bsw_device_lists_take_hopper(&row, 10, 29, 1));
    assert_true(bsw_device_lists_take_hopper(&row, 10, 30, 1));
    assert_true(bsw_device_lists_take_hopper(&row, 10, 10, 2));
    assert_true(bsw_device_lists_take_hopper(&row, UINT32_MAX, UINT64_C(3) * UINT32_MAX, 1));
    assert_false(bsw_device_lists_take_hopper(&row, 10, 1000, BSW_LIST_TILES));
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
