// SPDX-License-Identifier: Apache-2.0
#include "kernelcheck.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/codes/half.h"
#include "common/codes/metric.h"
#include "kernels/select/select.h"

enum { RANDOM, FEW_VALUES, ALL_EQUAL, EXTREME, ZEROS, NUM_FILLS };
enum { ALL_BITS, NO_BITS, SOME_BITS, ONE_BIT, ENDS_EARLY, NUM_MASKS };

static const size_t bundle_counts[] = {0, 1, 2, 3, 17};
static const uint32_t first_rows[] = {0, 1000000037, UINT32_MAX - 17 * 32 + 1};
#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

// The arrays of a tile, all guarded.
struct tile {
    size_t num_bundles, num_rows;
    uint32_t first_row;
    int fill, mask_fill;
    int32_t *dots;
    uint32_t *masks;
    uint16_t *scales;
    float *biases;
    uint16_t *tails;
    float query_scale;
    uint64_t *expected, *found;               // candidates
    uint32_t *expected_places, *found_places; // of rows that a stage lets through
};

static int32_t fill_dot(const struct kernelcheck *check, int fill, size_t i)
{
    static const int32_t extremes[] = {INT32_MIN, INT32_MIN + 1, -1, 0, 1, INT32_MAX};
    uint64_t random = kernelcheck_random(check, 1, i);
    switch (fill) {
    case RANDOM:
        return (int32_t)(random % 200001) - 100000;
    case FEW_VALUES:
        return (int32_t)(random % 5) - 2;
    case ALL_EQUAL:
        return -7;
    case EXTREME:
        return extremes[random % LENGTH(extremes)];
    default:
        return 0;
    }
}

// Halves that are finite and >= 0: also 0, subnormal ones and the largest.
static uint16_t fill_scale(const struct kernelcheck *check, int fill, size_t i)
{
    static const uint16_t extremes[] = {0, 1, 0x3ff, 0x400, 0x3c00, 0x7bff};
    uint64_t random = kernelcheck_random(check, 2, i);
    if (fill == EXTREME) return extremes[random % LENGTH(extremes)];
    return fill == RANDOM ? (uint16_t)(0x2000 + random % 0x1000) : 0x3c00;
}

// Keys and biases; zeros of both signs come too.
static float fill_float(const struct kernelcheck *check, int fill, uint64_t stream, size_t i)
{
    static const float extremes[] = {-FLT_MAX, -FLT_MIN, -0x1p-149f, 0.0f, 0x1p-149f, FLT_MAX};
    uint64_t random = kernelcheck_random(check, stream, i);
    switch (fill) {
    case RANDOM:
        return 1000.0f * kernelcheck_float(check, stream, i);
    case FEW_VALUES:
        return (float)(random % 5) - 2.0f;
    case ALL_EQUAL:
        return -0.25f;
    case EXTREME:
        return extremes[random % LENGTH(extremes)];
    default:
        return random % 2 ? 0.0f : -0.0f;
    }
}

static uint32_t fill_mask(const struct kernelcheck *check, int fill, size_t b, size_t num_bundles)
{
    uint64_t random = kernelcheck_random(check, 3, b);
    switch (fill) {
    case ALL_BITS:
        return UINT32_MAX;
    case NO_BITS:
        return 0;
    case SOME_BITS:
        return random % 4 == 0 ? 0 : (uint32_t)(random >> 32);
    case ONE_BIT:
        return 1u << random % 32;
    default: // a partial last bundle
        return b + 1 < num_bundles ? UINT32_MAX : 0x1ffu;
    }
}

static struct tile make_tile(const struct kernelcheck *check, size_t num_bundles, int fill,
                             int mask_fill, uint32_t first_row)
{
    size_t num = num_bundles * 32;
    struct tile tile = {.num_bundles = num_bundles,
                        .num_rows = num,
                        .first_row = first_row,
                        .fill = fill,
                        .mask_fill = mask_fill};
    tile.query_scale = fill == EXTREME ? -0x1p60f : fill == ZEROS ? 0.0f : 0.37f;
    tile.dots = kernelcheck_allocate(num * sizeof *tile.dots);
    tile.masks = kernelcheck_allocate(num_bundles * sizeof *tile.masks);
    tile.scales = kernelcheck_allocate(num * sizeof *tile.scales);
    tile.biases = kernelcheck_allocate(num * sizeof *tile.biases);
    tile.tails = kernelcheck_allocate(num * sizeof *tile.tails);
    tile.expected_places = kernelcheck_allocate(num * sizeof *tile.expected_places);
    tile.found_places = kernelcheck_allocate(num * sizeof *tile.found_places);
    tile.expected = kernelcheck_allocate(num * sizeof *tile.expected);
    tile.found = kernelcheck_allocate(num * sizeof *tile.found);
    for (size_t i = 0; i < num; i++) {
        tile.dots[i] = fill_dot(check, fill, i);
        tile.scales[i] = fill_scale(check, fill, i);
        uint64_t random = kernelcheck_random(check, 10, i); // some tiny, most near the biases
        tile.tails[i] = (uint16_t)(i % 8 == 0 ? random % 0x5400 : 0x4800 + random % 0xc00);
        if (fill == EXTREME && i % 3 == 0) tile.tails[i] = i % 2 ? 0x7c00 : 0x7bff; // infinite too
        // The largest finite numbers with the largest products would overflow to NaN or infinity.
        tile.biases[i] = fill_float(check, fill, 4, i) * (fill == EXTREME ? 0.5f : 1.0f);
    }
    for (size_t b = 0; b < num_bundles; b++)
        tile.masks[b] = fill_mask(check, mask_fill, b, num_bundles);
    return tile;
}

