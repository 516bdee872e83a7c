// SPDX-License-Identifier: Apache-2.0
// The rows of device_tuning.h: that they are in range, which one a device finds, that a text
// changes what it names alone and is written as it is read, and that what is none is refused by its
// line.
#include "kernels/device_scan/device_tuning.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "kernels/device_scan/scan_kernels.h"
#include "kernels/tuning/scan_tuning.h"
#include "unit_test.h"

static const struct bsw_device_tunings *built_in;

static int get_built_in(void **state)
{
    (void)state;
    built_in = bsw_device_tuning_built_in();
    return 0;
}

static int is_below(const struct bsw_device_tuning *a, const struct bsw_device_tuning *b)
{
    return a->major < b->major || (a->major == b->major && a->minor < b->minor);
}

UNIT_TEST(test_rows_rise)
{
    assert_true(built_in->num > 0);
    for (size_t i = 1; i < built_in->num; i++)
        assert_true(is_below(&built_in->rows[i - 1], &built_in->rows[i]));
}

UNIT_TEST(test_rows_are_in_range)
{
    for (size_t i = 0; i < built_in->num; i++) {
        const struct bsw_device_tuning *row = &built_in->rows[i];
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
        for (size_t c = 0; c < BSW_MOST_CHOICES; c++) {
            uint32_t number = row->matrix_scans[c].number;
            if (number < BSW_NUM_SCANS)
                assert_true(!bsw_scan_rows[number].is_hopper || row->major == 9);
        }
        assert_true(row->list_kernel == BSW_DEVICE_LISTS_MMA || row->major == 9);
    }
}

static void assert_choice(const struct bsw_scan_choice *choice, const char *name, uint32_t most)
{
    assert_true(choice->number < BSW_NUM_SCANS);
    assert_string_equal(bsw_scan_rows[choice->number].name, name);
    assert_int_equal(choice->most_queries, most);
}

// What was measured on 9.0 is that row's; 8.6 and 10.0 differ from it by what their lines say.
UNIT_TEST(test_hopper_has_what_was_measured)
{
    const struct bsw_device_tuning *row = bsw_device_tuning_find(9, 0);
    static const uint32_t bundles[BSW_LIST_TILES] = {UINT32_MAX, 12, 1, 4};
    assert_choice(&row->matrix_scans[0], "few", 32);
    assert_choice(&row->matrix_scans[2], "hopper-1x64", 128);
    assert_choice(&row->matrix_scans[3], "hopper-4x64", 256);
    assert_choice(&row->matrix_scans[5], "hopper-3x128", UINT32_MAX);
    assert_choice(&bsw_device_tuning_find(8, 9)->matrix_scans[0], "mma", UINT32_MAX);
    assert_choice(&bsw_device_tuning_find(10, 0)->matrix_scans[0], "mma", UINT32_MAX);
    assert_choice(&bsw_device_tuning_find(10, 0)->plane_scans[0], "popcount", UINT32_MAX);
    assert_int_equal(row->list_kernel, BSW_DEVICE_LISTS_HOPPER);
    assert_true(!row->few_lists[0] && row->few_lists[1]);
    assert_false(bsw_device_tuning_find(10, 0)->few_lists[1]);
    assert_memory_equal(row->hopper_list_bundles, bundles, sizeof bundles);
    assert_int_equal(row->progressive_from_dims, UINT32_MAX);
    assert_int_equal(row->plane_group_bytes, 32 << 10);
    for (size_t i = 0; i < built_in->num; i++) assert_false(built_in->rows[i].has_graphs);
    // What no GPU has timed.
    for (size_t i = 0; i < built_in->num; i++) assert_false(built_in->rows[i].has_gpu_lists);
    assert_int_equal(bsw_device_tuning_find(10, 0)->hopper_list_bundles[3], 1);
    assert_int_equal(bsw_device_tuning_find(8, 6)->plane_group_bytes, 16 << 10);
}

