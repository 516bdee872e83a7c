// SPDX-License-Identifier: Apache-2.0
// screen of all levels with vectors, but for pack: two registers of rows by as many queries as have
// running sums. Codes as bytes are for levels whose int8 units are much faster than float32.
#ifndef BITSWEEP_KERNELS_SCREEN_LANES_H
#define BITSWEEP_KERNELS_SCREEN_LANES_H

#include <math.h>

#include "kernels/lanes.h"

#include "kernels/screen/screen.h"

#if defined(LANES) // nothing without it

#define PART_ROWS ((size_t)2 * LANES)
#if LANES == 8
enum { PART_QUERIES = 6 };
#define EACH_QUERY(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)
#else // 32 registers
enum { PART_QUERIES = 12 };
#define EACH_QUERY(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#endif

_Static_assert(BSW_SCREEN_QUERIES % PART_QUERIES == 0 && BSW_BUNDLE_ROWS % PART_ROWS == 0,
               "whole rounds");

// Named members and variables: gcc keeps an array of so many registers in memory.
struct column {
    floats low, high;
};

INLINE struct column load_column(const float *from)
{
    return (struct column){load(from), load(from + LANES)};
}

INLINE struct column add_products(struct column sums, struct column rows, const float *query)
{
    floats both = every(*query);
    sums.low = multiply_add(rows.low, both, sums.low);
    sums.high = multiply_add(rows.high, both, sums.high);
    return sums;
}

// Some queries and PART_ROWS rows on their way.
struct part {
    const float *rows;    // [dims][32], from the first of the rows
    const float *queries; // [dims][12], from the first of the queries
    const float *biases, *limits;
    struct bsw_screen_output *outputs;
    size_t num; // queries
    uint32_t mask, first_place;
};

INLINE void append(struct bsw_screen_output *output, uint32_t first_place, uint32_t pass)
{
    for (; pass; pass &= pass - 1)
        output->places[output->count++] = first_place + (uint32_t)__builtin_ctz(pass);
}

// Query q's sums against its limit; queries past the end have none.
INLINE void select_rows(const struct part *part, size_t q, struct column sums)
{
    if (q >= part->num) return;
    const floats least = every(part->limits[q]);
    struct column biases = load_column(part->biases);
    uint32_t pass = bits_of(at_most(least, sums.low + biases.low)) |
                    bits_of(at_most(least, sums.high + biases.high)) << LANES;
    pass &= part->mask;
    if (__builtin_expect(pass != 0, 0)) append(&part->outputs[q], part->first_place, pass);
}

#define START(q)  struct column s##q = {every(0.0f), every(0.0f)};
#define STEP(q)   s##q = add_products(s##q, both, query + q);
#define SELECT(q) select_rows(part, q, s##q);

static void scan_part(const struct part *part, size_t dims)
{
    const float *rows = part->rows, *query = part->queries;
    EACH_QUERY(START)
    for (size_t d = 0; d < dims; d++) {
        struct column both = load_column(rows);
        EACH_QUERY(STEP)
        rows += BSW_BUNDLE_ROWS;
        query += BSW_SCREEN_QUERIES;
    }
    EACH_QUERY(SELECT)
}

// PART_ROWS rows against all queries.
static void scan_rows(const struct bsw_screen_tile *tile, size_t place,
                      const struct bsw_screen_queries *queries, struct bsw_screen_output *outputs)
{
    size_t bundle = place / BSW_BUNDLE_ROWS, lane = place % BSW_BUNDLE_ROWS;
    struct part part = {.rows = tile->numbers + bundle * BSW_BUNDLE_ROWS * tile->dims + lane,
                        .biases = tile->biases + place,
                        .mask = tile->masks[bundle] >> lane,
                        .first_place = (uint32_t)place};
    for (size_t q = 0; q < queries->num_queries; q += PART_QUERIES) {
        size_t left = queries->num_queries - q, in_group = q % BSW_SCREEN_QUERIES;
        part.queries = queries->numbers + (q - in_group) * tile->dims + in_group;
        part.limits = queries->limits + q;
        part.outputs = outputs + q;
        part.num = left < PART_QUERIES ? left : PART_QUERIES;
        scan_part(&part, tile->dims);
    }
}

