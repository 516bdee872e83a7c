// SPDX-License-Identifier: Apache-2.0
#include "kernelcheck.h"

#include <math.h>
#include <string.h>

#include "kernels/screen/screen.h"

enum { FLOATS, SPREAD, CANCELS, TINY, WHOLE, BAD, NUM_FILLS };
static const char *const fill_names[] = {"floats", "spread", "cancels", "tiny", "whole", "bad"};

// Numbers whose sums show a rounding that is not the reference's.
static float fill_number(const struct kernelcheck *check, int fill, uint64_t side, size_t i)
{
    uint64_t random = kernelcheck_random(check, side, i);
    float number = kernelcheck_float(check, side, i);
    switch (fill) {
    case SPREAD:
        return number * (random % 3 == 0 ? 0x1p20f : random % 3 == 1 ? 1.0f : 0x1p-20f);
    case CANCELS:
        return i % 2 ? -kernelcheck_float(check, side, i - 1) : number;
    case TINY: // products below the normal range
        return number * 0x1p-68f;
    case WHOLE: // ties
        return (float)(random % 3);
    case BAD: // in rows alone; a row's numbers may not reach another
        return side == 0 && random % 200 == 0 ? (random % 3 ? NAN : INFINITY) : number;
    default:
        return number;
    }
}

// A tile and its queries, packed.
struct screen_case {
    size_t num_rows, num_bundles, num_queries, dims;
    float *rows, *scales, *packed, *biases, *queries, *limits;
    uint32_t *masks, *places;
    struct bsw_screen_output *outputs;
};

static void make_case(const struct kernelcheck *check, int fill, struct screen_case *c)
{
    size_t padded = c->num_bundles * BSW_BUNDLE_ROWS;
    size_t numbers = bsw_screen_query_numbers(c->num_queries, c->dims);
    c->rows = kernelcheck_allocate(c->num_rows * c->dims * sizeof(float));
    c->scales = kernelcheck_allocate(padded * sizeof(float));
    c->packed = kernelcheck_allocate(padded * c->dims * sizeof(float));
    c->biases = kernelcheck_allocate(padded * sizeof(float));
    c->queries = kernelcheck_allocate(numbers * sizeof(float));
    c->limits = kernelcheck_allocate(c->num_queries * sizeof(float));
    c->masks = kernelcheck_allocate(c->num_bundles * sizeof(uint32_t));
    c->places = kernelcheck_allocate(c->num_queries * padded * sizeof(uint32_t));
    c->outputs = kernelcheck_allocate(c->num_queries * sizeof *c->outputs);
    for (size_t i = 0; i < c->num_rows * c->dims; i++) c->rows[i] = fill_number(check, fill, 0, i);
    for (size_t i = 0; i < padded; i++) {
        c->scales[i] = i % 5 ? 1.0f : fabsf(kernelcheck_float(check, 2, i));
        c->biases[i] = fill == WHOLE ? 0.0f : kernelcheck_float(check, 3, i);
    }
    for (size_t i = 0; i < numbers; i++) c->queries[i] = fill_number(check, fill, 1, i);
    for (size_t b = 0; b < c->num_bundles; b++)
        c->masks[b] = b % 3 ? UINT32_MAX : (uint32_t)kernelcheck_random(check, 4, b);
}

static void pack_case(const struct bsw_screen_table *table, struct screen_case *c)
{
    for (size_t first = 0; first < c->num_rows; first += BSW_BUNDLE_ROWS) {
        size_t left = c->num_rows - first;
        table->pack(c->rows + first * c->dims, c->scales + first,
                    left < BSW_BUNDLE_ROWS ? left : BSW_BUNDLE_ROWS, c->dims,
                    c->packed + first * c->dims);
    }
}

// Counts and places of all queries; places behind a count stay 0xff.
static void scan_case(const struct bsw_screen_table *table, struct screen_case *c)
{
    size_t padded = c->num_bundles * BSW_BUNDLE_ROWS;
    const struct bsw_screen_tile tile = {c->packed, c->biases, c->masks, c->num_bundles, c->dims};
    const struct bsw_screen_queries queries = {c->queries, c->limits, c->num_queries};
    memset(c->places, 0xff, c->num_queries * padded * sizeof(uint32_t));
    for (size_t q = 0; q < c->num_queries; q++)
        c->outputs[q] = (struct bsw_screen_output){c->places + q * padded, 7};
    table->scan(&tile, &queries, c->outputs);
}

// One pair's number, in the contract's order.
static float pair_number(const struct screen_case *c, size_t row, size_t query)
{
    size_t in_group = query % BSW_SCREEN_QUERIES;
    const float *numbers = c->queries + (query - in_group) * c->dims + in_group;
    float sum = 0.0f;
    for (size_t d = 0; d < c->dims; d++) {
        float scaled = c->rows[row * c->dims + d] * c->scales[row];
        sum = fmaf(scaled, numbers[d * BSW_SCREEN_QUERIES], sum);
    }
    return sum + c->biases[row];
}