static void assert_finds(int major, int minor, int row_major, int row_minor)
{
    const struct bsw_device_tuning *row = bsw_device_tuning_find(major, minor);
    assert_int_equal(row->major, row_major);
    assert_int_equal(row->minor, row_minor);
}

UNIT_TEST(test_devices_find_their_row)
{
    const struct bsw_device_tuning *last = &built_in->rows[built_in->num - 1];
    for (size_t i = 0; i < built_in->num; i++) {
        const struct bsw_device_tuning *row = &built_in->rows[i];
        assert_finds(row->major, row->minor, row->major, row->minor);
    }
    assert_finds(7, 5, 8, 0); // older than all
    assert_finds(8, 7, 8, 6); // between two
    assert_finds(8, 9, 8, 6);
    assert_finds(10, 1, 10, 0);
    assert_finds(99, 0, last->major, last->minor);
}

UNIT_TEST(test_lists_take_what_pays)
{
    struct bsw_device_tuning row = {.hopper_list_bundles = {UINT32_MAX, 3, 1, 1}};
    assert_false(bsw_device_lists_take_hopper(&row, 10, 1000, 1)); // by mma alone
    row.list_kernel = BSW_DEVICE_LISTS_HOPPER;
    assert_false(bsw_device_lists_take_hopper(&row, 1, UINT64_MAX, 0)); // never
    assert_false(bsw_device_lists_take_hopper(&row, 10, 29, 1));
    assert_true(bsw_device_lists_take_hopper(&row, 10, 30, 1));
    assert_true(bsw_device_lists_take_hopper(&row, 10, 10, 2));
    assert_true(bsw_device_lists_take_hopper(&row, UINT32_MAX, UINT64_C(3) * UINT32_MAX, 1));
    assert_false(bsw_device_lists_take_hopper(&row, 10, 1000, BSW_LIST_TILES));
}

// ---- texts ----

static const struct bsw_device_tuning *row_of(const struct bsw_device_tunings *tunings, int major,
                                              int minor)
{
    for (size_t i = 0; i < tunings->num; i++)
        if (tunings->rows[i].major == major && tunings->rows[i].minor == minor)
            return &tunings->rows[i];
    fail_msg("no row of %d.%d", major, minor);
    return NULL;
}

UNIT_TEST(a_text_changes_what_it_names)
{
    static const char text[] = "table avx2 GenuineIntel 6 1 # a CPU's\nrow 32 16 0 0 1\n"
                               "device 9.0 matrix_from_queries=- graphs=on # mine\r\n"
                               "device 8.9\ttile_queries=1,4294967294\n"
                               "device 9.0 hopper_list_bundles=0,-,7,- plane_division=1,65536\n"
                               "device 7.5 matrix_scans=few-any:3,hopper-2x128";
    struct bsw_device_tunings changed = *built_in;
    assert_int_equal(bsw_device_tuning_parse("t", text, &changed, NULL), BSW_OK);
    assert_int_equal(changed.num, built_in->num + 2);
    for (size_t i = 1; i < changed.num; i++)
        assert_true(is_below(&changed.rows[i - 1], &changed.rows[i]));

    struct bsw_device_tuning expected = *row_of(built_in, 9, 0);
    expected.matrix_from_queries = UINT32_MAX;
    expected.has_graphs = 1;
    expected.plane = (struct bsw_device_division){1, 65536};
    memcpy(expected.hopper_list_bundles, (const uint32_t[]){0, UINT32_MAX, 7, UINT32_MAX}, 16);
    assert_memory_equal(row_of(&changed, 9, 0), &expected, sizeof expected);

    expected = *row_of(built_in, 8, 6); // held for 8.9
    expected.minor = 9;
    expected.tile_queries[0] = 1;
    expected.tile_queries[1] = UINT32_MAX - 1;
    assert_memory_equal(row_of(&changed, 8, 9), &expected, sizeof expected);

    expected = *row_of(built_in, 8, 0); // so did this for 7.5
    expected.major = 7;
    expected.minor = 5;
    memset(expected.matrix_scans, 0xff, sizeof expected.matrix_scans);
    expected.matrix_scans[0] = (struct bsw_scan_choice){BSW_SCAN_BY_few_any, 3};
    expected.matrix_scans[1].number = BSW_SCAN_BY_hopper_2x128;
    assert_memory_equal(row_of(&changed, 7, 5), &expected, sizeof expected);
    assert_memory_equal(row_of(&changed, 8, 6), row_of(built_in, 8, 6), sizeof expected);
}

