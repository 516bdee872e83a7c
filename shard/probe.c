// SPDX-License-Identifier: Apache-2.0
#include "shard/probe.h"

#include <string.h>

#include "common/codes/result_order.h"
#include "shard/host/query_gather.h"
#include "shard/host/shard_scan.h"

// What a call goes through with, item by item.
struct run {
    const struct bsw_backend *backend;
    void *state;
    const struct bsw_backend_shard *shard;
    const struct bsw_probe *probe;
    const struct bsw_query_range *queries;
    struct bsw_scan_workspace *workspace;
    struct bsw_query_gather gather;
    struct bsw_query_range range; // of the item under way: queries, or gathered ones
    struct bsw_scan_part part;
};

static struct bsw_work_item item_at(const struct run *run, size_t i)
{
    if (run->probe->items) return run->probe->items[i];
    return (struct bsw_work_item){.num_bundles = run->shard->resident->num_bundles};
}

static size_t num_items(const struct bsw_probe *probe)
{
    return probe->items ? probe->num_items : 1;
}

static size_t place_of(const struct bsw_work_item *item, size_t i)
{
    return item->queries ? item->queries[i] : i;
}

static enum bsw_status check_item(const struct run *run, const struct bsw_work_item *item,
                                  struct bsw_error *err)
{
    size_t bundles = run->shard->resident->num_bundles;
    if (item->first_bundle <= bundles && item->num_bundles <= bundles - item->first_bundle)
        return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "a work item of bundles %zu to %zu: the shard has %zu",
                    item->first_bundle, item->first_bundle + item->num_bundles, bundles);
}

// The item's queries and bundles; only what is needed is copied.
static enum bsw_status begin_item(struct run *run, const struct bsw_work_item *item,
                                  struct bsw_error *err)
{
    const uint32_t *masks = run->probe->masks;
    BSW_TRY(check_item(run, item, err));
    run->part = (struct bsw_scan_part){item->first_bundle, item->num_bundles,
                                       masks ? masks + item->first_bundle : NULL};
    run->range = *run->queries;
    if (!item->queries && !item->additions) return BSW_OK;
    size_t num = item->queries ? item->num_queries : run->queries->num_queries;
    BSW_TRY(bsw_query_gather_run(run->queries->batch, run->queries->first_query, item->queries, num,
                                 &run->gather, err));
    run->gather.batch.additions = item->additions;
    run->range = (struct bsw_query_range){&run->gather.batch, 0, num};
    return BSW_OK;
}

// ---- lists ----

// The rows of both lists, which are descending, to the best `keep`, at list. more counts its rows
// from bundle first_bundle on. room: keep.
static size_t merge(uint64_t *list, size_t count, const uint64_t *more, size_t num_more,
                    size_t first_bundle, size_t keep, uint64_t *room)
{
    uint64_t before = (uint64_t)first_bundle * BSW_BUNDLE_ROWS; // rows are complemented
    size_t num = 0;
    memcpy(room, list, count * sizeof *list);
    for (size_t i = 0, j = 0; num < keep && (i < count || j < num_more); num++) {
        uint64_t other = j < num_more ? more[j] - before : 0;
        int is_first = j >= num_more || (i < count && room[i] > other);
        list[num] = is_first ? room[i] : other;
        i += (size_t)is_first;
        j += (size_t)!is_first;
    }
    return num;
}

// Of the item's queries: what is asked of them, or what those found that are kept.
static enum bsw_status raise_limits(const struct bsw_work_item *item, size_t num,
                                    const uint32_t *limits, const struct bsw_candidate_lists *out,
                                    struct bsw_buffer *raised, struct bsw_error *err)
{
    BSW_TRY(bsw_buffer_reserve(raised, num * sizeof(uint32_t) + 1, err));
    uint32_t *to = (uint32_t *)(void *)raised->data;
    for (size_t i = 0; i < num; i++) {
        size_t count, query = place_of(item, i);
        const uint64_t *list = bsw_candidate_list(out, query, &count);
        uint32_t worst = count > 0 && count == out->keep ? bsw_candidate_score(list[count - 1]) : 0;
        to[i] = limits && limits[query] > worst ? limits[query] : worst;
    }
    return BSW_OK;
}

// The scratch of a scan by items.
struct list_room {
    struct bsw_candidate_lists found;
    struct bsw_buffer limits, merged;
};

static enum bsw_status scan_item(struct run *run, const struct bsw_work_item *item,
                                 const uint32_t *limits, struct list_room *room,
                                 struct bsw_candidate_lists *out, struct bsw_error *err)
{
    BSW_TRY(begin_item(run, item, err));
    size_t num = run->range.num_queries;
    if (num == 0 || item->num_bundles == 0) return BSW_OK;
    BSW_TRY(raise_limits(item, num, limits, out, &room->limits, err));
    BSW_TRY(run->backend->scan(run->state, run->shard, &run->part, &run->range,
                               (const uint32_t *)(const void *)room->limits.data, out->keep,
                               run->workspace, &room->found, err));
    size_t *counts = (size_t *)(void *)out->counts.data;
    for (size_t i = 0; i < num; i++) {
        size_t count, query = place_of(item, i);
        const uint64_t *more = bsw_candidate_list(&room->found, i, &count);
        uint64_t *list = (uint64_t *)(void *)out->items.data + query * out->keep;
        counts[query] = merge(list, counts[query], more, count, item->first_bundle, out->keep,
                              (uint64_t *)(void *)room->merged.data);
    }
    return BSW_OK;
}

static enum bsw_status scan_items(struct run *run, const uint32_t *limits, size_t keep,
                                  struct bsw_candidate_lists *out, struct bsw_error *err)
{
    struct list_room room = {0};
    size_t num_queries = run->queries->num_queries;
    BSW_TRY(bsw_candidate_lists_reserve(out, num_queries, keep, err));
    memset(out->counts.data, 0, num_queries * sizeof(size_t));
    enum bsw_status status = bsw_buffer_reserve(&room.merged, keep * sizeof(uint64_t) + 1, err);
    for (size_t i = 0; i < num_items(run->probe) && status == BSW_OK; i++) {
        const struct bsw_work_item item = item_at(run, i);
        status = scan_item(run, &item, limits, &room, out, err);
    }
    bsw_candidate_lists_deinit(&room.found);
    bsw_buffer_deinit(&room.limits);
    bsw_buffer_deinit(&room.merged);
    return status;
}

enum bsw_status bsw_probe_scan(const struct bsw_backend *backend, void *state,
                               const struct bsw_backend_shard *shard, const struct bsw_probe *probe,
                               const struct bsw_query_range *queries, const uint32_t *limits,
                               size_t keep, struct bsw_scan_workspace *workspace,
                               struct bsw_candidate_lists *out, struct bsw_error *err)
{
    uint64_t rows = shard->resident->shape.num_rows;
    if (!probe->items && !probe->masks)
        return backend->scan(state, shard, NULL, queries, limits, keep, workspace, out, err);
    struct run run = {.backend = backend,
                      .state = state,
                      .shard = shard,
                      .probe = probe,
                      .queries = queries,
                      .workspace = workspace};
    enum bsw_status status = scan_items(&run, limits, keep < rows ? keep : (size_t)rows, out, err);
    bsw_query_gather_deinit(&run.gather);
    return status;
}
