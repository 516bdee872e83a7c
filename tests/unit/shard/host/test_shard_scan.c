// SPDX-License-Identifier: Apache-2.0
// The scan against serial computations that know nothing of planes, tiles, threads and buffers: all
// keys sorted, and the bound that a first stage would stop rows by.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/codes/half.h"
#include "common/codes/metric.h"
#include "common/rows/synth.h"
#include "duplicate_rows.h"
#include "row_mask_case.h"
#include "shard/codecs/codec.h"
#include "shard/host/running_lists.h"
#include "shard/host/shard_scan.h"
#include "small_index.h"
#include "temporary_folder.h"
#include "unit_test.h"

enum { ROWS = 5003, DISTINCT = 900, DIMS = DUPLICATE_DIMS, QUERIES = 20, QUERY_BITS = 6 };

static struct bsw_error err;

static int make_files(void **state)
{
    if (make_temporary_folder(state) != 0) return -1;
    write_duplicates(ROWS, DISTINCT);
    return 0;
}

// ---- all keys, sorted ----

// Candidates of one query, all rows that are there, in the total order.
struct ranking {
    uint64_t *items;
    size_t count;
};

static int compare_descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

static uint32_t score_of(const struct bsw_manifest *manifest, const struct plain_shard *shard,
                         const struct plain_queries *queries, size_t q, size_t r)
{
    uint32_t dims = shard->dims;
    int32_t dot = plain_dot(queries->codes + q * dims, shard->codes + r * dims, 0, dims);
    if (manifest->codec == &bsw_codec_xfbq) return bsw_score_from_integer(dot);
    float scaled = bsw_half_to_float(shard->scales[r]) * (float)dot;
    return bsw_score_from_float(fmaf(queries->scales[q], scaled, shard->biases[r]) + 0.0f);
}

static struct ranking rank_all(const struct bsw_manifest *manifest, const struct plain_shard *shard,
                               const struct plain_queries *queries, size_t q)
{
    struct ranking ranking = {allocate_or_fail(shard->num_rows, sizeof(uint64_t)), 0};
    for (size_t r = 0; r < shard->num_rows; r++) {
        if (!shard->is_present[r]) continue;
        uint32_t score = score_of(manifest, shard, queries, q, r);
        ranking.items[ranking.count++] = bsw_candidate_pack(score, (uint32_t)r);
    }
    qsort(ranking.items, ranking.count, sizeof *ranking.items, compare_descending);
    return ranking;
}

// ---- one shard, one set of queries ----

struct scan_case {
    struct bsw_manifest manifest;
    struct plain_shard plain;
    struct plain_queries queries;
    struct bsw_query_batch batch;
    struct bsw_resident_shard resident;
    struct ranking rankings[QUERIES];
};

// vectors [QUERIES][dims], taken over.
static void open_case(const struct small_index *what, float *vectors, struct scan_case *scan)
{
    make_small_index(what, temporary_folder, &scan->manifest);
    read_plain_shard(&scan->manifest, temporary_folder, 0, &scan->plain);
    make_plain_queries(&scan->manifest, vectors, QUERIES, QUERY_BITS, &scan->queries);
    bsw_free(&vectors);
    scan->batch = (struct bsw_query_batch){.num_queries = QUERIES,
                                           .query_bits = QUERY_BITS,
                                           .query_words = scan->queries.query_words,
                                           .words = scan->queries.words,
                                           .scales = scan->queries.scales,
                                           .vectors = scan->queries.vectors};
    assert_ok(
        bsw_resident_shard_load(&scan->manifest, temporary_folder, 0, 0, &scan->resident, &err),
        &err);
    for (size_t q = 0; q < QUERIES; q++)
        scan->rankings[q] = rank_all(&scan->manifest, &scan->plain, &scan->queries, q);
}

static void close_case(struct scan_case *scan)
{
    for (size_t q = 0; q < QUERIES; q++) bsw_free(&scan->rankings[q].items);
    bsw_resident_shard_unload(&scan->resident);
    free_plain_queries(&scan->queries);
    free_plain_shard(&scan->plain);
    bsw_manifest_deinit(&scan->manifest);
}

