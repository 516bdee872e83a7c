// SPDX-License-Identifier: Apache-2.0
// One query at a time over a tile, on bit planes.
#include "shard/host/scan_group.h"
#include "shard/host/shard_tiles.h"

// Finishing one row costs as much as this many rows' share of what a full scan spends on the
// dimensions beyond the stage: lines of its own to fetch.
#define FINISH_FACTOR 96

size_t bsw_planes_step(const struct bsw_scan_group *group)
{
    return bsw_tile_bundles(&group->shard->shape);
}

static void filter(const struct bsw_scan_group *group, size_t query, size_t bundle,
                   size_t num_bundles, const int32_t *dots, struct bsw_running_best *list)
{
    const struct bsw_code_arrays *arrays = &group->shard->arrays;
    const struct bsw_select_table *select = group->workspace->select;
    uint32_t first_row = (uint32_t)(bundle * BSW_BUNDLE_ROWS);
    if (group->shard->shape.has_affine) {
        list->count += select->filter_affine(
            dots, arrays->scales + first_row, bsw_tile_biases(arrays, first_row),
            group->batch->scales[query], arrays->masks + bundle, num_bundles, first_row,
            list->limit, list->items + list->count);
    } else {
        list->count += select->filter_integer(dots, arrays->masks + bundle, num_bundles, first_row,
                                              list->limit, list->items + list->count);
    }
}

static void scan_full(const struct bsw_scan_group *group, size_t query, size_t bundle,
                      size_t num_bundles, int32_t *dots, struct bsw_running_best *list)
{
    bsw_tile_dots(group->shard, group->workspace->plane_scan, group->batch, query, bundle,
                  num_bundles, 0, group->shard->shape.layout.padded_dims, dots);
    filter(group, query, bundle, num_bundles, dots, list);
}

// The stage's dimensions of all rows, the others of those that may still reach the limit; returns
// how many.
static size_t scan_staged(const struct bsw_scan_group *group, size_t q, size_t bundle,
                          size_t num_bundles, int32_t *dots, uint32_t *places,
                          struct bsw_running_best *list)
{
    const struct bsw_resident_shard *shard = group->shard;
    const struct bsw_code_arrays *arrays = &shard->arrays;
    const struct bsw_scan_workspace *workspace = group->workspace;
    const struct bsw_select_table *select = workspace->select;
    size_t query = group->first_query + q, row = bundle * BSW_BUNDLE_ROWS;
    float scale = group->batch->scales[query];
    float slack = bsw_stage_slack(&group->stage, q, bsw_tile_most(shard, bundle, num_bundles));
    bsw_tile_dots(shard, workspace->plane_scan, group->batch, query, bundle, num_bundles, 0,
                  group->stage.dims, dots);
    size_t num = select->filter_reach(dots, arrays->scales + row, bsw_tile_biases(arrays, row),
                                      arrays->tails + row, scale, group->stage.reaches[q],
                                      arrays->masks + bundle, num_bundles,
                                      bsw_float_limit(list->limit) - slack, places);
    if (num == 0) return 0;
    bsw_tile_add_rows(shard, workspace->plane_scan, group->batch, query, bundle, group->stage.dims,
                      places, num, dots);
    list->count +=
        select->filter_places(dots, arrays->scales + row, bsw_tile_biases(arrays, row), scale,
                              places, num, (uint32_t)row, list->limit, list->items + list->count);
    return num;
}

static int is_too_much(const struct bsw_scan_group *group, uint64_t went_on, uint64_t pairs)
{
    return !group->is_staged_always && went_on * FINISH_FACTOR > pairs;
}

void bsw_scan_planes(const struct bsw_scan_group *group, size_t thread, struct bsw_scan_run run)
{
    struct bsw_running_best *lists = group->lists + thread * group->num_queries;
    uint64_t *scratch = group->scratch + thread * 4 * group->capacity;
    int32_t *dots = group->dots + thread * BSW_TILE_ROWS;
    uint32_t *places = group->places + thread * BSW_TILE_ROWS;
    unsigned resting = 0;
    for (size_t bundle = run.first; bundle < run.last; bundle += run.advance) {
        size_t count = run.last - bundle < run.step ? run.last - bundle : run.step;
        uint64_t went_on = 0, pairs = 0;
        int is_staged = bsw_stage_is_due(group, &resting);
        for (size_t q = 0; q < group->num_queries; q++) {
            struct bsw_running_best *list = &lists[q];
            if (list->count + count * BSW_BUNDLE_ROWS > group->capacity)
                bsw_running_best_cut(list, group->workspace->select, scratch);
            if (list->is_full) continue;
            if (is_staged) {
                went_on += scan_staged(group, q, bundle, count, dots, places, list);
                pairs += count * BSW_BUNDLE_ROWS;
            } else {
                scan_full(group, group->first_query + q, bundle, count, dots, list);
            }
        }
        group->stopped[thread] += pairs - went_on;
        if (is_too_much(group, went_on, pairs)) resting = BSW_STAGE_REST_TILES;
    }
}
