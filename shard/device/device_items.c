// SPDX-License-Identifier: Apache-2.0
// A shard with lists on a device: the candidates of bsw_list_scan (shard/host/list_scan.h), by work
// items (kernels/device_scan/device_list_scan.h).
//
// First every query's nearest list, which gives it a limit that few rows of its other lists reach;
// then the next few, then all others. What each step looks at is grouped by list, and a list cut
// into items of some bundles and of up to 256 of its queries, which the kernel has a tile for.
// Between steps `cut` raises limits on the device.
//
// The tables of all steps go to the device at once, and the host waits once, if they fit and no
// candidate list overflows, which is only looked at in the end. Else it goes step by step: items
// whose candidates had no room are scanned again, half of them at a time. A list of candidates has
// room for what one item finds, so that half of the items is one item in the end, which fits. A
// nearest list that is longer than that room is taken in parts, with a cut after each.
//
// Items of a choice are the host's, or those of the device itself (device_gpu_items.h).
//
// Without a choice every query looks at all lists: step by step, each of which has about as many
// bundles as all before it. Lists whose codes are not on the device come in blocks
// (device_list_blocks.h), each once for a group of queries, after those that are there.
#include <string.h>

#include "common/base/memory.h"
#include "common/device/device_phase.h"
#include "kernels/gpu_select/gpu_select.h"
#include "shard/device/device_coarse.h"
#include "shard/device/device_gpu_items.h"
#include "shard/device/device_item_scan.h"

#define NO_BUNDLES ((size_t)UINT32_MAX)
// Segments on their way at once (device_lists.c).
#define MOST_AHEAD 64

// ---- launches ----

// Items [first, last) of the tables, which are of one tile.
static enum bsw_status launch(struct bsw_device_group *group, size_t first, size_t last,
                              uint32_t tile, const struct bsw_device_lists *lists,
                              struct bsw_error *err)
{
    const struct bsw_device_item_run *items = &group->items;
    struct bsw_device_list_work work = items->work;
    if (first >= last) return BSW_OK;
    work.items += first;
    work.num_items = (uint32_t)(last - first);
    work.num_bundles = 0;
    for (size_t i = first; i < last; i++) work.num_bundles += items->table.items[i].num_bundles;
    group->scanned += work.num_bundles;
    return bsw_device_items_launch(group, &work, tile, lists, err);
}

// Scans items of the segment under way; items of a part count from its first.
static enum bsw_status scan_items(void *context, const struct bsw_device_part *part,
                                  const struct bsw_device_lists *lists, struct bsw_error *err)
{
    BSW_DEVICE_PHASE(SCAN);
    struct bsw_device_group *group = context;
    const size_t *first = group->items.segment->first;
    for (uint32_t t = 0; t < BSW_LIST_TILES; t++) {
        size_t from = first[0] + part->first, to = first[0] + part->last;
        BSW_TRY(launch(group, from > first[t] ? from : first[t],
                       to < first[t + 1] ? to : first[t + 1], t, lists, err));
    }
    return BSW_OK;
}

// ---- tables ----

// On their way to the device; they stay as they are until a scan has been waited for.
static enum bsw_status send_tables(const struct bsw_device_group *group, struct bsw_error *err)
{
    BSW_DEVICE_PHASE(STAGE_QUERIES);
    const struct bsw_device_list_table *table = &group->items.table;
    const struct bsw_device_list_work *work = &group->items.work;
    bsw_device *device = group->engine->device;
    BSW_TRY(bsw_device_upload(device, BSW_QUEUE_SCAN, (void *)(uintptr_t)work->items, table->items,
                              table->num_items * sizeof *table->items, err));
    BSW_TRY(bsw_device_upload(device, BSW_QUEUE_SCAN, (void *)(uintptr_t)work->queries,
                              table->queries, table->num_slots * sizeof *table->queries, err));
    if (!group->items.has_additions) return BSW_OK;
    return bsw_device_upload(device, BSW_QUEUE_SCAN, (void *)(uintptr_t)work->additions,
                             table->additions, table->num_slots * sizeof *table->additions, err);
}

