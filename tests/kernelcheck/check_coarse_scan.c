// SPDX-License-Identifier: Apache-2.0
#include "kernelcheck.h"

#include <math.h>

#include "common/codes/half.h"
#include "kernels/coarse_scan/coarse_scan.h"

static const size_t bundle_counts[] = {1, 2, 17};
static const size_t query_counts[] = {1, 2, 5, 11, 12, 13, 24, 25};
static const size_t key_counts[] = {1, 15, 16, 17, 63, 64, 65, 100, 1000};
#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

// ---- keys ----

struct keys_case {
    struct bsw_matrix_tile tile;
    struct bsw_matrix_queries queries;
    uint8_t *bytes;
    float *expected, *found;
    size_t numbers;
    uint64_t most_square;
};

// Many are as large as they may be: so that sums in few bits would overflow.
// With `spread` they lie that near to their middle, and all of two rows at either end.
static uint8_t code_of_random(uint64_t random, size_t at, unsigned spread)
{
    size_t lane = at / 4 % 16;
    unsigned place = lane == 0   ? 0
                     : lane == 1 ? 2 * spread - 1
                                 : (unsigned)(random % (2 * spread + 1));
    if (spread > 0)
        return (uint8_t)((BSW_COARSE_MOST_CODE + 1) / 2 - spread + place % (2 * spread));
    return random % 3 ? BSW_COARSE_MOST_CODE : (uint8_t)(random / 3 % (BSW_COARSE_MOST_CODE + 1));
}

static int8_t component_of_random(uint64_t random, size_t query)
{
    if (query % 3 == 0) return query % 2 ? BSW_COARSE_MOST_QUERY : -BSW_COARSE_MOST_QUERY;
    return (int8_t)((int)(random % (2 * BSW_COARSE_MOST_QUERY + 1)) - BSW_COARSE_MOST_QUERY);
}

static void make_tile(const struct kernelcheck *check, uint32_t dims, size_t bundles,
                      unsigned spread, struct keys_case *c)
{
    size_t rows = bundles * BSW_BUNDLE_ROWS, bytes = bsw_matrix_tile_bytes(dims, bundles);
    uint8_t *codes = kernelcheck_allocate(bytes);
    uint16_t *scales = kernelcheck_allocate(rows * sizeof *scales);
    float *biases = kernelcheck_allocate(rows * sizeof *biases);
    for (size_t i = 0; i < bytes; i++)
        codes[i] = code_of_random(kernelcheck_random(check, 1, i), i, spread);
    for (size_t r = 0; r < rows; r++) {
        scales[r] = bsw_half_nearest(fabs((double)kernelcheck_float(check, 2, r)));
        biases[r] = r % 7 ? 1e4f * kernelcheck_float(check, 3, r) : r % 2 ? -INFINITY : -0.0f;
    }
    c->bytes = codes;
    // Holds for any order of dimensions: as many of the largest as a row has.
    for (size_t i = 0; i < bytes; i++)
        if (bsw_coarse_square(codes[i]) * dims > c->most_square)
            c->most_square = bsw_coarse_square(codes[i]) * dims;
    c->tile = (struct bsw_matrix_tile){.bytes = codes,
                                       .num_bundles = bundles,
                                       .padded_dims = dims,
                                       .scales = scales,
                                       .biases = biases};
}

static void make_queries(const struct kernelcheck *check, uint32_t dims, size_t num,
                         struct keys_case *c)
{
    int8_t *components = kernelcheck_allocate(num * dims);
    int32_t *constants = kernelcheck_allocate(num * sizeof *constants);
    float *scales = kernelcheck_allocate(num * sizeof *scales);
    for (size_t q = 0; q < num; q++) {
        constants[q] = 0;
        scales[q] = q % 5 ? fabsf(kernelcheck_float(check, 4, q)) : 0.0f;
        for (size_t d = 0; d < dims; d++) {
            int8_t component = component_of_random(kernelcheck_random(check, 5, q * dims + d), q);
            components[q * dims + d] = component;
            constants[q] += BSW_COARSE_MOST_CODE * component;
        }
    }
    c->queries = (struct bsw_matrix_queries){
        .num_queries = num, .components = components, .constants = constants, .scales = scales};
}

