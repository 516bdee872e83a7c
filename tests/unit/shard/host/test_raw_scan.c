// SPDX-License-Identifier: Apache-2.0
// Codec raw from file to candidates: rows of integers scanned where they lie, against all distances
// of plain arithmetic, sorted.
#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/codes/metric.h"
#include "common/rows/synth.h"
#include "kernels/encode/raw_codes.h"
#include "shard/codecs/codec.h"
#include "shard/host/shard_scan.h"
#include "small_index.h"
#include "temporary_folder.h"
#include "unit_test.h"

enum { ROWS = 5003, DISTINCT = 900, DIMS = 45, PADDED_DIMS = 64, QUERIES = 20 };

static struct bsw_error err;

// Rows and queries as bytes: numbers of uint8, and again read as int8.
static uint8_t rows[ROWS][DIMS], queries[QUERIES][DIMS];

// Each distinct row comes some five times, scattered; half of the queries are rows.
static int make_files(void **state)
{
    const struct bsw_synth synth = {
        .count = DISTINCT, .dims = DIMS, .seed = 1, .clusters = 12, .type = BSW_VECTOR_UINT8};
    const uint32_t head[2] = {ROWS, DIMS};
    static unsigned char file[sizeof head + sizeof rows];
    if (make_temporary_folder(state) != 0) return -1;
    for (uint64_t row = 0; row < ROWS; row++)
        bsw_synth_rows(&synth, bsw_hash(row) % DISTINCT, 1, rows[row]);
    for (uint64_t q = 0; q < QUERIES; q++)
        bsw_synth_rows(&synth, q % 2 ? DISTINCT + q : q, 1, queries[q]);
    memset(rows[77], 255, DIMS);
    memset(rows[78], 128, DIMS);
    memset(queries[3], 0, DIMS);
    memcpy(file, head, sizeof head);
    memcpy(file + sizeof head, rows, sizeof rows);
    write_test_file("base.u8bin", file, sizeof file);
    write_test_file("base.i8bin", file, sizeof file);
    return 0;
}

static int number_of(enum bsw_vector_type type, uint8_t byte)
{
    return type == BSW_VECTOR_UINT8 ? byte : (int8_t)byte;
}

static int64_t exact_value(const struct bsw_manifest *manifest, size_t q, size_t row)
{
    int64_t sum = 0;
    for (size_t i = 0; i < DIMS; i++) {
        int x = number_of(manifest->source_type, rows[row][i]),
            y = number_of(manifest->source_type, queries[q][i]);
        sum += manifest->metric == BSW_METRIC_L2 ? (x - y) * (x - y) : x * y;
    }
    return sum;
}

// ---- one index, one set of queries ----

struct scan_case {
    struct bsw_manifest manifest;
    struct bsw_query_batch batch;
    uint32_t words[QUERIES][PADDED_DIMS / 4];
    int32_t constants[QUERIES];
    struct bsw_resident_shard resident; // the last
    size_t num_rows, first_row;         // of it
    uint64_t *rankings[QUERIES];        // all its rows, in the total order
};

static int compare_descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

static void encode_queries(struct scan_case *scan)
{
    for (size_t q = 0; q < QUERIES; q++) {
        float row[DIMS];
        for (size_t i = 0; i < DIMS; i++)
            row[i] = (float)number_of(scan->manifest.source_type, queries[q][i]);
        bsw_raw_query_encode(scan->manifest.source_type, scan->manifest.metric, row, DIMS,
                             PADDED_DIMS, (int8_t *)scan->words[q], &scan->constants[q]);
    }
    scan->batch = (struct bsw_query_batch){.num_queries = QUERIES,
                                           .query_bits = BSW_RAW_QUERY_BITS,
                                           .query_words = PADDED_DIMS / 4,
                                           .words = scan->words[0],
                                           .constants = scan->constants,
                                           .factor = bsw_raw_factor(scan->manifest.metric)};
}

// num_rows: 0: all.
static void open_case(enum bsw_vector_type type, enum bsw_metric metric, uint64_t num_rows,
                      uint32_t num_shards, struct scan_case *scan)
{
    const struct small_index what = {
        .source = path_of(type == BSW_VECTOR_UINT8 ? "base.u8bin" : "base.i8bin"),
        .last_row = num_rows,
        .codec = &bsw_codec_raw,
        .metric = metric,
        .num_shards = num_shards};
    make_small_index(&what, temporary_folder, &scan->manifest);
    assert_ok(bsw_resident_shard_load(&scan->manifest, temporary_folder, num_shards - 1, 0,
                                      &scan->resident, &err),
              &err);
    encode_queries(scan);
    scan->first_row = (size_t)scan->resident.shape.first_row;
    scan->num_rows = (size_t)scan->resident.shape.num_rows;
    for (size_t q = 0; q < QUERIES; q++) {
        scan->rankings[q] = allocate_or_fail(scan->num_rows, sizeof(uint64_t));
        for (size_t r = 0; r < scan->num_rows; r++) {
            int64_t value = exact_value(&scan->manifest, q, scan->first_row + r);
            uint32_t score =
                bsw_score_from_integer((int32_t)(metric == BSW_METRIC_L2 ? -value : value));
            scan->rankings[q][r] = bsw_candidate_pack(score, (uint32_t)r);
        }
        qsort(scan->rankings[q], scan->num_rows, sizeof(uint64_t), compare_descending);
    }
}

static void close_case(struct scan_case *scan)
{
    for (size_t q = 0; q < QUERIES; q++) bsw_free(&scan->rankings[q]);
    bsw_resident_shard_unload(&scan->resident);
    bsw_manifest_deinit(&scan->manifest);
}

