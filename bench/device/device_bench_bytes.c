// SPDX-License-Identifier: Apache-2.0
// Codec raw on a GPU: the kernels of kernels/gpu_bytes alone, over rows of 128 bytes, of all rows
// or by work items of lists that all queries look at, with limits that nothing reaches. Then once
// more over the first list, whose rows all reach them: what some queries find there is the
// reference's.
#include <stdlib.h>
#include <string.h>

#include "bench/device/device_bench.h"
#include "common/base/memory.h"
#include "kernels/gpu_bytes/gpu_bytes.h"
#include "kernels/matrix_scan/matrix_scan.h"

#define LAYOUT          "128x8"
#define DIMS            128u
#define ROW_SEED        0x8000u
#define QUERY_SEED      0x8001u
#define MOST_ROWS       ((uint64_t)1 << 30)

#define LIST_BUNDLES    38u
#define MOST_SLOTS      256u // of an item
#define CHECKED_QUERIES 4u

struct byte_bench {
    struct device_bench *bench;
    struct bsw_device_buffer memory;
    struct bsw_device_codes codes;
    struct bsw_device_queries queries;
    struct bsw_device_lists lists;
    struct bsw_device_list_work work; // {0}: without lists
    int8_t *bytes;                    // of queries, before they are laid out
    uint32_t num_bundles;             // that are scanned
};

static enum bsw_status allocate(struct byte_bench *b, struct bsw_error *err)
{
    size_t rows = (size_t)b->codes.num_bundles * BSW_BUNDLE_ROWS, queries = b->queries.num_queries;
    const struct device_bench_array arrays[] = {
        {&b->codes.planes[0], rows * DIMS},
        {&b->codes.offsets, rows * sizeof *b->codes.offsets},
        {&b->codes.masks, rows / 8},
        {&b->bytes, queries * DIMS},
        {&b->queries.components, bsw_device_byte_operand_bytes(b->queries.num_queries, DIMS)},
        {&b->queries.constants, queries * sizeof *b->queries.constants},
        {&b->work.items, b->work.num_items * sizeof *b->work.items},
        {&b->work.queries, b->work.num_items > 0 ? queries * sizeof *b->work.queries : 0},
        {&b->work.rows, b->work.num_items > 0 ? rows * sizeof *b->work.rows : 0},
        {&b->lists.items, queries * b->lists.capacity * sizeof *b->lists.items},
        {&b->lists.counts, queries * sizeof *b->lists.counts},
        {&b->lists.limits, queries * sizeof *b->lists.limits}};
    return device_bench_allocate(b->bench, arrays, sizeof arrays / sizeof arrays[0], &b->memory,
                                 err);
}

static enum bsw_status send_byte(struct byte_bench *b, const void *to, int value, size_t bytes,
                                 struct bsw_error *err)
{
    unsigned char *from;
    bsw_device *device = b->bench->device;
    BSW_TRY(bsw_allocate(&from, bytes, 1, "bytes", err));
    memset(from, value, bytes);
    enum bsw_status status =
        bsw_device_upload(device, BSW_QUEUE_SCAN, (void *)to, from, bytes, err);
    if (status == BSW_OK) status = bsw_device_wait(device, BSW_QUEUE_SCAN, "bytes", err);
    bsw_free(&from);
    return status;
}

static enum bsw_status send(const struct byte_bench *b, const void *to, const void *from,
                            size_t bytes, struct bsw_error *err)
{
    bsw_device *device = b->bench->device;
    BSW_TRY(bsw_device_upload(device, BSW_QUEUE_SCAN, (void *)(uintptr_t)to, from, bytes, err));
    return bsw_device_wait(device, BSW_QUEUE_SCAN, "work items", err);
}

// List after list, each for all queries; rows are where they lie.
static enum bsw_status send_items(struct byte_bench *b, struct bsw_error *err)
{
    size_t num_rows = (size_t)b->codes.num_bundles * BSW_BUNDLE_ROWS;
    uint32_t num_items = b->work.num_items, *numbers;
    struct bsw_device_list_item *items;
    if (num_items == 0) return BSW_OK;
    BSW_TRY(bsw_allocate(&items, num_items, sizeof *items, "work items", err));
    enum bsw_status status = bsw_allocate(&numbers, num_rows, sizeof *numbers, "rows", err);
    for (uint32_t i = 0; i < num_items && status == BSW_OK; i++) {
        uint32_t left = b->codes.num_bundles - i * LIST_BUNDLES;
        items[i] = (struct bsw_device_list_item){
            i * LIST_BUNDLES, left < LIST_BUNDLES ? left : LIST_BUNDLES, 0, b->queries.num_queries};
    }
    for (size_t i = 0; i < num_rows && status == BSW_OK; i++) numbers[i] = (uint32_t)i;
    if (status == BSW_OK) status = send(b, b->work.items, items, num_items * sizeof *items, err);
    if (status == BSW_OK) status = send(b, b->work.rows, numbers, num_rows * sizeof *numbers, err);
    if (status == BSW_OK)
        status = send(b, b->work.queries, numbers, b->queries.num_queries * sizeof *numbers, err);
    bsw_free(&items);
    bsw_free(&numbers);
    return status;
}

