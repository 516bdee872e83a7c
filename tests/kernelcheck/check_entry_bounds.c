// SPDX-License-Identifier: Apache-2.0
#include "kernelcheck.h"

#include <math.h>
#include <string.h>

#include "kernels/entry_bounds/entry_bounds.h"
#include "kernels/table_bounds/table_bounds.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static const uint32_t part_counts[] = {1, 3, 8, 17, BSW_ENTRY_BOUND_MOST};
// Entries, and query and centroid, relative to the gap between these two: what sums cancel.
static const float sizes[][3] = {{1, 1, 1},
                                 {0.01f, 100, 1},
                                 {1, 3000, 1e-3f},
                                 {1e-3f, 1e-4f, 30},
                                 {0x1p-60f, 0x1p-58f, 0x1p-61f}};
enum { BUNDLES = 3, ROWS = BUNDLES * BSW_BUNDLE_ROWS, MANY = BSW_ENTRY_BOUND_QUERIES };

struct bound_case {
    struct bsw_product_book book;
    float *points, *norms, *list, *query,
        *bases; // query: [16][2 parts], times -2; bases: [16][parts]
    float *x, *y, *limit, *inner;
    double entries, base[MANY], lengths[MANY];
    uint8_t *codes;
    uint32_t masks[BUNDLES];
    float inverse[MANY], unit[MANY];
};

static float draw(const struct kernelcheck *check, uint64_t stream, size_t i, float size)
{
    return size * kernelcheck_float(check, stream, i);
}

static void make_book(const struct kernelcheck *check, const float *size, struct bound_case *c)
{
    uint32_t parts = c->book.parts;
    size_t numbers = (size_t)parts * 256;
    c->points = kernelcheck_allocate(numbers * 2 * sizeof(float));
    c->norms = kernelcheck_allocate(numbers * sizeof(float));
    c->list = kernelcheck_allocate(numbers * sizeof(float));
    for (size_t i = 0; i < numbers * 2; i++)
        c->points[i] = i % 9 == 4 ? c->points[i - 1] : draw(check, 1, i, size[0]);
    for (size_t i = 0; i < numbers; i++) {
        float x = c->points[i / 256 * 512 + i % 256], y = c->points[i / 256 * 512 + 256 + i % 256];
        c->norms[i] = fmaf(y, y, fmaf(x, x, 0.0f));
    }
    c->book.entries = c->points;
    c->book.norms = c->norms;
    c->entries = bsw_bound_entries(&c->book);
    c->codes = kernelcheck_allocate(BUNDLES * parts * BSW_BUNDLE_ROWS);
    for (size_t i = 0; i < BUNDLES * parts * BSW_BUNDLE_ROWS; i++)
        c->codes[i] = (uint8_t)kernelcheck_random(check, 2, i);
}

// A query's ray of a part: limits around the distance of some entry, none and all among them.
static void make_ray(const struct kernelcheck *check, struct bound_case *c, uint32_t p, size_t q)
{
    size_t at = (size_t)p * MANY + q, e = (size_t)kernelcheck_random(check, 6, at) % 256;
    const float *points = c->points + (size_t)p * 512 + e;
    float dx = c->x[at] - points[0], dy = c->y[at] - points[256], rim = fmaf(dy, dy, dx * dx);
    const float limits[] = {rim, nextafterf(rim, 0), 1.5f * rim, 0.0f, 0.5f * rim};
    c->limit[at] = limits[(p + q) % 5];
    c->inner[at] = c->limit[at] * 0.25f;
}