// Queries first .. first + count - 1 with limits (or NULL) must give the leading `keep` of each
// ranking, as far as the limit allows.
static void check_scan(const struct scan_case *scan, size_t first, size_t num_queries,
                       const uint32_t *limits, size_t keep, struct bsw_scan_workspace *workspace,
                       struct bsw_candidate_lists *lists)
{
    assert_ok(bsw_shard_scan(&scan->resident, &scan->batch, first, num_queries, limits, keep,
                             workspace, lists, &err),
              &err);
    assert_int_equal(lists->num_queries, num_queries);
    for (size_t q = 0; q < num_queries; q++) {
        const struct ranking *ranking = &scan->rankings[first + q];
        size_t count, expected = 0;
        const uint64_t *found = bsw_candidate_list(lists, q, &count);
        while (expected < ranking->count && expected < keep &&
               (!limits || bsw_candidate_score(ranking->items[expected]) >= limits[q]))
            expected++;
        assert_int_equal(count, expected);
        assert_memory_equal(found, ranking->items, count * sizeof *found);
    }
}

// The leading rows of each ranking that the mask has.
static void check_masked(struct scan_case *scan, int kind, size_t keep,
                         struct bsw_scan_workspace *workspace, struct bsw_candidate_lists *lists)
{
    struct bsw_row_mask mask = {0};
    make_mask(kind, ROWS, &scan->resident.order, scan->resident.num_bundles, &mask);
    scan->resident.mask = &mask;
    assert_ok(bsw_shard_scan(&scan->resident, &scan->batch, 0, QUERIES, NULL, keep, workspace,
                             lists, &err),
              &err);
    for (size_t q = 0; q < QUERIES; q++) {
        const struct ranking *ranking = &scan->rankings[q];
        size_t count, expected = 0;
        const uint64_t *found = bsw_candidate_list(lists, q, &count);
        for (size_t i = 0; i < ranking->count && expected < keep; i++) {
            if (!is_row_allowed(kind, bsw_candidate_row(ranking->items[i]), ROWS)) continue;
            assert_true(expected < count && found[expected] == ranking->items[i]);
            expected++;
        }
        assert_int_equal(count, expected);
    }
    scan->resident.mask = NULL;
    bsw_row_mask_deinit(&mask);
}

// How many queries have a tie between places keep and keep + 1, so that only rows can decide.
static size_t count_ties(const struct scan_case *scan, size_t keep)
{
    size_t ties = 0;
    for (size_t q = 0; q < QUERIES; q++) {
        const uint64_t *items = scan->rankings[q].items;
        ties += bsw_candidate_score(items[keep - 1]) == bsw_candidate_score(items[keep]);
    }
    return ties;
}

static void check_all_scans(const struct small_index *what)
{
    struct scan_case scan;
    struct bsw_candidate_lists lists = {0};
    open_case(what, make_queries(DISTINCT, QUERIES), &scan);
    assert_true(scan.manifest.dropped_rows > 80);
    assert_int_equal(scan.rankings[0].count, ROWS - scan.manifest.dropped_rows);
    for (size_t i = 0; i < scan.rankings[0].count; i++) // no dropped row is ranked, and so found
        assert_false(is_bad_row(bsw_candidate_row(scan.rankings[0].items[i]), ROWS));
    assert_true(count_ties(&scan, 1) > QUERIES / 2 && count_ties(&scan, 10) > QUERIES / 2);
    for (int level = 0; level < BSW_CPU_NUM_LEVELS; level = bsw_cpu_level_next(level)) {
        for (int threads = 1; threads <= 2; threads++) {
            static const size_t keeps[] = {1, 10, 300, ROWS, ROWS + 1000};
            struct bsw_scan_workspace workspace;
            bsw_scan_workspace_init(&workspace, (enum bsw_cpu_level)level, threads);
            for (int kind = BSW_SCAN_AUTO; kind <= BSW_SCAN_PROGRESSIVE_MATRIX; kind++) {
                if (kind >= BSW_SCAN_PROGRESSIVE_PLANES && scan.resident.stage_dims == 0) break;
                workspace.scan = (enum bsw_scan_kind)kind;
                for (size_t k = 0; k < 5; k++)
                    check_scan(&scan, 0, QUERIES, NULL, keeps[k], &workspace, &lists);
                for (int mask = 0; mask < NUM_MASK_KINDS; mask++)
                    check_masked(&scan, mask, keeps[mask % 5], &workspace, &lists);
                if (kind != BSW_SCAN_AUTO) assert_int_equal(workspace.used, kind);
            }
            bsw_scan_workspace_deinit(&workspace);
        }
    }
    bsw_candidate_lists_deinit(&lists);
    close_case(&scan);
}

