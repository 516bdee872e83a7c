// SPDX-License-Identifier: Apache-2.0
// A shard with lists on the CPU, for tests that compare it with an emulated device.
#ifndef BITSWEEP_TESTS_UNIT_DEVICE_LISTS_CASE_H
#define BITSWEEP_TESTS_UNIT_DEVICE_LISTS_CASE_H

#include "device_scan_case.h"

enum { LISTS = 9 };

// Lists of bundles as they come: the first are short, one has none, the last has a third of all.
// Rows are those of the shard the other way round.
static inline void make_order(struct bsw_resident_shard *shard)
{
    static const uint32_t shares[LISTS] = {1, 2, 0, 3, 5, 8, 9, 12, 20}; // of 60
    struct bsw_list_order *order = &shard->order;
    uint32_t bundles = (uint32_t)shard->num_bundles, rows = (uint32_t)shard->shape.num_rows,
             sum = 0;
    order->num_lists = LISTS;
    order->num_rows = rows;
    order->num_places = bundles * BSW_BUNDLE_ROWS;
    order->first_bundles = (uint32_t *)allocate_or_fail(LISTS + 1, sizeof(uint32_t));
    order->rows = (uint32_t *)allocate_or_fail(order->num_places, sizeof(uint32_t));
    order->places = (uint32_t *)allocate_or_fail(rows, sizeof(uint32_t));
    for (uint32_t l = 0; l <= LISTS; l++) {
        order->first_bundles[l] = bundles * sum / 60;
        if (l < LISTS) sum += shares[l];
    }
    for (uint32_t p = 0; p < order->num_places; p++) {
        order->rows[p] = p < rows ? rows - 1 - p : BSW_NO_ROW;
        if (p < rows) order->places[rows - 1 - p] = p;
    }
    shard->shape.num_lists = LISTS;
    shard->shape.num_places = order->num_places;
}

static inline void open_lists_case(const char *file, int is_float, struct scan_case *scan)
{
    struct small_index what =
        duplicates(is_float ? &bsw_codec_saq : &bsw_codec_xfbq, BSW_METRIC_COSINE);
    if (file) what.source = path_of(file);
    open_case(&what, make_queries(DISTINCT, QUERIES), scan);
    make_order(&scan->host);
}

#endif
