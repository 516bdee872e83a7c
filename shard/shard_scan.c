#include "shard/shard_scan.h"

#include <omp.h>
#include <string.h>

#include "common/clock.h"
#include "common/result_order.h"
#include "shard/running_best.h"

// 2048 rows: their integers are 8 KiB; fewer where codes are wide, so that a tile's codes stay in
// the second cache.
#define TILE_BUNDLES    64
#define TILE_CODE_BYTES ((size_t)512 << 10)

void bsw_scan_workspace_init(struct bsw_scan_workspace *workspace, enum bsw_cpu_level level,
                             int num_threads)
{
    *workspace = (struct bsw_scan_workspace){.plane_scan = bsw_plane_scan_table_get(level),
                                             .select = bsw_select_table_get(level),
                                             .merge = bsw_merge_table_get(level),
                                             .refine = bsw_refine_table_get(level),
                                             .num_threads = num_threads,
                                             .budget_bytes = BSW_SCAN_BUDGET_BYTES};
}

void bsw_scan_workspace_deinit(struct bsw_scan_workspace *workspace)
{
    bsw_buffer_deinit(&workspace->buffers);
    bsw_buffer_deinit(&workspace->dots);
    bsw_buffer_deinit(&workspace->counts);
    bsw_buffer_deinit(&workspace->scratch);
    bsw_buffer_deinit(&workspace->offsets);
    bsw_buffer_deinit(&workspace->queries);
}

void bsw_candidate_lists_deinit(struct bsw_candidate_lists *lists)
{
    bsw_buffer_deinit(&lists->items);
    bsw_buffer_deinit(&lists->counts);
}

static size_t tile_bundles(const struct bsw_shard_shape *shape)
{
    size_t bundles = TILE_CODE_BYTES / shape->bundle_bytes;
    return bundles < 1 ? 1 : bundles > TILE_BUNDLES ? TILE_BUNDLES : bundles;
}

static void tile_dots(const struct bsw_resident_shard *shard,
                      const struct bsw_scan_workspace *workspace,
                      const struct bsw_query_batch *batch, size_t query, size_t bundle,
                      size_t num_bundles, int32_t *dots)
{
    const uint32_t *words = batch->words + query * batch->query_words;
    const struct bsw_code_layout *layout = &shard->shape.layout;
    for (uint32_t s = 0; s < layout->num_segments; s++) {
        const struct bsw_segment *segment = &layout->segments[s];
        workspace->plane_scan->dots(
            segment, shard->arrays.planes[s] + bundle * bsw_segment_bundle_words(segment),
            num_bundles, words, batch->query_bits, s > 0, dots);
        words += (size_t)segment->words * batch->query_bits;
    }
}

// ---- threshold ----

// A group of queries whose lists fit the budget together.
struct scan_group {
    const struct bsw_resident_shard *shard;
    const struct bsw_query_batch *batch;
    struct bsw_scan_workspace *workspace;
    size_t first_query, num_queries; // in the batch
    size_t keep, capacity;
    struct bsw_running_best *lists; // [threads][num_queries]
    uint64_t *scratch;              // [threads][4 * capacity]
    int32_t *dots;                  // [threads][TILE_BUNDLES * 32]
};

static void scan_tile(const struct scan_group *group, size_t query, size_t bundle,
                      size_t num_bundles, int32_t *dots, struct bsw_running_best *list,
                      uint64_t *scratch)
{
    const struct bsw_code_arrays *arrays = &group->shard->arrays;
    const struct bsw_select_table *select = group->workspace->select;
    uint32_t first_row = (uint32_t)(bundle * BSW_BUNDLE_ROWS);
    if (list->count + num_bundles * BSW_BUNDLE_ROWS > group->capacity)
        bsw_running_best_cut(list, select, scratch);
    if (list->is_full) return;
    tile_dots(group->shard, group->workspace, group->batch, query, bundle, num_bundles, dots);
    if (group->shard->shape.has_affine) {
        list->count +=
            select->filter_affine(dots, arrays->scales + first_row, arrays->biases + first_row,
                                  group->batch->scales[query], arrays->masks + bundle, num_bundles,
                                  first_row, list->limit, list->items + list->count);
    } else {
        list->count += select->filter_integer(dots, arrays->masks + bundle, num_bundles, first_row,
                                              list->limit, list->items + list->count);
    }
}

static void scan_part(const struct scan_group *group, size_t thread)
{
    size_t first, last, step = tile_bundles(&group->shard->shape),
                        threads = (size_t)group->workspace->num_threads;
    struct bsw_running_best *lists = group->lists + thread * group->num_queries;
    uint64_t *scratch = group->scratch + thread * 4 * group->capacity;
    int32_t *dots = group->dots + thread * TILE_BUNDLES * BSW_BUNDLE_ROWS;
    bsw_resident_shard_part(group->shard, thread, threads, &first, &last);
    for (size_t bundle = first; bundle < last; bundle += step) {
        size_t count = last - bundle < step ? last - bundle : step;
        for (size_t q = 0; q < group->num_queries; q++) {
            scan_tile(group, group->first_query + q, bundle, count, dots, &lists[q], scratch);
        }
    }
}

