// SPDX-License-Identifier: Apache-2.0
#include "shard/host/list_scan.h"

#include "common/base/clock.h"
#include "kernels/tuning/scan_tuning.h"
#include "shard/host/host_engine.h"
#include "shard/host/shard_tiles.h"

#define MOST_TILE_BUNDLES 16 // lists are short
#define FEW_LISTS         8  // of a query, which hold most of what it finds
_Static_assert(MOST_TILE_BUNDLES <= BSW_RADIUS_BUNDLES, "a pass has a tile at least");
_Static_assert(FEW_LISTS <= BSW_COARSE_RANK, "they are in order");

// dims: padded, that keys are made of.
static struct bsw_host_way way_of(const struct bsw_resident_shard *shard, uint32_t dims,
                                  enum bsw_cpu_level level)
{
    const struct bsw_scan_tuning tuning = bsw_scan_tuning_of(level, &shard->shape.layout);
    size_t tile = bsw_matrix_tile_bundles(dims, tuning.tile_kib);
    // In short lists planes lose from half as many queries on; other levels were not measured.
    uint32_t from = tuning.matrix_from_queries;
    if (tile > MOST_TILE_BUNDLES) tile = MOST_TILE_BUNDLES;
    return (struct bsw_host_way){.matrix_bundles = tile,
                                 .plane_bundles =
                                     shard->shape.has_tables ? MOST_TILE_BUNDLES : tile,
                                 .matrix_from = level == BSW_CPU_AVX2 ? from - from / 2 : from,
                                 .tuning = tuning};
}

// What a scan reads of a bundle.
static size_t bundle_bytes(const struct bsw_resident_shard *shard)
{
    struct bsw_shard_shape one = shard->shape;
    one.num_places = BSW_BUNDLE_ROWS;
    const struct bsw_resident_parts parts = bsw_resident_parts_of(&one, 0);
    return bsw_resident_scan_bytes(&parts);
}

static enum bsw_status scan_chosen(struct bsw_host_scan *scan, const struct bsw_list_choice *choice,
                                   struct bsw_list_groups *groups, uint64_t *num_list_pairs,
                                   struct bsw_error *err)
{
    const struct bsw_list_order *order = &scan->shard.order;
    struct bsw_work *work = &scan->scratch->work;
    // Queries enough for every list: then a further step costs little more than it saves.
    int has_many = scan->queries->num_queries * FEW_LISTS >= 4 * (size_t)order->num_lists;
    const size_t ends[] = {has_many ? 2 : 1, has_many ? FEW_LISTS : 1, SIZE_MAX};
    for (size_t step = 0, from = 0; step < 3; from = ends[step++]) {
        if (ends[step] == from) continue;
        if (from > 0) bsw_host_scan_raise(scan, NULL);
        BSW_TRY(bsw_list_groups_make(choice, order->num_lists, from, ends[step], groups, err));
        BSW_TRY(bsw_work_make_lists(order, groups, BSW_HOST_MOST_SLOTS, work, err));
        BSW_TRY(bsw_host_scan_run(scan, work, err));
        *num_list_pairs += groups->first[order->num_lists];
    }
    return BSW_OK;
}

static enum bsw_status scan_all(struct bsw_host_scan *scan, struct bsw_list_groups *groups,
                                uint64_t *num_list_pairs, struct bsw_error *err)
{
    const struct bsw_list_order *order = &scan->shard.order;
    struct bsw_work *work = &scan->scratch->work;
    size_t num = scan->queries->num_queries;
    BSW_TRY(bsw_list_groups_make_same(num, order->num_lists, groups, err));
    BSW_TRY(bsw_work_make_lists(order, groups, BSW_HOST_MOST_SLOTS, work, err));
    BSW_TRY(bsw_host_scan_run(scan, work, err));
    *num_list_pairs += (uint64_t)num * order->num_lists;
    return BSW_OK;
}

enum bsw_status bsw_list_scan(const struct bsw_resident_shard *shard,
                              const struct bsw_list_choice *choice,
                              const struct bsw_query_range *queries, uint32_t scan_dims,
                              const uint32_t *limits, size_t keep, struct bsw_list_groups *groups,
                              struct bsw_scan_workspace *workspace, uint64_t *num_list_pairs,
                              struct bsw_candidate_lists *out, struct bsw_error *err)
{
    double started = bsw_clock_seconds();
    struct bsw_resident_shard first = *shard; // of its dimensions
    if (scan_dims > 0) bsw_code_layout_first(&shard->shape.layout, scan_dims, &first.shape.layout);
    const struct bsw_host_way way = way_of(shard, first.shape.layout.padded_dims, workspace->level);
    struct bsw_host_scan scan;
    if (keep > shard->shape.num_rows) keep = (size_t)shard->shape.num_rows;
    keep = bsw_row_mask_keep(shard->mask, keep);
    BSW_TRY(bsw_candidate_lists_reserve(out, queries->num_queries, keep, err));
    BSW_TRY(bsw_host_scan_open(&first, queries, &way, workspace, &workspace->host, &scan, err));
    BSW_TRY(bsw_host_scan_begin(&scan, keep, limits, err));
    BSW_TRY(choice ? scan_chosen(&scan, choice, groups, num_list_pairs, err)
                   : scan_all(&scan, groups, num_list_pairs, err));
    bsw_host_scan_finish(&scan, NULL, queries->num_queries, (uint64_t *)(void *)out->items.data,
                         out->keep, (size_t *)(void *)out->counts.data);
    workspace->num_pairs += scan.num_pairs;
    workspace->scanned_bytes += scan.num_bundles * bundle_bytes(&first);
    workspace->used = shard->shape.has_tables ? BSW_SCAN_TABLES : BSW_SCAN_MATRIX;
    workspace->scan_seconds += bsw_clock_seconds() - started;
    return BSW_OK;
}
