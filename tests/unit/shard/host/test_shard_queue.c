// SPDX-License-Identifier: Apache-2.0
// Queue selection against Algorithm 1 row by row: all keys of a shard in the total order, handed to
// the threads that the algorithm gives them to.
#include <math.h>
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

enum { ROWS = 5003, DISTINCT = 900, DIMS = 40, PADDED_DIMS = 64, QUERIES = 20, QUERY_BITS = 6 };

static struct bsw_error err;

static int is_bad_row(uint64_t row)
{
    return row % 61 == 5 || row == ROWS - 1;
}

// Each distinct row comes some five times, so that rows decide ties; some rows are bad.
static int make_files(void **state)
{
    const struct bsw_synth synth = {.count = DISTINCT, .dims = DIMS, .seed = 1, .clusters = 12};
    const uint32_t head[2] = {ROWS, DIMS};
    static unsigned char bytes[sizeof head + ROWS * DIMS];
    if (make_temporary_folder(state) != 0) return -1;
    float *rows = allocate_or_fail(ROWS * DIMS, sizeof *rows);
    for (uint64_t row = 0; row < ROWS; row++) {
        bsw_synth_rows(&synth, bsw_hash(row) % DISTINCT, 1, rows + row * DIMS);
        for (size_t i = 0; i < DIMS; i++)
            bytes[sizeof head + row * DIMS + i] = (unsigned char)(bsw_hash2(row % 900, i) % 7);
        if (is_bad_row(row)) rows[row * DIMS + row % DIMS] = NAN;
    }
    write_fbin(path_of("base.fbin"), rows, ROWS, DIMS);
    memcpy(bytes, head, sizeof head);
    write_test_file("base.u8bin", bytes, sizeof bytes);
    bsw_free(&rows);
    return 0;
}

// ---- one shard, one set of queries, all keys ----

struct queue_case {
    struct bsw_manifest manifest;
    struct plain_queries queries;
    uint32_t words[QUERIES][PADDED_DIMS / 4]; // codec raw
    int32_t constants[QUERIES];
    struct bsw_query_batch batch;
    struct bsw_resident_shard resident;
    struct bsw_candidate_lists all; // every row of every query
};

static void make_coded_queries(struct queue_case *c)
{
    const struct bsw_synth synth = {.count = DISTINCT, .dims = DIMS, .seed = 1, .clusters = 12};
    float *vectors = allocate_or_fail(QUERIES * DIMS, sizeof *vectors);
    bsw_synth_rows(&synth, DISTINCT, QUERIES, vectors);
    make_plain_queries(&c->manifest, vectors, QUERIES, QUERY_BITS, &c->queries);
    c->batch = (struct bsw_query_batch){.num_queries = QUERIES,
                                        .query_bits = QUERY_BITS,
                                        .query_words = c->queries.query_words,
                                        .words = c->queries.words,
                                        .scales = c->queries.scales,
                                        .vectors = c->queries.vectors};
    bsw_free(&vectors);
}

static void make_raw_queries(struct queue_case *c)
{
    for (size_t q = 0; q < QUERIES; q++) {
        float row[DIMS];
        for (size_t i = 0; i < DIMS; i++) row[i] = (float)(bsw_hash2(q + 900, i) % 7);
        bsw_raw_query_encode(BSW_VECTOR_UINT8, c->manifest.metric, row, DIMS, PADDED_DIMS,
                             (int8_t *)c->words[q], &c->constants[q]);
    }
    c->batch = (struct bsw_query_batch){.num_queries = QUERIES,
                                        .query_bits = BSW_RAW_QUERY_BITS,
                                        .query_words = PADDED_DIMS / 4,
                                        .words = c->words[0],
                                        .constants = c->constants,
                                        .factor = bsw_raw_factor(c->manifest.metric)};
}

