// Scans on an emulated device against bsw_shard_scan, which test_shard_scan.c compares with a full
// sort: segments, lists that overflow, blocks from host memory, and a device that fails.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/result_order.h"
#include "duplicate_rows.h"
#include "shard/device_histogram.h"
#include "shard/device_self_check.h"
#include "small_index.h"
#include "temporary_folder.h"

#if !defined(TEST_ROWS) // fewer under the race detector
#define TEST_ROWS 1503
#endif
enum {
    ROWS = TEST_ROWS,
    RISING = 16 * 96,
    DISTINCT = 400,
    DIMS = DUPLICATE_DIMS,
    QUERIES = 9,
    QUERY_BITS = 6,
    ALL_MEMORY = 0
};

static struct bsw_error err;

// ---- data ----

static int make_files(void **state)
{
    if (make_temporary_folder(state) != 0) return -1;
    write_duplicates(ROWS, DISTINCT); // each distinct row some four times
    // Nearer and nearer to the queries: every row is better than all before it.
    float *rows = allocate_or_fail(RISING * DIMS, sizeof *rows);
    for (size_t i = 0; i < RISING * DIMS; i++)
        rows[i] = (float)(RISING - i / DIMS) * (i % 3 == 0 ? 0.02f : -0.01f);
    write_fbin(path_of("rising.fbin"), rows, RISING, DIMS);
    for (size_t i = DIMS; i < RISING * DIMS; i++) rows[i] = rows[i - DIMS];
    write_fbin(path_of("equal.fbin"), rows, RISING, DIMS);
    bsw_free(&rows);
    return 0;
}

// ---- one shard on the CPU and on a device ----

struct scan_case {
    struct bsw_manifest manifest;
    struct plain_queries queries;
    struct bsw_query_batch batch;
    struct bsw_resident_shard host;
    struct bsw_scan_workspace workspace;
};

static void open_case(const struct small_index *what, float *vectors, struct scan_case *scan)
{
    make_small_index(what, temporary_folder, &scan->manifest);
    make_plain_queries(&scan->manifest, vectors, QUERIES, QUERY_BITS, &scan->queries);
    bsw_free(&vectors);
    scan->batch = (struct bsw_query_batch){.num_queries = QUERIES,
                                           .query_bits = QUERY_BITS,
                                           .query_words = scan->queries.query_words,
                                           .words = scan->queries.words,
                                           .scales = scan->queries.scales,
                                           .vectors = scan->queries.vectors};
    assert_ok(bsw_resident_shard_load(&scan->manifest, temporary_folder, 0, 0, &scan->host, &err),
              &err);
    bsw_scan_workspace_init(&scan->workspace, bsw_cpu_level_detect(), 2);
}

static void close_case(struct scan_case *scan)
{
    bsw_scan_workspace_deinit(&scan->workspace);
    bsw_resident_shard_unload(&scan->host);
    free_plain_queries(&scan->queries);
    bsw_manifest_deinit(&scan->manifest);
}

// What a device is given.
struct device_case {
    uint64_t memory;
    size_t keep, capacity, max_queries;
    double timeout;
    struct bsw_queue_options queue;
    int is_checked; // not once more
};

struct on_device {
    bsw_device *device;
    struct bsw_device_engine engine;
    struct bsw_resident_shard host;
    struct bsw_device_shard shard;
};

static void open_on_device(const struct scan_case *scan, const struct device_case *with,
                           struct on_device *out)
{
    const struct bsw_device_options options = {.num_sharers = 1,
                                               .most_bytes = with->memory,
                                               .timeout_seconds =
                                                   with->timeout ? with->timeout : 60};
    const struct bsw_device_needs needs = {.shapes = &scan->host.shape,
                                           .num_shards = 1,
                                           .query_bits = QUERY_BITS,
                                           .max_queries =
                                               with->max_queries ? with->max_queries : QUERIES,
                                           .keep = with->keep,
                                           .capacity = with->capacity,
                                           .stage_dims = scan->host.stage_dims,
                                           .queue = with->queue};
    assert_ok(bsw_device_open(&options, &out->device, &err), &err);
    assert_ok(bsw_device_engine_open(out->device, &needs, &out->engine, &err), &err);
    out->engine.is_checked = with->is_checked;
    assert_ok(bsw_resident_shard_load(&scan->manifest, temporary_folder, 0, 0, &out->host, &err),
              &err);
    assert_ok(bsw_device_shard_load(&out->engine, 0, &out->host, &out->shard, &err), &err);
}

