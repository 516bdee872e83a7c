// SPDX-License-Identifier: Apache-2.0
// Ground truth of floats by kernels/gpu_screen, beside exact-float of device_bench_exact.c: all
// rows against all queries, l2, 128 dimensions. exact-screen has limits that nothing reaches;
// exact-hits the 8th best of 8,192 rows, so that about one pair in 1,000 gets an exact
// value, and its lists are compared with those of the scan without a screen.
#include <stdlib.h>
#include <string.h>

#include "bench/device/device_bench.h"
#include "common/base/arithmetic.h"
#include "common/base/memory.h"
#include "kernels/gpu_screen/gpu_screen.h"
#include "kernels/refine/refine.h"

#define DIMS           128u
#define ROW_SEED       0x6000u
#define QUERY_SEED     0x6001u
#define MOST_QUERIES   1000
#define MOST_ROWS      ((uint64_t)1 << 30)
#define SAMPLE_BUNDLES 256u
#define SAMPLE_KEEP    8u
#define LIST_PART      256 // of the rows: four times what is expected

struct screen_bench {
    struct device_bench *bench;
    struct bsw_device_buffer memory;
    struct bsw_device_raw_rows raw;
    struct bsw_device_exact_rows rows;
    struct bsw_device_vectors queries;
    struct bsw_half_rows half_rows;
    struct bsw_half_queries half_queries;
    struct bsw_screen_survivors survivors;
    struct bsw_device_exact_lists lists;
    int has_hits;
    uint32_t *counts[2]; // host: by the screen, and without
};

static enum bsw_status allocate(struct screen_bench *s, struct bsw_error *err)
{
    size_t rows = s->raw.num_rows, queries = s->queries.num_queries;
    size_t items = queries * s->lists.capacity;
    struct bsw_device_exact_lists *lists = &s->lists;
    const struct device_bench_array arrays[] = {
        {&s->raw.numbers, rows * DIMS * sizeof(float)},
        {&s->rows.norms, rows * sizeof(double)},
        {&s->rows.masks, rows / 8},
        {&s->half_rows.numbers, rows * DIMS * sizeof(uint16_t)},
        {&s->half_rows.terms, rows * sizeof *s->half_rows.terms},
        {&s->queries.numbers, queries * DIMS * sizeof(double)},
        {&s->queries.norms, queries * sizeof(double)},
        {&s->half_queries.numbers, queries * DIMS * sizeof(uint16_t)},
        {&s->half_queries.units, queries * sizeof(float)},
        {&s->half_queries.terms, queries * sizeof *s->half_queries.terms},
        {&s->half_queries.worst_error, sizeof(uint32_t)},
        {&s->survivors.pairs, items * sizeof *s->survivors.pairs},
        {&s->survivors.counts, sizeof *s->survivors.counts},
        {&lists->scores, items * sizeof *lists->scores},
        {&lists->rows, items * sizeof *lists->rows},
        {&lists->counts, queries * sizeof *lists->counts},
        {&lists->limits, queries * sizeof *lists->limits}};
    s->survivors.capacity = items;
    return device_bench_allocate(s->bench, arrays, sizeof arrays / sizeof arrays[0], &s->memory,
                                 err);
}

// ---- what is compared ----

static enum bsw_status send(struct screen_bench *s, const void *to, const void *from, size_t bytes,
                            struct bsw_error *err)
{
    BSW_TRY(bsw_device_upload(s->bench->device, BSW_QUEUE_SCAN, (void *)to, from, bytes, err));
    return bsw_device_wait(s->bench->device, BSW_QUEUE_SCAN, "bytes", err);
}

static enum bsw_status send_byte(struct screen_bench *s, const void *to, int value, size_t bytes,
                                 struct bsw_error *err)
{
    unsigned char *from;
    BSW_TRY(bsw_allocate(&from, bytes, 1, "bytes", err));
    memset(from, value, bytes);
    enum bsw_status status = send(s, to, from, bytes, err);
    bsw_free(&from);
    return status;
}

static enum bsw_status send_queries(struct screen_bench *s, struct bsw_error *err)
{
    size_t queries = s->queries.num_queries;
    double *numbers;
    BSW_TRY(bsw_allocate(&numbers, queries, (DIMS + 1) * sizeof(double), "queries", err));
    double *norms = numbers + queries * DIMS;
    for (size_t i = 0; i < queries * DIMS; i++)
        numbers[i] = (float)((double)(bsw_hash2(QUERY_SEED, i) >> 11) * 0x1p-52 - 1.0);
    for (size_t q = 0; q < queries; q++)
        norms[q] = bsw_refine_reference.squared_norm(numbers + q * DIMS, DIMS);
    enum bsw_status status =
        send(s, s->queries.numbers, numbers, queries * DIMS * sizeof(double), err);
    if (status == BSW_OK) status = send(s, s->queries.norms, norms, queries * sizeof(double), err);
    bsw_free(&numbers);
    return status;
}

