// SPDX-License-Identifier: Apache-2.0
#include "kernelcheck.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/host/scan_case.h"
#include "common/base/arithmetic.h"
#include "common/codes/half.h"
#include "common/codes/metric.h"

static const enum bsw_plane_fill fills[] = {BSW_PLANES_RANDOM, BSW_PLANES_ZEROS, BSW_PLANES_ONES,
                                            BSW_PLANES_ENDS};
enum { ALL_BITS, NO_BITS, SOME_BITS, ONE_BIT, NUM_MASKS };
enum { INTEGER_KEYS, PLAIN_KEYS, WIDE_KEYS, WHOLE_KEYS, NUM_KEYS };
enum { NO_REACH, SOME_REACH, FAR_REACH, INFINITE_TAILS, NUM_REACHES };

static const size_t bundle_counts[] = {1, 2, 3, 33};
static const size_t query_counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 24, 25, 37};
static const uint32_t first_rows[] = {0, 1000000037, UINT32_MAX - 33 * 32 + 1};
#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

// Everything of one case, all guarded.
struct scan_case {
    struct bsw_scan_case scan;
    char name[256]; // of the layout
    size_t room;
    enum bsw_plane_fill fill;
    int mask_fill, keys;
    uint32_t stage_dims; // 0: no first stage
    int reach_fill;      // of a first stage
    int is_raw, factor;  // whole keys: any bytes and components; 1 or 2
    struct bsw_matrix_tile tile;
    struct bsw_matrix_queries queries;
    uint64_t *expected_items, *found_items;
    struct bsw_matrix_output *expected, *found;
};

// ---- input ----

// Halves that are finite and >= 0; WIDE_KEYS has 0, subnormal ones and the largest.
static uint16_t fill_scale(const struct kernelcheck *check, int keys, size_t i)
{
    static const uint16_t extremes[] = {0, 1, 0x3ff, 0x400, 0x3c00, 0x5555, 0x7bff};
    uint64_t random = kernelcheck_random(check, 10, i);
    if (keys == WIDE_KEYS) return extremes[random % LENGTH(extremes)];
    return (uint16_t)(0x2000 + random % 0x1000);
}

// Half the largest float, so that a key cannot overflow.
static float fill_bias(const struct kernelcheck *check, int keys, size_t i)
{
    static const float extremes[] = {-FLT_MAX / 2, -1.0f,     -0x1p-149f, -0.0f,
                                     0.0f,         0x1p-149f, 0x1p24f,    FLT_MAX / 2};
    uint64_t random = kernelcheck_random(check, 11, i);
    if (keys == WIDE_KEYS) return extremes[random % LENGTH(extremes)];
    return 1000.0f * kernelcheck_float(check, 11, i);
}

static float fill_query_scale(int keys, size_t i)
{
    static const float extremes[] = {1.0f, -0x1p60f, 0.0f, 0x1p-140f, -0.3f, 0x1p60f};
    return keys == WIDE_KEYS ? extremes[i % LENGTH(extremes)] : 0.37f + (float)i;
}

static uint32_t fill_mask(const struct kernelcheck *check, int fill, size_t b)
{
    uint64_t random = kernelcheck_random(check, 12, b);
    switch (fill) {
    case ALL_BITS:
        return UINT32_MAX;
    case NO_BITS:
        return 0;
    case SOME_BITS:
        return random % 4 == 0 ? 0 : (uint32_t)(random >> 32);
    default:
        return 1u << random % 32;
    }
}

// Bytes, components and constants are the reference's; the unpackers are compared apart.
static void fill_case(const struct kernelcheck *check, struct scan_case *c)
{
    struct bsw_scan_case *scan = &c->scan;
    bsw_scan_case_fill_codes(scan, (int)c->fill, bsw_hash2(check->seed, 20));
    bsw_scan_case_unpack(scan, BSW_CPU_REFERENCE, 0, scan->num_bundles, scan->bytes);
    for (size_t q = 0; q < scan->num_queries; q++) {
        enum bsw_plane_fill fill = c->fill == BSW_PLANES_RANDOM ? BSW_PLANES_RANDOM : fills[q % 3];
        bsw_scan_case_fill_query(scan, q, fill, bsw_hash2(check->seed, 100));
        scan->query_scales[q] = fill_query_scale(c->keys, q);
    }
    for (size_t b = 0; b < scan->num_bundles; b++)
        scan->masks[b] = fill_mask(check, c->mask_fill, b);
    for (size_t r = 0; r < scan->num_bundles * BSW_BUNDLE_ROWS; r++) {
        scan->scales[r] = fill_scale(check, c->keys, r);
        scan->biases[r] = fill_bias(check, c->keys, r);
        scan->offsets[r] = (int32_t)(kernelcheck_random(check, 14, r) % 2000001) - 1000000;
    }
}

