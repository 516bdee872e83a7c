// SPDX-License-Identifier: Apache-2.0
// Exact values: of random pairs, as refinement asks for them, and of all rows against a batch of
// queries with limits that nothing reaches. Raw rows of 128 dimensions in device memory, l2.
#include <string.h>

#include "bench/device/device_bench.h"
#include "common/base/memory.h"
#include "kernels/device_exact/device_exact.h"

#define DIMS         128u
#define ROW_SEED     0x6000u
#define QUERY_SEED   0x6001u
#define MOST_QUERIES 1000
#define MOST_ROWS    ((uint64_t)1 << 30)

struct exact_bench {
    struct device_bench *bench;
    struct bsw_device_buffer memory;
    struct bsw_device_raw_rows rows, raw_queries; // the latter of bytes
    struct bsw_device_vectors queries;
    struct bsw_device_exact_rows bundles;
    struct bsw_device_packed packed_rows, packed_queries;
    struct bsw_device_pair *pairs;
    double *values;
    size_t num_pairs;
    struct bsw_device_exact_lists lists;
    int has_pairs, is_packed;
};

static enum bsw_status allocate(struct exact_bench *exact, size_t rows, size_t queries,
                                size_t number_bytes, struct bsw_error *err)
{
    const size_t term = sizeof(struct bsw_device_packed_term);
    size_t packed = exact->is_packed ? rows : 0, pairs = exact->has_pairs ? rows : 0;
    size_t all = exact->has_pairs ? 0 : rows;
    struct bsw_device_exact_lists *lists = &exact->lists;
    const struct device_bench_array arrays[] = {
        {&exact->rows.numbers, rows * DIMS * number_bytes},
        {&exact->bundles.norms, all * sizeof(double)},
        {&exact->bundles.masks, all / 8},
        {&exact->pairs, pairs * sizeof *exact->pairs},
        {&exact->values, pairs * sizeof *exact->values},
        {&exact->packed_rows.bytes, packed * DIMS},
        {&exact->packed_rows.terms, packed * term},
        {&exact->queries.numbers, queries * DIMS * sizeof(double)},
        {&exact->queries.norms, queries * sizeof(double)},
        {&exact->raw_queries.numbers, queries * DIMS},
        {&exact->packed_queries.bytes, queries * DIMS},
        {&exact->packed_queries.terms, queries * term},
        {&lists->scores, queries * sizeof *lists->scores},
        {&lists->rows, queries * sizeof *lists->rows},
        {&lists->counts, queries * sizeof *lists->counts},
        {&lists->limits, queries * sizeof *lists->limits}};
    exact->packed_rows.padded_dims = exact->packed_queries.padded_dims = DIMS;
    lists->num_queries = exact->queries.num_queries;
    lists->capacity = 1;
    return device_bench_allocate(exact->bench, arrays, sizeof arrays / sizeof arrays[0],
                                 &exact->memory, err);
}

// ---- what is compared ----

static enum bsw_status set_bytes(const struct exact_bench *exact, const void *array, int value,
                                 size_t bytes, struct bsw_error *err)
{
    unsigned char *from;
    bsw_device *device = exact->bench->device;
    BSW_TRY(bsw_allocate(&from, bytes, 1, "bytes", err));
    memset(from, value, bytes);
    enum bsw_status status =
        bsw_device_upload(device, BSW_QUEUE_SCAN, (void *)array, from, bytes, err);
    if (status == BSW_OK) status = bsw_device_wait(device, BSW_QUEUE_SCAN, "bytes", err);
    bsw_free(&from);
    return status;
}

