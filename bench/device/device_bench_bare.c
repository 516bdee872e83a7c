// SPDX-License-Identifier: Apache-2.0
#include "bench/device/device_bench_bare.h"

#include <string.h>

#include "common/base/memory.h"
#include "kernels/device_scan/scan_kernels.h"

int device_bench_is_matrix(const struct device_bench_shape *shape,
                           const struct bsw_code_layout *layout)
{
    if (shape->kind == BSW_SCAN_AUTO)
        return bsw_device_takes_matrix(layout, shape->query_bits, shape->batch);
    return bsw_scan_is_matrix(shape->kind);
}

static enum bsw_status allocate_bare(struct device_bench_bare *bare,
                                     const struct bsw_query_batch *batch, size_t num_queries,
                                     struct bsw_error *err)
{
    struct bsw_device_queries *queries = &bare->queries;
    struct bsw_device_lists *lists = &bare->lists;
    const struct device_bench_array arrays[] = {
        {&queries->words, num_queries * batch->query_words * sizeof *queries->words},
        {&queries->scales, num_queries * sizeof *queries->scales},
        {&queries->components, num_queries * bare->codes.layout.padded_dims},
        {&queries->constants, num_queries * sizeof *queries->constants},
        {&lists->items, num_queries * lists->capacity * sizeof *lists->items},
        {&lists->counts, num_queries * sizeof *lists->counts},
        {&lists->limits, num_queries * sizeof *lists->limits},
        {&bare->work.items, (bare->work.num_items + 1) * sizeof *bare->work.items},
        {&bare->work.queries, num_queries * sizeof *bare->work.queries}};
    queries->num_queries = lists->num_queries = (uint32_t)num_queries;
    queries->query_bits = batch->query_bits;
    queries->query_words = (uint32_t)batch->query_words;
    return device_bench_allocate(bare->bench, arrays, sizeof arrays / sizeof arrays[0],
                                 &bare->memory, err);
}

// Lists one after another, each an item for all queries. Candidates' rows are never read, as there
// are none; biases have as many numbers.
static enum bsw_status send_items(struct device_bench_bare *bare, struct bsw_error *err)
{
    bsw_device *device = bare->bench->device;
    uint32_t num = bare->queries.num_queries, most = bare->shape->list_bundles, *numbers;
    struct bsw_device_list_item *items;
    BSW_TRY(bsw_allocate(&numbers, num, sizeof *numbers, "numbers of queries", err));
    enum bsw_status status =
        bsw_allocate(&items, bare->work.num_items, sizeof *items, "work items", err);
    for (uint32_t q = 0; q < num; q++) numbers[q] = q;
    for (uint32_t i = 0; i < bare->work.num_items && status == BSW_OK; i++) {
        uint32_t left = bare->codes.num_bundles - i * most;
        items[i] = (struct bsw_device_list_item){i * most, left < most ? left : most, 0, num};
    }
    if (status == BSW_OK)
        status = bsw_device_upload(device, BSW_QUEUE_SCAN, (void *)bare->work.items, items,
                                   bare->work.num_items * sizeof *items, err);
    if (status == BSW_OK)
        status = bsw_device_upload(device, BSW_QUEUE_SCAN, (void *)bare->work.queries, numbers,
                                   num * sizeof *numbers, err);
    if (status == BSW_OK) status = bsw_device_wait(device, BSW_QUEUE_SCAN, "work items", err);
    bare->work.rows = (const uint32_t *)(const void *)bare->codes.biases;
    bare->work.num_bundles = bare->codes.num_bundles;
    bsw_free(&items);
    bsw_free(&numbers);
    return status;
}

enum bsw_status device_bench_bare_empty(void *context, struct bsw_error *err)
{
    const struct device_bench_bare *bare = context;
    return bsw_device_upload(bare->bench->device, BSW_QUEUE_SCAN, bare->lists.counts, bare->numbers,
                             bare->lists.num_queries * sizeof(uint32_t), err);
}

// Queries and their bytes.
static enum bsw_status send_queries(struct device_bench_bare *bare,
                                    const struct bsw_query_batch *batch, struct bsw_error *err)
{
    bsw_device *device = bare->bench->device;
    struct bsw_device_queries *queries = &bare->queries;
    size_t num = queries->num_queries;
    BSW_TRY(bsw_device_upload(device, BSW_QUEUE_SCAN, (void *)queries->words, batch->words,
                              num * batch->query_words * sizeof(uint32_t), err));
    BSW_TRY(bsw_device_upload(device, BSW_QUEUE_SCAN, (void *)queries->scales, batch->scales,
                              num * sizeof(float), err));
    if (!bare->shape->has_affine) queries->scales = NULL;
    return DEVICE_BENCH_LAUNCH(bare->bench, "queries", err, bsw_device_unpack_queries,
                               &bare->codes.layout, queries->num_queries, batch->query_bits,
                               queries->query_words, queries->words, (int8_t *)queries->components,
                               (int32_t *)queries->constants);
}