// Any byte with any component; some rows and queries have the ends alone. What is left of 32 bits
// is filled by constants and offsets.
static void fill_raw(const struct kernelcheck *check, struct scan_case *c)
{
    const size_t dims = c->scan.layout.padded_dims, rows = c->scan.num_bundles * BSW_BUNDLE_ROWS;
    const int32_t most = INT32_MAX - c->factor * (int32_t)dims * 255 * 128;
    for (size_t i = 0; i < rows * dims; i++) {
        uint64_t random = kernelcheck_random(check, 15, i);
        int is_end = i / 4 % 16 % 3 == 0; // by row of a half bundle
        c->scan.bytes[i] = (uint8_t)(is_end ? random % 2 * 255 : random);
        if (i / 4 % 16 == 0) c->scan.bytes[i] = 255;
    }
    for (size_t i = 0; i < c->scan.num_queries * dims; i++) {
        uint64_t random = kernelcheck_random(check, 16, i);
        int end = i / dims % 4 < 2 ? -128 : 127;
        c->scan.components[i] = (int8_t)(i / dims % 2 ? random : (uint64_t)end);
    }
    for (size_t q = 0; q < c->scan.num_queries; q++)
        c->scan.constants[q] = (q % 3 == 0 ? -1 : q % 3 == 1 ? 1 : 0) * (most / 2);
    for (size_t r = 0; r < rows; r++) {
        int32_t random = (int32_t)(kernelcheck_random(check, 17, r) % 1000);
        c->scan.offsets[r] = (r % 5 == 0 ? -1 : r % 5 == 1 ? 1 : 0) * (most / 2 - random);
    }
}

static void name_case(struct kernelcheck *check, const struct scan_case *c, size_t query, int round)
{
    kernelcheck_case(check,
                     "%s, %u query bits, %zu bundles, query %zu of %zu, keys %d, fill %d, masks "
                     "%d, %u stage dimensions, reaches %d, round %d, limit %08x",
                     c->name, c->scan.query_bits, c->scan.num_bundles, query, c->scan.num_queries,
                     c->keys, (int)c->fill, c->mask_fill, c->stage_dims, c->reach_fill, round,
                     c->scan.limits[query]);
}

static void make_case(const struct kernelcheck *check, struct scan_case *c, uint32_t first_row)
{
    struct bsw_scan_case *scan = &c->scan;
    size_t queries = scan->num_queries;
    scan->has_tails = scan->has_offsets = 1;
    scan->tile_bundles = scan->num_bundles;
    scan->first_row = first_row;
    if (bsw_scan_case_allocate(scan, kernelcheck_allocate_array, NULL, NULL) != BSW_OK) abort();
    c->room = scan->num_bundles * BSW_BUNDLE_ROWS + 2; // up to 2 items are there before
    c->expected_items = kernelcheck_allocate(queries * c->room * sizeof(uint64_t));
    c->found_items = kernelcheck_allocate(queries * c->room * sizeof(uint64_t));
    c->expected = kernelcheck_allocate(queries * sizeof *c->expected);
    c->found = kernelcheck_allocate(queries * sizeof *c->found);
    fill_case(check, c);
    if (c->is_raw) fill_raw(check, c);
    bsw_code_layout_format(&scan->layout, c->name, sizeof c->name);
    c->tile = bsw_scan_case_tile(scan, 0, scan->num_bundles);
    c->queries = bsw_scan_case_queries(scan, queries);
    c->queries.factor = c->factor;
    if (c->keys == WHOLE_KEYS) c->tile.offsets = scan->offsets;
    if (c->keys == PLAIN_KEYS || c->keys == WIDE_KEYS) return;
    c->tile.scales = c->tile.tails = NULL;
    c->tile.biases = NULL;
    c->queries.scales = NULL;
}