static enum bsw_status pack(struct screen_bench *s, struct bsw_error *err)
{
    BSW_TRY(device_bench_floats(s->bench, (float *)s->raw.numbers, (size_t)s->raw.num_rows * DIMS,
                                ROW_SEED, err));
    BSW_TRY(DEVICE_BENCH_LAUNCH(s->bench, "norms", err, bsw_device_row_norms, &s->raw,
                                (double *)s->rows.norms));
    BSW_TRY(DEVICE_BENCH_LAUNCH(s->bench, "queries", err, bsw_half_pack_queries, &s->queries, DIMS,
                                &s->half_queries));
    return DEVICE_BENCH_LAUNCH(s->bench, "halves", err, bsw_half_pack_rows, BSW_METRIC_L2, &s->rows,
                               &s->raw, &s->half_queries, &s->half_rows);
}

// A device_bench_work_fn: empty lists.
static enum bsw_status empty(void *context, struct bsw_error *err)
{
    struct screen_bench *s = context;
    return send_byte(s, s->lists.counts, 0, s->lists.num_queries * sizeof(uint32_t), err);
}

// The limits of exact-hits.
static enum bsw_status find_limits(struct screen_bench *s, struct bsw_error *err)
{
    uint32_t num =
        s->rows.num_bundles / 4 < SAMPLE_BUNDLES ? s->rows.num_bundles / 4 : SAMPLE_BUNDLES;
    if (num == 0) num = 1;
    uint32_t step = s->rows.num_bundles / num;
    const struct bsw_device_part part = {0, num * step, step};
    BSW_TRY(send_byte(s, s->lists.limits, 0, s->lists.num_queries * sizeof(uint64_t), err));
    BSW_TRY(DEVICE_BENCH_LAUNCH(s->bench, "sample", err, bsw_device_exact_scan, BSW_METRIC_L2,
                                &s->rows, &s->raw, &part, &s->queries, &s->lists));
    return DEVICE_BENCH_LAUNCH(s->bench, "limits", err, bsw_device_exact_limit, &s->lists,
                               SAMPLE_KEEP);
}

static enum bsw_status open_screen(struct screen_bench *s, struct bsw_error *err)
{
    const struct device_bench_settings *settings = s->bench->settings;
    uint64_t queries = settings->queries < MOST_QUERIES ? settings->queries : MOST_QUERIES;
    uint64_t rows = settings->bytes / (DIMS * (sizeof(float) + sizeof(uint16_t)) + 20);
    if (rows > settings->rows) rows = settings->rows;
    if (rows > MOST_ROWS) rows = MOST_ROWS;
    rows = rows < BSW_BUNDLE_ROWS ? BSW_BUNDLE_ROWS : rows / BSW_BUNDLE_ROWS * BSW_BUNDLE_ROWS;
    s->raw = (struct bsw_device_raw_rows){BSW_VECTOR_FLOAT32, DIMS, (uint32_t)rows, NULL};
    s->rows.num_bundles = (uint32_t)(rows / BSW_BUNDLE_ROWS);
    s->queries.num_queries = s->lists.num_queries = (uint32_t)queries;
    s->half_rows.padded_dims = s->half_queries.padded_dims = DIMS;
    s->lists.capacity = SAMPLE_BUNDLES * BSW_BUNDLE_ROWS + (uint32_t)(rows / LIST_PART);
    BSW_TRY(allocate(s, err));
    for (int i = 0; i < 2; i++)
        BSW_TRY(bsw_allocate(&s->counts[i], queries, sizeof(uint32_t), "counts", err));
    BSW_TRY(send_byte(s, s->rows.masks, 0xff, s->rows.num_bundles * sizeof(uint32_t), err));
    BSW_TRY(send_byte(s, s->survivors.counts, 0, sizeof *s->survivors.counts, err));
    BSW_TRY(send_queries(s, err));
    BSW_TRY(pack(s, err));
    BSW_TRY(empty(s, err));
    if (s->has_hits) return find_limits(s, err);
    return send_byte(s, s->lists.limits, 0xfe, queries * sizeof(uint64_t), err); // about 1e303
}