static void check_keys(struct kernelcheck *check, const struct bsw_coarse_scan_table *table,
                       uint32_t dims, size_t bundles, size_t num, unsigned spread)
{
    struct keys_case c = {.numbers = num * bundles * BSW_BUNDLE_ROWS};
    size_t stride = bundles * BSW_BUNDLE_ROWS;
    kernelcheck_case(check, "%u dims, %zu bundles, %zu queries, spread %u", dims, bundles, num,
                     spread);
    make_tile(check, dims, bundles, spread, &c);
    make_queries(check, dims, num, &c);
    c.expected = kernelcheck_allocate(c.numbers * sizeof(float));
    c.found = kernelcheck_allocate(c.numbers * sizeof(float));
    bsw_coarse_scan_reference.keys(&c.tile, &c.queries, c.most_square, c.expected, stride);
    table->keys(&c.tile, &c.queries, c.most_square, c.found, stride);
    kernelcheck_compare(check, "keys", c.expected, c.found, c.numbers * sizeof(float));
    kernelcheck_free(c.bytes);
}

// ---- maxima and picks ----

static float fill_key(const struct kernelcheck *check, size_t i)
{
    uint64_t random = kernelcheck_random(check, 6, i) % 16;
    return random == 0   ? -INFINITY
           : random == 1 ? 0.0f
           : random < 5  ? 1.5f // ties
                         : kernelcheck_float(check, 7, i);
}

static void check_picks(struct kernelcheck *check, const struct bsw_coarse_scan_table *table,
                        size_t n)
{
    static const float limits[] = {-INFINITY, -1.0f, 0.0f, 1.5f, 100.0f};
    float *keys = kernelcheck_allocate(n * sizeof *keys);
    float expected[BSW_COARSE_LANES], found[BSW_COARSE_LANES];
    uint64_t *expected_items = kernelcheck_allocate(n * sizeof *expected_items),
             *found_items = kernelcheck_allocate(n * sizeof *found_items);
    for (size_t i = 0; i < n; i++) keys[i] = fill_key(check, i);
    kernelcheck_case(check, "%zu keys", n);
    bsw_coarse_scan_reference.maxima(keys, n, expected);
    table->maxima(keys, n, found);
    kernelcheck_compare(check, "maxima", expected, found, sizeof expected);
    for (size_t l = 0; l < LENGTH(limits); l++) {
        kernelcheck_case(check, "%zu keys, limit %g", n, (double)limits[l]);
        size_t count = bsw_coarse_scan_reference.pick(keys, n, limits[l], expected_items);
        kernelcheck_compare_lists(check, "pick", expected_items, count, found_items,
                                  table->pick(keys, n, limits[l], found_items),
                                  sizeof *found_items);
    }
    kernelcheck_free(keys);
}

static void check_products(struct kernelcheck *check, const struct bsw_coarse_scan_table *table,
                           size_t dims)
{
    enum { ROWS = 9, NUMBERS = 13 };
    float *query = kernelcheck_allocate(dims * sizeof(float)),
          *rows = kernelcheck_allocate(ROWS * dims * sizeof(float));
    uint32_t numbers[NUMBERS];
    float expected[NUMBERS], found[NUMBERS];
    for (size_t i = 0; i < dims; i++) query[i] = kernelcheck_float(check, 8, i);
    for (size_t i = 0; i < ROWS * dims; i++) rows[i] = kernelcheck_float(check, 9, i);
    for (size_t i = 0; i < NUMBERS; i++)
        numbers[i] = (uint32_t)(kernelcheck_random(check, 10, i) % ROWS);
    kernelcheck_case(check, "%zu dims", dims);
    bsw_coarse_scan_reference.products(query, rows, dims, numbers, NUMBERS, expected);
    table->products(query, rows, dims, numbers, NUMBERS, found);
    kernelcheck_compare(check, "products", expected, found, sizeof expected);
    kernelcheck_free(query);
}

void check_coarse_scan(struct kernelcheck *check)
{
    const struct bsw_coarse_scan_table *table = bsw_coarse_scan_table_get(check->level);
    for (size_t d = 0; d < kernelcheck_num_dims; d++) {
        uint32_t dims = (kernelcheck_dims[d] + 31) / 32 * 32;
        // Dots as large as they may be below BSW_COARSE_NARROW.
        unsigned narrow = ((BSW_COARSE_NARROW - 1) / (BSW_COARSE_MOST_QUERY * dims) + 1) / 2;
        if (narrow > (BSW_COARSE_MOST_CODE + 1) / 2) narrow = (BSW_COARSE_MOST_CODE + 1) / 2;
        check_products(check, table, kernelcheck_dims[d]);
        for (size_t b = 0; b < LENGTH(bundle_counts); b++)
            for (size_t q = 0; q < LENGTH(query_counts); q++) {
                check_keys(check, table, dims, bundle_counts[b], query_counts[q], 0);
                if (narrow > 0)
                    check_keys(check, table, dims, bundle_counts[b], query_counts[q], narrow);
            }
    }
    for (size_t n = 0; n < LENGTH(key_counts); n++) check_picks(check, table, key_counts[n]);
}
