// SPDX-License-Identifier: Apache-2.0
#include "kernelcheck.h"

#include <math.h>
#include <string.h>

#include "kernels/table_scan/table_scan.h"

static const uint32_t part_counts[] = {1, 2, 3, 8, 15, 17, 33};
static const uint32_t part_dims[] = {1, 2, 8, 13};
static const size_t bundle_counts[] = {1, 2, 5, 16, 73};
#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

// ---- tables ----

struct book_case {
    struct bsw_product_book book;
    float *x, *start, *bases;
    void *memory; // the first of it
};

static void make_book(const struct kernelcheck *check, uint32_t parts, uint32_t dims, uint32_t bits,
                      struct book_case *c)
{
    c->book = (struct bsw_product_book){.parts = parts, .part_dims = dims, .bits = bits};
    size_t numbers = bsw_product_numbers(&c->book), num = bsw_product_entries(&c->book);
    float *entries = kernelcheck_allocate(numbers * dims * sizeof *entries),
          *norms = kernelcheck_allocate(numbers * sizeof *norms);
    c->memory = entries;
    // Equal entries: the first is the nearest.
    for (size_t i = 0; i < numbers * dims; i++)
        entries[i] = kernelcheck_float(check, 1, i / num * num + i % num / (i % 3 ? 1 : 4));
    for (size_t i = 0; i < numbers; i++) {
        norms[i] = 0;
        for (uint32_t d = 0; d < dims; d++) {
            float e = entries[(i / num * dims + d) * num + i % num];
            norms[i] = fmaf(e, e, norms[i]);
        }
    }
    c->book.entries = entries;
    c->book.norms = norms;
    c->x = kernelcheck_allocate(3 * parts * dims * sizeof(float));
    c->start = kernelcheck_allocate(numbers * sizeof(float));
    c->bases = kernelcheck_allocate(parts * sizeof(float));
    for (size_t i = 0; i < 3 * parts * dims; i++) c->x[i] = kernelcheck_float(check, 2, i);
    for (size_t i = 0; i < numbers; i++) c->start[i] = kernelcheck_float(check, 3, i);
    for (size_t i = 0; i < parts; i++) c->bases[i] = kernelcheck_float(check, 4, i);
}

static void check_book(struct kernelcheck *check, const struct bsw_table_scan_table *table,
                       uint32_t parts, uint32_t dims, uint32_t bits)
{
    struct book_case c;
    const struct bsw_table_scan_table *reference = &bsw_table_scan_reference;
    make_book(check, parts, dims, bits, &c);
    size_t numbers = bsw_product_numbers(&c.book), bytes = numbers * sizeof(float);
    float *expected = kernelcheck_allocate(bytes), *found = kernelcheck_allocate(bytes);
    uint8_t *expected_codes = kernelcheck_allocate(3 * parts),
            *found_codes = kernelcheck_allocate(3 * parts);
    kernelcheck_case(check, "%u parts of %u dims, %u bits", parts, dims, bits);
    reference->products(&c.book, c.x, NULL, expected);
    table->products(&c.book, c.x, NULL, found);
    kernelcheck_compare(check, "products", expected, found, bytes);
    reference->products(&c.book, c.x, c.start, expected);
    table->products(&c.book, c.x, c.start, found);
    kernelcheck_compare(check, "products from a start", expected, found, bytes);
    float largest = reference->distances(&c.book, expected, c.start, c.bases, found),
          other = table->distances(&c.book, expected, c.start, c.bases, expected);
    kernelcheck_compare(check, "distances", found, expected, bytes);
    kernelcheck_compare(check, "the largest distance", &largest, &other, sizeof other);
    reference->nearest(&c.book, c.x, (size_t)parts * dims, 3, expected_codes);
    table->nearest(&c.book, c.x, (size_t)parts * dims, 3, found_codes);
    kernelcheck_compare(check, "nearest", expected_codes, found_codes, 3 * parts);
    kernelcheck_free(c.memory);
}

