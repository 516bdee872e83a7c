// SPDX-License-Identifier: Apache-2.0
// Tables of entries within a radius, and which rows are ranked, against their definition in plain
// arithmetic.
#include "unit_test.h"

#include <math.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/codes/metric.h"
#include "kernels/select/key_shift.h"
#include "shard/codecs/selective_table.h"

enum { PARTS = 5, MOST = PARTS * 256, DIMS = 2 * PARTS };

static struct bsw_error err;

struct made {
    struct bsw_product_codes *codes;
    _Alignas(64) float query[32], centroid[32], room[32];
    _Alignas(64) float query_term[MOST], list_term[MOST], table_room[MOST + PARTS];
    struct bsw_product_terms terms;
};

static float number(uint64_t seed, uint64_t i)
{
    return (float)(bsw_hash2(seed, i) % 2001) / 500.0f - 2.0f;
}

// Random entries and radii of 0.6 to 1.8; one part's entries are all the same.
static void make(enum bsw_metric metric, uint32_t bits, uint64_t seed, struct made *out)
{
    const struct bsw_table_scan_table *kernels = &bsw_table_scan_reference;
    memset(out, 0, sizeof *out);
    assert_ok(bsw_product_codes_create(metric, DIMS, PARTS, bits, "none", &out->codes, &err), &err);
    struct bsw_product_codes *codes = out->codes;
    size_t num = bsw_product_numbers(&codes->book) * 2;
    for (size_t i = 0; i < num; i++) codes->entries[i] = number(seed, i);
    for (size_t i = num - (size_t)2 * (1u << bits); i < num; i++) codes->entries[i] = 0.25f;
    bsw_product_codes_norms(codes);
    assert_ok(bsw_product_radii_create(PARTS, &codes->radii, &err), &err);
    for (uint32_t p = 0; p < PARTS; p++) {
        static const float box[] = {-2, -2, 2, 2};
        memcpy(codes->radii->boxes + 4 * p, box, sizeof box);
        codes->radii->ends[2 * p] = 0.6f;
        codes->radii->ends[2 * p + 1] = 1.8f;
        for (size_t cell = 0; cell < BSW_RADII_MAP; cell++)
            codes->radii->radii[p * BSW_RADII_MAP + cell] =
                0.6f + (float)(bsw_hash2(seed, cell) % 13) / 10.0f;
    }
    for (uint32_t d = 0; d < DIMS; d++) {
        out->query[d] = number(seed + 1, d);
        out->centroid[d] = number(seed + 2, d) / 4;
    }
    const float *centroid = metric == BSW_METRIC_L2 ? out->centroid : NULL;
    bsw_product_query_term(codes, kernels, out->query, out->room, out->query_term);
    bsw_product_list_term(codes, kernels, centroid, out->room, out->list_term);
    out->terms = (struct bsw_product_terms){out->query, out->query_term, centroid, out->list_term};
}

static void open_selection(const struct made *made, struct bsw_selection_settings settings,
                           enum bsw_cpu_level level, struct bsw_selection *out)
{
    settings.is_on = 1;
    assert_ok(bsw_entry_finder_get("brute", &settings.finder, &err), &err);
    assert_ok(bsw_selection_open(&settings, made->codes, level, out, &err), &err);
}

// How far outside its sphere an entry is: below 0 within.
static double outside(const struct made *made, const struct bsw_selection_settings *settings,
                      uint32_t p, uint32_t e, double share)
{
    const struct bsw_product_codes *codes = made->codes;
    size_t num = bsw_product_entries(&codes->book);
    double q[2],
        radius = (double)bsw_product_radius(codes->radii, settings->radii, p, made->query[2 * p],
                                            made->query[2 * p + 1]) *
                 (double)settings->scale * share,
        square = 0;
    for (uint32_t d = 0; d < 2; d++) {
        double entry = codes->entries[(2 * p + d) * num + e];
        q[d] = (double)made->query[2 * p + d] -
               (made->terms.centroid ? (double)made->centroid[2 * p + d] : 0.0);
        square += (q[d] - entry) * (q[d] - entry);
        if (codes->metric != BSW_METRIC_L2) square -= entry * entry;
    }
    return isinf(settings->scale) ? -1 : square - radius * radius;
}

