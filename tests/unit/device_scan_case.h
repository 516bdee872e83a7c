// SPDX-License-Identifier: Apache-2.0
// One shard on the CPU and on an emulated device, for tests that compare the two.
#ifndef BITSWEEP_TESTS_UNIT_DEVICE_SCAN_CASE_H
#define BITSWEEP_TESTS_UNIT_DEVICE_SCAN_CASE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/codes/metric.h"
#include "duplicate_rows.h"
#include "row_mask_case.h"
#include "shard/codecs/codec.h"
#include "shard/device/device_shard.h"
#include "small_index.h"
#include "temporary_folder.h"
#include "unit_test.h"

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

static inline int make_files(void **state)
{
    if (make_temporary_folder(state) != 0) return -1;
    write_duplicates(ROWS, DISTINCT); // each distinct row some four times
    // Nearer and nearer to the queries: every row is better than all before it.
    float *rows = (float *)allocate_or_fail(RISING * DIMS, sizeof *rows);
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

static inline void open_case(const struct small_index *what, float *vectors, struct scan_case *scan)
{
    make_small_index(what, temporary_folder, &scan->manifest);
    make_plain_queries(&scan->manifest, vectors, QUERIES, QUERY_BITS, &scan->queries);
    bsw_free(&vectors);
    memset(&scan->batch, 0, sizeof scan->batch);
    scan->batch.num_queries = QUERIES;
    scan->batch.query_bits = QUERY_BITS;
    scan->batch.query_words = scan->queries.query_words;
    scan->batch.words = scan->queries.words;
    scan->batch.scales = scan->queries.scales;
    scan->batch.vectors = scan->queries.vectors;
    assert_ok(bsw_resident_shard_load(&scan->manifest, temporary_folder, 0, 0, &scan->host, &err),
              &err);
    bsw_scan_workspace_init(&scan->workspace, bsw_cpu_level_detect(), 2);
}

static inline void close_case(struct scan_case *scan)
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
    int is_plain;   // without graphs
};

struct on_device {
    bsw_device *device;
    struct bsw_device_engine engine;
    struct bsw_resident_shard host;
    struct bsw_device_shard shard;
    const struct bsw_row_mask *masks; // of the next scans
};

static inline void open_on_device(const struct scan_case *scan, const struct device_case *with,
                                  struct on_device *out)
{
    struct bsw_device_options options;
    struct bsw_device_needs needs;
    out->masks = NULL;
    memset(&options, 0, sizeof options);
    options.num_sharers = 1;
    options.most_bytes = with->memory;
    options.timeout_seconds = with->timeout ? with->timeout : 60;
    memset(&needs, 0, sizeof needs);
    needs.shapes = &scan->host.shape;
    needs.num_shards = 1;
    needs.query_bits = QUERY_BITS;
    needs.max_queries = with->max_queries ? with->max_queries : (size_t)QUERIES;
    needs.keep = with->keep;
    needs.capacity = with->capacity;
    needs.stage_dims = scan->host.stage_dims;
    needs.queue = with->queue;
    needs.graphs = with->is_plain ? BSW_GRAPHS_OFF : BSW_GRAPHS_ON;
    assert_ok(bsw_device_open(&options, &out->device, &err), &err);
    assert_ok(bsw_device_engine_open(out->device, &needs, &out->engine, &err), &err);
    out->engine.is_checked = with->is_checked;
    assert_ok(bsw_resident_shard_load(&scan->manifest, temporary_folder, 0, 0, &out->host, &err),
              &err);
    assert_ok(bsw_device_shard_load(&out->engine, 0, &out->host, &out->shard, &err), &err);
}

static inline void close_on_device(struct on_device *on)
{
    bsw_device_shard_unload(&on->engine, &on->shard);
    bsw_device_engine_close(&on->engine);
    assert_int_equal(bsw_device_used_bytes(on->device), 0);
    bsw_device_close(&on->device);
    bsw_resident_shard_unload(&on->host);
}

static inline void assert_same_lists(const struct bsw_candidate_lists *a,
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

// A scan in full of codes that are all on the device waits for it once a group of queries, however
// many segments there are, up to 64 of them, unless a list overflows.
static inline void assert_few_waits(const struct on_device *on,
                                    const struct bsw_scan_counts *before, size_t num_queries)
{
    const struct bsw_scan_counts *now = &on->engine.counts;
    size_t groups =
        (num_queries + on->engine.plan.group_queries - 1) / on->engine.plan.group_queries;
    if (now->num_overflows > before->num_overflows ||
        on->shard.resident.num_bundles < on->shard.num_bundles)
        return;
    assert_true(now->num_waits - before->num_waits <=
                groups + (now->num_segments - before->num_segments) / 64);
}

// One shard, lists to the host.
static inline enum bsw_status scan_shard(struct on_device *on, const struct bsw_device_shard *shard,
                                         const struct bsw_query_range *queries,
                                         const uint32_t *limits, size_t keep,
                                         struct bsw_scan_workspace *workspace,
                                         struct bsw_candidate_lists *out)
{
    const struct bsw_device_task task = {.maker = &bsw_device_whole,
                                         .span = {&shard, 1},
                                         .queries = *queries,
                                         .masks = on->masks,
                                         .limits = limits,
                                         .keep = keep,
                                         .workspace = workspace};
    return bsw_device_scan(&on->engine, &task, out, NULL, &err);
}

// In every way, and as `auto` chooses for the best one and for a part of the queries. Returns how
// many scans that were.
static inline unsigned check_scan(struct scan_case *scan, struct on_device *on, size_t first,
                                  size_t num_queries, const uint32_t *limits, size_t keep)
{
    struct bsw_candidate_lists expected, found;
    unsigned num_scans = 0;
    memset(&expected, 0, sizeof expected);
    memset(&found, 0, sizeof found);
    on->masks = scan->host.mask;
    int has_stage = scan->host.stage_dims > 0 && scan->workspace.queue.length == 0;
    int first_kind = num_queries < QUERIES || keep == 1 ? BSW_SCAN_AUTO : BSW_SCAN_AUTO + 1;
    for (int kind = first_kind; kind <= BSW_SCAN_PROGRESSIVE_MATRIX; kind++) {
        if (kind == BSW_SCAN_PROGRESSIVE_PLANES) kind++; // one kernel has both
        if (kind == BSW_SCAN_PROGRESSIVE_MATRIX && !has_stage) break;
        scan->workspace.scan = (enum bsw_scan_kind)kind;
        assert_ok(bsw_shard_scan(&scan->host, &scan->batch, first, num_queries, limits, keep,
                                 &scan->workspace, &expected, &err),
                  &err);
        const struct bsw_scan_counts before = on->engine.counts;
        assert_ok(scan_shard(on, &on->shard,
                             &(const struct bsw_query_range){&scan->batch, first, num_queries},
                             limits, keep, &scan->workspace, &found),
                  &err);
        assert_same_lists(&expected, &found);
        if ((kind == BSW_SCAN_PLANES || kind == BSW_SCAN_MATRIX) &&
            scan->workspace.queue.length == 0)
            assert_few_waits(on, &before, num_queries);
        int is_full = kind == BSW_SCAN_PROGRESSIVE_MATRIX &&
                      !bsw_device_has_hopper_stage(&scan->host.shape.layout, scan->host.stage_dims);
        if (kind != BSW_SCAN_AUTO)
            assert_int_equal(scan->workspace.used, is_full ? BSW_SCAN_MATRIX : kind);
        num_scans++;
    }
    bsw_candidate_lists_deinit(&expected);
    bsw_candidate_lists_deinit(&found);
    return num_scans;
}

#endif