static enum bsw_status fill(struct byte_bench *b, struct bsw_error *err)
{
    size_t rows = (size_t)b->codes.num_bundles * BSW_BUNDLE_ROWS, queries = b->queries.num_queries;
    BSW_TRY(DEVICE_BENCH_LAUNCH(b->bench, "rows", err, device_bench_fill,
                                (void *)b->codes.planes[0], rows * DIMS, ROW_SEED));
    BSW_TRY(DEVICE_BENCH_LAUNCH(b->bench, "queries", err, device_bench_fill, b->bytes,
                                queries * DIMS, QUERY_SEED));
    BSW_TRY(DEVICE_BENCH_LAUNCH(b->bench, "queries", err, bsw_device_byte_queries,
                                b->queries.num_queries, DIMS, b->bytes,
                                (int8_t *)b->queries.components));
    BSW_TRY(send_byte(b, b->codes.offsets, 0, rows * sizeof *b->codes.offsets, err));
    BSW_TRY(send_byte(b, b->codes.masks, 0xff, rows / 8, err));
    BSW_TRY(send_byte(b, b->queries.constants, 0, queries * sizeof(int32_t), err));
    BSW_TRY(send_byte(b, b->lists.counts, 0, queries * sizeof(uint32_t), err));
    BSW_TRY(send_byte(b, b->lists.limits, 0xff, queries * sizeof(uint32_t), err));
    return send_items(b, err);
}

// As many rows as settings->bytes hold with all that belongs to them; whole bundles.
static enum bsw_status open_bytes(struct byte_bench *b, const struct device_bench_shape *shape,
                                  struct bsw_error *err)
{
    const struct device_bench_settings *settings = b->bench->settings;
    uint64_t rows = settings->bytes / (DIMS + sizeof(int32_t) + 1);
    if (rows > settings->rows) rows = settings->rows;
    if (rows > MOST_ROWS) rows = MOST_ROWS;
    if (rows < BSW_BUNDLE_ROWS) rows = BSW_BUNDLE_ROWS;
    BSW_TRY(device_bench_layout_parse(LAYOUT, &b->codes.layout, err));
    b->codes.num_bundles = (uint32_t)(rows / BSW_BUNDLE_ROWS);
    b->queries.num_queries = b->lists.num_queries = device_bench_num_queries(b->bench, shape);
    b->num_bundles = b->codes.num_bundles;
    b->lists.capacity = LIST_BUNDLES * BSW_BUNDLE_ROWS;
    if (shape->list_bundles > 0 && b->queries.num_queries <= MOST_SLOTS)
        b->work.num_items = (b->codes.num_bundles + LIST_BUNDLES - 1) / LIST_BUNDLES;
    BSW_TRY(allocate(b, err));
    return fill(b, err);
}

static enum bsw_status run(void *context, struct bsw_error *err)
{
    const struct byte_bench *b = context;
    const struct bsw_device_part part = {0, b->num_bundles, 1};
    if (b->work.num_items > 0)
        return DEVICE_BENCH_LAUNCH(b->bench, "scan", err, bsw_device_byte_list_scan, &b->codes,
                                   &b->work, bsw_device_list_tile(b->queries.num_queries),
                                   &b->queries, 1, &b->lists);
    return DEVICE_BENCH_LAUNCH(b->bench, "scan", err, bsw_device_byte_scan, &b->codes, &part,
                               &b->queries, 1, &b->lists);
}

// ---- what is found ----

struct found {
    uint64_t items[LIST_BUNDLES * BSW_BUNDLE_ROWS], own[LIST_BUNDLES * BSW_BUNDLE_ROWS];
    int32_t offsets[LIST_BUNDLES * BSW_BUNDLE_ROWS];
    uint32_t masks[LIST_BUNDLES];
    _Alignas(64) unsigned char rows[LIST_BUNDLES * BSW_BUNDLE_ROWS * DIMS];
    _Alignas(64) int8_t query[DIMS];
};