static void close_on_device(struct on_device *on)
{
    bsw_device_shard_unload(&on->engine, &on->shard);
    bsw_device_engine_close(&on->engine);
    assert_int_equal(bsw_device_used_bytes(on->device), 0);
    bsw_device_close(&on->device);
    bsw_resident_shard_unload(&on->host);
}

static void assert_same_lists(const struct bsw_candidate_lists *a,
                              const struct bsw_candidate_lists *b)
{
    assert_int_equal(a->num_queries, b->num_queries);
    assert_int_equal(a->keep, b->keep);
    for (size_t q = 0; q < a->num_queries; q++) {
        size_t count_a, count_b;
        const uint64_t *list_a = bsw_candidate_list(a, q, &count_a);
        const uint64_t *list_b = bsw_candidate_list(b, q, &count_b);
        assert_int_equal(count_a, count_b);
        assert_memory_equal(list_a, list_b, count_a * sizeof *list_a);
    }
}

// Returns how many scans that were.
static unsigned check_scan(struct scan_case *scan, struct on_device *on, size_t first,
                           size_t num_queries, const uint32_t *limits, size_t keep)
{
    struct bsw_candidate_lists expected = {0}, found = {0};
    unsigned num_scans = 0;
    int has_stage = scan->host.stage_dims > 0 && scan->workspace.queue.length == 0;
    for (int kind = BSW_SCAN_AUTO; kind <= BSW_SCAN_PROGRESSIVE_MATRIX; kind++) {
        if (kind == BSW_SCAN_PROGRESSIVE_PLANES) kind++; // one kernel has both
        if (kind == BSW_SCAN_PROGRESSIVE_MATRIX && !has_stage) break;
        scan->workspace.scan = (enum bsw_scan_kind)kind;
        assert_ok(bsw_shard_scan(&scan->host, &scan->batch, first, num_queries, limits, keep,
                                 &scan->workspace, &expected, &err),
                  &err);
        assert_ok(bsw_device_shard_scan(&on->engine, &on->shard, &scan->batch, first, num_queries,
                                        limits, keep, &scan->workspace, &found, &err),
                  &err);
        assert_same_lists(&expected, &found);
        if (kind != BSW_SCAN_AUTO) assert_int_equal(scan->workspace.used, kind);
        num_scans++;
    }
    bsw_candidate_lists_deinit(&expected);
    bsw_candidate_lists_deinit(&found);
    return num_scans;
}

// ---- the same lists ----

static void lists_are_those_of_the_cpu(void **state)
{
    (void)state;
    static const size_t keeps[] = {1, 300, ROWS, ROWS + 1000};
    for (int i = -1; i < BSW_METRIC_NUM; i++) {
        struct small_index what = i < 0 ? duplicates(BSW_CODEC_XFBQ, BSW_METRIC_COSINE)
                                        : duplicates(BSW_CODEC_SAQ, (enum bsw_metric)i);
        struct scan_case scan;
        open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
        for (size_t k = 0; k < 4; k++) {
            const struct device_case with = {.memory = ALL_MEMORY, .keep = keeps[k]};
            struct on_device on;
            open_on_device(&scan, &with, &on);
            assert_null(on.host.arrays.planes[0]); // the device has them
            assert_int_equal(on.engine.plan.block_bundles, 0);
            uint64_t allocations = bsw_device_num_allocations(on.device);
            assert_int_equal(bsw_device_used_bytes(on.device),
                             bsw_device_plan_bytes(&on.engine.plan));
            check_scan(&scan, &on, 0, QUERIES, NULL, keeps[k]);
            check_scan(&scan, &on, QUERIES - 1, 1, NULL, 1);
            check_scan(&scan, &on, 5, 0, NULL, 10);
            assert_int_equal(bsw_device_num_allocations(on.device), allocations);
            assert_int_equal(on.engine.copied_bytes, 0);
            close_on_device(&on);
        }
        close_case(&scan);
    }
}