static void scan(const struct bsw_screen_tile *tile, const struct bsw_screen_queries *queries,
                 struct bsw_screen_output *outputs)
{
    for (size_t q = 0; q < queries->num_queries; q++) outputs[q].count = 0;
    for (size_t place = 0; place < tile->num_bundles * BSW_BUNDLE_ROWS; place += PART_ROWS)
        scan_rows(tile, place, queries, outputs);
}

// ---- bytes ----

// The largest |x|; infinite where a number is not finite: bits without the sign are ordered as the
// numbers are, infinity and NaN above all.
static inline float largest_of(const float *row, size_t dims)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < dims; i++) {
        uint32_t bits;
        memcpy(&bits, row + i, sizeof bits);
        bits &= 0x7fffffffu;
        largest = bits > largest ? bits : largest;
    }
    float value;
    memcpy(&value, &largest, sizeof value);
    return largest >= 0x7f800000u ? INFINITY : value;
}

// n of LANES dimensions of a row, in groups of 4 that are 64 bytes apart; the others become 0.
// Returns the sums of squared errors with theirs.
INLINE floats pack_some(const float *row, size_t n, float inverse, floats squares, uint8_t *bytes)
{
    const floats top = every(255.0f), even = every(0x1.8p23f); // sums with it are whole
    const lane_marks valid = first_marks(n);
    uint8_t packed[LANES];
    floats x = load_some(row, n);
    floats place = multiply_add(x, every(-0.5f * inverse), every(127.5f));
    floats u = (smaller(larger(place, every(0.0f)), top) + even) - even;
    floats code = multiply_add(every(-2.0f), u, top), // exact
        error = multiply_add(x, every(-inverse), code);
    store_bytes(packed, only(valid, u));
    for (size_t g = 0; g < LANES / 4; g++) memcpy(bytes + 64 * g, packed + 4 * g, 4);
    return choose(valid, multiply_add(error, error, squares), squares);
}

INLINE void pack_sixteen(const float *row, size_t n, float inverse, floats squares[16 / LANES],
                         uint8_t *bytes)
{
    for (size_t g = 0, at = 0; g < 16 / LANES; g++, at += LANES)
        squares[g] = pack_some(row + at, at < n ? n - at : 0, inverse, squares[g], bytes + 16 * at);
}

// bytes: of the row's first group of 4 dimensions. Returns the sum of squared errors.
static inline float pack_row(const float *row, size_t dims, float step, uint8_t *bytes)
{
    float inverse = 1.0f / step;
    floats squares[16 / LANES];
    for (size_t g = 0; g < 16 / LANES; g++) squares[g] = every(0.0f);
    size_t i = 0;
    for (; i + 16 <= dims; i += 16) pack_sixteen(row + i, 16, inverse, squares, bytes + 16 * i);
    for (; i < (dims + 31) / 32 * 32; i += 16)
        pack_sixteen(row + i, i < dims ? dims - i : 0, inverse, squares, bytes + 16 * i);
    for (size_t h = 16 / LANES / 2; h > 0; h /= 2)
        for (size_t g = 0; g < h; g++) squares[g] = squares[g] + squares[g + h];
    return tree_sum(squares[0]);
}

static inline void pack_codes(const float *rows, size_t num_rows, size_t dims, uint8_t *bytes,
                              float *steps, float *squared_errors)
{
    size_t padded_dims = (dims + 31) / 32 * 32;
    for (size_t r = 0; r < num_rows; r++) {
        float largest = largest_of(rows + r * dims, dims);
        steps[r] = squared_errors[r] = 0.0f;
        if (largest < BSW_SCREEN_LEAST_MAXIMUM || isinf(largest)) continue;
        steps[r] = largest / 255.0f;
        squared_errors[r] = pack_row(rows + r * dims, dims, steps[r],
                                     bytes + r / 16 * 16 * padded_dims + r % 16 * 4);
    }
}

#endif
#endif