UNIT_TEST(rows_are_written_as_they_are_read)
{
    struct bsw_device_tunings again = {.num = 0};
    char text[BSW_DEVICE_TUNING_TEXT_BYTES];
    for (size_t i = 0; i < built_in->num; i++) {
        assert_int_equal(bsw_device_tuning_format(&built_in->rows[i], text, sizeof text, NULL),
                         BSW_OK);
        assert_int_equal(bsw_device_tuning_parse("t", text, &again, NULL), BSW_OK);
    }
    assert_int_equal(again.num, built_in->num);
    assert_memory_equal(again.rows, built_in->rows, again.num * sizeof again.rows[0]);
    assert_int_equal(bsw_device_tuning_format(&built_in->rows[0], text, 100, NULL),
                     BSW_ERROR_TOO_LARGE);
}

UNIT_TEST(what_is_no_device_is_refused_by_its_line)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"\ndevice\n", "t: line 2: write 'device CAPABILITY NAME=VALUE...'"},
        {"device 9.0\n", "t: line 1: write 'device"},
        {"device 9 graphs=on\n", "t: line 1: write 'device"},
        {"device 9.x graphs=on\n", "t: line 1: write 'device"},
        {"device 9.0.1 graphs=on\n", "t: line 1: write 'device"},
        {"device -9.0 graphs=on\n", "t: line 1: write 'device"},
        {"device 99999999999999999999.0 graphs=on\n", "t: line 1: write 'device"},
        {"device 9.0 graphs\n", "t: line 1: 'graphs': write NAME=VALUE"},
        {"device 9.0 graph=on\n", "t: line 1: no column 'graph'"},
        {"device 9.0 =on\n", "t: line 1: no column ''"},
        {"device 9.0 graphs=1\n", "t: line 1: graphs must be on or off"},
        {"device 9.0 graphs=on graphs=on\n", "t: line 1: graphs is there twice"},
        {"device 9.0 graphs=on\ndevice 9.0 graphs=off\n", "t: line 2: graphs is there twice"},
        {"device 9.0 list_kernel=wgmma\n", "t: line 1: list_kernel must be mma or hopper"},
        {"device 9.0 matrix_scans=wgmma\n", "t: line 1: matrix_scans must be up to 8 kernels, each "
                                            "NAME or NAME:QUERIES, as few:32,mma"},
        {"device 9.0 few_lists=on\n", "few_lists must be off or on for up to 8 queries"},
        {"device 9.0 matrix_scans=bits\n", "matrix_scans must be up to 8 kernels"},
        {"device 9.0 plane_scans=mma\n", "as bits:1,popcount"},
        {"device 9.0 plane_scans=\n", "as bits:1,popcount"},
        {"device 9.0 plane_scans=bits:0\n", "as bits:1,popcount"},
        {"device 9.0 matrix_scans=few:x,mma\n", "as few:32,mma"},
        {"device 9.0 matrix_scans=mma,mma,mma,mma,mma,mma,mma,mma,mma\n", "up to 8 kernels"},
        {"device 9.0 matrix_from_queries=0\n", "must be a number >= 1, or -"},
        {"device 9.0 matrix_from_queries=\n", "must be a number >= 1, or -"},
        {"device 9.0 matrix_from_queries=4294967295\n", "must be a number >= 1, or -"},
        {"device 9.0 matrix_from_queries=2,3\n", "must be a number >= 1, or -"},
        {"device 9.0 plane_scans=bits:-\n", "as bits:1,popcount"},
        {"device 9.0 plane_group_bytes=49153\n", "must be 1 to 49152"},
        {"device 9.0 plane_division=0,4\n", "must be STEPS,WAVES"},
        {"device 9.0 plane_division=32\n", "must be STEPS,WAVES"},
        {"device 9.0 plane_division=32,4,\n", "must be STEPS,WAVES"},
        {"device 9.0 tile_queries=64,64\n", "two numbers >= 1 that rise"},
        {"device 9.0 hopper_list_bundles=-,1,1,1,1\n", "four numbers, or - for never"},
        {"device 9.0 list_items=1048577\n", "must be 1 to 1048576"},
        {"device 9.0 sample_part=1e3\n", "must be 1 to 65536"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bsw_device_tunings changed = *built_in;
        struct bsw_error err = {0};
        assert_int_equal(bsw_device_tuning_parse("t", cases[i].text, &changed, &err),
                         BSW_ERROR_BAD_DATA);
        if (!strstr(err.message, cases[i].message))
            fail_msg("case %zu: '%s', not '%s'", i, err.message, cases[i].message);
    }
}