static void make_queries(const struct kernelcheck *check, const float *size, struct bound_case *c)
{
    uint32_t parts = c->book.parts;
    size_t rays = (size_t)parts * MANY * sizeof(float);
    float *doubled = kernelcheck_allocate((size_t)parts * 2 * sizeof(float));
    c->query = kernelcheck_allocate(2 * rays);
    c->bases = kernelcheck_allocate(rays);
    c->x = kernelcheck_allocate(rays);
    c->y = kernelcheck_allocate(rays);
    c->limit = kernelcheck_allocate(rays);
    c->inner = kernelcheck_allocate(rays);
    double centroid_square = 0;
    for (uint32_t d = 0; d < 2 * parts; d++) {
        doubled[d] = 2 * draw(check, 3, d, size[1]);
        centroid_square += (double)doubled[d] * (double)doubled[d] / 4;
    }
    bsw_table_scan_reference.products(&c->book, doubled, c->norms, c->list);
    for (size_t q = 0; q < MANY; q++) {
        float range = 0;
        double square = 0;
        c->base[q] = 0;
        for (uint32_t p = 0; p < parts; p++) {
            size_t at = (size_t)p * MANY + q;
            float centre[2] = {doubled[2 * p] / 2, doubled[2 * p + 1] / 2}, own[2];
            for (size_t d = 0; d < 2; d++) {
                own[d] = centre[d] + draw(check, 4, 2 * at + d, size[2]);
                c->query[q * 2 * parts + 2 * p + d] = -2 * own[d];
                square += (double)own[d] * (double)own[d];
            }
            c->x[at] = own[0] - centre[0];
            c->y[at] = own[1] - centre[1];
            c->bases[q * parts + p] = fmaf(c->y[at], c->y[at], fmaf(c->x[at], c->x[at], 0.0f));
            c->base[q] += (double)c->bases[q * parts + p];
            make_ray(check, c, p, q);
            range = fmaxf(range, c->limit[at]);
        }
        c->lengths[q] = sqrt(square) + sqrt(centroid_square);
        c->unit[q] = bsw_bound_unit(range, &c->inverse[q]);
    }
}

static struct bsw_entry_bound_terms terms_of(const struct bound_case *c, size_t q,
                                             int is_miss_infinite)
{
    uint32_t parts = c->book.parts;
    return (struct bsw_entry_bound_terms){
        parts,    c->points,    c->list, c->query + q * 2 * parts, c->bases + q * parts, c->x + q,
        c->y + q, c->limit + q, MANY,    is_miss_infinite};
}

// The sums of all rows by both levels; they are left in `sums`.
static void check_sums(struct kernelcheck *check, const struct bsw_entry_bounds_table *table,
                       const struct bound_case *c, size_t q, float *sums)
{
    uint32_t places[ROWS];
    float *found = kernelcheck_allocate(ROWS * sizeof *found);
    size_t bytes = c->book.parts * BSW_BUNDLE_ROWS;
    for (uint32_t i = 0; i < ROWS; i++) places[i] = ROWS - 1 - i;
    for (int is_infinite = 1; is_infinite >= 0; is_infinite--) {
        const struct bsw_entry_bound_terms terms = terms_of(c, q, is_infinite);
        bsw_entry_bounds_reference.sums(&terms, c->codes, bytes, places, ROWS, sums);
        table->sums(&terms, c->codes, bytes, places, ROWS, found);
        kernelcheck_compare(check, "sums", sums, found, ROWS * sizeof *sums);
    }
    kernelcheck_free(found);
}

// The middle of the finite sums, as a limit.
static float middle_of(const float *sums)
{
    float middle = 0;
    size_t best = ROWS;
    for (size_t i = 0; i < ROWS; i++) {
        size_t below = 0;
        for (size_t j = 0; j < ROWS; j++) below += sums[j] < sums[i];
        size_t off = below > ROWS / 3 ? below - ROWS / 3 : ROWS / 3 - below;
        if (sums[i] < INFINITY && off < best) best = off, middle = sums[i];
    }
    return middle;
}