UNIT_TEST(candidates_are_the_best_of_a_full_sort)
{
    const struct small_index plain = duplicates(&bsw_codec_xfbq, BSW_METRIC_COSINE);
    check_all_scans(&plain);
    for (int metric = 0; metric < BSW_METRIC_NUM; metric++) {
        const struct small_index saq = duplicates(&bsw_codec_saq, (enum bsw_metric)metric);
        check_all_scans(&saq);
    }
}

// Parts of a batch, groups of one query, limits that many, few or no rows reach.
UNIT_TEST(parts_groups_and_limits_change_nothing_else)
{
    for (int codec = 0; codec < 2; codec++) {
        const struct small_index what = duplicates(bsw_codecs[codec], BSW_METRIC_COSINE);
        struct scan_case scan;
        struct bsw_candidate_lists lists = {0};
        struct bsw_scan_workspace workspace;
        uint32_t limits[QUERIES];
        open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
        bsw_scan_workspace_init(&workspace, bsw_cpu_level_detect(), 2);
        for (int is_small = 0; is_small < 2; is_small++) {
            if (is_small) workspace.budget_bytes = 1;
            check_scan(&scan, 3, 9, NULL, 10, &workspace, &lists);
            check_scan(&scan, QUERIES - 1, 1, NULL, 100, &workspace, &lists);
            check_scan(&scan, 5, 0, NULL, 10, &workspace, &lists);
            for (size_t q = 0; q < QUERIES; q++) {
                const struct ranking *ranking = &scan.rankings[q];
                size_t place = q % 5 == 0 ? ranking->count - 1 : 40 * q;
                uint32_t score = bsw_candidate_score(ranking->items[place]);
                limits[q] =
                    q % 5 == 1 ? bsw_candidate_score(ranking->items[0]) + 1 : score + (q % 5 == 2);
            }
            check_scan(&scan, 0, QUERIES, limits, ROWS, &workspace, &lists);
            check_scan(&scan, 0, QUERIES, limits, 50, &workspace, &lists);
            for (size_t q = 0; q < QUERIES; q++) limits[q] = UINT32_MAX;
            check_scan(&scan, 0, QUERIES, limits, 50, &workspace, &lists);
        }
        bsw_scan_workspace_deinit(&workspace);
        bsw_candidate_lists_deinit(&lists);
        close_case(&scan);
    }
}

// Good rows where a sample of every 16th bundle looks, bad ones elsewhere: the first limits are too
// high for all queries, whose lists must fill all the same.
UNIT_TEST(a_misleading_sample_costs_time_alone)
{
    const struct bsw_synth synth = {.count = ROWS, .dims = DIMS, .seed = 5};
    float *rows = allocate_or_fail(ROWS * DIMS, sizeof *rows);
    float *vectors = allocate_or_fail(QUERIES * DIMS, sizeof *vectors);
    bsw_synth_rows(&synth, 0, ROWS, rows);
    for (size_t i = 0; i < ROWS * DIMS; i++)
        rows[i] = rows[i] * 0.05f + (i / DIMS / 32 % 16 == 0 ? 1.0f : -1.0f);
    for (size_t i = 0; i < QUERIES * DIMS; i++) vectors[i] = 1 + 0.01f * (float)(i % 7);
    write_fbin(path_of("misleading.fbin"), rows, ROWS, DIMS);
    bsw_free(&rows);
    struct small_index what = duplicates(&bsw_codec_saq, BSW_METRIC_L2);
    what.source = path_of("misleading.fbin");
    what.drops_bad_rows = 0;
    struct scan_case scan;
    struct bsw_candidate_lists lists = {0};
    open_case(&what, vectors, &scan);
    for (int kind = BSW_SCAN_PLANES; kind <= BSW_SCAN_PROGRESSIVE_MATRIX; kind++) {
        struct bsw_scan_workspace workspace;
        bsw_scan_workspace_init(&workspace, bsw_cpu_level_detect(), 2);
        workspace.scan = (enum bsw_scan_kind)kind;
        check_scan(&scan, 0, QUERIES, NULL, 300, &workspace, &lists);
        assert_int_equal(workspace.num_rescanned, QUERIES);
        workspace.budget_bytes = 1; // query by query
        check_scan(&scan, 0, QUERIES, NULL, 300, &workspace, &lists);
        assert_int_equal(workspace.num_rescanned, 2 * QUERIES);
        bsw_scan_workspace_deinit(&workspace);
    }
    bsw_candidate_lists_deinit(&lists);
    close_case(&scan);
}