UNIT_TEST(a_first_device_needs_all_columns)
{
    struct bsw_device_tunings none = {.num = 0};
    assert_int_equal(bsw_device_tuning_parse("t", "device 9.0 graphs=on\n", &none, NULL),
                     BSW_ERROR_BAD_DATA);
    none.num = 0;
    assert_int_equal(bsw_device_tuning_parse("t", "", &none, NULL), BSW_ERROR_BAD_DATA);
}

UNIT_TEST(there_is_an_end_of_devices)
{
    struct bsw_device_tunings changed = *built_in;
    char text[64];
    for (int i = 0; changed.num < BSW_TUNING_MAX_DEVICES; i++) {
        snprintf(text, sizeof text, "device 20.%d graphs=on", i);
        assert_int_equal(bsw_device_tuning_parse("t", text, &changed, NULL), BSW_OK);
    }
    assert_int_equal(bsw_device_tuning_parse("t", "device 3.0 graphs=on", &changed, NULL),
                     BSW_ERROR_BAD_DATA);
    assert_int_equal(bsw_device_tuning_parse("t", "device 20.0 graphs=off", &changed, NULL),
                     BSW_OK);
}

// The last test: what it reads stays.
UNIT_TEST(a_file_has_both_cpus_and_devices)
{
    static const char text[] = "table avx2 GenuineIntel 6 1\nrow 32 16 0 0 1\n"
                               "device 9.0 matrix_from_queries=77\n";
    static const char bad[] = "device 9.0 matrix_from_queries=78\ndevice 9.0 x=1\n";
    char path[64];
    snprintf(path, sizeof path, "device_tuning.%ld", (long)getpid());
    assert_int_equal(bsw_file_write_atomic(path, text, strlen(text), NULL), BSW_OK);
    assert_int_equal(bsw_scan_tuning_read(path, NULL), BSW_OK);
    assert_int_equal(bsw_device_tuning_find(9, 0)->matrix_from_queries, 77);
    assert_int_equal(bsw_device_tuning_find(8, 0)->matrix_from_queries, 2);
    assert_int_equal(row_of(built_in, 9, 0)->matrix_from_queries, 2);
    assert_int_equal(bsw_file_write_atomic(path, bad, strlen(bad), NULL), BSW_OK);
    assert_int_equal(bsw_scan_tuning_read(path, NULL), BSW_ERROR_BAD_DATA);
    assert_int_equal(bsw_device_tuning_find(9, 0)->matrix_from_queries, 2);
    unlink(path);
}

int main(void)
{
    return run_unit_tests(get_built_in, NULL);
}