// ---- the cases ----

static enum bsw_status run(void *context, struct bsw_error *err)
{
    const struct screen_bench *s = context;
    const struct bsw_device_part part = {0, s->rows.num_bundles, 1};
    return DEVICE_BENCH_LAUNCH(s->bench, "screen", err, bsw_device_screened_scan, BSW_METRIC_L2,
                               &s->rows, &s->raw, &s->half_rows, &part, &s->queries,
                               &s->half_queries, &s->survivors, &s->lists);
}

static enum bsw_status fetch_counts(struct screen_bench *s, uint32_t *to, struct bsw_error *err)
{
    BSW_TRY(bsw_device_download(s->bench->device, BSW_QUEUE_SCAN, to, s->lists.counts,
                                s->lists.num_queries * sizeof *to, err));
    return bsw_device_wait(s->bench->device, BSW_QUEUE_SCAN, "counts", err);
}

// Rows that reached the limits, against the scan without a screen.
static enum bsw_status check(struct screen_bench *s, struct bsw_error *err)
{
    const struct bsw_device_part part = {0, s->rows.num_bundles, 1};
    BSW_TRY(fetch_counts(s, s->counts[0], err));
    BSW_TRY(empty(s, err));
    BSW_TRY(DEVICE_BENCH_LAUNCH(s->bench, "exact", err, bsw_device_exact_scan, BSW_METRIC_L2,
                                &s->rows, &s->raw, &part, &s->queries, &s->lists));
    BSW_TRY(fetch_counts(s, s->counts[1], err));
    for (uint32_t q = 0; q < s->lists.num_queries; q++) {
        if (s->counts[0][q] != s->counts[1][q])
            return bsw_fail(err, BSW_ERROR_SELF_CHECK,
                            "query %u: %u rows by the screen, %u without", q, s->counts[0][q],
                            s->counts[1][q]);
    }
    return BSW_OK;
}

static enum bsw_status report(struct screen_bench *s, const char *name,
                              const struct device_times *times, struct bsw_error *err)
{
    struct bsw_screen_counts counts;
    double pairs = (double)s->raw.num_rows * s->queries.num_queries, hits = 0;
    const struct device_record record = {.name = name,
                                         .rows = s->raw.num_rows,
                                         .queries = s->queries.num_queries,
                                         .times = *times,
                                         .values = pairs,
                                         .values_name = "exact values",
                                         .operations = 2 * pairs * DIMS,
                                         .operations_limit = DEVICE_LIMIT_MMA,
                                         .is_checked = s->has_hits};
    device_bench_report(s->bench, &record);
    if (!s->has_hits) return BSW_OK;
    BSW_TRY(bsw_device_download(s->bench->device, BSW_QUEUE_SCAN, &counts, s->survivors.counts,
                                sizeof counts, err));
    BSW_TRY(bsw_device_wait(s->bench->device, BSW_QUEUE_SCAN, "counts", err));
    for (uint32_t q = 0; q < s->lists.num_queries; q++) hits += s->counts[1][q];
    bsw_bench_report_note(&s->bench->report, "%s: %.0f rows reached limits, %llu pairs survived%s",
                          name, hits, (unsigned long long)counts.num,
                          counts.num > s->survivors.capacity ? ": too many" : "");
    return BSW_OK;
}

static enum bsw_status measure(struct device_bench *bench, const char *name, int has_hits,
                               struct bsw_error *err)
{
    struct screen_bench s = {.bench = bench, .has_hits = has_hits};
    struct device_times times;
    device_bench_codes_free(bench);
    enum bsw_status status = open_screen(&s, err);
    if (status == BSW_OK) status = device_bench_time_prepared(bench, empty, run, &s, &times, err);
    if (status == BSW_OK && has_hits) status = check(&s, err);
    if (status == BSW_OK) status = report(&s, name, &times, err);
    bsw_device_free(bench->device, &s.memory);
    for (int i = 0; i < 2; i++) bsw_free(&s.counts[i]);
    return status;
}

enum bsw_status device_bench_exact_screen(struct device_bench *bench,
                                          const struct device_bench_case *c, struct bsw_error *err)
{
    return measure(bench, c->name, 0, err);
}

enum bsw_status device_bench_exact_screen_hits(struct device_bench *bench,
                                               const struct device_bench_case *c,
                                               struct bsw_error *err)
{
    return measure(bench, c->name, 1, err);
}
