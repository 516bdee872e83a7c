// SPDX-License-Identifier: Apache-2.0
#include "kernelcheck.h"

#include <math.h>
#include <string.h>

#include "kernels/table_bounds/table_bounds.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static const uint32_t part_counts[] = {1, 2, 3, 8, 17, 64};
static const uint32_t part_dims[] = {1, 2, 4, 8, 13};
// Entries, and query and centroid, relative to the gap between these two: what sums cancel.
static const float sizes[][3] = {{1, 1, 1}, {0.01f, 100, 1}, {1, 3000, 1e-3f}, {1e-3f, 1e-4f, 30}};
enum { BUNDLES = 5, ROWS = BUNDLES * BSW_BUNDLE_ROWS };

struct bound_case {
    struct bsw_product_book book;
    size_t dims;                         // a multiple of 16
    float *centroid, *queries, *doubled; // [16][dims]; doubled: -2 q'
    float *list, *query_terms, *bases;   // of the first query
    uint8_t *codes, *numbers;            // [16][bsw_bound_bytes]
    size_t bundle_bytes;
    float terms[ROWS];
    void *memory;
};

static float draw(const struct kernelcheck *check, uint64_t stream, size_t i, float size)
{
    return size * kernelcheck_float(check, stream, i);
}

static void make_vectors(const struct kernelcheck *check, struct bound_case *c, const float *size)
{
    size_t dims = (size_t)c->book.parts * c->book.part_dims;
    c->dims = (dims + 15) / 16 * 16;
    c->centroid = kernelcheck_allocate(c->dims * sizeof(float));
    c->queries = kernelcheck_allocate(BSW_BOUND_QUERIES * c->dims * sizeof(float));
    c->doubled = kernelcheck_allocate(BSW_BOUND_QUERIES * c->dims * sizeof(float));
    memset(c->centroid, 0, c->dims * sizeof(float));
    memset(c->queries, 0, BSW_BOUND_QUERIES * c->dims * sizeof(float));
    for (size_t d = 0; d < dims; d++) c->centroid[d] = draw(check, 31, d, size[1]);
    for (size_t i = 0; i < BSW_BOUND_QUERIES * c->dims; i++)
        if (i % c->dims < dims)
            c->queries[i] = c->centroid[i % c->dims] + draw(check, 32, i, size[2]);
    for (size_t i = 0; i < BSW_BOUND_QUERIES * c->dims; i++) c->doubled[i] = -2 * c->queries[i];
}

static void make_book(const struct kernelcheck *check, struct bound_case *c, float size)
{
    size_t numbers = bsw_product_numbers(&c->book), num = bsw_product_entries(&c->book),
           dims = c->book.part_dims;
    float *entries = kernelcheck_allocate(numbers * dims * sizeof *entries),
          *norms = kernelcheck_allocate(numbers * sizeof *norms);
    for (size_t i = 0; i < numbers * dims; i++) entries[i] = draw(check, 33, i, size);
    for (size_t i = 0; i < numbers; i++) {
        norms[i] = 0;
        for (size_t d = 0; d < dims; d++) {
            float e = entries[(i / num * dims + d) * num + i % num];
            norms[i] = fmaf(e, e, norms[i]);
        }
    }
    c->book.entries = entries;
    c->book.norms = norms;
    c->memory = entries;
}

static void make_rows(const struct kernelcheck *check, struct bound_case *c)
{
    size_t numbers = bsw_product_numbers(&c->book);
    float *doubled = kernelcheck_allocate(c->dims * sizeof(float));
    c->bundle_bytes =
        (bsw_product_code_bytes(c->book.parts, c->book.bits) + 3) / 4 * 4 * BSW_BUNDLE_ROWS;
    c->codes = kernelcheck_allocate(BUNDLES * c->bundle_bytes);
    for (size_t i = 0; i < BUNDLES * c->bundle_bytes; i++)
        c->codes[i] = (uint8_t)kernelcheck_random(check, 34, i);
    c->list = kernelcheck_allocate(numbers * sizeof(float));
    for (size_t d = 0; d < c->dims; d++) doubled[d] = 2 * c->centroid[d];
    bsw_table_scan_reference.products(&c->book, doubled, c->book.norms, c->list);
    const struct bsw_code_table table = {c->book.parts, c->book.bits, c->list};
    bsw_table_scan_reference.sums(&table, c->codes, c->bundle_bytes, BUNDLES, c->terms);
}

