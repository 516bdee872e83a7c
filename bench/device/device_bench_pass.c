// SPDX-License-Identifier: Apache-2.0
// A whole pass as `search` makes it: the engine of shard/device/device_shard.h, over codes that are
// on the device already, or that come from the host in every pass.
#include <string.h>

#include "bench/device/device_bench_pass.h"
#include "common/base/memory.h"
#include "shard/codecs/product_codes.h"

#define TIMEOUT_SECONDS 120
// Part of the codes' bytes that a streaming pass' device may hold, lists and blocks included.
#define DEVICE_PART 4
#define LIST_BYTES  ((uint64_t)1 << 16) // that even tiny codes leave room for

static enum bsw_status open_engine(struct device_bench_pass *pass, bsw_device *device,
                                   struct bsw_error *err)
{
    const struct device_bench_shape *shape = pass->shape;
    const struct bsw_device_needs needs = {
        .shapes = &pass->host.shape,
        .num_shards = 1,
        .query_bits = shape->query_bits,
        .max_queries = pass->num_queries < shape->batch ? pass->num_queries : shape->batch,
        .keep = shape->keep,
        .stage_dims = shape->stage_dims,
        .product = pass->product};
    return bsw_device_engine_open(device, &needs, &pass->engine, err);
}

// ---- codes in host memory ----

static enum bsw_status fetch(struct device_bench *bench, void *out, const void *from, size_t bytes,
                             struct bsw_error *err)
{
    void *memory;
    BSW_TRY(bsw_allocate(&memory, bytes, 1, "codes", err));
    *(void **)out = memory;
    BSW_TRY(bsw_device_download(bench->device, BSW_QUEUE_COPY, memory, from, bytes, err));
    return bsw_device_wait(bench->device, BSW_QUEUE_COPY, "codes", err);
}

static enum bsw_status fetch_codes(struct device_bench *bench, const struct bsw_device_codes *codes,
                                   struct bsw_code_arrays *arrays, struct bsw_error *err)
{
    size_t bundles = codes->num_bundles, rows = bundles * BSW_BUNDLE_ROWS;
    for (uint32_t s = 0; s < codes->layout.num_segments; s++) {
        size_t words = bsw_segment_bundle_words(&codes->layout.segments[s]);
        BSW_TRY(fetch(bench, &arrays->planes[s], codes->planes[s], bundles * words * 4, err));
    }
    BSW_TRY(fetch(bench, &arrays->masks, codes->masks, bundles * sizeof *arrays->masks, err));
    if (!codes->scales) return BSW_OK;
    BSW_TRY(fetch(bench, &arrays->scales, codes->scales, rows * sizeof *arrays->scales, err));
    return fetch(bench, &arrays->biases, codes->biases, rows * sizeof *arrays->biases, err);
}

static enum bsw_status load_streamed(struct device_bench *bench, struct device_bench_pass *pass,
                                     const struct bsw_device_codes *codes, struct bsw_error *err)
{
    struct bsw_shard_shape *shape = &pass->host.shape;
    shape->bundle_bytes = bsw_device_bundle_bytes(&codes->layout, shape->has_affine, 0);
    const struct bsw_device_options options = {
        .ordinal = (int)bench->settings->gpu,
        .num_sharers = 1,
        .most_bytes = pass->host.num_bundles * shape->bundle_bytes / DEVICE_PART + LIST_BYTES,
        .timeout_seconds = TIMEOUT_SECONDS};
    BSW_TRY(fetch_codes(bench, codes, &pass->host.arrays, err));
    BSW_TRY(bsw_device_open(&options, &pass->small, err));
    BSW_TRY(open_engine(pass, pass->small, err));
    return bsw_device_shard_load(&pass->engine, 0, &pass->host, &pass->shard, err);
}

// ---- a pass ----

static enum bsw_status make_queries(struct device_bench_pass *pass,
                                    const struct bsw_code_layout *layout, struct bsw_error *err)
{
    const struct device_bench_shape *shape = pass->shape;
    uint32_t num = (uint32_t)pass->num_queries;
    if (shape->table_bits > 0) {
        BSW_TRY(device_bench_book_make(shape, layout, &pass->product, err));
        return device_bench_table_queries(pass->product, shape->table, num, &pass->queries, err);
    }
    if (shape->stage_dims > 0)
        return device_bench_spectrum_queries(layout, shape->query_bits, num, &pass->queries, err);
    return device_bench_queries_make(layout, shape->query_bits, num, &pass->queries, err);
}