static size_t items_of(const struct bsw_device_list_segment *segment)
{
    return segment->first[BSW_LIST_TILES] - segment->first[0];
}

// Segment after segment, each waited for.
static enum bsw_status scan_segments(struct bsw_device_group *group, struct bsw_error *err)
{
    struct bsw_device_item_run *items = &group->items;
    for (size_t s = 0; s < items->table.num_segments; s++) {
        items->segment = bsw_device_list_segment_at(&items->table, s);
        BSW_TRY(bsw_device_list_run_parts(&group->run, items_of(items->segment), scan_items, group,
                                          err));
    }
    return BSW_OK;
}

// What is in the tables, to make room.
static enum bsw_status flush(struct bsw_device_group *group, struct bsw_error *err)
{
    group->items.is_stepwise = 1;
    if (group->items.table.num_items == 0) return BSW_OK;
    BSW_TRY(send_tables(group, err));
    return scan_segments(group, err);
}

// All segments with their cuts, without the host, but that no more than MOST_AHEAD of them are on
// their way.
static enum bsw_status queue_ahead(struct bsw_device_group *group, struct bsw_error *err)
{
    struct bsw_device_item_run *items = &group->items;
    struct bsw_device_list_run *run = &group->run;
    items->is_ahead = 1;
    BSW_TRY(send_tables(group, err));
    for (size_t s = 0; s < items->table.num_segments; s++) {
        items->segment = bsw_device_list_segment_at(&items->table, s);
        const struct bsw_device_part all = {0, (uint32_t)items_of(items->segment), 1};
        if (s % MOST_AHEAD == MOST_AHEAD - 1) {
            run->num_waits++;
            BSW_TRY(bsw_device_wait(run->device, BSW_QUEUE_SCAN, "scan", err));
        }
        BSW_TRY(scan_items(group, &all, &run->lists, err));
        BSW_DEVICE_PHASE(CUT);
        int code = bsw_device_cut(&run->lists, (uint32_t)run->keep,
                                  bsw_device_stream(run->device, BSW_QUEUE_SCAN));
        BSW_TRY(bsw_device_launched(run->device, code, "cut", err));
        run->num_segments++;
    }
    return bsw_device_download(run->device, BSW_QUEUE_SCAN, run->fetched, run->lists.counts,
                               (run->lists.num_queries + 1) * sizeof(uint32_t), err);
}

// The scan of what is in the tables, queued or not, is over; if a list was too short, once more.
static enum bsw_status end_ahead(struct bsw_device_group *group, struct bsw_error *err)
{
    struct bsw_device_item_run *items = &group->items;
    int is_whole;
    if (!items->is_ahead) return flush(group, err);
    items->is_ahead = 0;
    items->is_stepwise = 1;
    BSW_TRY(bsw_device_list_run_end_ahead(&group->run, &is_whole, err));
    if (is_whole) return BSW_OK;
    BSW_TRY(bsw_device_group_begin_again(group, err));
    return scan_segments(group, err);
}

// ---- lists into tables ----

// With slots, some lists at a time where there are too many.
static enum bsw_status add_lists(struct bsw_device_group *group,
                                 const struct bsw_device_list_range *range,
                                 const struct bsw_device_list_cut *cut, struct bsw_error *err)
{
    struct bsw_device_list_table *table = &group->items.table;
    struct bsw_device_list_place place = {0};
    size_t first_slot;
    int is_whole = 0;
    if (!bsw_device_list_table_add_slots(table, range, &first_slot)) {
        BSW_TRY(flush(group, err));
        bsw_device_list_table_clear(table);
        if (!bsw_device_list_table_add_slots(table, range, &first_slot)) {
            // A list has no more queries than there are slots: one alone has room.
            struct bsw_device_list_range part = *range;
            part.num = range->num / 2;
            BSW_TRY(add_lists(group, &part, cut, err));
            part.lists += part.num;
            part.num = range->num - part.num;
            return add_lists(group, &part, cut, err);
        }
    }
    while (!is_whole) {
        BSW_TRY(bsw_device_list_table_add(table, range, first_slot, cut, &place, &is_whole, err));
        if (is_whole) break;
        BSW_TRY(flush(group, err));
        bsw_device_list_table_clear_items(table);
    }
    return BSW_OK;
}