// Limits that many, few or no rows reach; all of them in groups of queries too.
static void limits_and_groups_are_kept(void **state)
{
    (void)state;
    for (int codec = 0; codec <= BSW_CODEC_SAQ; codec++) {
        const struct small_index what = duplicates((enum bsw_codec)codec, BSW_METRIC_COSINE);
        struct scan_case scan;
        struct bsw_candidate_lists all = {0};
        uint32_t limits[QUERIES];
        open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
        assert_ok(bsw_shard_scan(&scan.host, &scan.batch, 0, QUERIES, NULL, ROWS, &scan.workspace,
                                 &all, &err),
                  &err);
        for (size_t q = 0; q < QUERIES; q++) {
            size_t count;
            const uint64_t *list = bsw_candidate_list(&all, q, &count);
            size_t place = q % 3 == 0 ? count - 1 : q % 3 == 1 ? 0 : 60 * q;
            limits[q] = bsw_candidate_score(list[place]) + (q % 4 == 1);
        }
        for (size_t group = 1; group <= QUERIES; group += 4) {
            const struct device_case with[] = {
                {.keep = 50, .max_queries = group},
                {.keep = 10, .capacity = 300, .max_queries = group}}; // with a sample
            for (int i = 0; i < 2; i++) {
                struct on_device on;
                open_on_device(&scan, &with[i], &on);
                check_scan(&scan, &on, 0, QUERIES, limits, with[i].keep);
                assert_true((on.engine.num_samples > 0) == (i == 1));
                close_on_device(&on);
            }
        }
        bsw_candidate_lists_deinit(&all);
        close_case(&scan);
    }
}

// Queries that a link has brought: nothing of them is read in host memory.
static void queries_may_lie_on_the_device_already(void **state)
{
    (void)state;
    for (int codec = 0; codec <= BSW_CODEC_SAQ; codec++) {
        const struct small_index what = duplicates((enum bsw_codec)codec, BSW_METRIC_COSINE);
        struct scan_case scan;
        open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
        size_t word_bytes = QUERIES * scan.batch.query_words * sizeof(uint32_t);
        size_t scale_bytes = QUERIES * sizeof(float);
        for (size_t group = 2; group <= QUERIES; group += 7) {
            const struct device_case with = {.keep = 50, .max_queries = group};
            struct bsw_device_buffer memory;
            struct on_device on;
            struct bsw_candidate_lists expected = {0}, found = {0};
            open_on_device(&scan, &with, &on);
            assert_ok(
                bsw_device_allocate(on.device, word_bytes + scale_bytes, "test", &memory, &err),
                &err);
            assert_ok(bsw_device_upload(on.device, BSW_QUEUE_LINK, memory.data, scan.batch.words,
                                        word_bytes, &err),
                      &err);
            assert_ok(bsw_device_upload(on.device, BSW_QUEUE_LINK, memory.data + word_bytes,
                                        scan.batch.scales, scale_bytes, &err),
                      &err);
            assert_ok(bsw_device_wait(on.device, BSW_QUEUE_LINK, "test", &err), &err);
            struct bsw_query_batch there = scan.batch;
            there.words = NULL;
            there.scales = NULL;
            there.d_words = (const uint32_t *)(const void *)memory.data;
            there.d_scales = (const float *)(const void *)(memory.data + word_bytes);
            assert_ok(bsw_shard_scan(&scan.host, &scan.batch, 1, QUERIES - 1, NULL, 50,
                                     &scan.workspace, &expected, &err),
                      &err);
            assert_ok(bsw_device_shard_scan(&on.engine, &on.shard, &there, 1, QUERIES - 1, NULL, 50,
                                            &scan.workspace, &found, &err),
                      &err);
            assert_same_lists(&expected, &found);
            bsw_candidate_lists_deinit(&expected);
            bsw_candidate_lists_deinit(&found);
            bsw_device_free(on.device, &memory);
            close_on_device(&on);
        }
        close_case(&scan);
    }
}

// Rounds of one block of queues and of more, lists that hold all rows, blocks of codes that end
// inside those of queues, groups of queries; limits that half the rows reach.
static void queues_are_those_of_the_cpu(void **state)
{
    (void)state;
    static const struct device_case cases[] = {
        {.keep = 40, .queue = {1, 1}},
        {.keep = 20, .capacity = 20 + 256, .queue = {1, 1}, .is_checked = 1},
        {.keep = 300, .max_queries = 4, .queue = {2, 2}, .is_checked = 1},
        {.keep = ROWS + 9, .queue = {BSW_QUEUE_MAX_ITEMS, BSW_QUEUE_MAX_LENGTH}, .is_checked = 1},
        {.keep = 10, .memory = 40000, .queue = {3, 1}, .is_checked = 1},
        {.keep = 50, .memory = 44000, .queue = {1, 1}, .is_checked = 1}};
    const uint32_t limits[3] = {0, 0x80000000u, 0x80000000u}; // keys of 0
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct small_index what = duplicates((enum bsw_codec)(i % 2), BSW_METRIC_COSINE);
        struct scan_case scan;
        struct on_device on;
        open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
        open_on_device(&scan, &cases[i], &on);
        const struct bsw_device_plan *plan = &on.engine.plan;
        assert_true(plan->block_bundles < 8 && (cases[i].memory == 0 || plan->block_bundles > 0));
        assert_int_equal(bsw_device_used_bytes(on.device), bsw_device_plan_bytes(plan));
        uint64_t allocations = bsw_device_num_allocations(on.device);
        scan.workspace.queue = cases[i].queue;
        check_scan(&scan, &on, 0, QUERIES, NULL, cases[i].keep);
        check_scan(&scan, &on, 2, 3, limits, cases[i].keep);
        assert_int_equal(bsw_device_num_allocations(on.device), allocations);
        close_on_device(&on);
        close_case(&scan);
    }
}