static void check_number(const struct made *made, const struct bsw_selection_settings *settings,
                         const float *full, uint32_t p, uint32_t e, float found, int is_hit)
{
    size_t at = ((size_t)p << made->codes->book.bits) + e;
    double out = outside(made, settings, p, e, 1), inner = outside(made, settings, p, e, 0.5);
    int is_l2 = made->codes->metric == BSW_METRIC_L2;
    if (fabs(out) > 1e-4) assert_int_equal(is_hit, out < 0);
    if (settings->mode == BSW_SELECTION_L) {
        assert_true(found == (float)is_hit);
    } else if (settings->mode == BSW_SELECTION_M) {
        if (fabs(inner) > 1e-4 && fabs(out) > 1e-4)
            assert_true(found == (inner < 0 ? 1.0f : out < 0 ? 0.0f : -1.0f));
    } else if (is_hit) {
        assert_memory_equal(&found, &full[at], sizeof found);
    } else if (settings->is_miss_infinite) {
        assert_true(found == (is_l2 ? INFINITY : -INFINITY));
    } else { // no entry outside adds less to a distance, or more to a product
        double worse = (double)full[at] - (double)found;
        assert_true(is_l2 ? worse >= -1e-4 : worse <= 1e-4);
        // out is what the bound is exceeded by: of squared distances, or of minus twice products.
        assert_true(fabs(fabs(worse) - (is_l2 ? out : out / 2)) < 1e-4);
    }
}

// A row of misses, where each part has one, has the sum that devices are told.
static void check_nothing(const struct bsw_selection *selection, const struct made *made,
                          const float *table, const uint32_t *hits)
{
    float limits[PARTS], sum = 0.0f;
    size_t words = bsw_selective_words(made->codes);
    bsw_selective_limits(selection, made->query, limits);
    for (uint32_t p = 0; p < PARTS; p++, hits += words) {
        uint32_t e = 0, num = 1u << made->codes->book.bits;
        while (e < num && hits[e / 32] >> e % 32 & 1) e++;
        if (e == num) return;
        sum += table[p * num + e];
    }
    assert_true(bsw_selective_nothing(selection, made->query, limits) == sum);
}

static void check_tables(const struct made *made, const struct bsw_selection_settings *settings)
{
    const struct bsw_product_codes *codes = made->codes;
    _Alignas(64) static float full[MOST + 16], plain[MOST + 16], found[MOST + 16];
    _Alignas(64) static uint32_t plain_hits[64], hits[64];
    _Alignas(64) static unsigned char room[32768];
    float table_room[MOST + PARTS];
    assert_true(bsw_selective_room_bytes(codes) <= sizeof room);
    size_t numbers = bsw_product_numbers(&codes->book), words = bsw_selective_words(codes);
    float full_multiplier = bsw_product_table(codes, &bsw_table_scan_reference, BSW_TABLE_FLOAT32,
                                              &made->terms, table_room, full);
    float limits[PARTS];
    for (int turn = 0, level = 0; level < BSW_CPU_NUM_LEVELS;
         level = turn % 2 ? level : bsw_cpu_level_next(level)) {
        struct bsw_selection selection;
        open_selection(made, *settings, (enum bsw_cpu_level)level, &selection);
        bsw_selective_limits(&selection, made->query, limits);
        assert_non_null(selection.tables);
        if (++turn % 2) selection.tables = NULL; // by what the finder finds
        memset(hits, 0xff, sizeof hits);
        float multiplier = bsw_selective_table(&selection, &made->terms, turn % 2 ? NULL : limits,
                                               room, found, hits);
        assert_true(multiplier ==
                    bsw_selective_plain_table(&selection, &made->terms, plain, plain_hits));
        assert_true(multiplier == (settings->mode == BSW_SELECTION_H ? full_multiplier : 1.0f));
        assert_memory_equal(found, plain, numbers * sizeof *found);
        assert_memory_equal(hits, plain_hits, PARTS * words * sizeof *hits);
        size_t num_hits = 0;
        for (uint32_t p = 0; p < PARTS; p++)
            for (uint32_t e = 0; e < 1u << codes->book.bits; e++) {
                int is_hit = hits[p * words + e / 32] >> e % 32 & 1;
                num_hits += (size_t)is_hit;
                check_number(made, settings, full, p, e, found[((size_t)p << codes->book.bits) + e],
                             is_hit);
            }
        check_nothing(&selection, made, found, hits);
        assert_int_equal(selection.work.num_entries, numbers);
        assert_int_equal(selection.work.num_computed, numbers);
        assert_int_equal(selection.work.num_within, num_hits);
        if (isinf(settings->scale)) assert_int_equal(num_hits, numbers);
        if (isinf(settings->scale) && settings->mode == BSW_SELECTION_H)
            assert_memory_equal(found, full, numbers * sizeof *found);
        bsw_selection_close(&selection);
    }
}

