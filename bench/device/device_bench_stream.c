// Codes that do not fit: most of them in pinned host memory, copied block by block while the block
// before is scanned, by the same calls as in a search. The bound is the copy rate.
#include "bench/device/device_bench.h"
#include "common/base/memory.h"
#include "shard/device/device_shard.h"

#define TIMEOUT_SECONDS 120
// Part of the codes' bytes that the device may hold, lists and blocks included.
#define DEVICE_PART 4
#define LIST_BYTES  ((uint64_t)1 << 16) // that even tiny codes leave room for

// The same GPU, with too little of its memory.
struct small_device {
    bsw_device *device;
    struct bsw_resident_shard host;
    struct bsw_device_engine engine;
    struct bsw_device_shard shard;
    struct device_bench_queries queries;
    struct bsw_scan_workspace workspace;
    struct bsw_candidate_lists lists;
    const struct device_bench_shape *shape;
};

static enum bsw_status fetch(struct device_bench *bench, void *out, const void *from, size_t bytes,
                             struct bsw_error *err)
{
    void *memory;
    BSW_TRY(bsw_allocate(&memory, bytes, 1, "codes", err));
    *(void **)out = memory;
    BSW_TRY(bsw_device_download(bench->device, BSW_QUEUE_COPY, memory, from, bytes, err));
    return bsw_device_wait(bench->device, BSW_QUEUE_COPY, "codes", err);
}

static enum bsw_status fetch_codes(struct device_bench *bench, uint64_t num_rows,
                                   struct small_device *small, struct bsw_error *err)
{
    const struct bsw_device_codes codes =
        device_bench_codes_first(bench, num_rows, small->shape->has_affine);
    struct bsw_code_arrays *arrays = &small->host.arrays;
    size_t bundles = codes.num_bundles, rows = bundles * BSW_BUNDLE_ROWS;
    int has_affine = small->shape->has_affine;
    small->host.shape = (struct bsw_shard_shape){
        .layout = codes.layout,
        .has_affine = has_affine,
        .num_rows = num_rows,
        .bundle_bytes = bsw_device_bundle_bytes(&codes.layout, has_affine, 0)};
    small->host.num_bundles = bundles;
    for (uint32_t s = 0; s < codes.layout.num_segments; s++) {
        size_t words = bsw_segment_bundle_words(&codes.layout.segments[s]);
        BSW_TRY(fetch(bench, &arrays->planes[s], codes.planes[s], bundles * words * 4, err));
    }
    BSW_TRY(fetch(bench, &arrays->masks, codes.masks, bundles * sizeof *arrays->masks, err));
    if (!has_affine) return BSW_OK;
    BSW_TRY(fetch(bench, &arrays->scales, codes.scales, rows * sizeof *arrays->scales, err));
    return fetch(bench, &arrays->biases, codes.biases, rows * sizeof *arrays->biases, err);
}

static enum bsw_status open_small(struct device_bench *bench, struct small_device *small,
                                  struct bsw_error *err)
{
    const struct device_bench_shape *shape = small->shape;
    size_t bundle_bytes =
        bsw_device_bundle_bytes(&small->host.shape.layout, small->host.shape.has_affine, 0);
    const struct bsw_device_options options = {
        .ordinal = (int)bench->settings->gpu,
        .num_sharers = 1,
        .most_bytes = small->host.num_bundles * bundle_bytes / DEVICE_PART + LIST_BYTES,
        .timeout_seconds = TIMEOUT_SECONDS};
    const struct bsw_device_needs needs = {.shapes = &small->host.shape,
                                           .num_shards = 1,
                                           .query_bits = shape->query_bits,
                                           .max_queries = small->queries.batch.num_queries,
                                           .keep = shape->keep};
    BSW_TRY(bsw_device_open(&options, &small->device, err));
    BSW_TRY(bsw_device_engine_open(small->device, &needs, &small->engine, err));
    return bsw_device_shard_load(&small->engine, 0, &small->host, &small->shard, err);
}

static void close_small(struct small_device *small)
{
    if (small->device) {
        bsw_device_shard_unload(&small->engine, &small->shard);
        bsw_device_engine_close(&small->engine);
        bsw_device_close(&small->device);
    }
    bsw_resident_shard_drop_codes(&small->host);
    device_bench_queries_free(&small->queries);
    bsw_scan_workspace_deinit(&small->workspace);
    bsw_candidate_lists_deinit(&small->lists);
}

static enum bsw_status run_small(void *context, struct bsw_error *err)
{
    struct small_device *small = context;
    return bsw_device_shard_scan(&small->engine, &small->shard, &small->queries.batch, 0,
                                 small->queries.batch.num_queries, NULL, small->shape->keep,
                                 &small->workspace, &small->lists, err);
}

static enum bsw_status measure(struct device_bench *bench, struct small_device *small,
                               struct device_record *record, struct bsw_error *err)
{
    uint64_t copied;
    BSW_TRY(run_small(small, err));
    copied = small->engine.counts.copied_bytes;
    BSW_TRY(run_small(small, err));
    record->bytes = (double)(small->engine.counts.copied_bytes - copied);
    if (record->bytes <= 0)
        return bsw_fail(err, BSW_ERROR_SELF_CHECK,
                        "nothing was copied: the device holds all codes");
    return device_bench_time(bench, small->device, run_small, small, &record->times, err);
}

static enum bsw_status stream_rows(struct device_bench *bench, uint64_t num_rows,
                                   struct small_device *small, struct device_record *record,
                                   struct bsw_error *err)
{
    const struct device_bench_shape *shape = small->shape;
    BSW_TRY(fetch_codes(bench, num_rows, small, err));
    BSW_TRY(device_bench_queries_make(&small->host.shape.layout, shape->query_bits,
                                      (uint32_t)record->queries, &small->queries, err));
    bsw_scan_workspace_init(&small->workspace, BSW_CPU_REFERENCE, 1);
    small->workspace.scan = shape->kind;
    BSW_TRY(open_small(bench, small, err));
    return measure(bench, small, record, err);
}

enum bsw_status device_bench_stream(struct device_bench *bench, const struct device_bench_case *c,
                                    struct bsw_error *err)
{
    const struct device_bench_settings *settings = bench->settings;
    struct small_device small = {.shape = &c->shape};
    BSW_TRY(device_bench_codes_make(bench, c->shape.layout, settings->rows, err));
    size_t bundle_bytes =
        bsw_device_bundle_bytes(&bench->codes.codes.layout, c->shape.has_affine, 0);
    uint64_t most = settings->host_bytes / bundle_bytes * BSW_BUNDLE_ROWS;
    uint64_t rows = bench->codes.num_rows < most ? bench->codes.num_rows : most;
    struct device_record record = {.name = c->name,
                                   .rows = rows,
                                   .queries = device_bench_num_queries(bench, &c->shape),
                                   .keep = c->shape.keep,
                                   .bytes_limit = DEVICE_LIMIT_COPY};
    enum bsw_status status = stream_rows(bench, rows, &small, &record, err);
    close_small(&small);
    if (status == BSW_OK) device_bench_report(bench, &record);
    return status;
}