// Finds the lists of [begin, end) that have queries.
static enum bsw_status find_range(struct bsw_device_group *group, uint32_t begin, uint32_t end,
                                  struct bsw_device_list_range *range, struct bsw_error *err)
{
    struct bsw_buffer *memory = &group->engine->lists_looked_at;
    BSW_TRY(bsw_buffer_reserve(memory, (group->items.order->num_lists + (size_t)1) * sizeof begin,
                               err));
    uint32_t *lists = (uint32_t *)(void *)memory->data;
    for (uint32_t l = begin; l < end; l++) {
        uint64_t num = bsw_list_group_slots(range->groups, l).num;
        if (num == 0) continue;
        lists[range->num++] = l;
        group->num_list_pairs += num;
        group->num_row_pairs += num * bsw_list_num_rows(range->order, l);
    }
    range->lists = lists;
    return BSW_OK;
}

// How lists of queries that have limits or not yet are cut. Before there are limits no list may
// find more than has room.
static struct bsw_device_list_cut cut_of(const struct bsw_device_group *group,
                                         const struct bsw_device_list_range *range, int has_limits)
{
    size_t room = group->items.room_bundles, item = bsw_device_list_item_bundles(range, room);
    while (group->engine->plan.product && item < BSW_TABLE_ITEM && 2 * item <= room) item *= 2;
    return (struct bsw_device_list_cut){item, has_limits ? NO_BUNDLES : room / item * item};
}

// Lists that all queries look at, waiting between steps: after n rows about `keep` of the next n
// reach a limit.
static enum bsw_status scan_growing(struct bsw_device_group *group,
                                    const struct bsw_device_list_range *range,
                                    struct bsw_error *err)
{
    struct bsw_device_item_run *items = &group->items;
    const uint32_t *bundles = range->order->first_bundles;
    for (size_t first = 0, last; first < range->num; first = last) {
        size_t seen = items->seen_bundles, num = 0,
               most = seen > items->room_bundles ? seen : items->room_bundles;
        struct bsw_device_list_range step = *range;
        for (last = first; last < range->num; last++) {
            size_t own = bundles[range->lists[last] + 1] - bundles[range->lists[last]];
            if (last > first && num + own > most) break;
            num += own;
        }
        step.lists += first;
        step.num = last - first;
        items->seen_bundles += num;
        const struct bsw_device_list_cut cut = cut_of(group, &step, seen > 0);
        BSW_TRY(add_lists(group, &step, &cut, err));
        BSW_TRY(flush(group, err));
        bsw_device_list_table_clear_items(&items->table);
    }
    return BSW_OK;
}

// ---- a group ----

// The lists from number `from` to `to` of each query, or all.
static enum bsw_status make_groups(struct bsw_device_group *group, size_t from, size_t to,
                                   struct bsw_device_list_range *range, struct bsw_error *err)
{
    const struct bsw_list_choice *choice = &group->items.choice;
    struct bsw_list_groups *groups = &group->engine->list_groups;
    uint32_t num_lists = group->items.order->num_lists;
    *range = (struct bsw_device_list_range){.order = group->items.order, .groups = groups};
    return choice->num_queries > 0
               ? bsw_list_groups_make(choice, num_lists, from, to, groups, err)
               : bsw_list_groups_make_same(group->num_queries, num_lists, groups, err);
}

// What is scanned next: a block.
static void look_at(struct bsw_device_group *group, const struct bsw_device_list_block *block)
{
    group->items.codes = block->codes;
    group->items.codes.layout = group->items.layout;
    group->items.work.rows = block->rows;
    group->items.bundle_lists = block->bundle_lists;
}

// What is on the device already.
static void look_at_resident(struct bsw_device_group *group)
{
    const struct bsw_device_shard *shard = group->span->shards[0];
    const struct bsw_device_list_block all = {.codes = shard->resident,
                                              .rows = (const uint32_t *)(void *)shard->rows.data,
                                              .bundle_lists =
                                                  (const uint32_t *)(void *)shard->lists.data};
    look_at(group, &all);
}