enum { INTEGER, AFFINE, NUM_FILTERS };
static const char *const filter_names[] = {"filter_integer", "filter_affine"};

static size_t run_filter(const struct bsw_select_table *table, const struct tile *tile, int filter,
                         uint32_t limit, uint64_t *out)
{
    if (filter == INTEGER)
        return table->filter_integer(tile->dots, tile->masks, tile->num_bundles, tile->first_row,
                                     limit, out);
    return table->filter_affine(tile->dots, tile->scales, tile->biases, tile->query_scale,
                                tile->masks, tile->num_bundles, tile->first_row, limit, out);
}

static void check_limit(struct kernelcheck *check, const struct tile *tile, int filter,
                        uint32_t limit)
{
    size_t expected = run_filter(&bsw_select_reference, tile, filter, limit, tile->expected);
    size_t found = run_filter(bsw_select_table_get(check->level), tile, filter, limit, tile->found);
    kernelcheck_case(check, "limit %08x, %zu rows, fill %d, masks %d", limit, tile->num_rows,
                     tile->fill, tile->mask_fill);
    kernelcheck_compare_lists(check, filter_names[filter], tile->expected, expected, tile->found,
                              found, sizeof *tile->found);
}

// Limits that mean everything and nothing, those at the borders of the floats (-infinity, the
// zeros, +infinity and the NaNs beyond), and those round scores that occur.
static void check_limits(struct kernelcheck *check, const struct tile *tile, int filter)
{
    static const uint32_t fixed[] = {0,          1,          0x007ffffe, 0x007fffff, 0x00800000,
                                     0x7ffffffe, 0x7fffffff, 0x80000000, 0x80000001, 0x80800000,
                                     0xff7fffff, 0xff800000, 0xff800001, 0xffc00000, 0xffffffff};
    for (size_t i = 0; i < LENGTH(fixed); i++) check_limit(check, tile, filter, fixed[i]);
    size_t count = run_filter(&bsw_select_reference, tile, filter, 0, tile->expected);
    uint32_t scores[3] = {0};
    for (size_t i = 0; i < 3 && count > 0; i++)
        scores[i] = bsw_candidate_score(tile->expected[kernelcheck_random(check, 6, i) % count]);
    for (size_t i = 0; i < 3 && count > 0; i++) {
        for (uint32_t shift = 0; shift < 3; shift++)
            check_limit(check, tile, filter, scores[i] + shift - 1);
    }
}

static size_t run_reach(const struct bsw_select_table *table, const struct tile *tile, float reach,
                        float limit, uint32_t *places)
{
    return table->filter_reach(tile->dots, tile->scales, tile->biases, tile->tails,
                               tile->query_scale, reach, tile->masks, tile->num_bundles, limit,
                               places);
}

static size_t run_places(const struct bsw_select_table *table, const struct tile *tile,
                         const uint32_t *places, size_t num_places, uint32_t limit, uint64_t *out)
{
    return table->filter_places(tile->dots, tile->scales, tile->biases, tile->query_scale, places,
                                num_places, tile->first_row, limit, out);
}

// The places of a stage, and the candidates among them: at limits that bounds have, and round them.
static void check_reach(struct kernelcheck *check, const struct tile *tile, float reach,
                        float limit)
{
    const struct bsw_select_table *table = bsw_select_table_get(check->level);
    size_t expected = run_reach(&bsw_select_reference, tile, reach, limit, tile->expected_places);
    size_t found = run_reach(table, tile, reach, limit, tile->found_places);
    kernelcheck_case(check, "reach %g, limit %a, %zu rows, fill %d, masks %d", (double)reach,
                     (double)limit, tile->num_rows, tile->fill, tile->mask_fill);
    if (!kernelcheck_compare_lists(check, "filter_reach", tile->expected_places, expected,
                                   tile->found_places, found, sizeof *tile->found_places))
        return;
    for (int i = 0; i < 4; i++) {
        uint32_t score = i == 0 || expected == 0 ? 0 : bsw_candidate_score(tile->expected[0]);
        if (i > 1) score += i == 2 ? 1 : UINT32_MAX;
        size_t num = run_places(&bsw_select_reference, tile, tile->expected_places, expected, score,
                                tile->expected);
        size_t count = run_places(table, tile, tile->expected_places, expected, score, tile->found);
        kernelcheck_compare_lists(check, "filter_places", tile->expected, num, tile->found, count,
                                  sizeof *tile->found);
    }
}

