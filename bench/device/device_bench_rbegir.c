// SPDX-License-Identifier: Apache-2.0
// rbeGIR's case as its paper has it (Shan et al., RBE): 64 dimensions of 2 bits with a scale a row,
// which is what 1 / norm becomes, one query, the queues of Algorithm 1 (256 threads a block, 256
// rows a thread), rows in four parts, and a merge of what the parts keep. The paper's parts lie on
// four GPUs; here one GPU takes one after another, and their candidates are sorted as the program
// does it between devices. Biases are read, too, as the program's kernels have it; the paper has
// none.
#include <string.h>

#include "bench/device/device_bench.h"
#include "common/base/memory.h"
#include "common/codes/result_order.h"
#include "kernels/gpu_select/gpu_select.h"
#include "shard/device/device_kept.h"
#include "shard/device/device_shard.h"

#define MOST_PARTS      4
#define CHECKED_THREADS 16

struct rbegir {
    struct device_bench *bench;
    const struct device_bench_shape *shape;
    uint32_t num_parts, num_queries;
    uint64_t first_rows[MOST_PARTS];
    struct bsw_shard_shape shapes[MOST_PARTS];
    struct bsw_shard_range spans[MOST_PARTS];
    struct bsw_resident_shard hosts[MOST_PARTS];
    struct bsw_device_shard shards[MOST_PARTS];
    struct device_bench_queries queries;
    struct bsw_device_engine engine;
    struct bsw_device_kept kept;
    struct bsw_scan_workspace workspace;
    struct bsw_candidate_lists found[MOST_PARTS]; // the best of all, part by part
    // What the merge takes, on LINK.
    struct bsw_device_buffer memory;
    uint64_t *d_offsets, *d_first_rows, *offsets;
    uint32_t *d_counts, *counts;
    unsigned char *scratch;
    struct bsw_device_lists keys;
    struct bsw_cut *d_cuts, *cuts;
};

// ---- parts ----

static void cut_parts(struct rbegir *r)
{
    const struct bsw_device_codes all =
        device_bench_codes_first(r->bench, r->bench->codes.num_rows, 1);
    uint32_t first = 0;
    for (uint32_t p = 0; p < r->num_parts; p++) {
        uint32_t last = (uint32_t)((uint64_t)all.num_bundles * (p + 1) / r->num_parts);
        uint64_t row = (uint64_t)first * BSW_BUNDLE_ROWS, end = (uint64_t)last * BSW_BUNDLE_ROWS;
        struct bsw_device_codes *codes = &r->shards[p].resident;
        if (p + 1 == r->num_parts) end = r->bench->codes.num_rows;
        *codes = all;
        codes->num_bundles = last - first;
        for (uint32_t s = 0; s < all.layout.num_segments; s++)
            codes->planes[s] += first * bsw_segment_bundle_words(&all.layout.segments[s]);
        codes->scales += row;
        codes->biases += row;
        codes->masks += first;
        r->shapes[p] = (struct bsw_shard_shape){.layout = all.layout,
                                                .has_affine = 1,
                                                .has_biases = 1,
                                                .num_rows = end - row,
                                                .num_places = end - row,
                                                .first_row = row};
        r->spans[p] = (struct bsw_shard_range){p, 1};
        r->hosts[p] =
            (struct bsw_resident_shard){.shape = r->shapes[p], .num_bundles = codes->num_bundles};
        r->shards[p].host = &r->hosts[p];
        r->shards[p].num_bundles = codes->num_bundles;
        r->first_rows[p] = row;
        first = last;
    }
}

