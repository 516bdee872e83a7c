// SPDX-License-Identifier: Apache-2.0
// What table_bounds' levels with vectors do alike. Each includes this behind its own LANES,
// least_of and narrow_part; those that pass rows by up to four queries of 4-bit codes, and by 16 of
// 8-bit codes, define BY_SIXTEEN and their own pass_bundle, turn_part, struct sixteen, load_sixteen
// and queries_pass before.
#ifndef BITSWEEP_KERNELS_TABLE_BOUNDS_LANES_H
#define BITSWEEP_KERNELS_TABLE_BOUNDS_LANES_H

#include <math.h>
#include <string.h>

#include "kernels/sixteen_sums.h"
#include "kernels/table_bounds/table_bounds.h"

#if defined(LANES) // nothing without it

static struct bsw_bound_scale narrow(const struct bsw_product_book *book, const float *terms,
                                     uint8_t *numbers)
{
    struct bsw_bound_scale scale = {0, 0};
    size_t num = bsw_product_entries(book), end = book->parts * num;
    float range = 0.0f, inverse, most, least[BSW_BOUND_MAX_PARTS];
    for (uint32_t p = 0; p < book->parts; p++) {
        least[p] = least_of(terms + p * num, num, &most);
        scale.least += (double)least[p];
        range = most - least[p] > range ? most - least[p] : range;
    }
    scale.unit = bsw_bound_unit(range, &inverse);
    for (uint32_t p = 0; p < book->parts; p++)
        narrow_part(terms + p * num, num, least[p], inverse, numbers + p * num);
    memset(numbers + end, 0, bsw_bound_bytes(book) - end);
    return scale;
}

#if defined(BY_SIXTEEN)

static void pass_halves(const struct bsw_bound_rows *rows, const struct bsw_bound_query *queries,
                        size_t num_queries, uint32_t *masks)
{
    for (size_t q = 0; q < num_queries; q += TOGETHER) {
        size_t num = num_queries - q;
        for (size_t b = 0; b < rows->num_bundles; b++) {
            uint32_t *out = masks + q * rows->num_bundles;
            if (num >= 4)
                pass_bundle(rows, queries + q, 4, b, out);
            else if (num == 3)
                pass_bundle(rows, queries + q, 3, b, out);
            else if (num == 2)
                pass_bundle(rows, queries + q, 2, b, out);
            else
                pass_bundle(rows, queries + q, 1, b, out);
        }
    }
}

_Static_assert(BSW_BOUND_QUERIES == BSW_SIXTEEN, "of a register");
_Static_assert(BSW_BOUND_PART_BLOCK == BSW_SIXTEEN_PARTS, "the room is for as many");

static void find_passing(const struct bsw_bound_rows *rows, const struct bsw_bound_query *queries,
                         size_t num_queries, const uint16_t *sums, uint32_t *masks)
{
    float unit[BSW_SIXTEEN] = {0}, most[BSW_SIXTEEN];
    for (size_t i = 0; i < BSW_SIXTEEN; i++) {
        unit[i] = i < num_queries ? queries[i].unit : 0.0f;
        most[i] = i < num_queries ? queries[i].most : -INFINITY;
    }
    const struct sixteen sixteen = load_sixteen(unit, most);
    memset(masks, 0, num_queries * rows->num_bundles * sizeof *masks);
    for (size_t i = 0; i < rows->num_bundles * BSW_BUNDLE_ROWS; i++)
        bsw_sixteen_mark(queries_pass(sums + i * BSW_SIXTEEN, &sixteen, rows->terms[i]), i,
                         rows->masks, rows->num_bundles, masks);
}

static void pass_bytes(const struct bsw_bound_rows *rows, const struct bsw_bound_query *queries,
                       size_t num_queries, void *room, uint32_t *masks)
{
    uint8_t *turned = (uint8_t *)room;
    const uint8_t *numbers[BSW_SIXTEEN]; // the first again where there are fewer
    for (size_t q = 0; q < BSW_SIXTEEN; q++) numbers[q] = queries[q < num_queries ? q : 0].numbers;
    uint16_t *sums = (uint16_t *)(void *)(turned + (size_t)BSW_SIXTEEN_PARTS * 256 * BSW_SIXTEEN);
    for (uint32_t p = 0; p < rows->parts; p += BSW_SIXTEEN_PARTS) {
        uint32_t left = rows->parts - p,
                 parts = left < BSW_SIXTEEN_PARTS ? left : BSW_SIXTEEN_PARTS;
        for (uint32_t i = 0; i < parts; i++)
            turn_part(numbers, (size_t)(p + i) * 256, turned + (size_t)i * 256 * BSW_SIXTEEN);
        bsw_sixteen_add(turned, rows->codes + p * BSW_BUNDLE_ROWS, rows->bundle_bytes,
                        rows->num_bundles, parts, p == 0, sums);
    }
    find_passing(rows, queries, num_queries, sums, masks);
}

static void pass(const struct bsw_bound_rows *rows, const struct bsw_bound_query *queries,
                 size_t num_queries, void *room, uint32_t *masks)
{
    if (rows->bits == 4)
        pass_halves(rows, queries, num_queries, masks);
    else
        pass_bytes(rows, queries, num_queries, room, masks);
}

#endif
#endif
#endif