UNIT_TEST(tables_are_those_of_the_definition)
{
    static struct made made;
    static const float scales[] = {0.3f, 1.0f, 2.0f, INFINITY};
    for (uint64_t i = 0; i < 3 * 2 * 4 * 4; i++) {
        make((enum bsw_metric)(i % 3), i / 3 % 2 ? 8 : 4, i, &made);
        const struct bsw_selection_settings settings = {
            .mode = i / 24 < 2 ? BSW_SELECTION_H : (enum bsw_selection_mode)(i / 24 - 1),
            .scale = scales[i / 6 % 4],
            .is_miss_infinite = i / 24 == 1,
            .radii = (enum bsw_radii_kind)(i % 3)};
        check_tables(&made, &settings);
        bsw_product_codes_destroy(&made.codes);
    }
}

// A table of rays whose limits are of their cells, as the map has them.
static void check_nearest(const struct made *made, const struct bsw_selection_settings *settings,
                          const struct bsw_selection *selection, const float *full,
                          const float *found, const uint32_t *hits)
{
    const struct bsw_product_codes *codes = made->codes;
    size_t num = bsw_product_entries(&codes->book), words = bsw_selective_words(codes);
    for (size_t i = 0; i < PARTS * num; i++) {
        uint32_t p = (uint32_t)(i / num), e = (uint32_t)(i % num);
        float x = made->query[2 * p] - made->centroid[2 * p],
              y = made->query[2 * p + 1] - made->centroid[2 * p + 1],
              dx = x - codes->entries[2 * p * num + e],
              dy = y - codes->entries[(2 * p + 1) * num + e], square = fmaf(dy, dy, dx * dx);
        size_t cell = bsw_entry_map_at(selection->map, p, x, y);
        float limit = selection->map->limits[cell], miss = selection->map->misses[cell];
        int is_hit = hits[p * words + e / 32] >> e % 32 & 1;
        assert_int_equal(is_hit, square <= limit);
        if (settings->mode == BSW_SELECTION_M)
            assert_true(found[i] == (is_hit ? (float)(square <= limit * 0.25f) : -1.0f));
        else if (settings->mode == BSW_SELECTION_L)
            assert_true(found[i] == (float)is_hit);
        else
            assert_true(found[i] == (is_hit                       ? full[i]
                                     : settings->is_miss_infinite ? INFINITY
                                     : settings->is_miss_mean     ? miss
                                                                  : limit));
    }
}

UNIT_TEST(radii_of_the_nearest_are_those_of_their_cells)
{
    static struct made made;
    static const float scales[] = {0.5f, 1.0f, INFINITY};
    _Alignas(64) static float full[MOST + 16], found[MOST + 16];
    _Alignas(64) static uint32_t hits[64];
    _Alignas(64) static unsigned char room[32768];
    float table_room[MOST + PARTS], limits[PARTS];
    for (uint64_t i = 0; i < 2 * 3 * 5; i++) {
        make(BSW_METRIC_L2, i % 2 ? 8 : 4, i, &made);
        const struct bsw_selection_settings settings = {
            .mode = i / 6 < 3 ? BSW_SELECTION_H : (enum bsw_selection_mode)(i / 6 - 2),
            .scale = scales[i / 2 % 3],
            .is_miss_infinite = i / 6 == 1,
            .is_miss_mean = i / 6 == 2,
            .radii = BSW_RADII_NEAREST};
        bsw_product_table(made.codes, &bsw_table_scan_reference, BSW_TABLE_FLOAT32, &made.terms,
                          table_room, full);
        for (int turn = 0, level = 0; level < BSW_CPU_NUM_LEVELS;
             level = turn % 2 ? level : bsw_cpu_level_next(level)) {
            struct bsw_selection selection;
            open_selection(&made, settings, (enum bsw_cpu_level)level, &selection);
            bsw_selective_limits(&selection, made.query, limits);
            if (++turn % 2) selection.tables = NULL;
            bsw_selective_table(&selection, &made.terms, turn % 2 ? NULL : limits, room, found,
                                hits);
            check_nearest(&made, &settings, &selection, full, found, hits);
            bsw_selection_close(&selection);
        }
        bsw_product_codes_destroy(&made.codes);
    }
}

