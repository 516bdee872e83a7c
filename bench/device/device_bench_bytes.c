// SPDX-License-Identifier: Apache-2.0
// Codec raw on a GPU: the kernel of kernels/gpu_bytes alone, over rows of 128 bytes, with limits
// that nothing reaches.
#include <string.h>

#include "bench/device/device_bench.h"
#include "common/base/memory.h"
#include "kernels/gpu_bytes/gpu_bytes.h"

#define LAYOUT     "128x8"
#define DIMS       128u
#define ROW_SEED   0x8000u
#define QUERY_SEED 0x8001u
#define MOST_ROWS  ((uint64_t)1 << 30)

struct byte_bench {
    struct device_bench *bench;
    struct bsw_device_buffer memory;
    struct bsw_device_codes codes;
    struct bsw_device_queries queries;
    struct bsw_device_lists lists;
    int8_t *bytes; // of queries, before they are laid out
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
        {&b->lists.items, queries * sizeof *b->lists.items},
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
    return send_byte(b, b->lists.limits, 0xff, queries * sizeof(uint32_t), err);
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
    b->lists.capacity = 1;
    BSW_TRY(allocate(b, err));
    return fill(b, err);
}

static enum bsw_status run(void *context, struct bsw_error *err)
{
    const struct byte_bench *b = context;
    const struct bsw_device_part part = {0, b->codes.num_bundles, 1};
    return DEVICE_BENCH_LAUNCH(b->bench, "scan", err, bsw_device_byte_scan, &b->codes, &part,
                               &b->queries, 1, &b->lists);
}

static void report(const struct byte_bench *b, const char *name, const struct device_times *times)
{
    struct device_bench *bench = b->bench;
    double rows = (double)b->codes.num_bundles * BSW_BUNDLE_ROWS;
    const struct device_record record = {.name = name,
                                         .rows = (uint64_t)rows,
                                         .queries = b->queries.num_queries,
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
    if (status == BSW_OK) report(&b, c->name, &times);
    bsw_device_free(bench->device, &b.memory);
    return status;
}