// ---- unpacking ----

static void check_unpack(struct kernelcheck *check, const struct scan_case *c)
{
    size_t bytes = bsw_matrix_tile_bytes(c->scan.layout.padded_dims, c->scan.num_bundles);
    uint8_t *found = kernelcheck_allocate(bytes);
    bsw_scan_case_unpack(&c->scan, check->level, 0, c->scan.num_bundles, found);
    kernelcheck_compare(check, "unpack", c->scan.bytes, found, bytes);
    kernelcheck_free(found);
}

static void check_unpack_query(struct kernelcheck *check, const struct scan_case *c)
{
    size_t words = bsw_layout_query_words(&c->scan.layout, c->scan.query_bits);
    size_t bytes = c->scan.layout.padded_dims;
    int8_t *found = kernelcheck_allocate(bytes);
    for (size_t q = 0; q < c->scan.num_queries && q < 3; q++) {
        int32_t constant = 0;
        bsw_matrix_scan_table_get(check->level)
            ->unpack_query(&c->scan.layout, c->scan.query_planes + q * words, c->scan.query_bits,
                           found, &constant);
        kernelcheck_compare(check, "unpack_query", c->scan.components + q * bytes, found, bytes);
        kernelcheck_compare(check, "unpack_query (constant)", &c->scan.constants[q], &constant,
                            sizeof constant);
    }
    kernelcheck_free(found);
}

// ---- scanning ----

// Query q has q % 3 items already.
static void reset_outputs(const struct scan_case *c, uint64_t *items,
                          struct bsw_matrix_output *outputs)
{
    for (size_t q = 0; q < c->scan.num_queries; q++) {
        outputs[q] = (struct bsw_matrix_output){
            .items = items + q * c->room, .count = q % 3, .limit = c->scan.limits[q]};
        for (size_t i = 0; i < q % 3; i++) outputs[q].items[i] = 0x1234567800000000u + q + i;
    }
}

// What is in expected and found, after one of the scans.
static void compare_outputs(struct kernelcheck *check, const struct scan_case *c,
                            const char *function, int round)
{
    for (size_t q = 0; q < c->scan.num_queries; q++) {
        name_case(check, c, q, round);
        const struct bsw_matrix_output *expected = &c->expected[q], *found = &c->found[q];
        kernelcheck_compare_lists(check, function, expected->items, expected->count, found->items,
                                  found->count, sizeof *found->items);
    }
}

static void compare_scans(struct kernelcheck *check, const struct scan_case *c, int round)
{
    reset_outputs(c, c->expected_items, c->expected);
    reset_outputs(c, c->found_items, c->found);
    bsw_matrix_scan_reference.scan(&c->tile, &c->queries, c->expected);
    bsw_matrix_scan_table_get(check->level)->scan(&c->tile, &c->queries, c->found);
    compare_outputs(check, c, "scan", round);
}

// Tails, reaches and slacks; none of them need be safe. With infinite tails bounds may be NaN,
// which no limit lets pass.
static struct bsw_matrix_stage fill_stage(const struct kernelcheck *check, struct scan_case *c)
{
    const int reach_fill = c->reach_fill;
    for (size_t r = 0; r < c->scan.num_bundles * BSW_BUNDLE_ROWS; r++) {
        uint64_t random = kernelcheck_random(check, 18, r); // some tiny, most near the biases
        c->scan.tails[r] = (uint16_t)(r % 8 == 0 ? random % 0x5400 : 0x4800 + random % 0xc00);
        if (reach_fill == INFINITE_TAILS && r % 3 == 0) c->scan.tails[r] = 0x7c00;
    }
    for (size_t q = 0; q < c->scan.num_queries; q++) {
        uint64_t random = kernelcheck_random(check, 19, q);
        float some = 100.0f * (float)(random % 1000003) * 1e-6f;
        c->scan.reaches[q] = reach_fill == NO_REACH    ? 0.0f
                             : reach_fill == FAR_REACH ? 0x1p100f
                                                       : some;
        c->scan.slacks[q] = reach_fill == FAR_REACH           ? 1e30f
                            : reach_fill == NO_REACH || q % 2 ? 0.0f
                                                              : some;
        bsw_scan_case_set_stage(&c->scan, q, c->stage_dims);
    }
    return bsw_scan_case_stage(&c->scan, c->stage_dims);
}