// ---- the first stage ----

// Real descriptors, 128-d with the stage at 64: the device stops what the CPU's bound stops, or
// nearly so, in all but the first segment, with and without blocks.
static void a_stage_stops_most_rows(void **state)
{
    (void)state;
    for (int metric = 0; metric < BSW_METRIC_NUM; metric++) {
        const struct small_index what = {.source = TEST_DATA_FOLDER "/sift20k_base.u8bin",
                                         .last_row = 2500,
                                         .codec = BSW_CODEC_SAQ,
                                         .metric = (enum bsw_metric)metric,
                                         .bits = 2};
        unsigned char numbers[QUERIES * 128];
        float *vectors = allocate_or_fail(sizeof numbers, sizeof *vectors);
        bsw_vectors *queries;
        struct scan_case scan;
        assert_ok(
            bsw_vectors_open(TEST_DATA_FOLDER "/sift20k_query.u8bin", BSW_ALL_ROWS, &queries, &err),
            &err);
        assert_ok(bsw_vectors_read(queries, 0, QUERIES, numbers, &err), &err);
        for (size_t i = 0; i < sizeof numbers; i++) vectors[i] = numbers[i];
        bsw_vectors_close(&queries);
        open_case(&what, vectors, &scan);
        assert_int_equal(scan.host.stage_dims, 64);
        for (uint64_t memory = 0; memory <= 200000; memory += 200000) {
            const struct device_case with = {.memory = memory, .keep = 10, .capacity = 300};
            struct on_device on;
            open_on_device(&scan, &with, &on);
            scan.workspace.num_pairs = scan.workspace.num_stopped = 0;
            struct bsw_candidate_lists lists = {0};
            scan.workspace.scan = BSW_SCAN_PROGRESSIVE_PLANES;
            assert_ok(bsw_device_shard_scan(&on.engine, &on.shard, &scan.batch, 0, QUERIES, NULL,
                                            10, &scan.workspace, &lists, &err),
                      &err);
            double share = (double)scan.workspace.num_stopped / (double)scan.workspace.num_pairs;
            assert_int_equal(scan.workspace.used, BSW_SCAN_PROGRESSIVE_MATRIX);
            if (share < 0.5 || share >= 1) fail_msg("%.1f %% stopped", 100 * share);
            bsw_candidate_lists_deinit(&lists);
            check_scan(&scan, &on, 0, QUERIES, NULL, 10);
            close_on_device(&on);
        }
        close_case(&scan);
    }
}

// ---- histograms ----

struct bins {
    uint32_t first[QUERIES], count[QUERIES];
    uint64_t *values; // [QUERIES][most]
    size_t most, num_queries;
};

static enum bsw_status collect_bins(void *context, size_t query, uint32_t first_bin,
                                    const uint64_t *counts, uint32_t num_bins,
                                    struct bsw_error *error)
{
    struct bins *bins = context;
    (void)error;
    assert_int_equal(query, bins->num_queries++);
    assert_true(num_bins <= bins->most);
    bins->first[query] = first_bin;
    bins->count[query] = num_bins;
    memcpy(bins->values + query * bins->most, counts, num_bins * sizeof *counts);
    return BSW_OK;
}

// The same bins but for empty ones at the end; the last one as far as to k in all.
static void check_bins(const struct bins *expected, const struct bins *found, uint64_t k)
{
    assert_int_equal(found->num_queries, QUERIES);
    for (size_t q = 0; q < QUERIES; q++) {
        const uint64_t *a = expected->values + q * expected->most;
        const uint64_t *b = found->values + q * found->most;
        uint64_t sum = 0;
        uint32_t last = expected->count[q] - 1;
        while (a[last] == 0) last--;
        assert_int_equal(expected->first[q], found->first[q]);
        assert_int_equal(found->count[q], last + 1);
        assert_memory_equal(a, b, last * sizeof *a);
        for (uint32_t i = 0; i < last; i++) sum += b[i];
        assert_int_equal(b[last], sum + a[last] < k ? a[last] : k - sum);
    }
}