static enum bsw_status open_engine(struct rbegir *r, struct bsw_error *err)
{
    const struct device_bench_shape *shape = r->shape;
    const struct bsw_device_needs needs = {.shapes = r->shapes,
                                           .num_shards = r->num_parts,
                                           .spans = r->spans,
                                           .num_spans = r->num_parts,
                                           .query_bits = shape->query_bits,
                                           .max_queries = r->num_queries,
                                           .keep = shape->keep,
                                           .queue = shape->queue};
    const struct bsw_device_kept_needs kept = {.shapes = r->shapes,
                                               .spans = r->spans,
                                               .num_spans = r->num_parts,
                                               .max_queries = r->num_queries,
                                               .keep = shape->keep};
    BSW_TRY(bsw_device_kept_open(r->bench->device, &kept, &r->kept, err));
    return bsw_device_engine_open(r->bench->device, &needs, &r->engine, err);
}

static enum bsw_status open_merge(struct rbegir *r, struct bsw_error *err)
{
    size_t num = r->num_queries, lists = num * r->num_parts;
    uint32_t capacity = (uint32_t)(r->num_parts * r->shape->keep);
    const struct device_bench_array arrays[] = {
        {&r->d_offsets, lists * sizeof *r->d_offsets},
        {&r->d_first_rows, r->num_parts * sizeof *r->d_first_rows},
        {&r->d_counts, lists * sizeof *r->d_counts},
        {&r->d_cuts, num * sizeof *r->d_cuts},
        {&r->keys.items, num * capacity * sizeof *r->keys.items},
        {&r->keys.counts, num * sizeof *r->keys.counts},
        {&r->scratch, bsw_device_sort_bytes((uint32_t)num, capacity)}};
    BSW_TRY(
        device_bench_allocate(r->bench, arrays, sizeof arrays / sizeof arrays[0], &r->memory, err));
    r->keys.num_queries = r->num_queries;
    r->keys.capacity = capacity;
    BSW_TRY(bsw_allocate(&r->offsets, lists, sizeof *r->offsets, "places", err));
    BSW_TRY(bsw_allocate(&r->counts, lists, sizeof *r->counts, "counts", err));
    BSW_TRY(bsw_allocate(&r->cuts, num, sizeof *r->cuts, "cuts", err));
    BSW_TRY(bsw_device_upload(r->bench->device, BSW_QUEUE_LINK, r->d_first_rows, r->first_rows,
                              r->num_parts * sizeof *r->first_rows, err));
    return bsw_device_wait(r->bench->device, BSW_QUEUE_LINK, "first rows", err);
}

static void close_rbegir(struct rbegir *r)
{
    bsw_device *device = r->bench->device;
    bsw_device_engine_close(&r->engine);
    bsw_device_kept_close(&r->kept);
    bsw_device_free(device, &r->memory);
    bsw_scan_workspace_deinit(&r->workspace);
    for (uint32_t p = 0; p < r->num_parts; p++) bsw_candidate_lists_deinit(&r->found[p]);
    device_bench_queries_free(&r->queries);
    bsw_free(&r->offsets);
    bsw_free(&r->counts);
    bsw_free(&r->cuts);
}

// ---- what is timed ----

static enum bsw_status scan_parts(void *context, struct bsw_error *err)
{
    struct rbegir *r = context;
    for (uint32_t p = 0; p < r->num_parts; p++) {
        const struct bsw_device_shard *shard = &r->shards[p];
        const struct bsw_device_task task = {.maker = &bsw_device_whole,
                                             .span = {&shard, 1},
                                             .queries = {&r->queries.batch, 0, r->num_queries},
                                             .keep = r->shape->keep,
                                             .workspace = &r->workspace,
                                             .kept = &r->kept.spans[p]};
        BSW_TRY(bsw_device_scan(&r->engine, &task, &r->found[p], NULL, err));
    }
    return BSW_OK;
}

static enum bsw_status send_tables(struct rbegir *r, struct bsw_error *err)
{
    const struct bsw_device_kept_span *spans = r->kept.spans;
    bsw_device *device = r->bench->device;
    size_t lists = (size_t)r->num_parts * r->num_queries;
    for (uint32_t p = 0; p < r->num_parts; p++) {
        for (uint32_t q = 0; q < r->num_queries; q++) {
            size_t at = (size_t)p * r->num_queries + q;
            r->offsets[at] = (uint64_t)(spans[p].items - spans[0].items) + spans[p].offsets[q];
            r->counts[at] = spans[p].counts[q];
        }
    }
    BSW_TRY(bsw_device_upload(device, BSW_QUEUE_LINK, r->d_offsets, r->offsets,
                              lists * sizeof *r->offsets, err));
    return bsw_device_upload(device, BSW_QUEUE_LINK, r->d_counts, r->counts,
                             lists * sizeof *r->counts, err);
}