static void make_case(const struct kernelcheck *check, uint32_t parts, uint32_t dims, uint32_t bits,
                      const float *size, struct bound_case *c)
{
    *c = (struct bound_case){.book = {.parts = parts, .part_dims = dims, .bits = bits}};
    make_book(check, c, size[0]);
    make_vectors(check, c, size);
    make_rows(check, c);
    c->query_terms = kernelcheck_allocate(bsw_product_numbers(&c->book) * sizeof(float));
    c->bases = kernelcheck_allocate(parts * sizeof(float));
    c->numbers = kernelcheck_allocate(BSW_BOUND_QUERIES * bsw_bound_bytes(&c->book));
}

static double length_of(const float *v, size_t dims)
{
    double sum = 0;
    for (size_t d = 0; d < dims; d++) sum += (double)v[d] * (double)v[d];
    return sqrt(sum);
}

// A query's numbers by both levels; its terms are left in the case.
static struct bsw_bound_scale check_narrow(struct kernelcheck *check, struct bound_case *c,
                                           const struct bsw_table_bounds_table *table, size_t q)
{
    size_t bytes = bsw_bound_bytes(&c->book);
    uint8_t *expected = kernelcheck_allocate(bytes), *found = c->numbers + q * bytes;
    bsw_table_scan_reference.products(&c->book, c->doubled + q * c->dims, NULL, c->query_terms);
    const struct bsw_bound_scale scale = bsw_table_bounds_reference.narrow(&c->book, c->query_terms,
                                                                           expected),
                                 other = table->narrow(&c->book, c->query_terms, found);
    kernelcheck_compare(check, "narrow", expected, found, bytes);
    kernelcheck_compare(check, "unit", &scale.unit, &other.unit, sizeof scale.unit);
    kernelcheck_compare(check, "least", &scale.least, &other.least, sizeof scale.least);
    return scale;
}

// Exact sums of all rows for a query by both levels. floats: the query's table of distances, made
// here.
static void check_sums(struct kernelcheck *check, struct bound_case *c,
                       const struct bsw_table_bounds_table *table, size_t q, float *floats)
{
    uint32_t places[ROWS];
    float sums[ROWS], found[ROWS], tables[ROWS],
        *bases = kernelcheck_allocate(c->book.parts * sizeof(float));
    const float *query = c->queries + q * c->dims;
    bsw_table_bounds_reference.bases(&c->book, query, c->centroid, c->bases);
    table->bases(&c->book, query, c->centroid, bases);
    kernelcheck_compare(check, "bases", c->bases, bases, c->book.parts * sizeof(float));
    const struct bsw_bound_terms terms = {&c->book, c->list, c->doubled + q * c->dims, c->bases};
    for (uint32_t i = 0; i < ROWS; i++) places[i] = i;
    bsw_table_bounds_reference.sums(&terms, c->codes, c->bundle_bytes, places, ROWS, sums);
    bsw_table_scan_reference.distances(&c->book, c->list, c->query_terms, c->bases, floats);
    const struct bsw_code_table all = {c->book.parts, c->book.bits, floats};
    bsw_table_scan_reference.sums(&all, c->codes, c->bundle_bytes, BUNDLES, tables);
    kernelcheck_compare(check, "sums without a table", tables, sums, sizeof tables);
    for (size_t num = 1; num < ROWS; num = 3 * num + q % 5) { // some rows, in no order
        for (size_t i = 0; i < num; i++)
            places[i] = (uint32_t)(kernelcheck_random(check, 35, i) % ROWS);
        table->sums(&terms, c->codes, c->bundle_bytes, places, num, found);
        for (size_t i = 0; i < num; i++) tables[i] = sums[places[i]];
        kernelcheck_compare(check, "sums", tables, found, num * sizeof *found);
    }
}