static void histograms_say_the_same_of_the_best(void **state)
{
    (void)state;
    static const uint64_t ks[] = {1, 50, ROWS, ROWS + 9};
    const struct small_index what = duplicates(BSW_CODEC_XFBQ, BSW_METRIC_COSINE);
    struct bsw_candidate_lists lists = {0};
    struct scan_case scan;
    open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
    const struct device_case with = {.keep = ROWS + 9};
    struct on_device on;
    open_on_device(&scan, &with, &on);
    struct bins expected = {.most =
                                (size_t)bsw_layout_dot_limit(&scan.host.shape.layout, QUERY_BITS) +
                                1},
                found = expected;
    expected.values = allocate_or_fail(QUERIES * expected.most, sizeof(uint64_t));
    found.values = allocate_or_fail(QUERIES * expected.most, sizeof(uint64_t));
    for (int i = 0; i < 4; i++) {
        expected.num_queries = found.num_queries = 0;
        assert_ok(bsw_shard_histogram(&scan.host, &scan.batch, 0, QUERIES, ks[i], &scan.workspace,
                                      collect_bins, &expected, &err),
                  &err);
        assert_ok(bsw_device_shard_histogram(&on.engine, &on.shard, &scan.batch, 0, QUERIES, ks[i],
                                             &scan.workspace, &lists, collect_bins, &found, &err),
                  &err);
        check_bins(&expected, &found, ks[i]);
    }
    bsw_free(&expected.values);
    bsw_free(&found.values);
    bsw_candidate_lists_deinit(&lists);
    close_on_device(&on);
    close_case(&scan);
}

// ---- samples, segments and overflows ----

// Scans of all kinds, how many is returned; the engine's numbers afterwards.
static unsigned check_rising_or_equal(struct small_index *what, float *vectors, size_t keep,
                                      size_t capacity, struct bsw_device_engine *counts)
{
    struct scan_case scan;
    what->drops_bad_rows = 0;
    open_case(what, vectors, &scan);
    const struct device_case with = {.keep = keep, .capacity = capacity};
    struct on_device on;
    open_on_device(&scan, &with, &on);
    unsigned num_scans = check_scan(&scan, &on, 0, QUERIES, NULL, keep);
    *counts = on.engine; // numbers alone
    close_on_device(&on);
    close_case(&scan);
    return num_scans;
}

// Lists with room for one more bundle: no sample is worth anything, and a segment is one bundle.
static void smallest_lists_lose_nothing(void **state)
{
    (void)state;
    static const size_t keeps[] = {40, 700};
    const struct small_index what = duplicates(BSW_CODEC_SAQ, BSW_METRIC_L2);
    struct scan_case scan;
    open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
    for (size_t k = 0; k < 2; k++) {
        const struct device_case with = {.keep = keeps[k], .capacity = keeps[k] + 32};
        struct on_device on;
        open_on_device(&scan, &with, &on);
        check_scan(&scan, &on, 0, QUERIES, NULL, keeps[k]);
        assert_int_equal(on.engine.num_samples, 0);
        assert_int_equal(on.engine.num_overflows, 0);
        assert_true(on.engine.num_segments >= 3 * 20);
        close_on_device(&on);
    }
    close_case(&scan);
}

// Every row is better than all before it, so those that reach the sample's limit are all at the
// end, more than a list has room for.
static void rising_rows_overflow_and_lose_nothing(void **state)
{
    (void)state;
    struct small_index what = duplicates(BSW_CODEC_SAQ, BSW_METRIC_L2);
    float *vectors = allocate_or_fail(QUERIES * DIMS, sizeof *vectors);
    struct bsw_device_engine counts;
    for (size_t i = 0; i < QUERIES * DIMS; i++) vectors[i] = 0.001f * (float)(i % 5);
    what.source = path_of("rising.fbin");
    unsigned num_scans = check_rising_or_equal(&what, vectors, 21, 21 + 3 * 32 - 1, &counts);
    assert_int_equal(counts.num_samples, num_scans);
    assert_true(counts.num_overflows >= num_scans);
    assert_true(counts.num_segments < num_scans * RISING / 32); // not all of them one bundle
}