// num_shards: the last of them is scanned.
static void open_case(const struct bsw_codec *codec, uint32_t num_shards, struct queue_case *c)
{
    int is_raw = codec == &bsw_codec_raw;
    const struct small_index what = {.source = path_of(is_raw ? "base.u8bin" : "base.fbin"),
                                     .codec = codec,
                                     .metric = codec == &bsw_codec_xfbq ? BSW_METRIC_COSINE
                                                                        : BSW_METRIC_L2,
                                     .bits = 3,
                                     .segments = "33x3,7x2",
                                     .num_shards = num_shards,
                                     .drops_bad_rows = !is_raw};
    memset(c, 0, sizeof *c);
    make_small_index(&what, temporary_folder, &c->manifest);
    if (is_raw)
        make_raw_queries(c);
    else
        make_coded_queries(c);
    assert_ok(bsw_resident_shard_load(&c->manifest, temporary_folder, num_shards - 1, 0,
                                      &c->resident, &err),
              &err);
    struct bsw_scan_workspace workspace;
    bsw_scan_workspace_init(&workspace, BSW_CPU_REFERENCE, 1);
    assert_ok(
        bsw_shard_scan(&c->resident, &c->batch, 0, QUERIES, NULL, ROWS, &workspace, &c->all, &err),
        &err);
    bsw_scan_workspace_deinit(&workspace);
}

static void close_case(struct queue_case *c)
{
    bsw_candidate_lists_deinit(&c->all);
    bsw_resident_shard_unload(&c->resident);
    if (c->queries.words) free_plain_queries(&c->queries);
    bsw_manifest_deinit(&c->manifest);
}

// ---- Algorithm 1 ----

// x * T_b + y of the thread that has row z.
static size_t thread_of(uint32_t row, uint64_t items)
{
    return (size_t)(row / (items * BSW_QUEUE_THREADS)) * BSW_QUEUE_THREADS +
           row % BSW_QUEUE_THREADS;
}

// What threads keep of a query, best first: rows come in the total order, so a thread's first Q.
static size_t kept_by_threads(const struct queue_case *c, size_t q,
                              const struct bsw_queue_options *queue, size_t keep, uint64_t *out)
{
    static uint16_t lengths[ROWS + BSW_QUEUE_THREADS];
    size_t count, kept = 0;
    const uint64_t *all = bsw_candidate_list(&c->all, q, &count);
    memset(lengths, 0, sizeof lengths);
    for (size_t i = 0; i < count && kept < keep; i++) {
        uint16_t *length = &lengths[thread_of(bsw_candidate_row(all[i]), queue->items)];
        if (*length == queue->length) continue;
        (*length)++;
        out[kept++] = all[i];
    }
    return kept;
}

static void check_queues(const struct queue_case *c, size_t first, size_t num_queries, size_t keep,
                         struct bsw_scan_workspace *workspace)
{
    static uint64_t expected[ROWS];
    struct bsw_candidate_lists lists = {0};
    assert_ok(bsw_shard_scan(&c->resident, &c->batch, first, num_queries, NULL, keep, workspace,
                             &lists, &err),
              &err);
    for (size_t q = 0; q < num_queries; q++) {
        size_t count, num = kept_by_threads(c, first + q, &workspace->queue, keep, expected);
        const uint64_t *found = bsw_candidate_list(&lists, q, &count);
        assert_int_equal(count, num);
        assert_memory_equal(found, expected, num * sizeof *found);
    }
    bsw_candidate_lists_deinit(&lists);
}

static const struct bsw_queue_options queues[] = {
    {1, 1},   {3, 1},    {3, 2},
    {4, 4},   {8, 3},    {7, 1},
    {256, 1}, {256, 17}, {BSW_QUEUE_MAX_ITEMS, BSW_QUEUE_MAX_LENGTH}};
enum { NUM_QUEUES = sizeof queues / sizeof queues[0] };