// The lists that come in blocks, each once: all its queries, nearest list or not. A block is on its
// way while the one before is scanned, or what is on the device; that scan has been waited for when
// the block is taken again.
static enum bsw_status scan_streamed(struct bsw_device_group *group, struct bsw_error *err)
{
    struct bsw_device_engine *engine = group->engine;
    const struct bsw_device_shard *shard = group->span->shards[0];
    struct bsw_device_list_range range;
    struct bsw_device_list_block blocks[2];
    struct bsw_device_list_cursor at = {0};
    BSW_TRY(make_groups(group, 0, SIZE_MAX, &range, err));
    BSW_TRY(find_range(group, group->items.resident_lists, range.order->num_lists, &range, err));
    const struct bsw_device_list_cut cut = cut_of(group, &range, 0);
    BSW_TRY(bsw_device_list_block_next(engine, shard, &range, &at, 0, &blocks[0], err));
    BSW_TRY(end_ahead(group, err));
    for (unsigned turn = 0; blocks[turn].range.num > 0; turn ^= 1) {
        const struct bsw_device_list_range *lists = &blocks[turn].range;
        BSW_TRY(bsw_device_follow(engine->device, BSW_QUEUE_SCAN, BSW_QUEUE_COPY, err));
        BSW_TRY(bsw_device_list_block_next(engine, shard, &range, &at, turn ^ 1, &blocks[turn ^ 1],
                                           err));
        look_at(group, &blocks[turn]);
        bsw_device_list_table_clear(&group->items.table);
        BSW_TRY(range.groups->is_same ? scan_growing(group, lists, err)
                                      : add_lists(group, lists, &cut, err));
        BSW_TRY(flush(group, err));
    }
    look_at_resident(group);
    return BSW_OK;
}

// Lists that are on the device and that queries chose: as far as goes without waiting, if the
// tables hold all of them.
static enum bsw_status begin_chosen(struct bsw_device_group *group, struct bsw_error *err)
{
    static const size_t ends[] = {1, BSW_FEW_LISTS, SIZE_MAX};
    struct bsw_device_item_run *items = &group->items;
    for (size_t step = 0, from = 0; step < 3 && from < items->choice.most; from = ends[step++]) {
        struct bsw_device_list_range range;
        BSW_TRY(make_groups(group, from, ends[step], &range, err));
        BSW_TRY(find_range(group, 0, items->resident_lists, &range, err));
        const struct bsw_device_list_cut cut = cut_of(group, &range, from > 0);
        BSW_TRY(add_lists(group, &range, &cut, err));
    }
    return items->is_stepwise ? BSW_OK : queue_ahead(group, err);
}

// All lists that are on the device.
static enum bsw_status scan_all(struct bsw_device_group *group, struct bsw_error *err)
{
    struct bsw_device_list_range range;
    BSW_TRY(make_groups(group, 0, SIZE_MAX, &range, err));
    BSW_TRY(find_range(group, 0, group->items.resident_lists, &range, err));
    BSW_TRY(scan_growing(group, &range, err));
    bsw_device_list_table_clear(&group->items.table);
    return BSW_OK;
}

static void point_into_tables(const struct bsw_device_engine *engine,
                              struct bsw_device_item_run *items)
{
    const struct bsw_device_plan *plan = &engine->plan;
    struct bsw_device_tables_layout at;
    unsigned char *staging = engine->table_staging, *memory = engine->tables.data;
    bsw_device_tables_layout_make(plan->list_items, plan->list_slots, &at);
    items->table = (struct bsw_device_list_table){
        .items = (struct bsw_device_list_item *)(void *)(staging + at.items),
        .queries = (uint32_t *)(void *)(staging + at.queries),
        .additions = (float *)(void *)(staging + at.additions),
        .most_items = plan->list_items,
        .most_slots = plan->list_slots};
    items->work = (struct bsw_device_list_work){
        .items = (const struct bsw_device_list_item *)(void *)(memory + at.items),
        .queries = (const uint32_t *)(void *)(memory + at.queries),
        .additions = (const float *)(void *)(memory + at.additions)};
}