// The limit of a sample is what all rows have: each of them passes until a list has been cut.
static void equal_rows_overflow_and_lose_nothing(void **state)
{
    (void)state;
    for (int codec = 0; codec <= BSW_CODEC_SAQ; codec++) {
        struct small_index what = duplicates((enum bsw_codec)codec, BSW_METRIC_COSINE);
        struct bsw_device_engine counts;
        what.source = path_of("equal.fbin");
        unsigned num_scans =
            check_rising_or_equal(&what, make_queries(DISTINCT, QUERIES), 2, 128, &counts);
        assert_int_equal(counts.num_samples, num_scans);
        assert_true(counts.num_overflows >= num_scans);
        assert_true(counts.num_segments < num_scans * 12);
    }
}

// Where rows come in no order lists of the chosen length, or short ones, do not overflow, and a few
// segments are enough.
static void lists_hardly_ever_overflow(void **state)
{
    (void)state;
    const struct small_index what = duplicates(BSW_CODEC_SAQ, BSW_METRIC_L2);
    struct scan_case scan;
    open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
    const struct device_case with[] = {{.keep = 10}, {.keep = 10, .capacity = 300}};
    for (int i = 0; i < 2; i++) {
        struct on_device on;
        open_on_device(&scan, &with[i], &on);
        unsigned num_scans = check_scan(&scan, &on, 0, QUERIES, NULL, 10);
        assert_int_equal(on.engine.num_overflows, 0);
        assert_int_equal(on.engine.num_samples, i == 0 ? 0 : num_scans); // chosen lists hold all
        assert_true(on.engine.num_segments <= num_scans * (i == 0 ? 1 : 5));
        close_on_device(&on);
    }
    close_case(&scan);
}

// ---- many rows ----

// Scores of so many rows that none is computed: those of any part lie evenly between 0 and 2^32.
struct even_rows {
    bsw_device *device;
    uint64_t *items; // [capacity]
    uint64_t rows;   // scanned so far
};

static enum bsw_status scan_even_rows(void *context, const struct bsw_device_part *part,
                                      const struct bsw_device_lists *lists, struct bsw_error *error)
{
    struct even_rows *even = context;
    uint32_t limit, count;
    BSW_TRY(bsw_device_download(even->device, BSW_QUEUE_SCAN, &limit, lists->limits, 4, error));
    BSW_TRY(bsw_device_download(even->device, BSW_QUEUE_SCAN, &count, lists->counts, 4, error));
    BSW_TRY(bsw_device_wait(even->device, BSW_QUEUE_SCAN, "lists", error));
    uint64_t bundles = (part->last - part->first + part->step - 1) / part->step;
    uint64_t rows = bundles * 32, span = ((uint64_t)1 << 32) - limit, hits = rows * span >> 32;
    uint64_t room = lists->capacity - count, stored = hits < room ? hits : room;
    for (uint64_t i = 0; i < stored; i++) {
        uint64_t row = part->first * 32ull + i * (part->last - part->first) * 32ull / hits;
        even->items[i] =
            bsw_candidate_pack((uint32_t)(limit + (2 * i + 1) * span / (2 * hits)), (uint32_t)row);
    }
    even->rows += rows;
    count += (uint32_t)hits;
    BSW_TRY(bsw_device_upload(even->device, BSW_QUEUE_SCAN, lists->items + (count - hits),
                              even->items, stored * sizeof *even->items, error));
    BSW_TRY(bsw_device_upload(even->device, BSW_QUEUE_SCAN, lists->counts, &count, 4, error));
    return bsw_device_wait(even->device, BSW_QUEUE_SCAN, "lists", error);
}

// The list of a query over 10^9 rows; how many segments that takes.
static uint64_t scan_many_rows(bsw_device *device, uint32_t keep, uint32_t capacity)
{
    const size_t bundles = 1000000000 / 32;
    const uint32_t zeros[2] = {0, 0};
    uint32_t counts[2] = {0, 0};
    struct bsw_device_buffer items, numbers, scratch;
    struct even_rows even = {device, allocate_or_fail(capacity, sizeof(uint64_t)), 0};
    assert_ok(bsw_device_allocate(device, capacity * sizeof(uint64_t), "items", &items, &err),
              &err);
    assert_ok(bsw_device_allocate(device, sizeof zeros, "numbers", &numbers, &err), &err);
    assert_ok(
        bsw_device_allocate(device, bsw_device_sort_bytes(1, capacity), "sort", &scratch, &err),
        &err);
    assert_ok(bsw_device_upload(device, BSW_QUEUE_SCAN, numbers.data, zeros, sizeof zeros, &err),
              &err);
    uint32_t *d_numbers = (uint32_t *)(void *)numbers.data;
    struct bsw_device_list_run run = {
        .device = device,
        .lists = {1, capacity, (uint64_t *)(void *)items.data, d_numbers, d_numbers + 1, {0}},
        .keep = keep,
        .counts = counts,
        .fetched = counts + 1};
    bsw_device_list_run_begin(&run);
    assert_ok(bsw_device_list_run_scan(&run, bundles, scan_even_rows, &even, &err), &err);
    assert_ok(bsw_device_list_run_fetch(&run, scratch.data, even.items, &err), &err);
    assert_int_equal(run.num_samples, 1);
    assert_int_equal(run.num_overflows, 0);
    assert_int_equal(even.rows, run.scanned * 32);
    assert_true(even.rows < 1001000000); // the sample costs next to nothing
    assert_int_equal(counts[0], keep);
    double worst = 4294967296.0 - bsw_candidate_score(even.items[keep - 1]);
    assert_float_equal(worst / 4294967296.0 * 1e9 / keep, 1, 0.01);
    bsw_device_free(device, &items);
    bsw_device_free(device, &numbers);
    bsw_device_free(device, &scratch);
    bsw_free(&even.items);
    return run.num_segments;
}

