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

// Offsets in one buffer.
struct exact_places {
    size_t rows, norms, masks, pairs, values, row_bytes, row_terms;
    size_t queries, query_norms, raw_queries, query_bytes, query_terms;
    size_t scores, places, counts, limits, total;
};

static struct exact_places place_all(const struct exact_bench *exact, size_t rows, size_t queries,
                                     size_t number_bytes)
{
    struct exact_places at = {.total = 0};
    size_t packed = exact->is_packed ? rows : 0, pairs = exact->has_pairs ? rows : 0;
    size_t all = exact->has_pairs ? 0 : rows;
    at.rows = device_bench_place(rows * DIMS * number_bytes, &at.total);
    at.norms = device_bench_place(all * sizeof(double), &at.total);
    at.masks = device_bench_place(all / 8, &at.total);
    at.pairs = device_bench_place(pairs * sizeof(struct bsw_device_pair), &at.total);
    at.values = device_bench_place(pairs * sizeof(double), &at.total);
    at.row_bytes = device_bench_place(packed * DIMS, &at.total);
    at.row_terms = device_bench_place(packed * sizeof(struct bsw_device_packed_term), &at.total);
    at.queries = device_bench_place(queries * DIMS * sizeof(double), &at.total);
    at.query_norms = device_bench_place(queries * sizeof(double), &at.total);
    at.raw_queries = device_bench_place(queries * DIMS, &at.total);
    at.query_bytes = device_bench_place(queries * DIMS, &at.total);
    at.query_terms = device_bench_place(queries * sizeof(struct bsw_device_packed_term), &at.total);
    at.scores = device_bench_place(queries * sizeof(uint64_t), &at.total);
    at.places = device_bench_place(queries * sizeof(uint32_t), &at.total);
    at.counts = device_bench_place(queries * sizeof(uint32_t), &at.total);
    at.limits = device_bench_place(queries * sizeof(uint64_t), &at.total);
    return at;
}

static void point(struct exact_bench *exact, const struct exact_places *at)
{
    unsigned char *memory = exact->memory.data;
    exact->rows.numbers = memory + at->rows;
    exact->raw_queries.numbers = memory + at->raw_queries;
    exact->queries.numbers = (const double *)(void *)(memory + at->queries);
    exact->queries.norms = (const double *)(void *)(memory + at->query_norms);
    exact->bundles.norms = (const double *)(void *)(memory + at->norms);
    exact->bundles.masks = (const uint32_t *)(void *)(memory + at->masks);
    exact->packed_rows = (struct bsw_device_packed){
        DIMS, memory + at->row_bytes,
        (const struct bsw_device_packed_term *)(void *)(memory + at->row_terms)};
    exact->packed_queries = (struct bsw_device_packed){
        DIMS, memory + at->query_bytes,
        (const struct bsw_device_packed_term *)(void *)(memory + at->query_terms)};
    exact->pairs = (struct bsw_device_pair *)(void *)(memory + at->pairs);
    exact->values = (double *)(void *)(memory + at->values);
    exact->lists =
        (struct bsw_device_exact_lists){.num_queries = exact->queries.num_queries,
                                        .capacity = 1,
                                        .scores = (uint64_t *)(void *)(memory + at->scores),
                                        .rows = (uint32_t *)(void *)(memory + at->places),
                                        .counts = (uint32_t *)(void *)(memory + at->counts),
                                        .limits = (uint64_t *)(void *)(memory + at->limits)};
}

// ---- what is compared ----

static enum bsw_status set_bytes(const struct exact_bench *exact, size_t at, int value,
                                 size_t bytes, struct bsw_error *err)
{
    unsigned char *from;
    bsw_device *device = exact->bench->device;
    BSW_TRY(bsw_allocate(&from, bytes, 1, "bytes", err));
    memset(from, value, bytes);
    enum bsw_status status =
        bsw_device_upload(device, BSW_QUEUE_SCAN, exact->memory.data + at, from, bytes, err);
    if (status == BSW_OK) status = bsw_device_wait(device, BSW_QUEUE_SCAN, "bytes", err);
    bsw_free(&from);
    return status;
}

static enum bsw_status fill_vectors(struct exact_bench *exact, const struct exact_places *at,
                                    struct bsw_error *err)
{
    bsw_device *device = exact->bench->device;
    unsigned char *memory = exact->memory.data;
    size_t numbers = (size_t)exact->rows.num_rows * DIMS, queries = exact->queries.num_queries;
    bsw_stream stream = bsw_device_stream(device, BSW_QUEUE_SCAN);
    int code = exact->rows.type == BSW_VECTOR_UINT8
                   ? device_bench_fill(memory + at->rows, numbers, ROW_SEED, stream)
                   : device_bench_make_floats((float *)(void *)(memory + at->rows), numbers,
                                              ROW_SEED, stream);
    BSW_TRY(bsw_device_launched(device, code, "rows", err));
    stream = bsw_device_stream(device, BSW_QUEUE_SCAN);
    code = device_bench_fill(memory + at->raw_queries, queries * DIMS, QUERY_SEED, stream);
    BSW_TRY(bsw_device_launched(device, code, "queries", err));
    stream = bsw_device_stream(device, BSW_QUEUE_SCAN);
    code =
        device_bench_make_doubles((double *)(void *)(memory + at->queries), queries * DIMS, stream);
    BSW_TRY(bsw_device_launched(device, code, "queries", err));
    stream = bsw_device_stream(device, BSW_QUEUE_SCAN);
    code = device_bench_make_doubles((double *)(void *)(memory + at->query_norms), queries, stream);
    return bsw_device_launched(device, code, "queries", err);
}