// One row, one bundle less one row, one bundle and one row.
UNIT_TEST(smallest_shards_are_scanned)
{
    static const char *const sources[] = {"synth:count=1,dims=40", "synth:count=31,dims=40",
                                          "synth:count=33,dims=40"};
    for (size_t i = 0; i < 3; i++) {
        for (int codec = 0; codec < 2; codec++) {
            struct small_index what = duplicates(bsw_codecs[codec], BSW_METRIC_COSINE);
            struct scan_case scan;
            struct bsw_candidate_lists lists = {0};
            struct bsw_scan_workspace workspace;
            what.source = sources[i];
            open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
            bsw_scan_workspace_init(&workspace, bsw_cpu_level_detect(), 2);
            check_scan(&scan, 0, QUERIES, NULL, 1, &workspace, &lists);
            check_scan(&scan, 0, QUERIES, NULL, 100, &workspace, &lists);
            bsw_scan_workspace_deinit(&workspace);
            bsw_candidate_lists_deinit(&lists);
            close_case(&scan);
        }
    }
}

// ---- lists while blocks come in any order ----

// Keys of neighbouring floats, many of them equal, in blocks of which every other comes late: a
// limit that rises too far, or a wrong row, changes the list.
static void check_running_lists(enum bsw_cpu_level level, size_t keep, uint32_t spread)
{
    enum { BLOCK = 50, BLOCKS = 40, ROOM = 3 * BLOCK * BLOCKS + 2 * BLOCK };
    static uint64_t expected[BLOCK * BLOCKS], merged[2 * ROOM], scratch[2 * ROOM], found[ROOM];
    const struct bsw_running_room room = {merged, scratch};
    struct bsw_running_lists lists = {.keep = keep,
                                      .is_shared = 1,
                                      .select = bsw_select_table_get(level),
                                      .merge = bsw_merge_table_get(level)};
    struct bsw_buffer list_memory = {0}, item_memory = {0};
    size_t count = 0;
    assert_ok(bsw_running_lists_begin(&lists, 1, NULL, &list_memory, &item_memory, &err), &err);
    for (uint32_t b = 0; b < BLOCKS; b++) {
        uint32_t block = b < BLOCKS / 2 ? 2 * b + 1 : 2 * (b - BLOCKS / 2);
        uint32_t num_rows = block % 7 ? BLOCK - block % 3 : 0;
        size_t first = count;
        for (uint32_t i = 0; i < num_rows; i++) {
            uint32_t score =
                0xbf800000u + (uint32_t)(bsw_hash2(keep + spread, block * 100 + i) % spread);
            uint32_t place = 2 * i + (uint32_t)(bsw_hash2(block, i) % 2);
            expected[count++] = bsw_candidate_pack(score, block * 2 * BLOCK + place);
        }
        if (num_rows > 0) bsw_running_lists_add(&lists, 0, expected + first, num_rows, room);
        if (block % 5 == 0) bsw_running_lists_raise(&lists, 0, room);
    }
    qsort(expected, count, sizeof *expected, compare_descending);
    size_t num = bsw_running_lists_finish(&lists, 0, found, room);
    assert_int_equal(num, count < keep ? count : keep);
    assert_memory_equal(found, expected, num * sizeof *expected);
    if (num == keep)
        assert_true(bsw_running_limit(&lists, 0) <= bsw_candidate_score(found[keep - 1]));
    bsw_buffer_deinit(&list_memory);
    bsw_buffer_deinit(&item_memory);
}

