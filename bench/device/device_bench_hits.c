// SPDX-License-Identifier: Apache-2.0
// What a hit costs: the kernel alone with limits that so many rows of each query reach, against
// limits that none reaches. The limits are the last scores that a whole pass keeps, and the rows
// that reach them must be those that the pass has found.
#include <stdlib.h>

#include "bench/device/device_bench_bare.h"
#include "bench/device/device_bench_pass.h"
#include "common/base/memory.h"
#include "common/codes/metric.h"

#define CHECKED_QUERIES 2
#define MORE_ROOM       4096 // for rows as good as the last one

struct hits_case {
    struct device_bench_shape shape; // that keeps as many as there are hits
    struct device_bench_pass *pass;
    struct device_bench_bare bare;
    struct device_times without, with;
    uint32_t *limits, *counts; // [queries]
    double hits;               // of all queries
};

static enum bsw_status find_limits(struct device_bench *bench, struct hits_case *hits,
                                   struct bsw_error *err)
{
    BSW_TRY(
        device_bench_pass_open(bench, &hits->shape, bench->codes.num_rows, 0, &hits->pass, err));
    BSW_TRY(device_bench_pass_run(hits->pass, err));
    BSW_TRY(device_bench_pass_check(bench, hits->pass, CHECKED_QUERIES, err));
    size_t num = hits->pass->num_queries, count;
    BSW_TRY(bsw_allocate(&hits->limits, num, sizeof *hits->limits, "limits", err));
    BSW_TRY(bsw_allocate(&hits->counts, num, sizeof *hits->counts, "counts", err));
    for (size_t q = 0; q < num; q++) {
        const uint64_t *items = bsw_candidate_list(&hits->pass->lists, q, &count);
        hits->limits[q] = bsw_candidate_score(items[count - 1]);
    }
    return BSW_OK;
}

// The rows that reached the query's limit, of which `room` is filled with.
static enum bsw_status check_query(struct hits_case *hits, size_t q, uint64_t *room,
                                   struct bsw_error *err)
{
    const struct bsw_device_lists *lists = &hits->bare.lists;
    bsw_device *device = hits->bare.bench->device;
    size_t kept;
    const uint64_t *items = bsw_candidate_list(&hits->pass->lists, q, &kept);
    uint32_t count = hits->counts[q];
    hits->hits += count;
    if (count < kept || count > lists->capacity)
        return bsw_fail(err, BSW_ERROR_SELF_CHECK, "query %zu: %u hits instead of %zu", q, count,
                        kept);
    BSW_TRY(bsw_device_download(device, BSW_QUEUE_SCAN, room, lists->items + q * lists->capacity,
                                count * sizeof *room, err));
    BSW_TRY(bsw_device_wait(device, BSW_QUEUE_SCAN, "hits", err));
    qsort(room, count, sizeof *room, device_bench_descending);
    for (size_t i = 0; i < kept; i++)
        if (room[i] != items[i])
            return bsw_fail(err, BSW_ERROR_SELF_CHECK, "query %zu: hit %zu is another row", q, i);
    return BSW_OK;
}

static enum bsw_status check(struct hits_case *hits, struct bsw_error *err)
{
    const struct bsw_device_lists *lists = &hits->bare.lists;
    uint64_t *room;
    BSW_TRY(bsw_device_download(hits->bare.bench->device, BSW_QUEUE_SCAN, hits->counts,
                                lists->counts, lists->num_queries * sizeof(uint32_t), err));
    BSW_TRY(bsw_device_wait(hits->bare.bench->device, BSW_QUEUE_SCAN, "counts", err));
    BSW_TRY(bsw_allocate(&room, lists->capacity, sizeof *room, "hits", err));
    enum bsw_status status = BSW_OK;
    for (size_t q = 0; q < lists->num_queries && status == BSW_OK; q++)
        status = check_query(hits, q, room, err);
    bsw_free(&room);
    return status;
}

static enum bsw_status measure(struct device_bench *bench, struct hits_case *hits,
                               struct bsw_error *err)
{
    uint64_t rows = bench->codes.num_rows;
    BSW_TRY(find_limits(bench, hits, err));
    const struct device_bench_queries *queries = &hits->pass->queries;
    BSW_TRY(device_bench_kernel_time(bench, &hits->shape, rows, queries, &hits->without, err));
    BSW_TRY(device_bench_bare_open(bench, &hits->shape, rows, queries,
                                   (uint32_t)hits->shape.keep + MORE_ROOM, hits->limits,
                                   &hits->bare, err));
    enum bsw_status status = device_bench_time_prepared(
        bench, device_bench_bare_empty, device_bench_bare_run, &hits->bare, &hits->with, err);
    if (status == BSW_OK) status = check(hits, err);
    device_bench_bare_close(&hits->bare);
    return status;
}

static void report(struct device_bench *bench, const struct device_bench_case *c,
                   const struct hits_case *hits)
{
    const struct device_record record = {.name = c->name,
                                         .rows = bench->codes.num_rows,
                                         .queries = hits->pass->num_queries,
                                         .keep = hits->shape.keep,
                                         .times = hits->with,
                                         .scan_seconds = hits->without.median,
                                         .values = hits->hits,
                                         .values_name = "hits",
                                         .is_checked = 1};
    device_bench_report(bench, &record);
    bsw_bench_report_note(&bench->report, "%s: %.0f hits, %.2f ns each of the whole GPU", c->name,
                          hits->hits,
                          1e9 * (hits->with.median - hits->without.median) / hits->hits);
}

enum bsw_status device_bench_hits(struct device_bench *bench, const struct device_bench_case *c,
                                  struct bsw_error *err)
{
    struct hits_case hits = {.shape = c->shape};
    BSW_TRY(device_bench_codes_make(bench, c->shape.layout, bench->settings->rows, err));
    if (hits.shape.keep > bench->codes.num_rows) hits.shape.keep = (size_t)bench->codes.num_rows;
    enum bsw_status status = measure(bench, &hits, err);
    if (status == BSW_OK) report(bench, c, &hits);
    device_bench_pass_close(&hits.pass);
    bsw_free(&hits.limits);
    bsw_free(&hits.counts);
    return status;
}