// Row i with a limit of its own has to pass, for all i: which do is counted here.
struct attack {
    struct bsw_bound_rows rows;
    uint32_t passed[BUNDLES];
};

static struct attack attack_begin(const struct bound_case *c, const float *terms)
{
    static const uint32_t all[BUNDLES] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX,
                                          UINT32_MAX};
    return (struct attack){
        .rows = {c->book.parts, c->book.bits, c->codes, c->bundle_bytes, BUNDLES, terms, all}};
}

static void attack_row(struct attack *attack, size_t i, const uint8_t *numbers, float unit,
                       float most)
{
    const struct bsw_bound_query bound = {numbers, unit, most};
    size_t bundle = i / BSW_BUNDLE_ROWS;
    struct bsw_bound_rows rows = attack->rows;
    uint32_t mask;
    rows.codes += bundle * rows.bundle_bytes;
    rows.terms += bundle * BSW_BUNDLE_ROWS;
    rows.num_bundles = 1;
    bsw_table_bounds_reference.pass(&rows, &bound, 1, NULL, &mask);
    attack->passed[bundle] |= mask & 1u << i % BSW_BUNDLE_ROWS;
}

static void attack_end(struct kernelcheck *check, const char *what, const struct attack *attack)
{
    kernelcheck_compare(check, what, attack->rows.masks, attack->passed, sizeof attack->passed);
}

// A table of the type, from floats; returns 2^-x. memory: of its own.
static float make_table(const struct bound_case *c, enum bsw_table_type type, int is_signed,
                        const float *floats, struct bsw_code_table *table)
{
    size_t num = bsw_product_numbers(&c->book);
    float *numbers = kernelcheck_allocate(num * sizeof *numbers), largest = 0.0f;
    for (size_t i = 0; i < num; i++)
        largest = fabsf(floats[i]) > largest ? fabsf(floats[i]) : largest;
    int exponent = bsw_table_exponent(type, largest);
    memcpy(numbers, floats, num * sizeof *numbers);
    if (type != BSW_TABLE_FLOAT32)
        bsw_table_scan_reference.round_numbers(type, is_signed, exponent, floats, num, numbers);
    *table = (struct bsw_code_table){c->book.parts, c->book.bits, numbers};
    return bsw_table_power(-exponent);
}

// A limit that is exactly a row's sum, of tables of all types: the row has to pass, by the bound's
// own terms. floats: the table of distances.
static void attack(struct kernelcheck *check, const struct bound_case *c,
                   const struct bsw_bound_scale *scale, size_t q, const float *floats)
{
    const float *query = c->queries + q * c->dims;
    const uint8_t *numbers = c->numbers + q * bsw_bound_bytes(&c->book);
    double base = (double)bsw_table_bounds_reference.gap(query, c->centroid, c->dims),
           lengths = length_of(query, c->dims) + length_of(c->centroid, c->dims),
           entries = bsw_bound_entries(&c->book),
           size = bsw_bound_size(&c->book, base, entries, lengths);
    for (int type = 0; type < BSW_NUM_TABLE_TYPES; type++) {
        struct bsw_code_table table;
        float sums[ROWS], power = make_table(c, (enum bsw_table_type)type, 0, floats, &table);
        struct attack rows = attack_begin(c, c->terms);
        bsw_table_scan_reference.sums(&table, c->codes, c->bundle_bytes, BUNDLES, sums);
        for (size_t i = 0; i < ROWS; i++) {
            double limit = bsw_bound_type_limit((enum bsw_table_type)type, c->book.parts,
                                                (double)(sums[i] * power), size);
            attack_row(&rows, i, numbers, scale->unit,
                       bsw_bound_most(&c->book, limit, scale->least, base, entries, lengths));
        }
        attack_end(check, bsw_table_name((enum bsw_table_type)type), &rows);
    }
}