static void compare_passes(struct kernelcheck *check, const struct bsw_entry_bounds_table *table,
                           const struct bound_case *c, int number,
                           const struct bsw_entry_bound_rays *rays, uint32_t *expected)
{
    const struct bsw_entry_bound_rows rows = {
        c->book.parts, c->points, c->codes, (size_t)c->book.parts * BSW_BUNDLE_ROWS,
        BUNDLES,       c->masks};
    size_t bytes = bsw_entry_bound_sums_bytes(BUNDLES);
    void *room = kernelcheck_allocate(bsw_entry_bound_room_bytes(BUNDLES)),
         *other = kernelcheck_allocate(bsw_entry_bound_room_bytes(BUNDLES));
    uint32_t found[MANY * BUNDLES], within[2][MANY] = {{3}, {3}};
    bsw_entry_bounds_reference.pass[number](&rows, rays, room, expected, within[0]);
    table->pass[number](&rows, rays, other, found, within[1]);
    kernelcheck_compare(check, "pass", expected, found, sizeof found);
    kernelcheck_compare(check, "sums of bytes", room, other, bytes);
    kernelcheck_compare(check, "within", within[0], within[1], sizeof within[0]);
    kernelcheck_free(room);
}

// No row that is within a limit fails.
static void check_bound(struct kernelcheck *check, const uint32_t *masks, const uint32_t *wanted,
                        const float *sums, float limit)
{
    for (size_t i = 0; i < ROWS; i++) {
        uint32_t place = (uint32_t)(ROWS - 1 - i), bit = 1u << place % 32;
        uint32_t is_wanted = sums[i] <= limit && wanted[place / 32] & bit,
                 passes = is_wanted && masks[place / 32] & bit;
        kernelcheck_compare(check, "bound", &is_wanted, &passes, sizeof passes);
    }
}

static void check_case(struct kernelcheck *check, const struct bsw_entry_bounds_table *table,
                       uint32_t parts, const float *size)
{
    struct bound_case c = {.book = {.parts = parts, .part_dims = 2, .bits = 8}};
    uint32_t expected[MANY * BUNDLES];
    float sums[MANY][ROWS], limits[MANY];
    make_book(check, size, &c);
    make_queries(check, size, &c);
    struct bsw_entry_bound_rays rays = {c.x, c.y, c.limit, c.inner, c.inverse, 0xbfffu, {0}};
    for (size_t b = 0; b < BUNDLES; b++) c.masks[b] = (uint32_t)kernelcheck_random(check, 5, b);
    for (size_t q = 0; q < MANY; q++) {
        check_sums(check, table, &c, q, sums[q]);
        limits[q] = middle_of(sums[q]);
        double most = bsw_entry_bound_most(parts, (double)limits[q], c.base[q], c.entries,
                                           c.lengths[q]),
               end = c.unit[q] > 0 ? most / (double)c.unit[q] : 65535;
        rays.ends[q] = (uint16_t)(end < 65535 ? end : 65535);
    }
    compare_passes(check, table, &c, BSW_ENTRY_SUM, &rays, expected);
    for (size_t q = 0; q < MANY; q++)
        if (rays.wanted >> q & 1)
            check_bound(check, expected + q * BUNDLES, c.masks, sums[q], limits[q]);
    for (int number = BSW_ENTRY_RING; number <= BSW_ENTRY_COUNT; number++) {
        for (size_t q = 0; q < MANY; q++) rays.ends[q] = (uint16_t)(1 + q * parts / MANY);
        compare_passes(check, table, &c, number, &rays, expected);
    }
    kernelcheck_free(c.points);
}

void check_entry_bounds(struct kernelcheck *check)
{
    const struct bsw_entry_bounds_table *table = bsw_entry_bounds_table_get(check->level);
    for (size_t s = 0; s < LENGTH(sizes); s++)
        for (size_t i = 0; i < LENGTH(part_counts); i++) {
            kernelcheck_case(check, "%u parts, sizes %zu", part_counts[i], s);
            check_case(check, table, part_counts[i], sizes[s]);
        }
}