static enum bsw_status fill_vectors(struct exact_bench *exact, struct bsw_error *err)
{
    struct device_bench *bench = exact->bench;
    size_t numbers = (size_t)exact->rows.num_rows * DIMS, queries = exact->queries.num_queries;
    void *rows = (void *)exact->rows.numbers;
    if (exact->rows.type == BSW_VECTOR_UINT8)
        BSW_TRY(
            DEVICE_BENCH_LAUNCH(bench, "rows", err, device_bench_fill, rows, numbers, ROW_SEED));
    else
        BSW_TRY(device_bench_floats(bench, rows, numbers, ROW_SEED, err));
    BSW_TRY(DEVICE_BENCH_LAUNCH(bench, "queries", err, device_bench_fill,
                                (void *)exact->raw_queries.numbers, queries * DIMS, QUERY_SEED));
    BSW_TRY(DEVICE_BENCH_LAUNCH(bench, "queries", err, device_bench_make_doubles,
                                (double *)exact->queries.numbers, queries * DIMS));
    return DEVICE_BENCH_LAUNCH(bench, "queries", err, device_bench_make_doubles,
                               (double *)exact->queries.norms, queries);
}

static enum bsw_status pack(struct exact_bench *exact, const struct bsw_device_raw_rows *from,
                            int are_queries, const struct bsw_device_packed *to,
                            struct bsw_error *err)
{
    return DEVICE_BENCH_LAUNCH(exact->bench, are_queries ? "queries" : "rows", err, bsw_device_pack,
                               BSW_METRIC_L2, from, are_queries, (uint8_t *)to->bytes,
                               (struct bsw_device_packed_term *)to->terms);
}

static enum bsw_status fill_lists(struct exact_bench *exact, struct bsw_error *err)
{
    const struct bsw_device_exact_lists *lists = &exact->lists;
    size_t queries = lists->num_queries;
    BSW_TRY(set_bytes(exact, lists->counts, 0, queries * sizeof *lists->counts, err));
    // About 1e303.
    BSW_TRY(set_bytes(exact, lists->limits, 0xfe, queries * sizeof *lists->limits, err));
    BSW_TRY(set_bytes(exact, exact->bundles.masks, 0xff,
                      exact->bundles.num_bundles * sizeof(uint32_t), err));
    return DEVICE_BENCH_LAUNCH(exact->bench, "norms", err, bsw_device_row_norms, &exact->rows,
                               (double *)exact->bundles.norms);
}

// As many rows as settings->bytes hold with all that belongs to them; whole bundles.
static enum bsw_status open_exact(struct exact_bench *exact, enum bsw_vector_type type,
                                  struct bsw_error *err)
{
    const struct device_bench_settings *settings = exact->bench->settings;
    size_t number_bytes = type == BSW_VECTOR_UINT8 ? 1 : sizeof(float);
    uint64_t queries = settings->queries < MOST_QUERIES ? settings->queries : MOST_QUERIES;
    uint64_t rows = settings->bytes / (DIMS * (number_bytes + (exact->is_packed != 0)) + 20);
    if (rows > settings->rows) rows = settings->rows;
    if (rows > MOST_ROWS) rows = MOST_ROWS;
    rows = rows < BSW_BUNDLE_ROWS ? BSW_BUNDLE_ROWS : rows / BSW_BUNDLE_ROWS * BSW_BUNDLE_ROWS;
    exact->rows = (struct bsw_device_raw_rows){type, DIMS, (uint32_t)rows, NULL};
    exact->raw_queries =
        (struct bsw_device_raw_rows){BSW_VECTOR_UINT8, DIMS, (uint32_t)queries, NULL};
    exact->queries.num_queries = (uint32_t)queries;
    exact->bundles.num_bundles = (uint32_t)(rows / BSW_BUNDLE_ROWS);
    BSW_TRY(allocate(exact, (size_t)rows, (size_t)queries, number_bytes, err));
    BSW_TRY(fill_vectors(exact, err));
    if (!exact->has_pairs) BSW_TRY(fill_lists(exact, err));
    if (exact->is_packed) {
        BSW_TRY(pack(exact, &exact->rows, 0, &exact->packed_rows, err));
        BSW_TRY(pack(exact, &exact->raw_queries, 1, &exact->packed_queries, err));
    }
    if (!exact->has_pairs) return BSW_OK;
    exact->num_pairs = (size_t)rows;
    return DEVICE_BENCH_LAUNCH(exact->bench, "pairs", err, device_bench_make_pairs, exact->pairs,
                               rows, (uint32_t)queries, (uint32_t)rows);
}

// ---- the cases ----

