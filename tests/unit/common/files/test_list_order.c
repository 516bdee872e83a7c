// SPDX-License-Identifier: Apache-2.0
// The order of a shard's rows by lists: what is made comes back from its file, and no other bytes
// are taken for an order.
#include "unit_test.h"

#include <string.h>

#include "common/files/list_order.h"

static struct bsw_error err;

enum { ROWS = 200, LISTS = 7, BUILD = 77 };

// Rows by turns, so that lists have different numbers of them; list 3 and some rows are left out.
static void fill(uint32_t lists[ROWS])
{
    for (uint32_t r = 0; r < ROWS; r++) {
        lists[r] = r % 11 == 10 ? BSW_NO_LIST : r * r % LISTS;
        if (lists[r] == 3) lists[r] = 4;
    }
}

static void make(struct bsw_list_order *order)
{
    uint32_t lists[ROWS];
    uint64_t places;
    fill(lists);
    assert_ok(bsw_list_order_count(lists, ROWS, LISTS, &places, &err), &err);
    assert_int_equal(places % BSW_BUNDLE_ROWS, 0);
    assert_ok(bsw_list_order_make(lists, ROWS, LISTS, places, order, &err), &err);
}

static void rows_lie_list_after_list(void **state)
{
    struct bsw_list_order order;
    uint32_t lists[ROWS], seen = 0;
    (void)state;
    fill(lists);
    make(&order);
    for (uint32_t p = 0; p < order.num_places; p++) {
        if (order.rows[p] == BSW_NO_ROW) continue;
        assert_int_equal(order.places[order.rows[p]], p);
        assert_int_equal(bsw_list_of_place(&order, p), lists[order.rows[p]]);
        seen++;
    }
    for (uint32_t r = 0; r < ROWS; r++) seen += lists[r] == BSW_NO_LIST;
    assert_int_equal(seen, ROWS);
    assert_int_equal(order.first_bundles[3], order.first_bundles[4]);
    bsw_list_order_deinit(&order);
}

static void one_row_and_one_list(void **state)
{
    struct bsw_list_order order;
    uint32_t list = 0, none = BSW_NO_LIST;
    uint64_t places;
    (void)state;
    assert_ok(bsw_list_order_count(&list, 1, 1, &places, &err), &err);
    assert_int_equal(places, BSW_BUNDLE_ROWS);
    assert_ok(bsw_list_order_make(&list, 1, 1, places, &order, &err), &err);
    assert_int_equal(order.rows[0], 0);
    bsw_list_order_deinit(&order);
    assert_ok(bsw_list_order_count(&none, 1, 1, &places, &err), &err);
    assert_int_equal(places, BSW_BUNDLE_ROWS); // room for the row's digest
}

static enum bsw_status parse(const struct bsw_buffer *bytes, const struct bsw_list_order *like,
                             struct bsw_list_order *out)
{
    return bsw_list_order_parse("x.lists", bytes->data, bytes->bytes, BUILD, LISTS, ROWS,
                                like->num_places, out, &err);
}

static void orders_come_back(void **state)
{
    struct bsw_list_order order, found;
    struct bsw_buffer bytes = {0};
    (void)state;
    make(&order);
    assert_ok(bsw_list_order_pack(&order, BUILD, &bytes, &err), &err);
    assert_ok(parse(&bytes, &order, &found), &err);
    assert_memory_equal(found.first_bundles, order.first_bundles, (LISTS + 1) * sizeof(uint32_t));
    assert_memory_equal(found.rows, order.rows, order.num_places * sizeof(uint32_t));
    assert_memory_equal(found.places, order.places, ROWS * sizeof(uint32_t));
    bsw_list_order_deinit(&found);
    bsw_list_order_deinit(&order);
    bsw_buffer_deinit(&bytes);
}

// One number of the packed order is another: where it counts, that is no order.
static void refuse(size_t at, uint32_t number)
{
    struct bsw_list_order order, found = {0};
    struct bsw_buffer bytes = {0};
    make(&order);
    assert_ok(bsw_list_order_pack(&order, BUILD, &bytes, &err), &err);
    memcpy(bytes.data + at, &number, sizeof number);
    assert_int_equal(parse(&bytes, &order, &found), BSW_ERROR_BAD_DATA);
    assert_null(found.rows);
    bsw_list_order_deinit(&order);
    bsw_buffer_deinit(&bytes);
}

static void other_bytes_are_refused(void **state)
{
    const size_t header = 40, rows = header + (LISTS + 1) * sizeof(uint32_t);
    (void)state;
    refuse(0, 1);               // magic
    refuse(8, BUILD + 1);       // another build
    refuse(16, LISTS + 1);      // lists
    refuse(24, ROWS - 1);       // rows
    refuse(header, 1);          // the first list does not begin at 0
    refuse(header + 4, 99);     // behind the last bundle
    refuse(header + 4, 0xffff); // far behind it
    refuse(rows, ROWS);         // no such row
    refuse(rows + 4, 0);        // row 0 twice
    refuse(rows, 199);          // not ascending
}

static void files_of_another_length_are_refused(void **state)
{
    struct bsw_list_order order, found = {0};
    struct bsw_buffer bytes = {0};
    (void)state;
    make(&order);
    assert_ok(bsw_list_order_pack(&order, BUILD, &bytes, &err), &err);
    while (bytes.bytes > 0) {
        bytes.bytes--;
        assert_int_equal(parse(&bytes, &order, &found), BSW_ERROR_BAD_DATA);
    }
    bsw_list_order_deinit(&order);
    bsw_buffer_deinit(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_lie_list_after_list),
        cmocka_unit_test(one_row_and_one_list),
        cmocka_unit_test(orders_come_back),
        cmocka_unit_test(other_bytes_are_refused),
        cmocka_unit_test(files_of_another_length_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
