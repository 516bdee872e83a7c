// SPDX-License-Identifier: Apache-2.0
// Bits of rows in the order of bundles, from any row of an index on, with lists and without.
#include "shard/scan/row_mask.h"

#include "row_mask_case.h"

enum { ROWS = 203, LISTS = 5 };

static struct bsw_error err;

static uint64_t check_mask(int kind, uint64_t first, const struct bsw_list_order *order,
                           size_t num_bundles, struct bsw_row_mask *mask)
{
    uint32_t *bits = make_mask_bits(kind, first, ROWS);
    uint64_t before = mask->version, count = 0;
    assert_ok(bsw_row_mask_make(bits, first, ROWS, order, num_bundles, mask, &err), &err);
    for (size_t place = 0; place < num_bundles * BSW_BUNDLE_ROWS; place++) {
        uint32_t row = !order->rows                ? (uint32_t)place
                       : place < order->num_places ? order->rows[place]
                                                   : BSW_NO_ROW;
        int expected = row < ROWS && is_row_allowed(kind, row, ROWS);
        assert_int_equal(mask->bundles[place / 32] >> place % 32 & 1, expected);
        count += (uint64_t)expected;
    }
    assert_int_equal(mask->num_rows, count);
    assert_int_equal(bsw_row_mask_count(mask, 0, num_bundles), count);
    assert_true(mask->version > before);
    bsw_free(&bits);
    return count;
}

UNIT_TEST(places_are_rows)
{
    const struct bsw_list_order none = {0};
    struct bsw_row_mask mask = {0};
    for (int kind = 0; kind < NUM_MASK_KINDS; kind++)
        for (uint64_t first = 0; first < 70; first += 23)
            check_mask(kind, first, &none, (ROWS + 31) / 32, &mask);
    bsw_row_mask_deinit(&mask);
}

UNIT_TEST(lists_have_rows_elsewhere)
{
    uint32_t lists[ROWS];
    uint64_t places;
    struct bsw_list_order order;
    struct bsw_row_mask mask = {0};
    for (uint32_t row = 0; row < ROWS; row++)
        lists[row] = row % 7 == 3 ? BSW_NO_LIST : (uint32_t)bsw_hash(row) % LISTS;
    lists[ROWS / 3] = 1;
    assert_ok(bsw_list_order_count(lists, ROWS, LISTS, &places, &err), &err);
    assert_ok(bsw_list_order_make(lists, ROWS, LISTS, places, &order, &err), &err);
    uint32_t *bits = make_mask_bits(3, 0, ROWS);
    for (uint32_t row = 0; row < ROWS; row++)
        if (lists[row] == BSW_NO_LIST) bits[row / 32] |= 1u << row % 32; // nowhere
    assert_ok(bsw_row_mask_make(bits, 0, ROWS, &order, (size_t)places / 32, &mask, &err), &err);
    for (uint32_t l = 0; l < LISTS; l++) {
        uint64_t count = 0;
        for (uint32_t row = 0; row < ROWS; row++)
            count += lists[row] == l && bsw_row_bit(bits, row);
        assert_int_equal(bsw_row_mask_count(&mask, order.first_bundles[l],
                                            order.first_bundles[l + 1] - order.first_bundles[l]),
                         count);
    }
    bsw_free(&bits);
    bsw_list_order_deinit(&order);
    bsw_row_mask_deinit(&mask);
}

UNIT_TEST(as_many_as_may_be_found)
{
    const struct bsw_row_mask none = {0}, some = {.num_rows = 7};
    assert_int_equal(bsw_row_mask_keep(NULL, 9), 9);
    assert_int_equal(bsw_row_mask_keep(&some, 9), 7);
    assert_int_equal(bsw_row_mask_keep(&some, 5), 5);
    assert_int_equal(bsw_row_mask_keep(&none, 5), 1);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