static enum bsw_status send_lists(struct device_bench_bare *bare, const uint32_t *limits,
                                  struct bsw_error *err)
{
    size_t num = bare->lists.num_queries;
    BSW_TRY(bsw_allocate_zero(&bare->numbers, 2 * num, sizeof *bare->numbers, "limits", err));
    memset(bare->numbers + num, 0xff, num * sizeof *bare->numbers);
    if (limits) memcpy(bare->numbers + num, limits, num * sizeof *limits);
    BSW_TRY(bsw_device_upload(bare->bench->device, BSW_QUEUE_SCAN, bare->lists.limits,
                              bare->numbers + num, num * sizeof *bare->numbers, err));
    return device_bench_bare_empty(bare, err);
}

static enum bsw_status run_scan(struct device_bench_bare *bare, const struct bsw_device_part *part,
                                struct bsw_error *err)
{
    const struct device_bench_shape *shape = bare->shape;
    if (shape->kernel == DEVICE_BENCH_ROW)
        return DEVICE_BENCH_LAUNCH(bare->bench, "scan", err, bsw_device_scan_by, shape->row,
                                   &bare->codes, part, &bare->queries, &bare->lists);
    const int is_matrix = device_bench_is_matrix(shape, &bare->codes.layout);
    return DEVICE_BENCH_LAUNCH(bare->bench, "scan", err,
                               (is_matrix ? bsw_device_matrix_scan : bsw_device_plane_scan),
                               &bare->codes, part, &bare->queries, &bare->lists);
}

static enum bsw_status run_lists(struct device_bench_bare *bare, struct bsw_error *err)
{
    const uint32_t tile = bsw_device_list_tile(bare->queries.num_queries);
    int (*launcher)(const struct bsw_device_codes *, const struct bsw_device_list_work *, uint32_t,
                    const struct bsw_device_queries *, const struct bsw_device_lists *,
                    bsw_stream) = bare->shape->kernel == DEVICE_BENCH_HOPPER
                                      ? bsw_device_list_scan_hopper
                                      : bsw_device_list_scan_mma;
    return DEVICE_BENCH_LAUNCH(bare->bench, "scan of lists", err, launcher, &bare->codes,
                               &bare->work, tile, &bare->queries, &bare->lists);
}

enum bsw_status device_bench_bare_run(void *context, struct bsw_error *err)
{
    struct device_bench_bare *bare = context;
    const struct bsw_device_part part = {0, bare->codes.num_bundles, 1};
    if (bare->shape->list_bundles > 0) return run_lists(bare, err);
    for (size_t i = 0; i < bare->num_launches; i++) BSW_TRY(run_scan(bare, &part, err));
    return BSW_OK;
}

enum bsw_status device_bench_bare_open(struct device_bench *bench,
                                       const struct device_bench_shape *shape, uint64_t num_rows,
                                       const struct device_bench_queries *queries,
                                       uint32_t capacity, const uint32_t *limits,
                                       struct device_bench_bare *out, struct bsw_error *err)
{
    const struct bsw_query_batch *batch = &queries->batch;
    uint32_t num = batch->num_queries < shape->batch ? batch->num_queries : shape->batch;
    *out = (struct device_bench_bare){.bench = bench, .shape = shape};
    out->num_launches = (batch->num_queries + num - 1) / num;
    out->codes = device_bench_codes_first(bench, num_rows, shape->has_affine);
    out->lists.capacity = capacity;
    if (shape->list_bundles > 0)
        out->work.num_items =
            (out->codes.num_bundles + shape->list_bundles - 1) / shape->list_bundles;
    enum bsw_status status = allocate_bare(out, batch, num, err);
    if (status == BSW_OK) status = send_lists(out, limits, err);
    if (status == BSW_OK) status = send_queries(out, batch, err);
    if (status == BSW_OK && shape->list_bundles > 0) status = send_items(out, err);
    if (status == BSW_OK) status = bsw_device_wait(bench->device, BSW_QUEUE_SCAN, "queries", err);
    if (status != BSW_OK) device_bench_bare_close(out);
    return status;
}

void device_bench_bare_close(struct device_bench_bare *bare)
{
    bsw_device_free(bare->bench->device, &bare->memory);
    bsw_free(&bare->numbers);
}

enum bsw_status device_bench_kernel_time(struct device_bench *bench,
                                         const struct device_bench_shape *shape, uint64_t num_rows,
                                         const struct device_bench_queries *queries,
                                         struct device_times *times, struct bsw_error *err)
{
    struct device_bench_bare bare;
    BSW_TRY(device_bench_bare_open(bench, shape, num_rows, queries, 1, NULL, &bare, err));
    enum bsw_status status =
        device_bench_time(bench, bench->device, device_bench_bare_run, &bare, times, err);
    device_bench_bare_close(&bare);
    return status;
}
