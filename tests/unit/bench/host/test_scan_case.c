// SPDX-License-Identifier: Apache-2.0
// Cases of scans: the two kernels of a scan see the same codes and queries in them.
#include "bench/host/scan_case.h"
#include "common/base/memory.h"
#include "unit_test.h"

#define BUNDLES 3
#define QUERIES 2

static enum bsw_status allocate(void *unused, void *out, size_t count, size_t size,
                                struct bsw_error *err)
{
    (void)unused;
    return bsw_allocate_zero(out, count, size, "a case", err);
}

static void make(struct bsw_scan_case *c, enum bsw_plane_fill fill)
{
    assert_int_equal(bsw_code_layout_parse("33x4,31x2,36x1", 100, &c->layout, NULL), BSW_OK);
    c->query_bits = 5;
    c->num_bundles = c->tile_bundles = BUNDLES;
    c->num_queries = QUERIES;
    c->first_row = 1000;
    assert_int_equal(bsw_scan_case_allocate(c, allocate, NULL, NULL), BSW_OK);
    bsw_scan_case_fill_codes(c, fill, 1);
    for (size_t q = 0; q < QUERIES; q++) bsw_scan_case_fill_query(c, q, fill, 2);
    bsw_scan_case_unpack(c, BSW_CPU_REFERENCE, 0, BUNDLES, c->bytes);
}

// The key of a row and a query, from bytes and components: constant - 2 * sum.
static int32_t dot_of(const struct bsw_scan_case *c, size_t row, size_t query, uint32_t dims)
{
    size_t padded = c->layout.padded_dims;
    const uint8_t *half = c->bytes + row / BSW_HALF_ROWS * BSW_HALF_ROWS * padded;
    int32_t sum = 0;
    for (size_t i = 0; i < dims; i++)
        sum += half[(i / 4 * BSW_HALF_ROWS + row % BSW_HALF_ROWS) * 4 + i % 4] *
               c->components[query * padded + i];
    return sum;
}

UNIT_TEST(both_scans_agree)
{
    for (int fill = 0; fill < BSW_NUM_PLANE_FILLS; fill++) {
        struct bsw_scan_case c = {0};
        make(&c, (enum bsw_plane_fill)fill);
        if (fill != BSW_PLANES_DENSE_PADDING) { // which no codes have
            for (size_t q = 0; q < QUERIES; q++) {
                bsw_scan_case_dots(&c, BSW_CPU_REFERENCE, q, 1, 2, c.dots);
                for (size_t row = 0; row < 64; row++)
                    assert_int_equal(c.dots[row],
                                     c.constants[q] -
                                         2 * dot_of(&c, 32 + row, q, c.layout.padded_dims));
            }
        }
        bsw_scan_case_free(&c);
        assert_null(c.planes[0]);
    }
}

UNIT_TEST(padding_is_zero)
{
    uint32_t planes[2 * 2 * 3]; // planes, words, lanes
    for (int fill = 0; fill < BSW_NUM_PLANE_FILLS; fill++) {
        uint32_t last = 0;
        bsw_planes_fill((enum bsw_plane_fill)fill, 7, 40, 2, 3, planes);
        for (size_t plane = 0; plane < 2; plane++)
            for (size_t lane = 0; lane < 3; lane++) last |= planes[(plane * 2 + 1) * 3 + lane];
        assert_int_equal(last > 0xff, fill == BSW_PLANES_DENSE_PADDING);
    }
}

// With all dimensions in the stage a constant is the whole one; the tile is at its rows.
UNIT_TEST(stage_and_tile)
{
    struct bsw_scan_case c = {0};
    make(&c, BSW_PLANES_RANDOM);
    bsw_scan_case_set_stage(&c, 1, c.layout.padded_dims);
    int32_t whole = c.stage_constants[1];
    assert_int_equal(whole, c.constants[1]);
    bsw_scan_case_set_stage(&c, 1, 0);
    assert_int_equal(c.stage_constants[1], 0);
    struct bsw_matrix_tile tile = bsw_scan_case_tile(&c, 2, 1);
    assert_int_equal(tile.first_row, 1064);
    assert_ptr_equal(tile.masks, c.masks + 2);
    assert_ptr_equal(tile.tails, c.scales + 64); // it has none of its own
    bsw_scan_case_free(&c);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
