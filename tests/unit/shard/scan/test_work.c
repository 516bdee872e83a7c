// SPDX-License-Identifier: Apache-2.0
// Work items: every bundle and query once, whatever the pieces and chunks; and the engine over some
// runs, listed queries and masks of rows against a sort of plain scores.
#include "shard/scan/work.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/codes/metric.h"
#include "duplicate_rows.h"
#include "shard/codecs/codec.h"
#include "shard/host/host_engine.h"
#include "shard/host/plain_score.h"
#include "small_index.h"
#include "temporary_folder.h"
#include "unit_test.h"

enum { ROWS = 1503, DISTINCT = 400, QUERIES = 13, QUERY_BITS = 6, KEEP = 20, MOST = 64 };

static struct bsw_error err;

static int make_files(void **state)
{
    if (make_temporary_folder(state) != 0) return -1;
    write_duplicates(ROWS, DISTINCT);
    return 0;
}

// ---- makers ----

// How often each bundle and query is met, [MOST][MOST].
static void count_pairs(const struct bsw_work *work, size_t most_slots, uint32_t *counts)
{
    memset(counts, 0, MOST * MOST * sizeof *counts);
    for (size_t r = 0; r < work->num_runs; r++) {
        const struct bsw_run *run = &work->runs[r];
        assert_in_range(run->num_slots, 1, most_slots);
        assert_in_range(run->num_slots, 1, work->most_slots);
        assert_true(run->num_bundles > 0);
        for (uint32_t i = 0; i < run->num_slots; i++) {
            uint32_t query = work->queries[run->first_slot + i];
            if (work->is_in_order) assert_int_equal(query, work->queries[run->first_slot] + i);
            for (uint32_t b = 0; b < run->num_bundles; b++)
                counts[(run->first_bundle + b) * MOST + query]++;
        }
    }
}

UNIT_TEST(whole_shards_are_met_once)
{
    static uint32_t counts[MOST * MOST];
    static const uint32_t some[] = {7, 2, 11};
    struct bsw_work work = {0};
    for (size_t bundles = 0; bundles < 20; bundles++) {
        for (size_t piece = 1; piece < 23; piece += 3) {
            for (size_t most = 1; most < 20; most += 4) {
                const struct bsw_work_pieces pieces = {piece, piece}, sample = {1, piece};
                assert_ok(bsw_work_make_whole(bundles, pieces, NULL, 9, most, &work, &err), &err);
                count_pairs(&work, most, counts);
                for (size_t i = 0; i < MOST * MOST; i++)
                    assert_int_equal(counts[i], i / MOST < bundles && i % MOST < 9);
                assert_ok(bsw_work_make_whole(bundles, sample, some, 3, most, &work, &err), &err);
                count_pairs(&work, most, counts);
                for (size_t i = 0; i < MOST * MOST; i++) {
                    int is_met = i / MOST < bundles && i / MOST % piece == 0 &&
                                 (i % MOST == 7 || i % MOST == 2 || i % MOST == 11);
                    assert_int_equal(counts[i], is_met);
                }
            }
        }
    }
    bsw_work_deinit(&work);
}

UNIT_TEST(lists_are_met_by_who_looks_at_them)
{
    static uint32_t counts[MOST * MOST];
    uint32_t first_bundles[] = {0, 3, 3, 4, 9}; // list 1 is empty
    const struct bsw_list_order order = {.num_lists = 4, .first_bundles = first_bundles};
    static const uint32_t lists[] = {0, 3, 1, 2, 3, 0}, num_lists[] = {2, 2, 1};
    static const float additions[] = {1, 2, 3, 4, 5, 6};
    const struct bsw_list_choice choice = {
        .num_queries = 3, .most = 2, .lists = lists, .counts = num_lists, .additions = additions};
    struct bsw_list_groups groups = {0};
    struct bsw_work work = {0};
    for (size_t most = 1; most < 4; most++) {
        assert_ok(bsw_list_groups_make(&choice, 4, 0, 2, &groups, &err), &err);
        assert_ok(bsw_work_make_lists(&order, &groups, most, &work, &err), &err);
        count_pairs(&work, most, counts);
        for (uint32_t q = 0; q < 3; q++) {
            for (uint32_t b = 0; b < 9; b++) {
                uint32_t list = b < 3 ? 0 : b < 4 ? 2 : 3, is_met = 0;
                for (uint32_t i = 0; i < num_lists[q]; i++) is_met |= lists[2 * q + i] == list;
                assert_int_equal(counts[b * MOST + q], is_met);
            }
        }
        for (size_t r = 0; r < work.num_runs; r++) // of query 0 list 0 has 1, list 3 has 2
            for (uint32_t i = 0; i < work.runs[r].num_slots; i++)
                if (work.queries[work.runs[r].first_slot + i] == 0)
                    assert_float_equal(work.additions[work.runs[r].first_slot + i],
                                       work.runs[r].first_bundle == 0 ? 1 : 2, 0);
        assert_ok(bsw_list_groups_make_same(5, 4, &groups, &err), &err);
        assert_ok(bsw_work_make_lists(&order, &groups, most, &work, &err), &err);
        assert_true(work.is_in_order);
        count_pairs(&work, most, counts);
        for (size_t i = 0; i < MOST * MOST; i++)
            assert_int_equal(counts[i], i / MOST < 9 && i % MOST < 5);
    }
    bsw_list_groups_deinit(&groups);
    bsw_work_deinit(&work);
}

// ---- the engine ----