// ---- formats ----

// All magnitudes, both signs, ends of cells and what is off the range.
static float number_to_round(const struct kernelcheck *check, size_t i)
{
    static const float ends[] = {0.0f,      -0.0f,     0x1p-15f,  0x1.fffffep-16f, 122880.0f,
                                 122879.9f, 131072.0f, 496.0f,    495.9999f,       512.0f,
                                 65504.0f,  65519.9f,  65520.0f,  0x1p-24f,        0x1p-25f,
                                 0x1p-7f,   -496.0f,   -65520.0f, 1e30f,           -1e30f};
    uint32_t bits = (uint32_t)kernelcheck_random(check, 5, i);
    float v;
    if (i < LENGTH(ends)) return ends[i];
    // Exponents from 2^-30 to 2^33.
    bits = (bits & 0x807fffffu) | (97 + (bits >> 23) % 64) << 23;
    memcpy(&v, &bits, sizeof v);
    return v;
}

// Another array, and in place.
static void check_round(struct kernelcheck *check, const struct bsw_table_scan_table *table,
                        enum bsw_table_type type, int is_signed, size_t n)
{
    size_t bytes = n * sizeof(float);
    float *in = kernelcheck_allocate(bytes), *expected = kernelcheck_allocate(bytes),
          *found = kernelcheck_allocate(bytes);
    for (size_t i = 0; i < n; i++) {
        in[i] = number_to_round(check, i);
        if (!is_signed && type >= BSW_TABLE_E5M3) in[i] = fabsf(in[i]);
    }
    for (int exponent = -3; exponent <= 3; exponent += 3) {
        kernelcheck_case(check, "%zu numbers to %s, signed %d, exponent %d", n,
                         bsw_table_name(type), is_signed, exponent);
        bsw_table_scan_reference.round_numbers(type, is_signed, exponent, in, n, expected);
        table->round_numbers(type, is_signed, exponent, in, n, found);
        kernelcheck_compare(check, "round_numbers", expected, found, bytes);
        memcpy(found, in, bytes);
        table->round_numbers(type, is_signed, exponent, found, n, found);
        kernelcheck_compare(check, "round_numbers in place", expected, found, bytes);
    }
    kernelcheck_free(in);
}

// ---- sums ----

// Checks the sums of some rows in no order, whose sums are known.
static void check_sums_at(struct kernelcheck *check, const struct bsw_table_scan_table *table,
                          const struct bsw_code_table *numbers, const uint8_t *codes,
                          size_t bundle_bytes, const float *sums, size_t rows)
{
    enum { MOST = 64 };
    uint32_t places[MOST];
    float expected[MOST], found[MOST];
    for (size_t i = 0; i < MOST; i++) {
        places[i] = (uint32_t)(kernelcheck_random(check, 11, i) % rows);
        expected[i] = sums[places[i]];
    }
    for (size_t num = 1; num <= MOST; num += num < 9 ? 4 : 55) {
        table->sums_at(numbers, codes, bundle_bytes, places, num, found);
        kernelcheck_compare(check, "sums of some rows", expected, found, num * sizeof *found);
    }
    bsw_table_scan_reference.sums_at(numbers, codes, bundle_bytes, places, MOST, found);
    kernelcheck_compare(check, "sums of some rows, plainly", expected, found, sizeof found);
}