static void check_reaches(struct kernelcheck *check, const struct tile *tile)
{
    static const float reaches[] = {0.0f, 1.0f, 37.3f, 0x1p100f};
    static const float fixed[] = {-INFINITY, -1000.0f, -0.0f, 0.0f, 3.0f, INFINITY, NAN};
    for (size_t r = 0; r < LENGTH(reaches); r++) {
        for (size_t i = 0; i < LENGTH(fixed); i++) check_reach(check, tile, reaches[r], fixed[i]);
        for (uint64_t i = 0; i < 2 && tile->num_rows > 0; i++) { // a row's bound
            size_t row = kernelcheck_random(check, 11, i) % tile->num_rows;
            float scaled = bsw_half_to_float(tile->scales[row]) * (float)tile->dots[row];
            float most = fmaf(reaches[r], bsw_half_to_float(tile->tails[row]), tile->biases[row]);
            float bound = fmaf(tile->query_scale, scaled, most);
            check_reach(check, tile, reaches[r], bound);
            check_reach(check, tile, reaches[r], nextafterf(bound, INFINITY));
        }
    }
}

// A tile's rows in two pieces into queues that hold some already.
static void check_queue(struct kernelcheck *check, const struct tile *tile, size_t length)
{
    size_t num = length * BSW_QUEUE_THREADS;
    uint64_t *expected = kernelcheck_allocate(num * sizeof *expected);
    uint64_t *found = kernelcheck_allocate(num * sizeof *found);
    size_t count = run_filter(&bsw_select_reference, tile, INTEGER, 0, tile->found);
    const struct bsw_select_table *tables[] = {&bsw_select_reference,
                                               bsw_select_table_get(check->level)};
    for (size_t i = 0; i < num; i++) { // queues from empty to full, best first
        size_t slot = i / BSW_QUEUE_THREADS;
        expected[i] = found[i] =
            slot >= i % (length + 1) ? 0 : bsw_candidate_pack(0x80000000u - 8u * slot, (uint32_t)i);
    }
    for (size_t i = 0; i < 2; i++) {
        uint64_t *queues = i == 0 ? expected : found;
        size_t half = count / 2 - count % 3 % (count / 2 + 1);
        tables[i]->queue_insert(tile->found, half, length, queues);
        tables[i]->queue_insert(tile->found + half, count - half, length, queues);
    }
    kernelcheck_case(check, "length %zu, %zu rows, fill %d, masks %d", length, tile->num_rows,
                     tile->fill, tile->mask_fill);
    kernelcheck_compare(check, "queue_insert", expected, found, num * sizeof *found);
    kernelcheck_free(expected);
}

static void check_filters(struct kernelcheck *check)
{
    for (size_t n = 0; n < LENGTH(bundle_counts); n++) {
        for (int fill = 0; fill < NUM_FILLS; fill++) {
            for (int mask_fill = 0; mask_fill < NUM_MASKS; mask_fill++) {
                uint32_t first_row = first_rows[(size_t)(fill + mask_fill) % LENGTH(first_rows)];
                struct tile tile = make_tile(check, bundle_counts[n], fill, mask_fill, first_row);
                for (int filter = 0; filter < NUM_FILTERS; filter++)
                    check_limits(check, &tile, filter);
                check_reaches(check, &tile);
                check_queue(check, &tile, 1);
                check_queue(check, &tile, 3);
                kernelcheck_free(tile.dots);
            }
        }
    }
}

enum { SHUFFLED, TIES, ONE_SCORE, ASCENDING, DESCENDING, PIPE, HALVES, NUM_ORDERS };