// The best of all threads' lists, sorted, to the output.
static void merge_query(const struct scan_group *group, size_t query, size_t thread, uint64_t *out,
                        size_t *out_count)
{
    const struct bsw_select_table *select = group->workspace->select;
    uint64_t *all = group->scratch + thread * 4 * group->capacity,
             *scratch = all + 2 * group->capacity;
    size_t total = 0;
    for (size_t t = 0; t < (size_t)group->workspace->num_threads; t++) {
        const struct bsw_running_best *list = &group->lists[t * group->num_queries + query];
        memcpy(all + total, list->items, list->count * sizeof *all);
        total = select->keep_best(all, total + list->count, group->keep, scratch);
    }
    group->workspace->merge->sort_candidates(all, total, scratch);
    memcpy(out, all, total * sizeof *out);
    *out_count = total;
}

static enum bsw_status plan_group(struct scan_group *group, size_t num_queries,
                                  struct bsw_error *err)
{
    struct bsw_scan_workspace *workspace = group->workspace;
    size_t threads = (size_t)workspace->num_threads, bytes;
    group->capacity = bsw_running_best_capacity(group->keep, TILE_BUNDLES * BSW_BUNDLE_ROWS);
    if (!bsw_multiply_size(threads * group->capacity, sizeof(uint64_t), &bytes)) {
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "%zu candidates a query are too many",
                        group->keep);
    }
    size_t fit = workspace->budget_bytes / bytes;
    group->num_queries = fit < 1 ? 1 : fit < num_queries ? fit : num_queries;
    size_t list_bytes = threads * group->num_queries * sizeof(struct bsw_running_best);
    BSW_TRY(bsw_buffer_reserve(&workspace->offsets, list_bytes, err));
    BSW_TRY(bsw_buffer_reserve(&workspace->buffers, group->num_queries * bytes, err));
    BSW_TRY(bsw_buffer_reserve(&workspace->scratch, 4 * bytes, err));
    BSW_TRY(bsw_buffer_reserve(&workspace->dots,
                               threads * TILE_BUNDLES * BSW_BUNDLE_ROWS * sizeof(int32_t), err));
    group->lists = (struct bsw_running_best *)(void *)workspace->offsets.data;
    group->scratch = (uint64_t *)(void *)workspace->scratch.data;
    group->dots = (int32_t *)(void *)workspace->dots.data;
    return BSW_OK;
}

static void reset_lists(struct scan_group *group, const uint32_t *limits)
{
    uint64_t *items = (uint64_t *)(void *)group->workspace->buffers.data;
    size_t num_lists = (size_t)group->workspace->num_threads * group->num_queries;
    for (size_t i = 0; i < num_lists; i++, items += group->capacity) {
        bsw_running_best_init(&group->lists[i], items, group->capacity, group->keep);
        if (limits) group->lists[i].limit = limits[i % group->num_queries];
    }
}

enum bsw_status bsw_shard_scan(const struct bsw_resident_shard *shard,
                               const struct bsw_query_batch *batch, size_t first_query,
                               size_t num_queries, const uint32_t *limits, size_t keep,
                               struct bsw_scan_workspace *workspace,
                               struct bsw_candidate_lists *out, struct bsw_error *err)
{
    double started = bsw_clock_seconds();
    if (keep > shard->shape.num_rows) keep = (size_t)shard->shape.num_rows;
    struct scan_group group = {
        .shard = shard, .batch = batch, .workspace = workspace, .keep = keep};
    size_t items_bytes;
    if (!bsw_multiply_size(num_queries * sizeof(uint64_t), keep, &items_bytes)) {
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "%zu candidates a query are too many", keep);
    }
    out->num_queries = num_queries;
    out->keep = keep;
    BSW_TRY(bsw_buffer_reserve(&out->items, items_bytes, err));
    BSW_TRY(bsw_buffer_reserve(&out->counts, num_queries * sizeof(size_t), err));
    BSW_TRY(plan_group(&group, num_queries, err));
    uint64_t *items = (uint64_t *)(void *)out->items.data;
    size_t *counts = (size_t *)(void *)out->counts.data, most = group.num_queries;
    for (size_t done = 0; done < num_queries; done += group.num_queries) {
        group.first_query = first_query + done;
        group.num_queries = num_queries - done < most ? num_queries - done : most;
        reset_lists(&group, limits ? limits + done : NULL);
#pragma omp parallel num_threads(workspace->num_threads)
        {
            size_t threads = (size_t)omp_get_num_threads(), thread = (size_t)omp_get_thread_num();
            // Parts are cut for num_threads; a runtime that gives fewer still does them all.
            for (size_t part = thread; part < (size_t)workspace->num_threads; part += threads)
                scan_part(&group, part);
#pragma omp barrier
            for (size_t q = thread; q < group.num_queries; q += threads) {
                merge_query(&group, q, thread, items + (done + q) * keep, counts + done + q);
            }
        }
        workspace->scanned_bytes += shard->scan_bytes;
    }
    workspace->scan_seconds += bsw_clock_seconds() - started;
    return BSW_OK;
}