static void check_levels(const struct bsw_codec *codec, uint32_t num_shards)
{
    static const size_t keeps[] = {1, 100, ROWS + 5};
    struct queue_case c;
    open_case(codec, num_shards, &c);
    for (int level = 0; level < BSW_CPU_NUM_LEVELS; level = bsw_cpu_level_next(level)) {
        struct bsw_scan_workspace workspace;
        bsw_scan_workspace_init(&workspace, (enum bsw_cpu_level)level, 1 + level % 2);
        for (int kind = BSW_SCAN_AUTO; kind <= BSW_SCAN_MATRIX; kind++) {
            workspace.scan = (enum bsw_scan_kind)kind;
            // The reference is slow: some for each family.
            for (size_t i = (size_t)kind % 3; i < NUM_QUEUES; i += level == 0 ? 3 : 1) {
                workspace.queue = queues[i];
                check_queues(&c, 0, QUERIES, keeps[(i + (size_t)level) % 3], &workspace);
            }
        }
        bsw_scan_workspace_deinit(&workspace);
    }
    close_case(&c);
}

UNIT_TEST(threads_keep_what_the_algorithm_keeps)
{
    check_levels(&bsw_codec_xfbq, 1);
    check_levels(&bsw_codec_saq, 1);
    check_levels(&bsw_codec_raw, 1);
    check_levels(&bsw_codec_saq, 3);
}

// Parts of a batch, one query at a time, more CPU threads than blocks.
UNIT_TEST(parts_and_cpu_threads_change_nothing)
{
    struct queue_case c;
    open_case(&bsw_codec_saq, 1, &c);
    for (int threads = 1; threads <= 5; threads += 2) {
        struct bsw_scan_workspace workspace;
        bsw_scan_workspace_init(&workspace, bsw_cpu_level_detect(), threads);
        for (int is_small = 0; is_small < 2; is_small++) {
            if (is_small) workspace.budget_bytes = 1;
            workspace.queue = (struct bsw_queue_options){3, 2};
            check_queues(&c, 3, 9, 50, &workspace);
            check_queues(&c, QUERIES - 1, 1, ROWS, &workspace);
            check_queues(&c, 5, 0, 10, &workspace);
        }
        bsw_scan_workspace_deinit(&workspace);
    }
    close_case(&c);
}

static struct bsw_candidate_lists scan_with(const struct queue_case *c,
                                            struct bsw_queue_options queue, size_t keep)
{
    struct bsw_candidate_lists lists = {0};
    struct bsw_scan_workspace workspace;
    bsw_scan_workspace_init(&workspace, bsw_cpu_level_detect(), 2);
    workspace.queue = queue;
    assert_ok(
        bsw_shard_scan(&c->resident, &c->batch, 0, QUERIES, NULL, keep, &workspace, &lists, &err),
        &err);
    bsw_scan_workspace_deinit(&workspace);
    return lists;
}

// Queues that hold all of a thread's rows lose nothing; one block keeps 256 rows at most.
UNIT_TEST(long_queues_are_thresholds_and_long_threads_keep_few)
{
    struct queue_case c;
    size_t count, other;
    open_case(&bsw_codec_saq, 1, &c);
    struct bsw_candidate_lists threshold = scan_with(&c, (struct bsw_queue_options){0, 0}, 700);
    struct bsw_candidate_lists full = scan_with(&c, (struct bsw_queue_options){5, 5}, 700);
    struct bsw_candidate_lists few = scan_with(&c, (struct bsw_queue_options){ROWS, 1}, 700);
    int is_missed = 0;
    for (size_t q = 0; q < QUERIES; q++) {
        const uint64_t *expected = bsw_candidate_list(&threshold, q, &count);
        assert_int_equal(count, 700);
        assert_memory_equal(bsw_candidate_list(&full, q, &other), expected, 700 * sizeof *expected);
        assert_int_equal(other, 700);
        const uint64_t *found = bsw_candidate_list(&few, q, &other);
        assert_int_equal(other, BSW_QUEUE_THREADS);
        is_missed |= memcmp(found, expected, other * sizeof *found) != 0;
    }
    assert_true(is_missed);
    bsw_candidate_lists_deinit(&threshold);
    bsw_candidate_lists_deinit(&full);
    bsw_candidate_lists_deinit(&few);
    close_case(&c);
}

int main(void)
{
    return run_unit_tests(make_files, remove_temporary_folder);
}