static void many_rows_take_few_segments(void **state)
{
    (void)state;
    const struct bsw_device_options options = {.num_sharers = 1, .timeout_seconds = 60};
    bsw_device *device;
    assert_ok(bsw_device_open(&options, &device, &err), &err);
    assert_int_equal(scan_many_rows(device, 100, 1 << 16), 2);
    assert_int_equal(scan_many_rows(device, 1000, 1 << 16), 3);
    assert_int_equal(scan_many_rows(device, 1000, 1 << 15), 4); // of 1000 queries
    bsw_device_close(&device);
}

// ---- blocks ----

static void codes_come_in_blocks(void **state)
{
    (void)state;
    for (int codec = 0; codec <= BSW_CODEC_SAQ; codec++) {
        const struct small_index what = duplicates((enum bsw_codec)codec, BSW_METRIC_COSINE);
        struct scan_case scan;
        int seen = 0; // 1: some bundles on the device, 2: none
        open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
        for (uint64_t memory = 26000; memory < 130000; memory += memory / 3) {
            const struct device_case with = {.memory = memory, .keep = 10};
            struct on_device on;
            open_on_device(&scan, &with, &on);
            if (on.engine.plan.block_bundles > 0) {
                size_t resident = on.shard.resident.num_bundles;
                seen |= resident > 0 ? 1 : 2;
                assert_true(on.shard.num_pinned > 0);
                assert_non_null(on.host.arrays.planes[0]);
                uint64_t allocations = bsw_device_num_allocations(on.device);
                check_scan(&scan, &on, 0, QUERIES, NULL, 10);
                assert_int_equal(bsw_device_num_allocations(on.device), allocations);
                uint64_t bytes =
                    (on.shard.num_bundles - resident) *
                    bsw_device_bundle_bytes(&on.engine.plan.layout, on.engine.plan.has_affine,
                                            on.engine.plan.stage_dims > 0);
                assert_int_equal(bytes, on.engine.plan.streamed_bytes);
                assert_true(on.engine.copied_bytes >= 3 * bytes); // 3 scans at least, all groups
                assert_int_equal(on.engine.copied_bytes % bytes, 0);
            }
            assert_true(bsw_device_used_bytes(on.device) <= memory);
            assert_int_equal(bsw_device_used_bytes(on.device),
                             bsw_device_plan_bytes(&on.engine.plan));
            close_on_device(&on);
        }
        assert_true(seen & 1);
        close_case(&scan);
    }
}

// ---- faults ----

static void check_fault(const char *variable, const char *number, const char *text)
{
    const struct small_index what = duplicates(BSW_CODEC_SAQ, BSW_METRIC_L2);
    const struct device_case with = {.keep = 10, .timeout = 0.2};
    struct bsw_candidate_lists lists = {0};
    struct scan_case scan;
    struct on_device on;
    open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
    open_on_device(&scan, &with, &on);
    setenv(variable, number, 1);
    assert_int_equal(bsw_device_shard_scan(&on.engine, &on.shard, &scan.batch, 0, QUERIES, NULL, 10,
                                           &scan.workspace, &lists, &err),
                     BSW_ERROR_IO);
    if (!strstr(err.message, text)) fail_msg("%s", err.message);
    assert_int_equal(strncmp(err.message, "emulated:0: ", 12), 0);
    unsetenv(variable);
    close_on_device(&on); // asks nothing of the device
    bsw_candidate_lists_deinit(&lists);
    close_case(&scan);
}

static void a_silent_device_ends_at_the_deadline(void **state)
{
    (void)state;
    check_fault("BITSWEEP_EMULATOR_STALL", "1", "not done within 0.2 s");
}