// Limits that are some row's number, or the float above it: a number that differs in its last bit
// changes what passes.
static void set_limits(const struct kernelcheck *check, struct screen_case *c, uint64_t turn)
{
    for (size_t q = 0; q < c->num_queries; q++) {
        float number = pair_number(c, kernelcheck_random(check, 5 + turn, q) % c->num_rows, q);
        if (isnan(number)) number = 0.0f;
        c->limits[q] = turn == 0 && q % 4 == 3 ? -INFINITY
                       : turn % 2              ? nextafterf(number, INFINITY)
                                               : number;
    }
    if (turn == 1) c->limits[c->num_queries - 1] = INFINITY;
}

static void check_case(struct kernelcheck *check, size_t num_rows, size_t num_queries, size_t dims,
                       int fill)
{
    const struct bsw_screen_table *table = bsw_screen_table_get(check->level);
    struct screen_case c = {.num_rows = num_rows,
                            .num_bundles = (num_rows + BSW_BUNDLE_ROWS - 1) / BSW_BUNDLE_ROWS,
                            .num_queries = num_queries,
                            .dims = dims};
    kernelcheck_case(check, "%s, %zu rows x %zu queries, %zu dims", fill_names[fill], num_rows,
                     num_queries, dims);
    make_case(check, fill, &c);
    size_t padded = c.num_bundles * BSW_BUNDLE_ROWS, bytes = padded * dims * sizeof(float);
    size_t place_bytes = num_queries * padded * sizeof(uint32_t);
    size_t output_bytes = num_queries * sizeof(struct bsw_screen_output);
    float *expected = kernelcheck_allocate(bytes);
    uint32_t *places = kernelcheck_allocate(place_bytes);
    struct bsw_screen_output *outputs = kernelcheck_allocate(output_bytes);
    pack_case(&bsw_screen_reference, &c);
    memcpy(expected, c.packed, bytes);
    memset(c.packed, 0xff, bytes);
    pack_case(table, &c);
    // Which NaN a product of NaN is, nobody asks.
    if (fill != BAD) kernelcheck_compare(check, "pack", expected, c.packed, bytes);
    for (uint64_t turn = 0; turn < 4; turn++) {
        set_limits(check, &c, turn);
        scan_case(&bsw_screen_reference, &c);
        memcpy(places, c.places, place_bytes);
        memcpy(outputs, c.outputs, output_bytes);
        scan_case(table, &c);
        kernelcheck_compare(check, "scan (counts)", outputs, c.outputs, output_bytes);
        kernelcheck_compare(check, "scan", places, c.places, place_bytes);
    }
    kernelcheck_free(c.rows);
}

// Rows of every kind, the tenth with the largest number there is, the eleventh tiny.
static void check_codes(struct kernelcheck *check, size_t num_rows, size_t dims, int fill)
{
    enum { STEPS, ERRORS, NUM_SIDES };
    const struct bsw_screen_table *table = bsw_screen_table_get(check->level);
    size_t bytes = BSW_BUNDLE_ROWS * ((dims + 31) / 32 * 32), sides = num_rows * sizeof(float);
    float *rows = kernelcheck_allocate(num_rows * dims * sizeof(float)), *numbers[2][NUM_SIDES];
    uint8_t *codes[2];
    if (!table->pack_codes) {
        kernelcheck_free(rows);
        return;
    }
    for (size_t i = 0; i < num_rows * dims; i++) {
        float number = fill_number(check, fill, 0, i);
        rows[i] = i / dims == 10 ? number * 0x1p120f : i / dims == 11 ? number * 1e-35f : number;
    }
    for (int side = 0; side < 2; side++) {
        codes[side] = kernelcheck_allocate(bytes);
        memset(codes[side], 0x55, bytes);
        for (int i = 0; i < NUM_SIDES; i++) numbers[side][i] = kernelcheck_allocate(sides);
        (side == 0 ? &bsw_screen_reference : table)
            ->pack_codes(rows, num_rows, dims, codes[side], numbers[side][STEPS],
                         numbers[side][ERRORS]);
    }
    kernelcheck_case(check, "%s, %zu rows, %zu dims", fill_names[fill], num_rows, dims);
    kernelcheck_compare(check, "pack_codes", codes[0], codes[1], bytes);
    for (int i = 0; i < NUM_SIDES; i++)
        kernelcheck_compare(check, i == STEPS ? "pack_codes (steps)" : "pack_codes (errors)",
                            numbers[0][i], numbers[1][i], sides);
    kernelcheck_free(rows);
}

void check_screen(struct kernelcheck *check)
{
    for (size_t d = 0; d < kernelcheck_num_dims; d++) {
        size_t dims = kernelcheck_dims[d];
        // Long rows are slow in a build without FMA: fewer of them.
        for (int fill = (int)d % 2; fill < NUM_FILLS && dims < 500; fill += 2)
            check_case(check, 67, 13, dims, fill);
        for (int fill = 0; fill < NUM_FILLS; fill++) check_codes(check, 32, dims, fill);
        check_case(check, 32, 12, dims, SPREAD);
        check_case(check, 1, 1, dims, FLOATS);
    }
    for (size_t dims = 1; dims <= 35; dims++) { // every remainder of pack and of queries
        check_case(check, dims, dims, dims, (int)dims % NUM_FILLS);
        check_codes(check, 1 + dims % 32, dims, (int)dims % NUM_FILLS);
    }
}