UNIT_TEST(running_lists_are_the_best_of_a_full_sort)
{
    static const size_t keeps[] = {1, 2, 9, 100, 1000, 2000};
    static const uint32_t spreads[] = {1, 2, 3, 30, 1000000};
    for (int level = 0; level < BSW_CPU_NUM_LEVELS; level = bsw_cpu_level_next(level))
        for (size_t i = 0; i < 6 * 5; i++)
            check_running_lists((enum bsw_cpu_level)level, keeps[i / 5], spreads[i % 5]);
}

// ---- the bound of a first stage ----

// What a scan that has seen the first stage_dims dimensions knows of a row at most.
//
// tail >= scale_d * norm(c beyond the stage), so by Cauchy-Schwarz the rest adds at most scale_q *
// norm(q beyond) * tail. scale_d is half * 2^scale_exponent and tail half * 2^tail_exponent; the
// query's scale has 2^scale_exponent folded in. In exact arithmetic that bounds the exact key. The
// key itself is rounded three times in float32 (product, fma, and the query's scale is a float
// already), each at most 2^-24 of what it rounds: 1e-6 of the sizes of both terms covers that.
static double stage_bound(const struct bsw_manifest *manifest, const struct plain_shard *shard,
                          const struct plain_queries *queries, size_t q, size_t r,
                          double query_norm)
{
    uint32_t dims = shard->dims, stage = manifest->stage_dims;
    const int16_t *codes = shard->codes + r * dims, *query = queries->codes + q * dims;
    double scaled = (double)queries->scales[q] * (double)bsw_half_to_float(shard->scales[r]);
    double seen = scaled * plain_dot(query, codes, 0, stage), bias = (double)shard->biases[r];
    double rest = (double)queries->scales[q] * query_norm *
                  (double)bsw_half_to_float(shard->tails[r]) *
                  ldexp(1.0, manifest->tail_exponent - manifest->scale_exponent);
    return seen + bias + rest + 1e-6 * (fabs(seen) + rest + fabs(bias));
}

static double norm_beyond(const int16_t *codes, uint32_t stage, uint32_t dims)
{
    return sqrt((double)plain_dot(codes, codes, stage, dims));
}

// The stored tail is the half above scale_d * norm(c beyond), and not more than one step above.
static void check_tails(const struct bsw_manifest *manifest, const struct plain_shard *shard)
{
    for (size_t r = 0; r < shard->num_rows; r++) {
        double norm =
            norm_beyond(shard->codes + r * shard->dims, manifest->stage_dims, shard->dims);
        double tail = ldexp((double)bsw_half_to_float(shard->tails[r]), manifest->tail_exponent);
        double true_tail =
            ldexp((double)bsw_half_to_float(shard->scales[r]), manifest->scale_exponent) * norm;
        assert_true(tail >= true_tail);
        double below = ldexp((double)bsw_half_to_float((uint16_t)(shard->tails[r] - 1)),
                             manifest->tail_exponent);
        if (shard->tails[r] > 0) assert_true(below < true_tail * (1 + 0x1p-40));
    }
}

// Share of rows that the bound stops, when the L-th key is known from the start.
static double check_bound(const struct scan_case *scan, size_t best)
{
    const struct bsw_manifest *manifest = &scan->manifest;
    const struct plain_shard *shard = &scan->plain;
    uint32_t dims = shard->dims;
    size_t stopped = 0;
    for (size_t q = 0; q < QUERIES; q++) {
        const struct ranking *ranking = &scan->rankings[q];
        const int16_t *query = scan->queries.codes + q * dims;
        double norm = norm_beyond(query, manifest->stage_dims, dims);
        double last = (double)bsw_score_to_float(bsw_candidate_score(ranking->items[best - 1]));
        for (size_t i = 0; i < ranking->count; i++) {
            size_t r = bsw_candidate_row(ranking->items[i]);
            double key = (double)bsw_score_to_float(bsw_candidate_score(ranking->items[i]));
            double bound = stage_bound(manifest, shard, &scan->queries, q, r, norm);
            if (bound < key) fail_msg("row %zu: bound %g is below its key %g", r, bound, key);
            if (i < best) assert_true(bound >= last);
            stopped += bound < last;
        }
    }
    return (double)stopped / (double)(QUERIES * scan->rankings[0].count);
}