// ---- histogram ----

static enum bsw_status plan_histogram(size_t num_bins, size_t num_queries,
                                      struct bsw_scan_workspace *workspace, size_t *group_queries,
                                      struct bsw_error *err)
{
    size_t threads = (size_t)workspace->num_threads, bytes = num_bins * threads * sizeof(uint64_t);
    if (bytes > BSW_HISTOGRAM_BUDGET_BYTES) {
        return bsw_fail(err, BSW_ERROR_TOO_LARGE,
                        "histogram selection needs %zu bins x %zu threads x 8 bytes = %zu bytes a "
                        "query, %zu are "
                        "allowed: fewer bits or --select threshold",
                        num_bins, threads, bytes, BSW_HISTOGRAM_BUDGET_BYTES);
    }
    size_t fit = workspace->budget_bytes / bytes;
    *group_queries = fit < 1 ? 1 : fit < num_queries ? fit : num_queries;
    BSW_TRY(bsw_buffer_reserve(&workspace->counts, *group_queries * bytes, err));
    return bsw_buffer_reserve(&workspace->dots,
                              threads * TILE_BUNDLES * BSW_BUNDLE_ROWS * sizeof(int32_t), err);
}

static void count_part(const struct bsw_resident_shard *shard, const struct bsw_query_batch *batch,
                       size_t first_query, size_t num_queries, size_t num_bins,
                       struct bsw_scan_workspace *workspace, size_t thread)
{
    size_t first, last, step = tile_bundles(&shard->shape);
    int32_t *dots =
        (int32_t *)(void *)workspace->dots.data + thread * TILE_BUNDLES * BSW_BUNDLE_ROWS;
    uint64_t *counts = (uint64_t *)(void *)workspace->counts.data + thread * num_queries * num_bins;
    int32_t limit = (int32_t)bsw_layout_dot_limit(&shard->shape.layout, batch->query_bits);
    memset(counts, 0, num_queries * num_bins * sizeof *counts);
    bsw_resident_shard_part(shard, thread, (size_t)workspace->num_threads, &first, &last);
    for (size_t bundle = first; bundle < last; bundle += step) {
        size_t count = last - bundle < step ? last - bundle : step;
        for (size_t q = 0; q < num_queries; q++) {
            tile_dots(shard, workspace, batch, first_query + q, bundle, count, dots);
            workspace->select->histogram(dots, shard->arrays.masks + bundle, count, limit,
                                         counts + q * num_bins);
        }
    }
}

// Adds the threads' counts of a query into the first thread's and hands out the part that matters.
static enum bsw_status emit_query(struct bsw_scan_workspace *workspace, size_t query, size_t place,
                                  size_t num_queries, size_t num_bins, uint64_t k,
                                  bsw_histogram_fn emit, void *context, struct bsw_error *err)
{
    uint64_t *counts = (uint64_t *)(void *)workspace->counts.data + place * num_bins;
    for (size_t t = 1; t < (size_t)workspace->num_threads; t++) {
        const uint64_t *other = counts + t * num_queries * num_bins;
        for (size_t b = 0; b < num_bins; b++) counts[b] += other[b];
    }
    size_t first = 0, last;
    while (first < num_bins && counts[first] == 0) first++;
    uint64_t sum = 0;
    for (last = first; last < num_bins && sum < k; last++) sum += counts[last];
    return emit(context, query, (uint32_t)first, counts + first, (uint32_t)(last - first), err);
}

enum bsw_status bsw_shard_histogram(const struct bsw_resident_shard *shard,
                                    const struct bsw_query_batch *batch, size_t first_query,
                                    size_t num_queries, uint64_t k,
                                    struct bsw_scan_workspace *workspace, bsw_histogram_fn emit,
                                    void *context, struct bsw_error *err)
{
    double started = bsw_clock_seconds();
    size_t num_bins = (size_t)bsw_layout_dot_limit(&shard->shape.layout, batch->query_bits) + 1,
           most = 1;
    BSW_TRY(plan_histogram(num_bins, num_queries, workspace, &most, err));
    for (size_t done = 0; done < num_queries; done += most) {
        size_t count = num_queries - done < most ? num_queries - done : most;
#pragma omp parallel for schedule(static) num_threads(workspace->num_threads)
        for (int t = 0; t < workspace->num_threads; t++) {
            count_part(shard, batch, first_query + done, count, num_bins, workspace, (size_t)t);
        }
        for (size_t q = 0; q < count; q++) {
            BSW_TRY(emit_query(workspace, done + q, q, count, num_bins, k, emit, context, err));
        }
        workspace->scanned_bytes += shard->scan_bytes;
    }
    workspace->scan_seconds += bsw_clock_seconds() - started;
    return BSW_OK;
}
