// A whole pass as `search` makes it: the engine of shard/device/device_shard.h, over codes that are
// on the device already.
#include "bench/device/device_bench.h"
#include "common/base/memory.h"
#include "shard/device/device_shard.h"

struct device_bench_pass {
    const struct device_bench_shape *shape;
    struct device_bench_queries queries;
    struct bsw_resident_shard host; // its shape alone: codes are on the device
    struct bsw_device_engine engine;
    struct bsw_device_shard shard;
    struct bsw_scan_workspace workspace;
    struct bsw_candidate_lists lists;
    size_t num_queries;
};

static enum bsw_status open_engine(struct device_bench *bench, struct device_bench_pass *pass,
                                   struct bsw_error *err)
{
    const struct device_bench_shape *shape = pass->shape;
    const struct bsw_device_needs needs = {
        .shapes = &pass->host.shape,
        .num_shards = 1,
        .query_bits = shape->query_bits,
        .max_queries = pass->num_queries < shape->batch ? pass->num_queries : shape->batch,
        .keep = shape->keep,
        .stage_dims = shape->stage_dims};
    return bsw_device_engine_open(bench->device, &needs, &pass->engine, err);
}

static enum bsw_status fill_pass(struct device_bench *bench, uint64_t num_rows,
                                 struct device_bench_pass *pass, struct bsw_error *err)
{
    const struct device_bench_shape *shape = pass->shape;
    const struct bsw_device_codes codes =
        device_bench_codes_first(bench, num_rows, shape->has_affine);
    pass->num_queries = device_bench_num_queries(bench, shape);
    pass->host.shape = (struct bsw_shard_shape){
        .layout = codes.layout, .has_affine = shape->has_affine, .num_rows = num_rows};
    pass->host.num_bundles = codes.num_bundles;
    pass->host.tail_unit = bench->codes.tail_unit;
    pass->shard = (struct bsw_device_shard){
        .host = &pass->host, .resident = codes, .num_bundles = codes.num_bundles};
    bsw_scan_workspace_init(&pass->workspace, BSW_CPU_REFERENCE, 1);
    pass->workspace.scan = shape->kind;
    BSW_TRY((shape->stage_dims > 0 ? device_bench_spectrum_queries : device_bench_queries_make)(
        &codes.layout, shape->query_bits, (uint32_t)pass->num_queries, &pass->queries, err));
    return open_engine(bench, pass, err);
}

enum bsw_status device_bench_pass_open(struct device_bench *bench,
                                       const struct device_bench_shape *shape, uint64_t num_rows,
                                       struct device_bench_pass **out, struct bsw_error *err)
{
    struct device_bench_pass *pass;
    *out = NULL;
    BSW_TRY(bsw_allocate_zero(&pass, 1, sizeof *pass, "pass", err));
    pass->shape = shape;
    enum bsw_status status = fill_pass(bench, num_rows, pass, err);
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
    bsw_device_engine_close(&pass->engine);
    bsw_scan_workspace_deinit(&pass->workspace);
    bsw_candidate_lists_deinit(&pass->lists);
    device_bench_queries_free(&pass->queries);
    bsw_free(address);
}

enum bsw_status device_bench_pass_run(void *context, struct bsw_error *err)
{
    struct device_bench_pass *pass = context;
    const struct device_bench_shape *shape = pass->shape;
    for (size_t done = 0; done < pass->num_queries; done += shape->batch) {
        size_t left = pass->num_queries - done;
        BSW_TRY(bsw_device_shard_scan(&pass->engine, &pass->shard, &pass->queries.batch, done,
                                      left < shape->batch ? left : shape->batch, NULL, shape->keep,
                                      &pass->workspace, &pass->lists, err));
    }
    return BSW_OK;
}

const struct bsw_candidate_lists *device_bench_pass_lists(const struct device_bench_pass *pass)
{
    return &pass->lists;
}

const struct device_bench_queries *device_bench_pass_queries(const struct device_bench_pass *pass)
{
    return &pass->queries;
}

double device_bench_pass_stopped(const struct device_bench_pass *pass)
{
    const struct bsw_scan_workspace *workspace = &pass->workspace;
    return workspace->num_pairs > 0 ? (double)workspace->num_stopped / (double)workspace->num_pairs
                                    : 0;
}