static void a_failed_launch_is_told(void **state)
{
    (void)state;
    check_fault("BITSWEEP_EMULATOR_FAIL", "1", "scan: cudaErrorLaunchFailure");
}

// Other bits in the codes that the CPU sees: no scan on the device can agree with it any more.
static void wrong_bits_are_noticed_at_the_start(void **state)
{
    (void)state;
    for (int codec = 0; codec <= BSW_CODEC_SAQ; codec++) {
        const struct small_index what = duplicates((enum bsw_codec)codec, BSW_METRIC_COSINE);
        struct scan_case scan;
        open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
        const struct device_case with = {.memory = 40000, .keep = 10}; // in blocks: codes stay
        struct on_device on;
        open_on_device(&scan, &with, &on);
        assert_true(on.engine.is_checked && on.shard.resident.num_bundles > 0);
        uint64_t segments = on.engine.num_segments;
        assert_ok(bsw_device_self_check(&on.engine, &on.shard, &err), &err);
        assert_int_equal(on.engine.num_segments, segments);
        // The weightiest bit of every 32nd dimension of all rows.
        const struct bsw_segment *segment = &scan.host.shape.layout.segments[0];
        for (size_t b = 0; b < on.host.num_bundles; b++) {
            uint32_t *planes = on.host.arrays.planes[0] + b * bsw_segment_bundle_words(segment);
            for (uint32_t i = 0; i < segment->words * BSW_BUNDLE_ROWS; i++) planes[i] ^= 1;
        }
        assert_int_equal(bsw_device_self_check(&on.engine, &on.shard, &err), BSW_ERROR_SELF_CHECK);
        assert_non_null(strstr(err.message, "emulated:0: the planes scan of rows 0 to "));
        close_on_device(&on);
        close_case(&scan);
    }
}

static void too_little_memory_is_told_with_numbers(void **state)
{
    (void)state;
    const struct small_index what = duplicates(BSW_CODEC_SAQ, BSW_METRIC_L2);
    const struct bsw_device_options options = {
        .num_sharers = 1, .most_bytes = 4000, .timeout_seconds = 60};
    struct scan_case scan;
    bsw_device *device;
    struct bsw_device_engine engine;
    struct bsw_device_buffer buffer;
    open_case(&what, make_queries(DISTINCT, QUERIES), &scan);
    const struct bsw_device_needs needs = {.shapes = &scan.host.shape,
                                           .num_shards = 1,
                                           .query_bits = QUERY_BITS,
                                           .max_queries = 1,
                                           .keep = 10};
    assert_ok(bsw_device_open(&options, &device, &err), &err);
    assert_int_equal(bsw_device_engine_open(device, &needs, &engine, &err),
                     BSW_ERROR_OUT_OF_MEMORY);
    assert_non_null(strstr(err.message, "emulated:0: 4000 bytes of device memory are free, "));
    assert_int_equal(bsw_device_allocate(device, 4001, "codes", &buffer, &err),
                     BSW_ERROR_OUT_OF_MEMORY);
    assert_string_equal(err.message,
                        "emulated:0: codes: no device memory for 4001 bytes, 4000 are free");
    assert_ok(bsw_device_allocate(device, 4000, "codes", &buffer, &err), &err);
    bsw_device_free(device, &buffer);
    bsw_device_close(&device);
    close_case(&scan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_those_of_the_cpu),
        cmocka_unit_test(limits_and_groups_are_kept),
        cmocka_unit_test(queries_may_lie_on_the_device_already),
        cmocka_unit_test(queues_are_those_of_the_cpu),
        cmocka_unit_test(histograms_say_the_same_of_the_best),
        cmocka_unit_test(a_stage_stops_most_rows),
        cmocka_unit_test(smallest_lists_lose_nothing),
        cmocka_unit_test(rising_rows_overflow_and_lose_nothing),
        cmocka_unit_test(equal_rows_overflow_and_lose_nothing),
        cmocka_unit_test(lists_hardly_ever_overflow),
        cmocka_unit_test(many_rows_take_few_segments),
        cmocka_unit_test(codes_come_in_blocks),
        cmocka_unit_test(a_silent_device_ends_at_the_deadline),
        cmocka_unit_test(a_failed_launch_is_told),
        cmocka_unit_test(wrong_bits_are_noticed_at_the_start),
        cmocka_unit_test(too_little_memory_is_told_with_numbers),
    };
    return cmocka_run_group_tests(tests, make_files, remove_temporary_folder);
}