static enum bsw_status fetch(const struct byte_bench *b, void *to, const void *from, size_t bytes,
                             struct bsw_error *err)
{
    BSW_TRY(bsw_device_download(b->bench->device, BSW_QUEUE_SCAN, to, from, bytes, err));
    return bsw_device_wait(b->bench->device, BSW_QUEUE_SCAN, "candidates", err);
}

static enum bsw_status compare(const struct byte_bench *b, uint32_t query, struct found *found,
                               struct bsw_error *err)
{
    static const int32_t constant = 0;
    uint32_t count;
    BSW_TRY(fetch(b, &count, b->lists.counts + query, sizeof count, err));
    BSW_TRY(fetch(b, found->items, b->lists.items + (size_t)query * b->lists.capacity,
                  sizeof found->items, err));
    BSW_TRY(fetch(b, found->query, b->bytes + (size_t)query * DIMS, DIMS, err));
    const struct bsw_matrix_tile tile = {.bytes = found->rows,
                                         .num_bundles = b->num_bundles,
                                         .padded_dims = DIMS,
                                         .masks = found->masks,
                                         .offsets = found->offsets};
    const struct bsw_matrix_queries queries = {
        .num_queries = 1, .components = found->query, .constants = &constant, .factor = 1};
    struct bsw_matrix_output output = {.items = found->own};
    bsw_matrix_scan_reference.scan(&tile, &queries, &output);
    int is_same = count == output.count;
    if (is_same) {
        qsort(found->items, count, sizeof *found->items, device_bench_descending);
        qsort(found->own, count, sizeof *found->own, device_bench_descending);
        is_same = memcmp(found->items, found->own, count * sizeof *found->own) == 0;
    }
    return is_same ? BSW_OK
                   : bsw_fail(err, BSW_ERROR_SELF_CHECK, "query %u finds other rows", query);
}

static enum bsw_status check_list(struct byte_bench *b, struct found *found, struct bsw_error *err)
{
    uint32_t num_queries = b->queries.num_queries;
    if (b->num_bundles > LIST_BUNDLES) b->num_bundles = LIST_BUNDLES;
    if (b->work.num_items > 0) b->work.num_items = 1;
    memset(found->masks, 0xff, sizeof found->masks);
    memset(found->offsets, 0, sizeof found->offsets);
    BSW_TRY(fetch(b, found->rows, b->codes.planes[0],
                  (size_t)b->num_bundles * BSW_BUNDLE_ROWS * DIMS, err));
    BSW_TRY(send_byte(b, b->lists.counts, 0, num_queries * sizeof(uint32_t), err));
    BSW_TRY(send_byte(b, b->lists.limits, 0, num_queries * sizeof(uint32_t), err));
    BSW_TRY(run(b, err));
    for (uint32_t q = 0; q < num_queries && q < CHECKED_QUERIES; q++)
        BSW_TRY(compare(b, q, found, err));
    return BSW_OK;
}

static enum bsw_status check(struct byte_bench *b, struct bsw_error *err)
{
    struct found *found;
    BSW_TRY(bsw_allocate_zero(&found, 1, sizeof *found, "candidates", err));
    enum bsw_status status = check_list(b, found, err);
    bsw_free(&found);
    return status;
}

static void report(const struct byte_bench *b, const char *name, const struct device_times *times)
{
    struct device_bench *bench = b->bench;
    double rows = (double)b->codes.num_bundles * BSW_BUNDLE_ROWS;
    const struct device_record record = {.name = name,
                                         .rows = (uint64_t)rows,
                                         .queries = b->queries.num_queries,
                                         .is_checked = 1,
                                         .times = *times,
                                         .bytes = rows * (DIMS + sizeof(int32_t)),
                                         .bytes_limit = DEVICE_LIMIT_READ,
                                         .operations = 2 * rows * b->queries.num_queries * DIMS,
                                         .operations_limit = bench->limits[DEVICE_LIMIT_CUBLAS] > 0
                                                                 ? DEVICE_LIMIT_CUBLAS
                                                                 : DEVICE_LIMIT_MMA};
    device_bench_report(bench, &record);
}

enum bsw_status device_bench_bytes(struct device_bench *bench, const struct device_bench_case *c,
                                   struct bsw_error *err)
{
    struct byte_bench b = {.bench = bench};
    struct device_times times;
    device_bench_codes_free(bench);
    enum bsw_status status = open_bytes(&b, &c->shape, err);
    if (status == BSW_OK) status = device_bench_time(bench, bench->device, run, &b, &times, err);
    if (status == BSW_OK) status = check(&b, err);
    if (status == BSW_OK) report(&b, c->name, &times);
    bsw_device_free(bench->device, &b.memory);
    return status;
}