static enum bsw_status find_cuts(struct rbegir *r, struct bsw_error *err)
{
    bsw_device *device = r->bench->device;
    const struct bsw_device_merge merge = {
        .lists = {r->kept.spans[0].items, r->d_offsets, r->d_counts, r->num_parts * r->num_queries},
        .first_rows = r->d_first_rows,
        .num_queries = r->num_queries,
        .num_shards = r->num_parts,
        .keep = r->shape->keep};
    bsw_stream stream = bsw_device_stream(device, BSW_QUEUE_LINK);
    int code = bsw_device_merge_keys(&merge, &r->keys, stream);
    if (code == 0) code = bsw_device_sort(&r->keys, r->scratch, stream);
    if (code == 0) code = bsw_device_merge_cuts(&merge, &r->keys, r->d_cuts, stream);
    BSW_TRY(bsw_device_launched(device, code, "merge", err));
    BSW_TRY(bsw_device_download(device, BSW_QUEUE_LINK, r->cuts, r->d_cuts,
                                r->num_queries * sizeof *r->cuts, err));
    return bsw_device_wait(device, BSW_QUEUE_LINK, "cuts", err);
}

static enum bsw_status run_all(void *context, struct bsw_error *err)
{
    struct rbegir *r = context;
    BSW_TRY(scan_parts(r, err));
    BSW_TRY(send_tables(r, err));
    BSW_TRY(find_cuts(r, err));
    for (uint32_t p = 0; p < r->num_parts; p++)
        BSW_TRY(bsw_device_kept_take(&r->kept.spans[p], &r->engine.transfer, r->cuts, &r->found[p],
                                     err));
    return BSW_OK;
}

// ---- what must come out ----

static enum bsw_status score_of(const struct rbegir *r, uint32_t part, uint32_t row, uint64_t *item,
                                struct bsw_error *err)
{
    uint32_t score;
    BSW_TRY(device_bench_score(&r->bench->codes.codes.layout, 1, &r->queries, 0,
                               (uint32_t)r->first_rows[part] + row, &score, err));
    *item = bsw_candidate_pack(score, row);
    return BSW_OK;
}

static int is_found(const struct rbegir *r, uint32_t part, uint64_t item)
{
    size_t count;
    const uint64_t *items = bsw_candidate_list(&r->found[part], 0, &count);
    for (size_t i = 0; i < count; i++)
        if (items[i] == item) return 1;
    return 0;
}

// The best row of a thread is there if it is within the cut. The queue has one place.
static enum bsw_status check_thread(const struct rbegir *r, uint32_t part, uint64_t thread,
                                    struct bsw_error *err)
{
    uint64_t items = r->shape->queue.items, best = 0, item,
             first = thread / BSW_QUEUE_THREADS * BSW_QUEUE_THREADS * items +
                     thread % BSW_QUEUE_THREADS;
    for (uint64_t i = 0; i < items; i++) {
        uint64_t row = first + i * BSW_QUEUE_THREADS;
        if (row >= r->shapes[part].num_rows) break;
        BSW_TRY(score_of(r, part, (uint32_t)row, &item, err));
        best = item > best ? item : best;
    }
    if (best == 0 || !bsw_is_within_cut(best, r->first_rows[part], &r->cuts[0]) ||
        is_found(r, part, best))
        return BSW_OK;
    return bsw_fail(err, BSW_ERROR_SELF_CHECK, "part %u, thread %llu: row %u is missing", part,
                    (unsigned long long)thread, bsw_candidate_row(best));
}