// The same of one table for all rows, with bytes of its own numbers, a sign as distances have it or
// products, and something to add to keys.
static void attack_table(struct kernelcheck *check, const struct bound_case *c,
                         enum bsw_table_type type, int is_product, const float *floats,
                         float addition)
{
    static const float zeros[ROWS];
    size_t num = bsw_product_numbers(&c->book);
    float sums[ROWS], *expanded = kernelcheck_allocate(num * sizeof *expanded);
    uint8_t *numbers = kernelcheck_allocate(bsw_bound_bytes(&c->book));
    struct attack rows = attack_begin(c, zeros);
    struct bsw_code_table table;
    float power = make_table(c, type, is_product, floats, &table),
          multiplier = is_product ? power : -power;
    memcpy(expanded, table.numbers, num * sizeof *expanded);
    double size = bsw_bound_table_size(&c->book, expanded);
    for (size_t i = 0; i < num && is_product; i++) expanded[i] = -expanded[i];
    const struct bsw_bound_scale scale =
        bsw_table_bounds_reference.narrow(&c->book, expanded, numbers);
    bsw_table_scan_reference.sums(&table, c->codes, c->bundle_bytes, BUNDLES, sums);
    for (size_t i = 0; i < ROWS; i++) {
        float key = ((sums[i] * multiplier + 0.0f) + addition) + 0.0f;
        attack_row(&rows, i, numbers, scale.unit,
                   bsw_bound_most_of_table(c->book.parts, scale.least, size, (double)multiplier,
                                           (double)addition, (double)key));
    }
    attack_end(check, is_product ? "rows of products" : "rows of distances", &rows);
    kernelcheck_free(expanded);
}

static void attack_tables(struct kernelcheck *check, const struct bound_case *c,
                          const float *floats)
{
    static const float additions[] = {0, 1, -3e4f, 1e-30f};
    for (int type = 0; type < BSW_NUM_TABLE_TYPES; type++) {
        for (size_t a = 0; a < LENGTH(additions); a++) {
            attack_table(check, c, (enum bsw_table_type)type, 0, floats, additions[a]);
            attack_table(check, c, (enum bsw_table_type)type, 1, c->query_terms, additions[a]);
        }
    }
}

// All numbers of queries, with limits from none to all.
static void check_pass(struct kernelcheck *check, const struct bound_case *c,
                       const struct bsw_table_bounds_table *table, const float *unit)
{
    uint32_t expected[BSW_BOUND_QUERIES * BUNDLES], found[BSW_BOUND_QUERIES * BUNDLES],
        masks[BUNDLES];
    struct bsw_bound_query queries[BSW_BOUND_QUERIES];
    void *room = kernelcheck_allocate(bsw_bound_room_bytes(BUNDLES));
    for (size_t b = 0; b < BUNDLES; b++) masks[b] = (uint32_t)kernelcheck_random(check, 36, b);
    for (size_t q = 0; q < BSW_BOUND_QUERIES; q++) // about a row's own bound
        queries[q] = (struct bsw_bound_query){
            c->numbers + q * bsw_bound_bytes(&c->book), unit[q],
            q % 7 == 6 ? -INFINITY
                       : fmaf(unit[q], 100.0f * (float)c->book.parts, c->terms[q * 7 % ROWS])};
    for (size_t bundles = 1; bundles <= BUNDLES; bundles += 2) {
        const struct bsw_bound_rows rows = {c->book.parts, c->book.bits, c->codes, c->bundle_bytes,
                                            bundles,       c->terms,     masks};
        for (size_t num = 1; num <= BSW_BOUND_QUERIES; num += num < 5 ? 1 : num < 11 ? 6 : 5) {
            bsw_table_bounds_reference.pass(&rows, queries, num, room, expected);
            table->pass(&rows, queries, num, room, found);
            kernelcheck_compare(check, "rows that pass", expected, found,
                                num * bundles * sizeof *found);
        }
    }
}

