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

#include "common/integer_hash.h"
#include "common/result_order.h"
#include "common/synth.h"
#include "shard/device_shard.h"
#include "small_index.h"
#include "temporary_folder.h"

enum {
    ROWS = 1503,
    RISING = 16 * 96,
    DISTINCT = 400,
    DIMS = 40,
    QUERIES = 9,
    QUERY_BITS = 6,
    ALL_MEMORY = 0
};

static struct bsw_error err;

// ---- data ----

static int make_files(void **state)
{
    const struct bsw_synth synth = {.count = DISTINCT, .dims = DIMS, .seed = 1, .clusters = 12};
    if (make_temporary_folder(state) != 0) return -1;
    float *rows = allocate_or_fail(ROWS * DIMS, sizeof *rows);
    for (uint64_t row = 0; row < ROWS; row++) { // each distinct row some four times; some bad
        bsw_synth_rows(&synth, bsw_hash(row) % DISTINCT, 1, rows + row * DIMS);
        if (row % 61 == 5 || row == ROWS - 1) rows[row * DIMS + row % DIMS] = NAN;
    }
    write_fbin(path_of("duplicates.fbin"), rows, ROWS, DIMS);
    bsw_free(&rows);
    // Nearer and nearer to the queries: every row is better than all before it.
    rows = allocate_or_fail(RISING * DIMS, sizeof *rows);
    for (size_t i = 0; i < RISING * DIMS; i++)
        rows[i] = (float)(RISING - i / DIMS) * (i % 3 == 0 ? 0.02f : -0.01f);
    write_fbin(path_of("rising.fbin"), rows, RISING, DIMS);
    bsw_free(&rows);
    return 0;
}

static float *make_queries(void)
{
    const struct bsw_synth synth = {.count = DISTINCT, .dims = DIMS, .seed = 1, .clusters = 12};
    float *vectors = allocate_or_fail(QUERIES * DIMS, sizeof *vectors);
    bsw_synth_rows(&synth, DISTINCT, QUERIES, vectors);
    return vectors;
}

static struct small_index duplicates(enum bsw_codec codec, enum bsw_metric metric)
{
    return (struct small_index){.source = path_of("duplicates.fbin"),
                                .codec = codec,
                                .metric = metric,
                                .bits = 3,
                                .segments = "33x3,7x2",
                                .drops_bad_rows = 1};
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
    scan->batch = (struct bsw_query_batch){QUERIES,
                                           QUERY_BITS,
                                           scan->queries.query_words,
                                           scan->queries.words,
                                           scan->queries.scales,
                                           scan->queries.vectors,
                                           NULL,
                                           0};
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
                                           .capacity = with->capacity};
    assert_ok(bsw_device_open(&options, &out->device, &err), &err);
    assert_ok(bsw_device_engine_open(out->device, &needs, &out->engine, &err), &err);
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

static void check_scan(struct scan_case *scan, struct on_device *on, size_t first,
                       size_t num_queries, const uint32_t *limits, size_t keep)
{
    struct bsw_candidate_lists expected = {0}, found = {0};
    for (int kind = BSW_SCAN_AUTO; kind <= BSW_SCAN_MATRIX; kind++) {
        scan->workspace.scan = (enum bsw_scan_kind)kind;
        assert_ok(bsw_shard_scan(&scan->host, &scan->batch, first, num_queries, limits, keep,
                                 &scan->workspace, &expected, &err),
                  &err);
        assert_ok(bsw_device_shard_scan(&on->engine, &on->shard, &scan->batch, first, num_queries,
                                        limits, keep, &scan->workspace, &found, &err),
                  &err);
        assert_same_lists(&expected, &found);
        if (kind != BSW_SCAN_AUTO) assert_int_equal(scan->workspace.used, kind);
    }
    bsw_candidate_lists_deinit(&expected);
    bsw_candidate_lists_deinit(&found);
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
        open_case(&what, make_queries(), &scan);
        for (size_t k = 0; k < 4; k++) {
            const struct device_case with = {.memory = ALL_MEMORY, .keep = keeps[k]};
            struct on_device on;
            open_on_device(&scan, &with, &on);
            assert_null(on.host.arrays.planes[0]); // the device has them
            assert_int_equal(on.engine.plan.block_bundles, 0);
            size_t used = bsw_device_used_bytes(on.device);
            check_scan(&scan, &on, 0, QUERIES, NULL, keeps[k]);
            check_scan(&scan, &on, QUERIES - 1, 1, NULL, 1);
            check_scan(&scan, &on, 5, 0, NULL, 10);
            assert_int_equal(bsw_device_used_bytes(on.device), used); // nothing more for a batch
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
        open_case(&what, make_queries(), &scan);
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
            const struct device_case with = {.keep = 50, .max_queries = group};
            struct on_device on;
            open_on_device(&scan, &with, &on);
            check_scan(&scan, &on, 0, QUERIES, limits, 50);
            close_on_device(&on);
        }
        bsw_candidate_lists_deinit(&all);
        close_case(&scan);
    }
}

