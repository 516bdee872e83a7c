#include "shard/shard_scan.h"

#include <omp.h>
#include <string.h>

#include "common/clock.h"
#include "common/result_order.h"
#include "kernels/scan_tuning.h"
#include "shard/running_best.h"
#include "shard/shard_tiles.h"

// A tile of the matrix scan as bytes: it stays in the first cache while all queries go over it.
#define MATRIX_TILE_BYTES ((size_t)32 << 10)

void bsw_scan_workspace_init(struct bsw_scan_workspace *workspace, enum bsw_cpu_level level,
                             int num_threads)
{
    *workspace = (struct bsw_scan_workspace){.level = level,
                                             .plane_scan = bsw_plane_scan_table_get(level),
                                             .matrix_scan = bsw_matrix_scan_table_get(level),
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
    bsw_buffer_deinit(&workspace->tiles);
    bsw_buffer_deinit(&workspace->outputs);
    bsw_buffer_deinit(&workspace->components);
    bsw_buffer_deinit(&workspace->constants);
}

void bsw_candidate_lists_deinit(struct bsw_candidate_lists *lists)
{
    bsw_buffer_deinit(&lists->items);
    bsw_buffer_deinit(&lists->counts);
}

// A group of queries whose lists fit the budget together.
struct scan_group {
    const struct bsw_resident_shard *shard;
    const struct bsw_query_batch *batch;
    struct bsw_scan_workspace *workspace;
    size_t first_query, num_queries; // in the batch
    size_t keep, capacity;
    struct bsw_running_best *lists; // [threads][num_queries]
    uint64_t *scratch;              // [threads][4 * capacity]
    int32_t *dots;                  // [threads][BSW_TILE_ROWS]; planes alone

    // matrix alone
    struct bsw_matrix_queries matrix;  // of the group
    struct bsw_matrix_output *outputs; // [threads][num_queries]
    uint8_t *tiles;                    // [threads][tile_bytes]
    size_t tile_bytes;
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
    bsw_tile_dots(group->shard, group->workspace->plane_scan, group->batch, query, bundle,
                  num_bundles, dots);
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

static void scan_planes(const struct scan_group *group, size_t thread, size_t first, size_t last)
{
    size_t step = bsw_tile_bundles(&group->shard->shape);
    struct bsw_running_best *lists = group->lists + thread * group->num_queries;
    uint64_t *scratch = group->scratch + thread * 4 * group->capacity;
    int32_t *dots = group->dots + thread * BSW_TILE_ROWS;
    for (size_t bundle = first; bundle < last; bundle += step) {
        size_t count = last - bundle < step ? last - bundle : step;
        for (size_t q = 0; q < group->num_queries; q++) {
            scan_tile(group, group->first_query + q, bundle, count, dots, &lists[q], scratch);
        }
    }
}

// ---- on int8 units ----

static size_t matrix_tile_bundles(const struct bsw_code_layout *layout)
{
    size_t bundles = MATRIX_TILE_BYTES / bsw_matrix_tile_bytes(layout->padded_dims, 1);
    return bundles < 1 ? 1 : bundles > BSW_TILE_BUNDLES ? BSW_TILE_BUNDLES : bundles;
}

static void lend_list(const struct bsw_running_best *list, struct bsw_matrix_output *output)
{
    // No row has the highest score: it is no number as a float and out of range as an integer.
    *output = (struct bsw_matrix_output){list->items, list->count,
                                         list->is_full ? UINT32_MAX : list->limit};
}

// Room for a tile in every output.
static void make_room(const struct scan_group *group, size_t rows, struct bsw_running_best *lists,
                      struct bsw_matrix_output *outputs, uint64_t *scratch)
{
    for (size_t q = 0; q < group->num_queries; q++) {
        // Also well before it is full: a higher limit saves more than the cut costs.
        if (outputs[q].count <= 2 * group->keep && outputs[q].count + rows <= group->capacity)
            continue;
        lists[q].count = outputs[q].count;
        bsw_running_best_cut(&lists[q], group->workspace->select, scratch);
        lend_list(&lists[q], &outputs[q]);
    }
}

static void scan_matrix(const struct scan_group *group, size_t thread, size_t first, size_t last)
{
    const struct bsw_matrix_scan_table *table = group->workspace->matrix_scan;
    const struct bsw_code_layout *layout = &group->shard->shape.layout;
    const struct bsw_code_arrays *arrays = &group->shard->arrays;
    struct bsw_running_best *lists = group->lists + thread * group->num_queries;
    struct bsw_matrix_output *outputs = group->outputs + thread * group->num_queries;
    uint64_t *scratch = group->scratch + thread * 4 * group->capacity;
    uint8_t *bytes = group->tiles + thread * group->tile_bytes;
    size_t step = matrix_tile_bundles(layout);
    for (size_t q = 0; q < group->num_queries; q++) lend_list(&lists[q], &outputs[q]);
    for (size_t bundle = first; bundle < last; bundle += step) {
        size_t count = last - bundle < step ? last - bundle : step, row = bundle * BSW_BUNDLE_ROWS;
        const uint32_t *planes[BSW_MAX_SEGMENTS];
        for (uint32_t s = 0; s < layout->num_segments; s++) {
            planes[s] = arrays->planes[s] + bundle * bsw_segment_bundle_words(&layout->segments[s]);
        }
        table->unpack(layout, planes, count, bytes);
        const struct bsw_matrix_tile tile = {.bytes = bytes,
                                             .num_bundles = count,
                                             .padded_dims = layout->padded_dims,
                                             .first_row = (uint32_t)row,
                                             .masks = arrays->masks + bundle,
                                             .scales = arrays->scales ? arrays->scales + row : NULL,
                                             .biases =
                                                 arrays->biases ? arrays->biases + row : NULL};
        make_room(group, count * BSW_BUNDLE_ROWS, lists, outputs, scratch);
        table->scan(&tile, &group->matrix, outputs);
    }
    for (size_t q = 0; q < group->num_queries; q++) lists[q].count = outputs[q].count;
}

static enum bsw_status plan_matrix(struct scan_group *group, struct bsw_error *err)
{
    struct bsw_scan_workspace *workspace = group->workspace;
    const struct bsw_code_layout *layout = &group->shard->shape.layout;
    size_t threads = (size_t)workspace->num_threads, queries = group->num_queries;
    size_t outputs_bytes = threads * queries * sizeof(struct bsw_matrix_output);
    group->tile_bytes = bsw_matrix_tile_bytes(layout->padded_dims, matrix_tile_bundles(layout));
    BSW_TRY(bsw_buffer_reserve(&workspace->tiles, threads * group->tile_bytes, err));
    BSW_TRY(bsw_buffer_reserve(&workspace->outputs, outputs_bytes, err));
    BSW_TRY(bsw_buffer_reserve(&workspace->components, queries * layout->padded_dims, err));
    BSW_TRY(bsw_buffer_reserve(&workspace->constants, queries * sizeof(int32_t), err));
    group->tiles = workspace->tiles.data;
    group->outputs = (struct bsw_matrix_output *)(void *)workspace->outputs.data;
    return BSW_OK;
}

static void unpack_queries(struct scan_group *group)
{
    struct bsw_scan_workspace *workspace = group->workspace;
    const struct bsw_query_batch *batch = group->batch;
    const struct bsw_code_layout *layout = &group->shard->shape.layout;
    int8_t *components = (int8_t *)workspace->components.data;
    int32_t *constants = (int32_t *)(void *)workspace->constants.data;
    for (size_t q = 0; q < group->num_queries; q++) {
        workspace->matrix_scan->unpack_query(
            layout, batch->words + (group->first_query + q) * batch->query_words, batch->query_bits,
            components + q * layout->padded_dims, &constants[q]);
    }
    group->matrix = (struct bsw_matrix_queries){.num_queries = group->num_queries,
                                                .components = components,
                                                .constants = constants,
                                                .scales = batch->scales + group->first_query};
}

// ---- both ----

static int is_matrix(const struct scan_group *group)
{
    const struct bsw_scan_workspace *workspace = group->workspace;
    if (workspace->scan != BSW_SCAN_AUTO) return workspace->scan == BSW_SCAN_MATRIX;
    return group->num_queries >=
           bsw_scan_tuning_of(workspace->level, &group->shard->shape.layout).matrix_from_queries;
}

static void scan_part(const struct scan_group *group, size_t part)
{
    size_t first, last;
    bsw_resident_shard_part(group->shard, part, (size_t)group->workspace->num_threads, &first,
                            &last);
    if (group->workspace->has_used_matrix)
        scan_matrix(group, part, first, last);
    else
        scan_planes(group, part, first, last);
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
    group->capacity = bsw_running_best_capacity(group->keep, BSW_TILE_ROWS);
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
    BSW_TRY(bsw_buffer_reserve(&workspace->dots, threads * BSW_TILE_ROWS * sizeof(int32_t), err));
    workspace->has_used_matrix = is_matrix(group);
    if (workspace->has_used_matrix) BSW_TRY(plan_matrix(group, err));
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
        if (workspace->has_used_matrix) unpack_queries(&group);
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