static enum bsw_status fill_pass(struct device_bench *bench, uint64_t num_rows, int is_streamed,
                                 struct device_bench_pass *pass, struct bsw_error *err)
{
    const struct device_bench_shape *shape = pass->shape;
    const struct bsw_device_codes codes =
        device_bench_codes_first(bench, num_rows, shape->has_affine);
    pass->num_queries = device_bench_num_queries(bench, shape);
    pass->host.shape = (struct bsw_shard_shape){.layout = codes.layout,
                                                .has_affine = shape->has_affine,
                                                .has_biases = shape->has_affine,
                                                .num_rows = num_rows,
                                                .num_places = num_rows};
    pass->host.num_bundles = codes.num_bundles;
    bsw_scan_workspace_init(&pass->workspace, BSW_CPU_REFERENCE, 1);
    pass->workspace.scan = shape->kind;
    BSW_TRY(make_queries(pass, &codes.layout, err));
    if (is_streamed) return load_streamed(bench, pass, &codes, err);
    pass->host.tail_unit = bench->codes.tail_unit;
    pass->shard = (struct bsw_device_shard){
        .host = &pass->host, .resident = codes, .num_bundles = codes.num_bundles};
    return open_engine(pass, bench->device, err);
}

enum bsw_status device_bench_pass_open(struct device_bench *bench,
                                       const struct device_bench_shape *shape, uint64_t num_rows,
                                       int is_streamed, struct device_bench_pass **out,
                                       struct bsw_error *err)
{
    struct device_bench_pass *pass;
    *out = NULL;
    BSW_TRY(bsw_allocate_zero(&pass, 1, sizeof *pass, "pass", err));
    pass->shape = shape;
    enum bsw_status status = fill_pass(bench, num_rows, is_streamed, pass, err);
    if (status != BSW_OK)
        device_bench_pass_close(&pass);
    else
        *out = pass;
    return status;
}

void device_bench_pass_close(struct device_bench_pass **address)
{
    struct device_bench_pass *pass = *address;
    if (!pass) return;
    if (pass->small) bsw_device_shard_unload(&pass->engine, &pass->shard);
    bsw_device_engine_close(&pass->engine);
    bsw_device_close(&pass->small);
    bsw_resident_shard_drop_codes(&pass->host);
    bsw_scan_workspace_deinit(&pass->workspace);
    bsw_candidate_lists_deinit(&pass->lists);
    device_bench_queries_free(&pass->queries);
    bsw_product_codes_destroy(&pass->product);
    bsw_free(address);
}

enum bsw_status device_bench_pass_run(void *context, struct bsw_error *err)
{
    struct device_bench_pass *pass = context;
    const struct device_bench_shape *shape = pass->shape;
    for (size_t done = 0; done < pass->num_queries; done += shape->batch) {
        size_t left = pass->num_queries - done;
        pass->first_query = done;
        const struct bsw_device_shard *shard = &pass->shard;
        const struct bsw_device_task task = {
            .maker = &bsw_device_whole,
            .span = {&shard, 1},
            .queries = {&pass->queries.batch, done, left < shape->batch ? left : shape->batch},
            .keep = shape->keep,
            .workspace = &pass->workspace};
        BSW_TRY(bsw_device_scan(&pass->engine, &task, &pass->lists, NULL, err));
    }
    return BSW_OK;
}

enum bsw_status device_bench_pass_time(struct device_bench *bench, struct device_bench_pass *pass,
                                       struct device_times *out, struct bsw_error *err)
{
    return device_bench_time(bench, pass->small ? pass->small : bench->device,
                             device_bench_pass_run, pass, out, err);
}

const struct device_bench_queries *device_bench_pass_queries(const struct device_bench_pass *pass)
{
    return &pass->queries;
}

uint64_t device_bench_pass_copied(const struct device_bench_pass *pass)
{
    return pass->engine.counts.copied_bytes;
}

double device_bench_pass_stopped(const struct device_bench_pass *pass)
{
    const struct bsw_scan_workspace *workspace = &pass->workspace;
    return workspace->num_pairs > 0 ? (double)workspace->num_stopped / (double)workspace->num_pairs
                                    : 0;
}