// ---- overflows ----

// Lists with room for one more bundle: nearly every segment overflows until it is one bundle.
static void small_lists_overflow_and_lose_nothing(void **state)
{
    (void)state;
    static const size_t keeps[] = {40, 700};
    const struct small_index what = duplicates(BSW_CODEC_SAQ, BSW_METRIC_L2);
    struct scan_case scan;
    open_case(&what, make_queries(), &scan);
    for (size_t k = 0; k < 2; k++) {
        const struct device_case with = {.keep = keeps[k], .capacity = keeps[k] + 32};
        struct on_device on;
        open_on_device(&scan, &with, &on);
        check_scan(&scan, &on, 0, QUERIES, NULL, keeps[k]);
        assert_true(on.engine.num_overflows > 0);
        close_on_device(&on);
    }
    close_case(&scan);
}

static void rising_rows_overflow_and_lose_nothing(void **state)
{
    (void)state;
    struct small_index what = duplicates(BSW_CODEC_SAQ, BSW_METRIC_L2);
    float *vectors = allocate_or_fail(QUERIES * DIMS, sizeof *vectors);
    for (size_t i = 0; i < QUERIES * DIMS; i++) vectors[i] = 0.001f * (float)(i % 5);
    what.source = path_of("rising.fbin");
    what.drops_bad_rows = 0;
    struct scan_case scan;
    open_case(&what, vectors, &scan);
    // Three bundles are one row more than a full list has room for, also at the end.
    const struct device_case with = {.keep = 21, .capacity = 21 + 3 * 32 - 1};
    struct on_device on;
    open_on_device(&scan, &with, &on);
    check_scan(&scan, &on, 0, QUERIES, NULL, 21);
    // Three scans, each two bundles at a time.
    assert_true(on.engine.num_segments > 3 * (RISING / 96));
    assert_true(on.engine.num_overflows > 3 * 5);
    close_on_device(&on);
    close_case(&scan);
}

// The chosen lists hardly ever overflow where rows come in no order.
static void chosen_lists_do_not_overflow(void **state)
{
    (void)state;
    const struct small_index what = duplicates(BSW_CODEC_SAQ, BSW_METRIC_L2);
    struct scan_case scan;
    open_case(&what, make_queries(), &scan);
    const struct device_case with = {.keep = 10};
    struct on_device on;
    open_on_device(&scan, &with, &on);
    check_scan(&scan, &on, 0, QUERIES, NULL, 10);
    assert_int_equal(on.engine.num_overflows, 0);
    assert_true(on.engine.num_segments >= 3 * 2 && on.engine.num_segments <= 3 * 4);
    close_on_device(&on);
    close_case(&scan);
}

// ---- blocks ----

static void codes_come_in_blocks(void **state)
{
    (void)state;
    for (int codec = 0; codec <= BSW_CODEC_SAQ; codec++) {
        const struct small_index what = duplicates((enum bsw_codec)codec, BSW_METRIC_COSINE);
        struct scan_case scan;
        int seen = 0; // 1: some bundles on the device, 2: none
        open_case(&what, make_queries(), &scan);
        for (uint64_t memory = 26000; memory < 130000; memory += memory / 3) {
            const struct device_case with = {.memory = memory, .keep = 10};
            struct on_device on;
            open_on_device(&scan, &with, &on);
            if (on.engine.plan.block_bundles > 0) {
                size_t resident = on.shard.resident.num_bundles;
                seen |= resident > 0 ? 1 : 2;
                assert_true(on.shard.num_pinned > 0);
                assert_non_null(on.host.arrays.planes[0]);
                check_scan(&scan, &on, 0, QUERIES, NULL, 10);
                uint64_t bytes =
                    (on.shard.num_bundles - resident) *
                    bsw_device_bundle_bytes(&on.engine.plan.layout, on.engine.plan.has_affine);
                assert_true(on.engine.copied_bytes >= 3 * bytes); // 3 scans, all groups
                assert_int_equal(on.engine.copied_bytes % bytes, 0);
            }
            assert_true(bsw_device_used_bytes(on.device) <= memory);
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
    open_case(&what, make_queries(), &scan);
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
    open_case(&what, make_queries(), &scan);
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
        cmocka_unit_test(small_lists_overflow_and_lose_nothing),
        cmocka_unit_test(rising_rows_overflow_and_lose_nothing),
        cmocka_unit_test(chosen_lists_do_not_overflow),
        cmocka_unit_test(codes_come_in_blocks),
        cmocka_unit_test(a_silent_device_ends_at_the_deadline),
        cmocka_unit_test(a_failed_launch_is_told),
        cmocka_unit_test(too_little_memory_is_told_with_numbers),
    };
    return cmocka_run_group_tests(tests, make_files, remove_temporary_folder);
}