// Progressive scans of every level find the best all the same, and do stop most rows.
static void check_progressive_scans(const struct scan_case *scan)
{
    struct bsw_candidate_lists lists = {0};
    for (int level = 0; level < BSW_CPU_NUM_LEVELS; level = bsw_cpu_level_next(level)) {
        struct bsw_scan_workspace workspace;
        bsw_scan_workspace_init(&workspace, (enum bsw_cpu_level)level, 1 + level % 2);
        for (int kind = BSW_SCAN_PROGRESSIVE_PLANES; kind <= BSW_SCAN_PROGRESSIVE_MATRIX; kind++) {
            workspace.scan = (enum bsw_scan_kind)kind;
            workspace.num_pairs = workspace.num_stopped = 0;
            size_t queries = level == BSW_CPU_REFERENCE ? 4 : QUERIES; // it is slow
            check_scan(scan, 0, queries, NULL, 10, &workspace, &lists);
            check_scan(scan, 2, 1, NULL, 50, &workspace, &lists);
            assert_int_equal(workspace.used, kind);
            double share = (double)workspace.num_stopped / (double)workspace.num_pairs;
            if (share < 0.3 || share >= 1)
                fail_msg("%s stops %.1f %%", bsw_scan_name(workspace.used), 100 * share);
        }
        bsw_scan_workspace_deinit(&workspace);
    }
    bsw_candidate_lists_deinit(&lists);
}

static void check_bounds(const struct small_index *what, float *vectors)
{
    static const size_t bests[] = {1, 10, 50};
    struct scan_case scan;
    open_case(what, vectors, &scan);
    assert_true(scan.manifest.stage_dims < scan.manifest.layout.dims);
    check_tails(&scan.manifest, &scan.plain);
    for (size_t b = 0; b < 3; b++) {
        double share = check_bound(&scan, bests[b]);
        if (share < 0.5) fail_msg("the bound stops %.1f %% only", 100 * share);
    }
    check_progressive_scans(&scan);
    close_case(&scan);
}

UNIT_TEST(rows_among_the_best_are_never_stopped)
{
    static const char *const segments[] = {"32x4,8x2", "40x3", "auto"};
    for (int metric = 0; metric < BSW_METRIC_NUM; metric++) {
        for (size_t i = 0; i < 3; i++) {
            struct small_index what = duplicates(&bsw_codec_saq, (enum bsw_metric)metric);
            what.segments = segments[i];
            check_bounds(&what, make_queries(DISTINCT, QUERIES));
        }
    }
}

// Real descriptors, 128-d with the stage at 64.
UNIT_TEST(real_rows_among_the_best_are_never_stopped)
{
    for (int metric = 0; metric < BSW_METRIC_NUM; metric++) {
        struct small_index what = {.source = TEST_DATA_FOLDER "/sift20k_base.u8bin",
                                   .last_row = 3000,
                                   .codec = &bsw_codec_saq,
                                   .metric = (enum bsw_metric)metric,
                                   .bits = 2};
        unsigned char numbers[QUERIES * 128];
        float *vectors = allocate_or_fail(sizeof numbers, sizeof *vectors);
        bsw_vectors *queries;
        assert_ok(
            bsw_vectors_open(TEST_DATA_FOLDER "/sift20k_query.u8bin", BSW_ALL_ROWS, &queries, &err),
            &err);
        assert_ok(bsw_vectors_read(queries, 0, QUERIES, numbers, &err), &err);
        for (size_t i = 0; i < sizeof numbers; i++) vectors[i] = numbers[i];
        bsw_vectors_close(&queries);
        check_bounds(&what, vectors);
    }
}

int main(void)
{
    return run_unit_tests(make_files, remove_temporary_folder);
}