// Rows 0 .. 31 with codes r, r, ... and row 32 with one hit alone.
UNIT_TEST(rows_without_a_hit_are_not_ranked)
{
    for (uint32_t bits = 4; bits <= 8; bits += 4) {
        struct bsw_product_codes *codes;
        uint32_t hits[PARTS * 8] = {0};
        uint8_t bundles[2][PARTS * BSW_BUNDLE_ROWS] = {{0}};
        uint64_t items[BSW_BUNDLE_ROWS + 1],
            infinite = bsw_candidate_pack(BSW_SCORE_OF_MINUS_INFINITY, 3);
        assert_ok(bsw_product_codes_create(BSW_METRIC_L2, DIMS, PARTS, bits, "none", &codes, &err),
                  &err);
        size_t bytes = (PARTS * bits + 7) / 8 * BSW_BUNDLE_ROWS, words = bsw_selective_words(codes);
        for (uint32_t r = 0; r < BSW_BUNDLE_ROWS; r++) {
            uint32_t code = bits == 8 ? 200 + r : r % 16;
            items[r] = bsw_candidate_pack(bsw_score_from_float(-1.0f), r);
            for (uint32_t p = 0; p < PARTS; p++)
                bundles[0][(bits == 8 ? p : p / 2) * BSW_BUNDLE_ROWS + r] |=
                    (uint8_t)(code << (bits == 4) * p % 2 * 4);
        }
        items[BSW_BUNDLE_ROWS] = bsw_candidate_pack(bsw_score_from_float(-2.0f), BSW_BUNDLE_ROWS);
        hits[1 * words + (bits == 8 ? 203 : 3) / 32] |= 1u << (bits == 8 ? 203 : 3) % 32;
        hits[4 * words] |= 1u; // of row 32: code 0 of the last part
        memmove(bundles[0] + bytes, bundles[1], bytes);
        size_t num = bsw_selective_keep(codes, hits, bundles[0], bytes, items, BSW_BUNDLE_ROWS + 1);
        size_t expected = bits == 8 ? 2 : 5; // codes 3 and 19 and of the last part 0 and 16
        assert_int_equal(num, expected);
        assert_int_equal(bsw_candidate_row(items[bits == 8 ? 0 : 1]), 3);
        assert_int_equal(bsw_candidate_row(items[num - 1]), BSW_BUNDLE_ROWS);
        assert_int_equal(bsw_selective_keep(codes, hits, bundles[0], bytes, &infinite, 1), 0);
        bsw_product_codes_destroy(&codes);
    }
}

static enum bsw_status fail_once(bsw_entry_finder *finder, const struct bsw_entry_ray *rays,
                                 size_t num_rays, const struct bsw_entry_hits *hits,
                                 struct bsw_error *error)
{
    static int num_calls;
    (void)finder;
    (void)rays;
    if (num_calls++ == 0) return bsw_fail(error, BSW_ERROR_IO, "a device that failed");
    memset(hits->offsets, 0, (num_rays + 1) * sizeof *hits->offsets);
    return BSW_OK;
}

// A batch that failed is told once: the next is a batch of its own.
UNIT_TEST(a_failure_is_of_its_batch)
{
    static struct made made;
    _Alignas(64) static float found[MOST + 16];
    _Alignas(64) static uint32_t hits[64];
    _Alignas(64) static unsigned char room[32768];
    struct bsw_entry_finder_ops failing = {.name = "failing", .find = fail_once};
    const struct bsw_selection_settings settings = {.scale = 1.0f};
    struct bsw_selection selection;
    make(BSW_METRIC_L2, 8, 1, &made);
    open_selection(&made, settings, BSW_CPU_REFERENCE, &selection);
    failing.close = selection.settings.finder->close;
    selection.settings.finder = &failing;
    selection.tables = NULL;
    bsw_selective_table(&selection, &made.terms, NULL, room, found, hits);
    assert_int_equal(bsw_selection_report(&selection, &err), BSW_ERROR_IO);
    assert_non_null(strstr(err.message, "a device that failed"));
    bsw_selective_table(&selection, &made.terms, NULL, room, found, hits);
    assert_ok(bsw_selection_report(&selection, &err), &err);
    bsw_selection_close(&selection);
    bsw_product_codes_destroy(&made.codes);
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