static void check_sums(struct kernelcheck *check, const struct bsw_table_scan_table *table,
                       struct bsw_code_table numbers, size_t bundles)
{
    size_t rows = bundles * BSW_BUNDLE_ROWS;
    size_t bundle_bytes =
        (bsw_product_code_bytes(numbers.parts, numbers.bits) + 3) / 4 * 4 * BSW_BUNDLE_ROWS;
    size_t num = (size_t)numbers.parts << numbers.bits;
    float *memory = kernelcheck_allocate(num * sizeof *memory);
    uint8_t *codes = kernelcheck_allocate(bundles * bundle_bytes);
    float *expected = kernelcheck_allocate(rows * sizeof(float)),
          *found = kernelcheck_allocate(rows * sizeof(float));
    for (size_t i = 0; i < num; i++) memory[i] = kernelcheck_float(check, 7, i);
    for (size_t i = 0; i < bundles * bundle_bytes; i++)
        codes[i] = (uint8_t)kernelcheck_random(check, 8, i);
    numbers.numbers = memory;
    kernelcheck_case(check, "%u parts, %u bits, %zu bundles", numbers.parts, numbers.bits, bundles);
    bsw_table_scan_reference.sums(&numbers, codes, bundle_bytes, bundles, expected);
    table->sums(&numbers, codes, bundle_bytes, bundles, found);
    kernelcheck_compare(check, "sums", expected, found, rows * sizeof(float));
    check_sums_at(check, table, &numbers, codes, bundle_bytes, expected, rows);
    kernelcheck_free(memory);
}

// ---- filter ----

static void check_filter(struct kernelcheck *check, const struct bsw_table_scan_table *table,
                         size_t bundles)
{
    static const uint32_t limits[] = {0,           0x007fffffu, 0x3f000000u, 0x7fffffffu,
                                      0x80000000u, 0xbf800000u, 0xc0000000u, UINT32_MAX};
    size_t rows = bundles * BSW_BUNDLE_ROWS;
    float *sums = kernelcheck_allocate(rows * sizeof *sums);
    uint32_t *masks = kernelcheck_allocate(bundles * sizeof *masks);
    uint64_t *expected = kernelcheck_allocate(rows * sizeof *expected),
             *found = kernelcheck_allocate(rows * sizeof *found);
    for (size_t i = 0; i < rows; i++)
        sums[i] = i % 7 ? kernelcheck_float(check, 9, i) : i % 2 ? 1.0f : -0.0f;
    for (size_t b = 0; b < bundles; b++) masks[b] = (uint32_t)kernelcheck_random(check, 10, b);
    for (size_t l = 0; l < LENGTH(limits); l++) {
        for (int i = 0; i < 4; i++) {
            float multiplier = i % 2 ? -0.25f : 1.0f, addition = i / 2 ? 0.75f : 0.0f;
            kernelcheck_case(check, "%zu bundles, limit %08x, %g x + %g", bundles, limits[l],
                             (double)multiplier, (double)addition);
            size_t count = bsw_table_scan_reference.filter(sums, multiplier, addition, masks,
                                                           bundles, 96, limits[l], expected);
            kernelcheck_compare_lists(
                check, "filter", expected, count, found,
                table->filter(sums, multiplier, addition, masks, bundles, 96, limits[l], found),
                sizeof *found);
        }
    }
    kernelcheck_free(sums);
}

void check_table_scan(struct kernelcheck *check)
{
    const struct bsw_table_scan_table *table = bsw_table_scan_table_get(check->level);
    for (size_t p = 0; p < LENGTH(part_counts); p++)
        for (size_t d = 0; d < LENGTH(part_dims); d++)
            for (uint32_t bits = 4; bits <= 8; bits += 4)
                check_book(check, table, part_counts[p], part_dims[d], bits);
    for (int type = BSW_TABLE_FLOAT16; type < BSW_NUM_TABLE_TYPES; type++)
        for (int is_signed = 0; is_signed < 2; is_signed++)
            for (size_t n = 16; n <= 4096; n *= 16)
                check_round(check, table, (enum bsw_table_type)type, is_signed, n);
    for (size_t p = 0; p < LENGTH(part_counts); p++)
        for (uint32_t bits = 4; bits <= 8; bits += 4)
            for (size_t b = 0; b < LENGTH(bundle_counts); b++)
                check_sums(check, table, (struct bsw_code_table){part_counts[p], bits, NULL},
                           bundle_counts[b]);
    for (size_t b = 0; b < LENGTH(bundle_counts); b++) check_filter(check, table, bundle_counts[b]);
}
