// SPDX-License-Identifier: Apache-2.0
// Segments of a code: words, padding, text form, limits.
#include <string.h>

#include "common/codes/code_layout.h"
#include "unit_test.h"

static struct bsw_error err;

static struct bsw_code_layout layout_of(const char *text, uint32_t dims)
{
    struct bsw_code_layout layout;
    if (bsw_code_layout_parse(text, dims, &layout, &err) != BSW_OK)
        fail_msg("%s: %s", text, err.message);
    return layout;
}

UNIT_TEST(segments_follow_one_another)
{
    struct bsw_code_layout layout = layout_of("33x4,96x2,1x8", 130);
    assert_int_equal(layout.num_segments, 3);
    assert_int_equal(layout.dims, 130);
    assert_int_equal(layout.padded_dims, 64 + 96 + 32);
    static const struct bsw_segment expected[] = {{33, 4, 2, 0}, {96, 2, 3, 64}, {1, 8, 1, 160}};
    for (size_t s = 0; s < 3; s++) {
        assert_int_equal(layout.segments[s].dims, expected[s].dims);
        assert_int_equal(layout.segments[s].bits, expected[s].bits);
        assert_int_equal(layout.segments[s].words, expected[s].words);
        assert_int_equal(layout.segments[s].padded_dim, expected[s].padded_dim);
    }
    assert_int_equal(bsw_segment_bundle_words(&layout.segments[0]), 4 * 2 * 32);
    assert_int_equal(bsw_layout_query_words(&layout, 6), 6 * 6);
    assert_true(bsw_layout_row_bytes(&layout) == 4 * (4 * 2 + 2 * 3 + 8 * 1));
}

UNIT_TEST(text_form_comes_back)
{
    static const struct {
        const char *text;
        uint32_t dims;
    } cases[] = {{"128x3", 128}, {"32x4,96x2", 128}, {"1x1", 1}, {"65536x8", 65536}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bsw_code_layout layout = layout_of(cases[i].text, cases[i].dims);
        char text[64];
        bsw_code_layout_format(&layout, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

UNIT_TEST(format_stays_inside_its_buffer)
{
    struct bsw_code_layout layout = layout_of("32x4,96x2", 128);
    for (size_t capacity = 0; capacity <= 10; capacity++) {
        char text[16];
        memset(text, '#', sizeof text);
        bsw_code_layout_format(&layout, text, capacity);
        if (capacity > 0) {
            assert_int_equal(strlen(text), capacity - 1 < 9 ? capacity - 1 : 9);
            assert_int_equal(strncmp(text, "32x4,96x2", capacity - 1), 0);
        }
        for (size_t i = capacity; i < sizeof text; i++) assert_int_equal(text[i], '#');
    }
}

UNIT_TEST(wrong_texts_are_refused)
{
    static const char *const texts[] = {
        "",          "128",          "128x",          "x3",        "128x3,",
        ",128x3",    "128x3 ",       " 128x3",        "+128x3",    "128x-3",
        "64x3,,64x", "128x0",        "128x9",         "0x3,128x3", "127x3",
        "128x3,1x1", "64x3;64x3",    "128X3",         "128xx3",    "99999999999999999999999x3",
        "128x3x",    "4294967424x3", "128x4294967299"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct bsw_code_layout layout = {.dims = 77};
        if (bsw_code_layout_parse(texts[i], 128, &layout, &err) != BSW_ERROR_USAGE)
            fail_msg("'%s' is taken", texts[i]);
        assert_int_equal(layout.dims, 77);
    }
}

UNIT_TEST(append_keeps_the_limits)
{
    struct bsw_code_layout layout;
    bsw_code_layout_init(&layout);
    assert_int_equal(bsw_code_layout_append(&layout, BSW_MAX_DIMS, 1, &err), BSW_OK);
    assert_int_equal(bsw_code_layout_append(&layout, 1, 1, &err), BSW_ERROR_USAGE);
    assert_int_equal(bsw_code_layout_append(&layout, UINT32_MAX, 1, &err), BSW_ERROR_USAGE);
    bsw_code_layout_init(&layout);
    assert_int_equal(bsw_code_layout_append(&layout, 32, 0, &err), BSW_ERROR_USAGE);
    assert_int_equal(bsw_code_layout_append(&layout, 32, 9, &err), BSW_ERROR_USAGE);
    assert_int_equal(bsw_code_layout_append(&layout, 0, 1, &err), BSW_ERROR_USAGE);
    for (int s = 0; s < BSW_MAX_SEGMENTS; s++)
        assert_int_equal(bsw_code_layout_append(&layout, 32, 1, &err), BSW_OK);
    assert_int_equal(bsw_code_layout_append(&layout, 32, 1, &err), BSW_ERROR_USAGE);
    assert_int_equal(layout.num_segments, BSW_MAX_SEGMENTS);
    assert_int_equal(layout.dims, 32 * BSW_MAX_SEGMENTS);
}

UNIT_TEST(check_holds_products_to_32_bits)
{
    struct bsw_code_layout layout = layout_of("32000x8", 32000);
    assert_true(bsw_layout_dot_limit(&layout, 7) == (int64_t)32000 * 127 * 255);
    assert_int_equal(bsw_code_layout_check(&layout, 7, &err), BSW_OK);
    layout = layout_of("33156x8", 33156); // the first whose doubled limit passes 2^31 - 1
    assert_true(2 * bsw_layout_dot_limit(&layout, 7) > INT32_MAX);
    assert_int_equal(bsw_code_layout_check(&layout, 7, &err), BSW_ERROR_USAGE);
    assert_int_equal(bsw_code_layout_check(&layout, 6, &err), BSW_OK);
    layout = layout_of("33155x8", 33155);
    assert_true(2 * bsw_layout_dot_limit(&layout, 7) <= INT32_MAX);
    assert_int_equal(bsw_code_layout_check(&layout, 7, &err), BSW_OK);
    layout = layout_of("20000x8,40000x8", 60000);
    assert_int_equal(bsw_code_layout_check(&layout, 7, &err), BSW_ERROR_USAGE);
}

UNIT_TEST(query_bits_out_of_range_are_refused)
{
    struct bsw_code_layout layout = layout_of("128x3", 128);
    assert_int_equal(bsw_code_layout_check(&layout, 0, &err), BSW_ERROR_USAGE);
    assert_int_equal(bsw_code_layout_check(&layout, 1, &err), BSW_OK);
    assert_int_equal(bsw_code_layout_check(&layout, 8, &err), BSW_ERROR_USAGE);
    assert_int_equal(bsw_code_layout_check(&layout, UINT32_MAX, &err), BSW_ERROR_USAGE);
}

UNIT_TEST(bundles_cover_all_rows)
{
    assert_int_equal(bsw_num_bundles(0), 0);
    assert_int_equal(bsw_num_bundles(1), 1);
    assert_int_equal(bsw_num_bundles(32), 1);
    assert_int_equal(bsw_num_bundles(33), 2);
    assert_true(bsw_num_bundles(SIZE_MAX) == SIZE_MAX / 32 + 1);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