static void check_case(struct kernelcheck *check, const struct bsw_table_bounds_table *table,
                       uint32_t parts, uint32_t dims, uint32_t bits, const float *size)
{
    struct bound_case c;
    float units[BSW_BOUND_QUERIES], *floats;
    make_case(check, parts, dims, bits, size, &c);
    floats = kernelcheck_allocate(bsw_product_numbers(&c.book) * sizeof(float));
    kernelcheck_case(check, "%u parts of %u dims, %u bits, sizes %g %g %g", parts, dims, bits,
                     (double)size[0], (double)size[1], (double)size[2]);
    for (size_t q = 0; q < BSW_BOUND_QUERIES; q++) {
        const struct bsw_bound_scale scale = check_narrow(check, &c, table, q);
        const float *query = c.queries + q * c.dims;
        float gap = bsw_table_bounds_reference.gap(query, c.centroid, c.dims),
              other = table->gap(query, c.centroid, c.dims);
        kernelcheck_compare(check, "gap", &gap, &other, sizeof gap);
        units[q] = scale.unit;
        if (q >= 2) continue;
        check_sums(check, &c, table, q, floats);
        attack(check, &c, &scale, q, floats);
        if (q == 0) attack_tables(check, &c, floats);
    }
    check_pass(check, &c, table, units);
    kernelcheck_free(c.memory);
}

// More bundles than a level takes at a time.
static void check_many_bundles(struct kernelcheck *check,
                               const struct bsw_table_bounds_table *table, uint32_t bits)
{
    enum { MANY = 67, PARTS = 5, NUM = 3 };
    const struct bsw_product_book book = {.parts = PARTS, .bits = bits};
    const size_t bytes = bsw_bound_bytes(&book), bundle_bytes = (size_t)8 * BSW_BUNDLE_ROWS;
    uint8_t *numbers = kernelcheck_allocate(NUM * bytes),
            *codes = kernelcheck_allocate(MANY * bundle_bytes);
    float *terms = kernelcheck_allocate(MANY * BSW_BUNDLE_ROWS * sizeof *terms);
    void *room = kernelcheck_allocate(bsw_bound_room_bytes(MANY));
    uint32_t masks[MANY], expected[NUM * MANY], found[NUM * MANY];
    struct bsw_bound_query queries[NUM];
    memset(numbers, 0, NUM * bytes);
    for (size_t i = 0; i < NUM * bytes; i++)
        if (i % bytes < (size_t)PARTS << bits)
            numbers[i] = (uint8_t)kernelcheck_random(check, 40, i);
    for (size_t i = 0; i < MANY * bundle_bytes; i++)
        codes[i] = (uint8_t)kernelcheck_random(check, 41, i);
    for (size_t i = 0; i < MANY * BSW_BUNDLE_ROWS; i++) terms[i] = kernelcheck_float(check, 42, i);
    for (size_t b = 0; b < MANY; b++) masks[b] = (uint32_t)kernelcheck_random(check, 43, b);
    for (size_t q = 0; q < NUM; q++)
        queries[q] = (struct bsw_bound_query){numbers + q * bytes, 0.001f, 0.6f};
    const struct bsw_bound_rows rows = {PARTS, bits, codes, bundle_bytes, MANY, terms, masks};
    kernelcheck_case(check, "%d bundles, %u bits", MANY, bits);
    bsw_table_bounds_reference.pass(&rows, queries, NUM, room, expected);
    table->pass(&rows, queries, NUM, room, found);
    kernelcheck_compare(check, "rows of many bundles that pass", expected, found, sizeof found);
    kernelcheck_free(numbers);
}

void check_table_bounds(struct kernelcheck *check)
{
    const struct bsw_table_bounds_table *table = bsw_table_bounds_table_get(check->level);
    for (size_t p = 0; p < LENGTH(part_counts); p++)
        for (size_t d = 0; d < LENGTH(part_dims); d++)
            for (uint32_t bits = 4; bits <= 8; bits += 4)
                check_case(check, table, part_counts[p], part_dims[d], bits,
                           sizes[(p + d) % LENGTH(sizes)]);
    for (size_t s = 0; s < LENGTH(sizes); s++) check_case(check, table, 32, 4, 4, sizes[s]);
    for (uint32_t bits = 4; bits <= 8; bits += 4) // the largest sums of bytes
        check_case(check, table, BSW_BOUND_MAX_PARTS, 2, bits, sizes[0]);
    for (uint32_t bits = 4; bits <= 8; bits += 4) check_many_bundles(check, table, bits);
}