static void compare_staged(struct kernelcheck *check, const struct scan_case *c,
                           const struct bsw_matrix_stage *stage, int round)
{
    name_case(check, c, 0, round);
    struct bsw_stage_counts expected = {7, 5}, found = expected; // they are added to
    reset_outputs(c, c->expected_items, c->expected);
    reset_outputs(c, c->found_items, c->found);
    bsw_matrix_scan_reference.scan_staged(&c->tile, stage, &c->queries, c->expected, &expected);
    bsw_matrix_scan_table_get(check->level)
        ->scan_staged(&c->tile, stage, &c->queries, c->found, &found);
    kernelcheck_compare(check, "scan_staged (counts)", &expected, &found, sizeof found);
    compare_outputs(check, c, "scan_staged", round);
}

// Limits of the second round: scores that occur and their neighbours, the ends, and the borders of
// the floats. expected holds all rows that the masks let through.
static void choose_limits(const struct kernelcheck *check, struct scan_case *c)
{
    static const uint32_t fixed[] = {0,          1,          0x007fffff, 0x00800000,
                                     0x7fffffff, 0x80000000, 0x80000001, 0xff7fffff,
                                     0xff800000, 0xff800001, 0xfffffffe, UINT32_MAX};
    for (size_t q = 0; q < c->scan.num_queries; q++) {
        uint64_t random = kernelcheck_random(check, 13, q);
        size_t num = c->expected[q].count - q % 3;
        c->scan.limits[q] = fixed[random % LENGTH(fixed)];
        if (num == 0 || random % 4 == 0) continue;
        uint64_t candidate = c->expected[q].items[q % 3 + (random >> 8) % num];
        c->scan.limits[q] = bsw_candidate_score(candidate) + (uint32_t)(random % 4) - 2;
    }
}