struct made {
    struct bsw_manifest manifest;
    struct plain_queries queries;
    struct bsw_query_batch batch;
    struct bsw_resident_shard shard;
};

static void open_made(const struct bsw_codec *codec, struct made *made)
{
    const struct small_index what = duplicates(codec, BSW_METRIC_COSINE);
    make_small_index(&what, temporary_folder, &made->manifest);
    float *vectors = make_queries(DISTINCT, QUERIES);
    make_plain_queries(&made->manifest, vectors, QUERIES, QUERY_BITS, &made->queries);
    bsw_free(&vectors);
    made->batch = (struct bsw_query_batch){.num_queries = QUERIES,
                                           .query_bits = QUERY_BITS,
                                           .query_words = made->queries.query_words,
                                           .words = made->queries.words,
                                           .scales = made->queries.scales,
                                           .vectors = made->queries.vectors};
    assert_ok(bsw_resident_shard_load(&made->manifest, temporary_folder, 0, 0, &made->shard, &err),
              &err);
}

static void close_made(struct made *made)
{
    bsw_resident_shard_unload(&made->shard);
    free_plain_queries(&made->queries);
    bsw_manifest_deinit(&made->manifest);
}

static int compare_descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

// Rows of bundles [first, last) that the masks leave, in the total order; returns how many of the
// best KEEP there are.
static size_t rank_rows(const struct made *made, size_t query, size_t first, size_t last,
                        const uint32_t *masks, uint64_t *out)
{
    size_t count = 0;
    for (size_t row = first * 32; row < last * 32; row++) {
        uint32_t both = made->shard.arrays.masks[row / 32] & masks[row / 32];
        if (both >> row % 32 & 1)
            out[count++] = bsw_candidate_pack(
                bsw_plain_score(&made->shard, &made->batch, query, (uint32_t)row), (uint32_t)row);
    }
    if (count > 0) qsort(out, count, sizeof *out, compare_descending);
    return count < KEEP ? count : KEEP;
}

// Two works one after the other, limits raised between them: bundles [0, 11) for all queries, the
// others for three of them.
static void check_engine(const struct made *made, uint32_t matrix_from, int num_threads,
                         const uint32_t *masks)
{
    static const uint32_t some[] = {12, 0, 5};
    static uint64_t items[QUERIES * KEEP], expected[ROWS + 32];
    const struct bsw_query_range range = {&made->batch, 0, QUERIES};
    const struct bsw_host_way way = {
        .matrix_bundles = 3, .plane_bundles = 3, .matrix_from = matrix_from};
    size_t counts[QUERIES], bundles = made->shard.num_bundles;
    struct bsw_scan_workspace workspace;
    struct bsw_host_scan scan;
    const struct bsw_row_mask mask = {.bundles = masks, .num_bundles = bundles};
    struct bsw_resident_shard shard = made->shard;
    shard.mask = &mask;
    bsw_scan_workspace_init(&workspace, bsw_cpu_level_detect(), num_threads);
    struct bsw_work *work = &workspace.host.work;
    assert_ok(bsw_host_scan_open(&shard, &range, &way, &workspace, &workspace.host, &scan, &err),
              &err);
    assert_ok(bsw_host_scan_begin(&scan, KEEP, NULL, &err), &err);
    assert_ok(bsw_work_make_whole(11, (struct bsw_work_pieces){4, 4}, NULL, QUERIES, 5, work, &err),
              &err);
    assert_ok(bsw_host_scan_run(&scan, work, &err), &err);
    bsw_host_scan_raise(&scan, NULL);
    struct bsw_run rest[3];
    for (uint32_t i = 0; i < 3; i++) rest[i] = (struct bsw_run){11, (uint32_t)bundles - 11, i, 1};
    const struct bsw_work more = {
        .runs = rest, .num_runs = 3, .most_slots = 1, .queries = some, .is_scattered = 1};
    assert_ok(bsw_host_scan_run(&scan, &more, &err), &err);
    bsw_host_scan_finish(&scan, NULL, QUERIES, items, KEEP, counts);
    for (size_t q = 0; q < QUERIES; q++) {
        size_t last = q == 12 || q == 0 || q == 5 ? bundles : 11;
        assert_int_equal(counts[q], rank_rows(made, q, 0, last, masks, expected));
        assert_memory_equal(items + q * KEEP, expected, counts[q] * sizeof *expected);
    }
    bsw_scan_workspace_deinit(&workspace);
}

UNIT_TEST(runs_listed_queries_and_masks_of_rows)
{
    static const uint32_t fills[] = {UINT32_MAX, 0x80000001, 0x00ff0000, 0};
    for (int codec = 0; codec < 2; codec++) {
        struct made made;
        uint32_t masks[ROWS / 32 + 1];
        open_made(bsw_codecs[codec], &made);
        for (uint64_t round = 0; round < 12; round++) {
            for (size_t b = 0; b < made.shard.num_bundles; b++)
                masks[b] = fills[bsw_hash2(round, b) % 4] & (uint32_t)bsw_hash2(b, round);
            if (round == 0) memset(masks, 0xff, sizeof masks);
            if (round == 1) memset(masks, 0, sizeof masks);
            check_engine(&made, 0, 1 + (int)(round % 3), masks);
            check_engine(&made, 4, 1 + (int)(round % 3), masks);
            check_engine(&made, UINT32_MAX, 1 + (int)(round % 3), masks);
        }
        close_made(&made);
    }
}

int main(void)
{
    return run_unit_tests(make_files, remove_temporary_folder);
}