static enum bsw_status pack(struct exact_bench *exact, const struct exact_places *at,
                            struct bsw_error *err)
{
    bsw_device *device = exact->bench->device;
    unsigned char *memory = exact->memory.data;
    int code = bsw_device_pack(BSW_METRIC_L2, &exact->rows, 0, memory + at->row_bytes,
                               (struct bsw_device_packed_term *)(void *)(memory + at->row_terms),
                               bsw_device_stream(device, BSW_QUEUE_SCAN));
    BSW_TRY(bsw_device_launched(device, code, "rows", err));
    code = bsw_device_pack(BSW_METRIC_L2, &exact->raw_queries, 1, memory + at->query_bytes,
                           (struct bsw_device_packed_term *)(void *)(memory + at->query_terms),
                           bsw_device_stream(device, BSW_QUEUE_SCAN));
    return bsw_device_launched(device, code, "queries", err);
}

static enum bsw_status fill_lists(struct exact_bench *exact, const struct exact_places *at,
                                  struct bsw_error *err)
{
    bsw_device *device = exact->bench->device;
    size_t queries = exact->queries.num_queries;
    BSW_TRY(set_bytes(exact, at->counts, 0, queries * sizeof(uint32_t), err));
    // About 1e303.
    BSW_TRY(set_bytes(exact, at->limits, 0xfe, queries * sizeof(uint64_t), err));
    BSW_TRY(set_bytes(exact, at->masks, 0xff, exact->bundles.num_bundles * sizeof(uint32_t), err));
    int code =
        bsw_device_row_norms(&exact->rows, (double *)(void *)(exact->memory.data + at->norms),
                             bsw_device_stream(device, BSW_QUEUE_SCAN));
    return bsw_device_launched(device, code, "norms", err);
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
    struct exact_places at = place_all(exact, (size_t)rows, (size_t)queries, number_bytes);
    BSW_TRY(bsw_device_allocate(exact->bench->device, at.total, "rows", &exact->memory, err));
    exact->rows = (struct bsw_device_raw_rows){type, DIMS, (uint32_t)rows, NULL};
    exact->raw_queries =
        (struct bsw_device_raw_rows){BSW_VECTOR_UINT8, DIMS, (uint32_t)queries, NULL};
    exact->queries.num_queries = (uint32_t)queries;
    exact->bundles.num_bundles = (uint32_t)(rows / BSW_BUNDLE_ROWS);
    point(exact, &at);
    BSW_TRY(fill_vectors(exact, &at, err));
    if (!exact->has_pairs) BSW_TRY(fill_lists(exact, &at, err));
    if (exact->is_packed) BSW_TRY(pack(exact, &at, err));
    if (!exact->has_pairs) return BSW_OK;
    exact->num_pairs = (size_t)rows;
    int code = device_bench_make_pairs(exact->pairs, rows, (uint32_t)queries, (uint32_t)rows,
                                       bsw_device_stream(exact->bench->device, BSW_QUEUE_SCAN));
    return bsw_device_launched(exact->bench->device, code, "pairs", err);
}

// ---- the cases ----

static enum bsw_status run_refine(void *context, struct bsw_error *err)
{
    const struct exact_bench *exact = context;
    bsw_device *device = exact->bench->device;
    int code = bsw_device_refine(BSW_METRIC_L2, &exact->rows, &exact->queries, exact->pairs,
                                 exact->num_pairs, exact->values,
                                 bsw_device_stream(device, BSW_QUEUE_SCAN));
    return bsw_device_launched(device, code, "refine", err);
}

static enum bsw_status run_scan(void *context, struct bsw_error *err)
{
    const struct exact_bench *exact = context;
    bsw_device *device = exact->bench->device;
    const struct bsw_device_part part = {0, exact->bundles.num_bundles, 1};
    bsw_stream stream = bsw_device_stream(device, BSW_QUEUE_SCAN);
    int code = exact->is_packed
                   ? bsw_device_exact_integer_scan(
                         BSW_METRIC_L2, &exact->bundles, &exact->packed_rows, &part,
                         &exact->packed_queries, exact->queries.norms, &exact->lists, stream)
                   : bsw_device_exact_scan(BSW_METRIC_L2, &exact->bundles, &exact->rows, &part,
                                           &exact->queries, &exact->lists, stream);
    return bsw_device_launched(device, code, "exact", err);
}

// Of a pair: a multiplication and an addition a dimension; the difference of l2 is not counted.
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

static enum bsw_status measure(struct exact_bench *exact, const char *name,
                               enum bsw_vector_type type, struct bsw_error *err)
{
    struct device_bench *bench = exact->bench;
    struct device_record record = {.name = name};
    device_bench_codes_free(bench);
    enum bsw_status status = open_exact(exact, type, err);
    if (status == BSW_OK)
        status =
            device_bench_time(bench, bench->device, BSW_QUEUE_SCAN,
                              exact->has_pairs ? run_refine : run_scan, exact, &record.times, err);
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