static enum bsw_status check_part(const struct rbegir *r, uint32_t part, size_t *total,
                                  struct bsw_error *err)
{
    uint64_t block_rows = BSW_QUEUE_THREADS * r->shape->queue.items,
             threads = (r->shapes[part].num_rows + block_rows - 1) / block_rows * BSW_QUEUE_THREADS;
    size_t count;
    const uint64_t *items = bsw_candidate_list(&r->found[part], 0, &count);
    *total += count;
    for (size_t i = 0; i < count; i++) {
        uint64_t item;
        BSW_TRY(score_of(r, part, bsw_candidate_row(items[i]), &item, err));
        if (item != items[i])
            return bsw_fail(err, BSW_ERROR_SELF_CHECK, "part %u, row %u: another score", part,
                            bsw_candidate_row(item));
    }
    for (uint64_t i = 0; i < CHECKED_THREADS; i++)
        BSW_TRY(check_thread(r, part, threads * i / CHECKED_THREADS, err));
    return BSW_OK;
}

// Checks the first query.
static enum bsw_status check(const struct rbegir *r, struct bsw_error *err)
{
    size_t total = 0, most = 0;
    for (uint32_t p = 0; p < r->num_parts; p++) {
        most += r->counts[(size_t)p * r->num_queries];
        BSW_TRY(check_part(r, p, &total, err));
    }
    size_t wanted = most < r->shape->keep ? most : r->shape->keep;
    if (total == wanted) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_SELF_CHECK, "%zu rows are left instead of %zu", total, wanted);
}

// ---- the case ----

static enum bsw_status measure(struct rbegir *r, const char *name, struct bsw_error *err)
{
    struct device_bench *bench = r->bench;
    const struct bsw_code_layout *layout = &bench->codes.codes.layout;
    struct device_times scans;
    struct device_record record = {.name = name,
                                   .rows = bench->codes.num_rows,
                                   .queries = r->num_queries,
                                   .keep = r->shape->keep,
                                   .bytes = (double)bench->codes.codes.num_bundles *
                                            (double)bsw_device_bundle_bytes(layout, 1, 0),
                                   .bytes_limit = DEVICE_LIMIT_READ,
                                   .is_checked = 1};
    bsw_scan_workspace_init(&r->workspace, BSW_CPU_REFERENCE, 1);
    r->workspace.scan = r->shape->kind;
    r->workspace.queue = r->shape->queue;
    BSW_TRY(
        device_bench_queries_make(layout, r->shape->query_bits, r->num_queries, &r->queries, err));
    BSW_TRY(open_engine(r, err));
    BSW_TRY(open_merge(r, err));
    BSW_TRY(device_bench_time(bench, bench->device, scan_parts, r, &scans, err));
    BSW_TRY(device_bench_time(bench, bench->device, run_all, r, &record.times, err));
    BSW_TRY(check(r, err));
    device_bench_report(bench, &record);
    bsw_bench_report_note(&bench->report,
                          "%s: %u parts one after another %.3f ms, one of them on each of as many "
                          "GPUs %.3f ms, merge %.3f ms",
                          name, r->num_parts, 1e3 * scans.median, 1e3 * scans.median / r->num_parts,
                          1e3 * (record.times.median - scans.median));
    return BSW_OK;
}

enum bsw_status device_bench_rbegir(struct device_bench *bench, const struct device_bench_case *c,
                                    struct bsw_error *err)
{
    struct rbegir r = {.bench = bench,
                       .shape = &c->shape,
                       .num_queries = device_bench_num_queries(bench, &c->shape)};
    BSW_TRY(device_bench_codes_make(bench, c->shape.layout, bench->settings->rows, err));
    uint32_t bundles = bench->codes.codes.num_bundles;
    r.num_parts = c->shape.num_parts < bundles ? c->shape.num_parts : bundles;
    cut_parts(&r);
    enum bsw_status status = measure(&r, c->name, err);
    close_rbegir(&r);
    return status;
}