static enum bsw_scan_kind choose(struct bsw_device_group *group, size_t num_queries)
{
    const struct bsw_device_engine *engine = group->engine;
    const struct bsw_device_shard *shard = group->span->shards[0];
    struct bsw_device_item_run *items = &group->items;
    uint32_t dims = group->task.scan_dims;
    (void)num_queries;
    items->order = &shard->host->order;
    items->resident_lists = bsw_device_resident_lists(shard);
    items->layout = engine->plan.layout;
    if (dims > 0) bsw_code_layout_first(&engine->plan.layout, dims, &items->layout);
    group->layout = &items->layout;
    point_into_tables(engine, items);
    look_at_resident(group);
    if (engine->plan.num_centroids > 0)
        items->centroids = (const float *)(void *)(engine->book.data + engine->plan.book.centroids);
    // Where a list has room for every place nothing can overflow.
    size_t capacity = engine->plan.capacity;
    items->room_bundles = capacity >= shard->num_bundles * BSW_BUNDLE_ROWS
                              ? shard->num_bundles
                              : (capacity - group->run.keep) / BSW_BUNDLE_ROWS;
    group->is_matrix = !engine->plan.product;
    return engine->plan.product ? BSW_SCAN_TABLES : BSW_SCAN_MATRIX;
}

// Counts of hits have nothing added to them.
static int are_counts(const struct bsw_device_group *group)
{
    const struct bsw_selection *selection = group->batch->selection;
    return selection && bsw_selection_counts(&selection->settings);
}

// The group's part of the choice, made by now.
static enum bsw_status take_choice(struct bsw_device_group *group, struct bsw_error *err)
{
    size_t first = group->first_query - group->task.queries.first_query;
    struct bsw_list_choice all;
    BSW_TRY(bsw_list_choice_complete(group->task.choice, &all, err));
    group->items.choice = (struct bsw_list_choice){
        .num_queries = group->num_queries,
        .most = all.most,
        .lists = all.lists + first * all.most,
        .counts = all.counts + first,
        .additions = all.additions ? all.additions + first * all.most : NULL};
    return BSW_OK;
}

static enum bsw_status begin(struct bsw_device_group *group, struct bsw_error *err)
{
    const struct bsw_list_choice *all = group->task.choice;
    struct bsw_device_item_run *items = &group->items;
    items->choice = (struct bsw_list_choice){.num_queries = 0};
    bsw_device_list_table_clear(&items->table);
    items->is_stepwise = items->is_ahead = 0;
    items->seen_bundles = 0;
    items->has_additions = all && bsw_list_choice_has_additions(all) && !are_counts(group);
    group->run.lists.is_unordered = 1;
    BSW_TRY(bsw_device_group_send(group, err));
    BSW_TRY(bsw_device_gpu_items_begin(group, err));
    if (!all || items->is_on_device) return BSW_OK;
    BSW_TRY(take_choice(group, err));
    return begin_chosen(group, err);
}

// What the device made was of no use: as if it had not.
static enum bsw_status begin_by_host(struct bsw_device_group *group, struct bsw_error *err)
{
    group->items.is_stepwise = group->run.num_overflows > 0;
    BSW_TRY(take_choice(group, err));
    BSW_TRY(bsw_device_group_begin_again(group, err));
    return begin_chosen(group, err);
}

static enum bsw_status end(struct bsw_device_group *group, struct bsw_error *err)
{
    int is_whole = 0;
    if (group->items.is_on_device) {
        BSW_TRY(bsw_device_gpu_items_end(group, &is_whole, err));
        if (is_whole) return BSW_OK;
        BSW_TRY(begin_by_host(group, err));
    }
    if (!group->task.choice) BSW_TRY(scan_all(group, err));
    return group->items.resident_lists == group->items.order->num_lists ? end_ahead(group, err)
                                                                        : scan_streamed(group, err);
}

const struct bsw_device_maker bsw_device_items = {.choose = choose, .begin = begin, .end = end};
