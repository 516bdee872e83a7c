// SPDX-License-Identifier: Apache-2.0
// table_bounds of all levels with vectors: bytes of tables, gaps and sums of a row. Those that pass
// rows by up to TOGETHER queries of 4-bit codes, and by 16 of 8-bit codes, define that before they
// include this, and behind it pass_bundle and turn_part, which are declared here.
#ifndef BITSWEEP_KERNELS_TABLE_BOUNDS_LANES_H
#define BITSWEEP_KERNELS_TABLE_BOUNDS_LANES_H

#include <math.h>

#include "kernels/lanes.h"

#include "kernels/sixteen_sums.h"
#include "kernels/table_bounds/table_bounds.h"

#if defined(LANES) // nothing without it

// ---- a query's table ----

INLINE float least_of(const float *numbers, size_t num, float *most)
{
    floats low = load(numbers), high = low;
    for (size_t j = LANES; j < num; j += LANES) {
        low = smaller(low, load(numbers + j));
        high = larger(high, load(numbers + j));
    }
    float lows[LANES], highs[LANES];
    store(lows, low);
    store(highs, high);
    for (int h = LANES / 2; h > 0; h /= 2) {
        for (int i = 0; i < h; i++) {
            lows[i] = lows[i] < lows[i + h] ? lows[i] : lows[i + h];
            highs[i] = highs[i] > highs[i + h] ? highs[i] : highs[i + h];
        }
    }
    *most = highs[0];
    return lows[0];
}

INLINE void narrow_part(const float *terms, size_t num, float least, float inverse, uint8_t *out)
{
    for (size_t i = 0; i < num; i += LANES)
        store_bytes(out + i,
                    smaller((load(terms + i) - every(least)) * every(inverse), every(255.0f)));
}

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

// ---- gaps of query and centroid ----

static float gap(const float *x, const float *y, size_t dims)
{
    floats sums[16 / LANES];
    float lanes[16], sum = 0.0f;
    for (size_t k = 0; k < 16 / LANES; k++) sums[k] = every(0.0f);
    for (size_t d = 0; d < dims; d += 16) {
        for (size_t k = 0; k < 16 / LANES; k++) {
            floats both = load(x + d + k * LANES) - load(y + d + k * LANES);
            sums[k] = multiply_add(both, both, sums[k]);
        }
    }
    for (size_t k = 0; k < 16 / LANES; k++) store(lanes + k * LANES, sums[k]);
    for (int i = 0; i < 16; i++) sum += lanes[i];
    return sum;
}

INLINE void part_bases(uint32_t parts, uint32_t part_dims, const float *x, const float *y,
                       float *bases)
{
    for (uint32_t p = 0; p < parts; p++, x += part_dims, y += part_dims) {
        bases[p] = 0.0f;
        for (uint32_t d = 0; d < part_dims; d++)
            bases[p] = fmaf(x[d] - y[d], x[d] - y[d], bases[p]);
    }
}

// A part's dimensions are too few for vectors.
static void bases(const struct bsw_product_book *book, const float *x, const float *y, float *out)
{
    if (book->part_dims == 2)
        part_bases(book->parts, 2, x, y, out);
    else if (book->part_dims == 4)
        part_bases(book->parts, 4, x, y, out);
    else if (book->part_dims == 8)
        part_bases(book->parts, 8, x, y, out);
    else
        part_bases(book->parts, book->part_dims, x, y, out);
}

// ---- rows that passed, one after another ----

INLINE float row_sum(const struct bsw_bound_terms *terms, const uint8_t *codes, uint32_t bits,
                     uint32_t part_dims)
{
    const size_t num = (size_t)1 << bits;
    const float *entries = terms->book->entries, *list = terms->list, *query = terms->query;
    float sum = 0.0f;
    for (uint32_t p = 0; p < terms->book->parts; p++) {
        size_t j = bits == 8 ? codes[p * BSW_BUNDLE_ROWS]
                             : codes[p / 2 * BSW_BUNDLE_ROWS] >> (4 * (p & 1)) & 15;
        float product = 0.0f;
        for (uint32_t d = 0; d < part_dims; d++)
            product = fmaf(query[d], entries[d * num + j], product);
        sum += positive((list[j] + product) + terms->bases[p]);
        entries += part_dims * num;
        list += num;
        query += part_dims;
    }
    return sum;
}

INLINE void row_sums(uint32_t bits, uint32_t part_dims, const struct bsw_bound_terms *terms,
                     const uint8_t *codes, size_t bundle_bytes, const uint32_t *places,
                     size_t num_places, float *sums)
{
    for (size_t i = 0; i < num_places; i++) {
        const uint8_t *at =
            codes + places[i] / BSW_BUNDLE_ROWS * bundle_bytes + places[i] % BSW_BUNDLE_ROWS;
        sums[i] = row_sum(terms, at, bits, part_dims);
    }
}

static inline void byte_sums(const struct bsw_bound_terms *terms, const uint8_t *codes,
                             size_t bundle_bytes, const uint32_t *places, size_t num_places,
                             float *sums)
{
    if (terms->book->part_dims == 2)
        row_sums(8, 2, terms, codes, bundle_bytes, places, num_places, sums);
    else if (terms->book->part_dims == 4)
        row_sums(8, 4, terms, codes, bundle_bytes, places, num_places, sums);
    else if (terms->book->part_dims == 8)
        row_sums(8, 8, terms, codes, bundle_bytes, places, num_places, sums);
    else
        row_sums(8, terms->book->part_dims, terms, codes, bundle_bytes, places, num_places, sums);
}

#if defined(TOGETHER)

// The level's: rows of a bundle of 4-bit codes that pass for num of up to TOGETHER queries.
INLINE void pass_bundle(const struct bsw_bound_rows *rows, const struct bsw_bound_query *queries,
                        size_t num, size_t bundle, uint32_t *masks);

// The level's: 256 bytes of each of 16 queries, from `first` on, so that those of an entry lie side
// by side.
static void turn_part(const uint8_t *const *numbers, size_t first, uint8_t *out);

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

// Bit q: the row with these sums passes for query q.
INLINE uint32_t queries_pass(const uint16_t *sums, const float *unit, const float *most, float term)
{
    uint32_t found = 0;
    for (size_t k = 0; k < BSW_SIXTEEN; k += LANES) {
        floats bound = multiply_add(load(unit + k), load_shorts(sums + k), every(term));
        found |= bits_of(at_most(bound, load(most + k))) << k;
    }
    return found;
}

static void find_passing(const struct bsw_bound_rows *rows, const struct bsw_bound_query *queries,
                         size_t num_queries, const uint16_t *sums, uint32_t *masks)
{
    float unit[BSW_SIXTEEN] = {0}, most[BSW_SIXTEEN];
    for (size_t i = 0; i < BSW_SIXTEEN; i++) {
        unit[i] = i < num_queries ? queries[i].unit : 0.0f;
        most[i] = i < num_queries ? queries[i].most : -INFINITY;
    }
    memset(masks, 0, num_queries * rows->num_bundles * sizeof *masks);
    for (size_t i = 0; i < rows->num_bundles * BSW_BUNDLE_ROWS; i++)
        bsw_sixteen_mark(queries_pass(sums + i * BSW_SIXTEEN, unit, most, rows->terms[i]), i,
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