// Distinct candidates in a hostile order; ascending and descending are of the packed numbers.
static uint64_t fill_candidate(const struct kernelcheck *check, int order, size_t i, size_t n)
{
    uint64_t random = kernelcheck_random(check, 8, i);
    uint32_t row = (uint32_t)i;
    switch (order) {
    case SHUFFLED:
        return bsw_candidate_pack((uint32_t)random, row);
    case TIES:
        return bsw_candidate_pack(0x80000000u + (uint32_t)(random % 3), row);
    case ONE_SCORE:
        return bsw_candidate_pack(0xbf800000u, row);
    case ASCENDING:
        return bsw_candidate_pack((uint32_t)(i / 4), row ^ 3u);
    case DESCENDING:
        return bsw_candidate_pack(UINT32_MAX - (uint32_t)(i / 4), row);
    case PIPE:
        return bsw_candidate_pack((uint32_t)(i < n / 2 ? i : n - i), row);
    default:
        return bsw_candidate_pack(i % 2 ? 0u : UINT32_MAX, row);
    }
}

static int compare_candidates(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

static void check_keep(struct kernelcheck *check, int order, size_t n, size_t keep)
{
    size_t bytes = n * sizeof(uint64_t);
    uint64_t *expected = kernelcheck_allocate(bytes), *found = kernelcheck_allocate(bytes);
    uint64_t *scratch = kernelcheck_allocate(bytes);
    for (size_t i = 0; i < n; i++) expected[i] = found[i] = fill_candidate(check, order, i, n);
    size_t expected_kept = bsw_select_reference.keep_best(expected, n, keep, scratch);
    size_t kept = bsw_select_table_get(check->level)->keep_best(found, n, keep, scratch);
    kernelcheck_case(check, "%zu of %zu, order %d", keep, n, order);
    kernelcheck_compare(check, "keep_best", &expected_kept, &kept, sizeof kept);
    size_t front = expected_kept < n ? expected_kept : n; // in any order
    if (front > 0) {
        qsort(expected, front, sizeof *expected, compare_candidates);
        qsort(found, front, sizeof *found, compare_candidates);
    }
    kernelcheck_compare(check, "keep_best", expected, found, front * sizeof *found);
    kernelcheck_free(expected);
}

// Exact scores of the same orders; with `ties` of them any number are equal, or all.
static void check_keep_exact(struct kernelcheck *check, int order, size_t n, size_t keep,
                             uint32_t ties)
{
    size_t score_bytes = n * sizeof(uint64_t), row_bytes = n * sizeof(uint32_t);
    uint64_t *expected = kernelcheck_allocate(score_bytes);
    uint64_t *found = kernelcheck_allocate(score_bytes);
    uint64_t *scratch = kernelcheck_allocate(2 * score_bytes);
    uint32_t *expected_rows = kernelcheck_allocate(row_bytes);
    uint32_t *found_rows = kernelcheck_allocate(row_bytes);
    for (size_t i = 0; i < n; i++) {
        uint64_t score = fill_candidate(check, order, i, n) - 1; // no UINT64_MAX
        if (ties > 0) score = (UINT64_C(1) << 63) + score % ties;
        expected[i] = found[i] = score;
        expected_rows[i] = found_rows[i] = (uint32_t)kernelcheck_random(check, 20, i);
    }
    uint64_t worst = bsw_select_reference.keep_exact(expected, expected_rows, n, keep, scratch);
    uint64_t found_worst =
        bsw_select_table_get(check->level)->keep_exact(found, found_rows, n, keep, scratch);
    kernelcheck_case(check, "%zu of %zu, order %d, %u ties", keep, n, order, ties);
    kernelcheck_compare(check, "keep_exact", &worst, &found_worst, sizeof worst);
    kernelcheck_compare(check, "keep_exact", expected, found, keep * sizeof *found);
    kernelcheck_compare(check, "keep_exact", expected_rows, found_rows, keep * sizeof *found_rows);
    kernelcheck_free(expected);
}

static void check_all_exact(struct kernelcheck *check, size_t n, size_t keep)
{
    static const uint32_t ties[] = {0, 1, 2, 7, 100};
    if (keep < 1 || keep > n) return;
    for (int order = 0; order < NUM_ORDERS; order++)
        for (size_t t = 0; t < LENGTH(ties); t++) check_keep_exact(check, order, n, keep, ties[t]);
}

static void check_keep_best(struct kernelcheck *check)
{
    static const size_t counts[] = {0,  1,  2,  3,  7,  8,   9,   16,   23,  24,
                                    25, 26, 31, 33, 64, 100, 257, 1000, 5000};
    for (size_t c = 0; c < LENGTH(counts); c++) {
        size_t n = counts[c];
        const size_t keeps[] = {0, 1, 2, 10, n / 3, n / 2 + 1, n > 0 ? n - 1 : 0, n, n + 1};
        for (size_t k = 0; k < LENGTH(keeps); k++) {
            for (int order = 0; order < NUM_ORDERS; order++) check_keep(check, order, n, keeps[k]);
            check_all_exact(check, n, keeps[k]);
        }
    }
}

void check_select(struct kernelcheck *check)
{
    check_filters(check);
    check_keep_best(check);
}