static enum bsw_status run_refine(void *context, struct bsw_error *err)
{
    const struct exact_bench *exact = context;
    return DEVICE_BENCH_LAUNCH(exact->bench, "refine", err, bsw_device_refine, BSW_METRIC_L2,
                               &exact->rows, &exact->queries, exact->pairs, exact->num_pairs,
                               exact->values);
}

static enum bsw_status run_scan(void *context, struct bsw_error *err)
{
    const struct exact_bench *exact = context;
    const struct bsw_device_part part = {0, exact->bundles.num_bundles, 1};
    if (!exact->is_packed)
        return DEVICE_BENCH_LAUNCH(exact->bench, "exact", err, bsw_device_exact_scan, BSW_METRIC_L2,
                                   &exact->bundles, &exact->rows, &part, &exact->queries,
                                   &exact->lists);
    return DEVICE_BENCH_LAUNCH(exact->bench, "exact", err, bsw_device_exact_integer_scan,
                               BSW_METRIC_L2, &exact->bundles, &exact->packed_rows, &part,
                               &exact->packed_queries, exact->queries.norms, &exact->lists);
}

// Work of a pair: a multiplication and an addition a dimension; the difference of l2 is not
// counted.
static void count_work(const struct exact_bench *exact, struct device_record *record)
{
    const double *limits = exact->bench->limits;
    double pairs = exact->has_pairs ? (double)exact->num_pairs
                                    : (double)exact->rows.num_rows * exact->queries.num_queries;
    record->rows = exact->rows.num_rows;
    record->queries = exact->has_pairs ? 0 : exact->queries.num_queries;
    record->values = pairs;
    record->values_name = "exact values";
    record->operations = 2 * pairs * DIMS;
    record->operations_limit = !exact->is_packed                 ? DEVICE_LIMIT_FLOAT64
                               : limits[DEVICE_LIMIT_CUBLAS] > 0 ? DEVICE_LIMIT_CUBLAS
                                                                 : DEVICE_LIMIT_MMA;
    if (!exact->has_pairs) return;
    record->bytes_limit = DEVICE_LIMIT_READ;
    record->bytes = pairs * (DIMS + sizeof(struct bsw_device_pair) + sizeof(double));
}

static enum bsw_status check(const struct exact_bench *exact, struct bsw_error *err)
{
    const struct device_bench_values values = {&exact->rows, &exact->queries, exact->pairs,
                                               exact->values, exact->num_pairs};
    return device_bench_values_check(exact->bench, &values, err);
}

static enum bsw_status measure(struct exact_bench *exact, const char *name,
                               enum bsw_vector_type type, struct bsw_error *err)
{
    struct device_bench *bench = exact->bench;
    struct device_record record = {.name = name};
    device_bench_codes_free(bench);
    enum bsw_status status = open_exact(exact, type, err);
    if (status == BSW_OK)
        status = device_bench_time(bench, bench->device, exact->has_pairs ? run_refine : run_scan,
                                   exact, &record.times, err);
    if (status == BSW_OK && exact->has_pairs) status = check(exact, err);
    record.is_checked = exact->has_pairs; // nothing comes out of the others
    bsw_device_free(bench->device, &exact->memory);
    BSW_TRY(status);
    count_work(exact, &record);
    device_bench_report(bench, &record);
    return BSW_OK;
}

enum bsw_status device_bench_refine(struct device_bench *bench, const struct device_bench_case *c,
                                    struct bsw_error *err)
{
    struct exact_bench exact = {.bench = bench, .has_pairs = 1};
    return measure(&exact, c->name, BSW_VECTOR_UINT8, err);
}

enum bsw_status device_bench_exact_u8(struct device_bench *bench, const struct device_bench_case *c,
                                      struct bsw_error *err)
{
    struct exact_bench exact = {.bench = bench, .is_packed = 1};
    return measure(&exact, c->name, BSW_VECTOR_UINT8, err);
}

enum bsw_status device_bench_exact_float(struct device_bench *bench,
                                         const struct device_bench_case *c, struct bsw_error *err)
{
    struct exact_bench exact = {.bench = bench};
    return measure(&exact, c->name, BSW_VECTOR_FLOAT32, err);
}