static int compare_items(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

// Limits that the best 2 % of a query's rows reach. expected as above.
static void choose_high_limits(struct scan_case *c)
{
    for (size_t q = 0; q < c->scan.num_queries; q++) {
        size_t num = c->expected[q].count - q % 3;
        uint64_t *items = c->expected[q].items + q % 3;
        c->scan.limits[q] = 0;
        if (num == 0) continue;
        qsort(items, num, sizeof *items, compare_items);
        c->scan.limits[q] = bsw_candidate_score(items[num / 50]);
    }
}

static void check_case(struct kernelcheck *check, struct scan_case *c, uint32_t first_row)
{
    make_case(check, c, first_row);
    memset(c->scan.limits, 0, c->scan.num_queries * sizeof *c->scan.limits);
    name_case(check, c, 0, 0);
    if (!c->is_raw) {
        check_unpack(check, c);
        check_unpack_query(check, c);
    }
    compare_scans(check, c, 0);
    choose_limits(check, c);
    compare_scans(check, c, 1);
    kernelcheck_free(c->scan.planes[0]);
}

// Limits that are bounds of rows, to the bit.
static void choose_bounds(const struct kernelcheck *check, const struct bsw_matrix_stage *stage,
                          struct scan_case *c)
{
    const size_t dims = c->scan.layout.padded_dims;
    for (size_t q = 0; q < c->scan.num_queries; q++) {
        size_t row = kernelcheck_random(check, 20, q) % (c->scan.num_bundles * BSW_BUNDLE_ROWS);
        int32_t dot = stage->constants[q];
        for (size_t i = 0; i < stage->dims; i++) {
            size_t place = ((row / 16 * (dims / 4) + i / 4) * 16 + row % 16) * 4 + i % 4;
            dot -= 2 * c->scan.bytes[place] * c->scan.components[q * dims + i];
        }
        float scaled = bsw_half_to_float(c->scan.scales[row]) * (float)dot;
        float most =
            fmaf(stage->reaches[q], bsw_half_to_float(c->scan.tails[row]), c->scan.biases[row]);
        float bound = fmaf(c->scan.query_scales[q], scaled, most) + 0.0f;
        c->scan.limits[q] = isnan(bound) ? 0 : bsw_score_from_float(bound);
    }
}

// Limits that all rows pass, some, few and none; those of some and few are taken from whole scans.
// Then those that one row just passes.
static void check_staged_case(struct kernelcheck *check, struct scan_case *c, uint32_t first_row)
{
    make_case(check, c, first_row);
    const struct bsw_matrix_stage stage = fill_stage(check, c);
    for (int round = 0; round < 5; round++) {
        memset(c->scan.limits, round == 3 ? 0xff : 0, c->scan.num_queries * sizeof *c->scan.limits);
        if (round == 1 || round == 2) {
            reset_outputs(c, c->expected_items, c->expected);
            bsw_matrix_scan_reference.scan(&c->tile, &c->queries, c->expected);
        }
        if (round == 1) choose_limits(check, c);
        if (round == 2) choose_high_limits(c);
        if (round == 4) choose_bounds(check, &stage, c);
        compare_staged(check, c, &stage, round);
    }
    kernelcheck_free(c->scan.planes[0]);
}

// Counts of bundles and queries, fills, masks and keys take turns with different periods.
static void check_turn(struct kernelcheck *check, const struct bsw_code_layout *layout,
                       unsigned query_bits, size_t turn)
{
    struct scan_case c = {.scan.layout = *layout,
                          .scan.num_bundles = bundle_counts[turn % 3],
                          .scan.num_queries = query_counts[turn % LENGTH(query_counts)],
                          .scan.query_bits = query_bits,
                          .fill = fills[turn / 3 % LENGTH(fills)],
                          .mask_fill = (int)(turn / 2 % NUM_MASKS),
                          .keys = (int)(turn % 7 % NUM_KEYS),
                          .factor = 1 + (int)(turn / 7 % 2)};
    if (turn % 13 == 0) c.scan.num_bundles = bundle_counts[3];
    if (layout->padded_dims > 512) { // the reference takes long
        c.scan.num_bundles = bundle_counts[turn % 2];
        c.scan.num_queries = query_counts[turn % 14];
    }
    check_case(check, &c, first_rows[turn % LENGTH(first_rows)]);
}

// Every pair of bits at every length; also the longest rows that the short sums of a level may hold
// and longer ones.
static void check_pairs(struct kernelcheck *check)
{
    static const uint32_t more_dims[] = {255, 256, 257};
    size_t turn = 0;
    for (size_t d = 0; d < kernelcheck_num_dims + LENGTH(more_dims); d++) {
        uint32_t dims =
            d < kernelcheck_num_dims ? kernelcheck_dims[d] : more_dims[d - kernelcheck_num_dims];
        for (uint32_t bits = 1; bits <= BSW_MAX_CODE_BITS; bits++) {
            struct bsw_code_layout layout;
            bsw_code_layout_init(&layout);
            if (bsw_code_layout_append(&layout, dims, bits, NULL) != BSW_OK) abort();
            for (unsigned query_bits = 1; query_bits <= BSW_MAX_QUERY_BITS; query_bits++) {
                for (int i = 0; i < 3; i++) check_turn(check, &layout, query_bits, turn++);
            }
        }
    }
}

// The largest dots, beyond what a float holds exactly, with all keys.
static void check_largest(struct kernelcheck *check)
{
    static const uint32_t dims[] = {128, 256, 1000};
    for (size_t i = 0; i < LENGTH(dims); i++) {
        for (int keys = 0; keys < NUM_KEYS; keys++) {
            struct scan_case c = {.scan.num_bundles = 2,
                                  .scan.num_queries = 13,
                                  .scan.query_bits = 7,
                                  .fill = BSW_PLANES_ENDS,
                                  .keys = keys,
                                  .factor = 2};
            if (bsw_code_layout_append(&c.scan.layout, dims[i], 8, NULL) != BSW_OK) abort();
            check_case(check, &c, 0);
        }
    }
}

static void check_segments(struct kernelcheck *check)
{
    static const struct {
        const char *text;
        uint32_t dims;
    } layouts[] = {{"32x4,32x2,64x1", 128}, {"33x4,31x2,36x1", 100},
                   {"1x8,1x1,1x7", 3},      {"1x1,64x8,5x3,33x2", 103},
                   {"31x7,100x6,2x5", 133}, {"200x3,33x8,27x1,40x2", 300}};
    for (size_t i = 0; i < LENGTH(layouts); i++) {
        struct bsw_code_layout layout;
        if (bsw_code_layout_parse(layouts[i].text, layouts[i].dims, &layout, NULL) != BSW_OK)
            abort();
        for (unsigned query_bits = 1; query_bits <= BSW_MAX_QUERY_BITS; query_bits++) {
            for (size_t turn = 0; turn < 3; turn++)
                check_turn(check, &layout, query_bits, 29 * i + 11 * query_bits + 5 * turn);
        }
    }
}

// Every number of queries with every kind of key and mask.
static void check_counts(struct kernelcheck *check)
{
    for (size_t n = 0; n < LENGTH(query_counts); n++) {
        for (int keys = 0; keys < NUM_KEYS; keys++) {
            for (int mask_fill = 0; mask_fill < NUM_MASKS; mask_fill++) {
                struct scan_case c = {.scan.num_bundles =
                                          bundle_counts[(n + (size_t)mask_fill) % 3],
                                      .scan.num_queries = query_counts[n],
                                      .scan.query_bits = 6,
                                      .mask_fill = mask_fill,
                                      .keys = keys,
                                      .factor = 1 + (int)(n % 2)};
                if (bsw_code_layout_append(&c.scan.layout, 32, 3, NULL) != BSW_OK) abort();
                check_case(check, &c, first_rows[n % LENGTH(first_rows)]);
            }
        }
    }
}

// Bytes and components at their ends, keys at those of 32 bits.
static void check_whole_keys(struct kernelcheck *check)
{
    static const uint32_t dims[] = {1, 33, 96, 128, 257, 1000, 4096};
    for (size_t i = 0; i < LENGTH(dims); i++) {
        for (int turn = 0; turn < 6; turn++) {
            struct scan_case c = {.scan.num_bundles = bundle_counts[turn % 3],
                                  .scan.num_queries = query_counts[(7 * (size_t)turn + i) % 14],
                                  .scan.query_bits = 6,
                                  .mask_fill = turn % NUM_MASKS,
                                  .keys = WHOLE_KEYS,
                                  .is_raw = 1,
                                  .factor = 1 + turn % 2};
            if (bsw_code_layout_append(&c.scan.layout, dims[i], 8, NULL) != BSW_OK) abort();
            check_case(check, &c, first_rows[turn % 3]);
        }
    }
}

// Layouts whose stages end inside a segment and at its end, have odd constants (33x4), take all
// that short sums may hold and more.
static void check_stages(struct kernelcheck *check)
{
    static const struct {
        const char *text;
        uint32_t dims, stage_dims;
    } stages[] = {{"64x3", 64, 32},
                  {"32x4,32x2,64x1", 128, 64},
                  {"128x8", 128, 96},
                  {"96x5,224x2", 320, 96},
                  {"33x4,31x2,36x1", 100, 32},
                  {"33x4,31x2,36x1", 100, 64},
                  {"33x4,31x2,36x1", 100, 96},
                  {"257x6", 257, 256},
                  {"300x7,20x1", 320, 288},
                  {"1000x2", 1000, 512}};
    size_t turn = 0;
    for (size_t i = 0; i < LENGTH(stages); i++) {
        for (int reach_fill = 0; reach_fill < NUM_REACHES; reach_fill++) {
            for (int mask_fill = 0; mask_fill < NUM_MASKS; mask_fill++, turn++) {
                struct scan_case c = {.scan.num_bundles =
                                          bundle_counts[turn % 11 == 0 ? 3 : turn % 3],
                                      .scan.num_queries = query_counts[turn % LENGTH(query_counts)],
                                      .scan.query_bits = (unsigned)(1 + turn % BSW_MAX_QUERY_BITS),
                                      .fill = fills[turn / 5 % LENGTH(fills)],
                                      .mask_fill = mask_fill,
                                      .keys = turn / 4 % 3 ? PLAIN_KEYS : WIDE_KEYS,
                                      .stage_dims = stages[i].stage_dims,
                                      .reach_fill = reach_fill};
                if (bsw_code_layout_parse(stages[i].text, stages[i].dims, &c.scan.layout, NULL))
                    abort();
                check_staged_case(check, &c, first_rows[turn % LENGTH(first_rows)]);
            }
        }
    }
}

void check_matrix_scan(struct kernelcheck *check)
{
    check_pairs(check);
    check_largest(check);
    check_segments(check);
    check_counts(check);
    check_whole_keys(check);
    check_stages(check);
}