// Queries first .. first + count - 1 give the leading `keep` of each ranking, as far as the limit
// allows.
static void check_scan(const struct scan_case *scan, size_t first, size_t num_queries,
                       const uint32_t *limits, size_t keep, struct bsw_scan_workspace *workspace,
                       struct bsw_candidate_lists *lists)
{
    workspace->used = BSW_SCAN_AUTO;
    assert_ok(bsw_shard_scan(&scan->resident, &scan->batch, first, num_queries, limits, keep,
                             workspace, lists, &err),
              &err);
    assert_int_equal(workspace->used, BSW_SCAN_MATRIX); // from one query on
    for (size_t q = 0; q < num_queries; q++) {
        const uint64_t *ranking = scan->rankings[first + q];
        size_t count, expected = 0;
        const uint64_t *found = bsw_candidate_list(lists, q, &count);
        while (expected < scan->num_rows && expected < keep &&
               (!limits || bsw_candidate_score(ranking[expected]) >= limits[q]))
            expected++;
        assert_int_equal(count, expected);
        assert_memory_equal(found, ranking, count * sizeof *found);
    }
}

// Keys stand for the values that groundtruth reports.
static void check_values(const struct scan_case *scan, struct bsw_scan_workspace *workspace,
                         struct bsw_candidate_lists *lists)
{
    static struct bsw_survivor survivors[QUERIES * 10];
    size_t counts[QUERIES];
    check_scan(scan, 0, QUERIES, NULL, 10, workspace, lists);
    for (size_t q = 0; q < QUERIES; q++) counts[q] = scan->num_rows < 10 ? scan->num_rows : 10;
    assert_ok(bsw_shard_refine(&scan->resident, &scan->manifest, &scan->batch, 0, lists, counts, 0,
                               workspace, survivors, &err),
              &err);
    for (size_t i = 0; i < QUERIES * counts[0]; i++) {
        float value = bsw_value_of_score(&scan->manifest, scan->batch.query_bits,
                                         survivors[i].score, (struct bsw_value_terms){0.0f, 1.0f});
        size_t row = scan->first_row + survivors[i].row;
        assert_true(value == (float)exact_value(&scan->manifest, i / counts[0], row));
    }
}

static void check_limits(const struct scan_case *scan, struct bsw_scan_workspace *workspace,
                         struct bsw_candidate_lists *lists)
{
    uint32_t limits[QUERIES];
    for (size_t q = 0; q < QUERIES; q++) {
        size_t place = q % 5 == 0 ? scan->num_rows - 1 : 40 * q % scan->num_rows;
        uint32_t score = bsw_candidate_score(scan->rankings[q][place]);
        limits[q] =
            q % 5 == 1 ? bsw_candidate_score(scan->rankings[q][0]) + 1 : score + (q % 5 == 2);
    }
    check_scan(scan, 0, QUERIES, limits, ROWS, workspace, lists);
    check_scan(scan, 0, QUERIES, limits, 50, workspace, lists);
}

static void check_all_scans(const struct scan_case *scan)
{
    static const size_t keeps[] = {1, 10, 300, ROWS};
    struct bsw_candidate_lists lists = {0};
    for (int level = 0; level < BSW_CPU_NUM_LEVELS; level = bsw_cpu_level_next(level)) {
        for (int threads = 1; threads <= 2; threads++) {
            struct bsw_scan_workspace workspace;
            bsw_scan_workspace_init(&workspace, (enum bsw_cpu_level)level, threads);
            for (size_t k = 0; k < 4; k++)
                check_scan(scan, 0, QUERIES, NULL, keeps[k], &workspace, &lists);
            check_limits(scan, &workspace, &lists);
            check_values(scan, &workspace, &lists);
            workspace.budget_bytes = 1; // groups of one query
            check_scan(scan, 3, 9, NULL, 10, &workspace, &lists);
            check_scan(scan, QUERIES - 1, 1, NULL, 100, &workspace, &lists);
            check_scan(scan, 5, 0, NULL, 10, &workspace, &lists);
            bsw_scan_workspace_deinit(&workspace);
        }
    }
    bsw_candidate_lists_deinit(&lists);
}

// How many queries have a tie between places 10 and 11, so that only rows can decide.
static size_t count_ties(const struct scan_case *scan)
{
    size_t ties = 0;
    for (size_t q = 0; q < QUERIES; q++) {
        const uint64_t *items = scan->rankings[q];
        ties += bsw_candidate_score(items[9]) == bsw_candidate_score(items[10]);
    }
    return ties;
}

UNIT_TEST(candidates_are_the_best_of_a_full_sort)
{
    static const enum bsw_vector_type types[] = {BSW_VECTOR_UINT8, BSW_VECTOR_INT8};
    static const enum bsw_metric metrics[] = {BSW_METRIC_IP, BSW_METRIC_L2};
    static struct scan_case scan;
    for (size_t kind = 0; kind < 4; kind++) {
        for (uint32_t num_shards = 1; num_shards <= 3; num_shards += 2) {
            open_case(types[kind % 2], metrics[kind / 2], 0, num_shards, &scan);
            assert_true(num_shards > 1 || count_ties(&scan) > QUERIES / 2);
            check_all_scans(&scan);
            close_case(&scan);
        }
    }
}

// One row, one bundle less one row, one bundle and one row.
UNIT_TEST(smallest_shards_are_scanned)
{
    static const uint64_t sizes[] = {1, 31, 32, 33};
    static struct scan_case scan;
    for (size_t i = 0; i < 4; i++) {
        open_case(BSW_VECTOR_UINT8, BSW_METRIC_L2, sizes[i], 1, &scan);
        assert_int_equal(scan.num_rows, sizes[i]);
        check_all_scans(&scan);
        close_case(&scan);
    }
}

int main(void)
{
    return run_unit_tests(make_files, remove_temporary_folder);
}
