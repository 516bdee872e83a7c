// SPDX-License-Identifier: Apache-2.0
// A batch of queries over a tile, on int8 units.
#include "shard/host/scan_group.h"
#include "shard/host/shard_tiles.h"

// Dimensions whose bytes all queries of a group go over: they are to stay in the first cache.
static uint32_t hot_dims(const struct bsw_scan_group *group)
{
    return group->is_staged ? group->stage.dims : group->shard->shape.layout.padded_dims;
}

size_t bsw_matrix_step(const struct bsw_scan_group *group)
{
    return bsw_matrix_tile_bundles(hot_dims(group), group->tuning.tile_kib);
}

static void lend_list(const struct bsw_running_best *list, struct bsw_matrix_output *output)
{
    // No row has the highest score: it is no number as a float and out of range as an integer.
    *output = (struct bsw_matrix_output){list->items, list->count,
                                         list->is_full ? UINT32_MAX : list->limit};
}

// Room for a tile in every output.
static void make_room(const struct bsw_scan_group *group, size_t rows,
                      struct bsw_running_best *lists, struct bsw_matrix_output *outputs,
                      uint64_t *scratch)
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

// Whether so much went on that a full scan had been cheaper.
static int is_too_much(const struct bsw_scan_group *group, const struct bsw_stage_counts *counts,
                       size_t num_bundles)
{
    float dims = (float)group->shard->shape.layout.padded_dims, stage = (float)group->stage.dims;
    float pairs = 2.0f * (float)num_bundles * (float)group->num_queries;
    float cost = stage + group->tuning.stage_overhead +
                 (float)counts->halves / pairs * group->tuning.finish_factor * (dims - stage);
    return !group->is_staged_always && cost > dims;
}

static struct bsw_stage_counts scan_staged(const struct bsw_scan_group *group, size_t bundle,
                                           const struct bsw_matrix_tile *tile, float *slacks,
                                           struct bsw_matrix_output *outputs)
{
    struct bsw_stage_counts counts = {0, 0};
    struct bsw_bundle_most most = bsw_tile_most(group->shard, bundle, tile->num_bundles);
    for (size_t q = 0; q < group->num_queries; q++)
        slacks[q] = bsw_stage_slack(&group->stage, q, most);
    const struct bsw_matrix_stage stage = {.dims = group->stage.dims,
                                           .constants = group->stage.constants,
                                           .reaches = group->stage.reaches,
                                           .slacks = slacks};
    group->workspace->matrix_scan->scan_staged(tile, &stage, &group->matrix, outputs, &counts);
    return counts;
}

void bsw_scan_matrix(const struct bsw_scan_group *group, size_t thread, struct bsw_scan_run run)
{
    struct bsw_running_best *lists = group->lists + thread * group->num_queries;
    struct bsw_matrix_output *outputs = group->outputs + thread * group->num_queries;
    uint64_t *scratch = group->scratch + thread * 4 * group->capacity;
    unsigned resting = 0;
    for (size_t q = 0; q < group->num_queries; q++) lend_list(&lists[q], &outputs[q]);
    for (size_t bundle = run.first; bundle < run.last; bundle += run.advance) {
        size_t count = run.last - bundle < run.step ? run.last - bundle : run.step;
        const struct bsw_matrix_tile tile =
            bsw_matrix_tile_at(group->shard, group->workspace->matrix_scan, bundle, count,
                               group->tiles + thread * group->tile_bytes, NULL);
        make_room(group, count * BSW_BUNDLE_ROWS, lists, outputs, scratch);
        if (bsw_stage_is_due(group, &resting)) {
            struct bsw_stage_counts counts = scan_staged(
                group, bundle, &tile, group->slacks + thread * group->num_queries, outputs);
            group->stopped[thread] += count * BSW_BUNDLE_ROWS * group->num_queries - counts.rows;
            if (is_too_much(group, &counts, count)) resting = BSW_STAGE_REST_TILES;
        } else {
            group->workspace->matrix_scan->scan(&tile, &group->matrix, outputs);
        }
    }
    for (size_t q = 0; q < group->num_queries; q++) lists[q].count = outputs[q].count;
}
