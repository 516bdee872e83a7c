// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_list_batch.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/device/device_phase.h"
#include "shard/device/device_group.h"
#include "shard/device/device_list_blocks.h"

#define FEW_LISTS  8 // of a query, which hold most of what it finds
#define NO_BUNDLES ((size_t)UINT32_MAX)
// Segments on their way at once (device_lists.c).
#define MOST_AHEAD 64
// Of all lists: runs of so many bundles that there are some thousand.
#define WANTED_RUNS 4096
#define MOST_RUN    ((size_t)128)
// Items have so many bundles at least where each makes tables first.
#define TABLE_ITEM ((size_t)32)

// A group of queries under way.
struct list_batch {
    struct bsw_device_group group;
    const struct bsw_device_shard *shard;
    const struct bsw_list_order *order;
    uint32_t resident_lists;       // on the device as a whole, the first; others come in blocks
    struct bsw_code_layout layout; // of the dimensions that keys are made of
    struct bsw_device_codes codes;
    struct bsw_device_list_work work; // all of the tables
    struct bsw_device_list_table table;
    const float *centroids; // c' of all lists, on the device; NULL: tables are of queries alone
    const uint32_t *bundle_lists; // likewise, the list of each bundle
    size_t room_bundles;          // of one query that are sure to have room in its list
    int has_additions;
    const uint32_t *limits;                        // of the group
    int is_stepwise;                               // what lists hold by now the host has seen
    const struct bsw_device_list_segment *segment; // under way
    uint64_t num_pairs, num_rows, scanned;
};

// ---- launches ----

static void count_bundles(struct list_batch *batch, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++) batch->scanned += batch->table.items[i].num_bundles;
}

static int launch_tables(const struct list_batch *batch, const struct bsw_device_list_work *work,
                         uint32_t tile, const struct bsw_device_lists *lists)
{
    bsw_stream stream = bsw_device_stream(batch->group.engine->device, BSW_QUEUE_SCAN);
    struct bsw_device_tables tables = batch->group.tables.tables;
    int code = 0;
    tables.lists = batch->bundle_lists;
    tables.centroids = batch->centroids;
    for (int t = bsw_device_next_type(&batch->group.tables, 0); t < BSW_NUM_TABLE_TYPES && !code;
         t = bsw_device_next_type(&batch->group.tables, t + 1)) {
        tables.type = (enum bsw_table_type)t;
        code = bsw_device_table_list_scan(&batch->codes, work, tile, &tables, lists, stream);
    }
    return code;
}

static enum bsw_status launch_items(struct list_batch *batch, size_t first, size_t last,
                                    uint32_t tile, const struct bsw_device_lists *lists,
                                    struct bsw_error *err)
{
    bsw_device *device = batch->group.engine->device;
    struct bsw_device_list_work work = batch->work;
    if (first >= last) return BSW_OK;
    work.items += first;
    work.num_items = (uint32_t)(last - first);
    if (!batch->has_additions) work.additions = NULL;
    count_bundles(batch, first, last);
    int code = batch->group.engine->plan.product
                   ? launch_tables(batch, &work, tile, lists)
                   : bsw_device_list_scan(&batch->codes, &work, tile, &batch->group.queries, lists,
                                          bsw_device_stream(device, BSW_QUEUE_SCAN));
    return bsw_device_launched(device, code, "scan", err);
}

// Of the segment under way; items of a part count from its first.
static enum bsw_status scan_items(void *context, const struct bsw_device_part *part,
                                  const struct bsw_device_lists *lists, struct bsw_error *err)
{
    BSW_DEVICE_PHASE(SCAN);
    struct list_batch *batch = context;
    const size_t *first = batch->segment->first;
    for (uint32_t t = 0; t < BSW_LIST_TILES; t++) {
        size_t from = first[0] + part->first, to = first[0] + part->last;
        BSW_TRY(launch_items(batch, from > first[t] ? from : first[t],
                             to < first[t + 1] ? to : first[t + 1], t, lists, err));
    }
    return BSW_OK;
}

// ---- tables ----

static enum bsw_status send_tables(struct list_batch *batch, struct bsw_error *err)
{
    BSW_DEVICE_PHASE(STAGE_QUERIES);
    const struct bsw_device_list_table *table = &batch->table;
    bsw_device *device = batch->group.engine->device;
    BSW_TRY(bsw_device_upload(device, BSW_QUEUE_SCAN, (void *)(uintptr_t)batch->work.items,
                              table->items, table->num_items * sizeof *table->items, err));
    BSW_TRY(bsw_device_upload(device, BSW_QUEUE_SCAN, (void *)(uintptr_t)batch->work.queries,
                              table->queries, table->num_slots * sizeof *table->queries, err));
    if (!batch->has_additions) return BSW_OK;
    return bsw_device_upload(device, BSW_QUEUE_SCAN, (void *)(uintptr_t)batch->work.additions,
                             table->additions, table->num_slots * sizeof *table->additions, err);
}

static size_t items_of(const struct bsw_device_list_segment *segment)
{
    return segment->first[BSW_LIST_TILES] - segment->first[0];
}

// Segment after segment, each waited for.
static enum bsw_status scan_segments(struct list_batch *batch, struct bsw_error *err)
{
    for (size_t s = 0; s < batch->table.num_segments; s++) {
        batch->segment = bsw_device_list_segment_at(&batch->table, s);
        BSW_TRY(bsw_device_list_run_parts(&batch->group.run, items_of(batch->segment), scan_items,
                                          batch, err));
    }
    return BSW_OK;
}

// What is in the tables, to make room.
static enum bsw_status flush(struct list_batch *batch, struct bsw_error *err)
{
    batch->is_stepwise = 1;
    if (batch->table.num_items == 0) return BSW_OK;
    BSW_TRY(send_tables(batch, err));
    return scan_segments(batch, err);
}

// All segments with their cuts, without the host; *is_whole as bsw_device_list_run_end_ahead.
static enum bsw_status scan_ahead(struct list_batch *batch, int *is_whole, struct bsw_error *err)
{
    struct bsw_device_list_run *run = &batch->group.run;
    BSW_TRY(send_tables(batch, err));
    for (size_t s = 0; s < batch->table.num_segments; s++) {
        batch->segment = bsw_device_list_segment_at(&batch->table, s);
        const struct bsw_device_part all = {0, (uint32_t)items_of(batch->segment), 1};
        BSW_TRY(scan_items(batch, &all, &run->lists, err));
        BSW_DEVICE_PHASE(CUT);
        int code = bsw_device_cut(&run->lists, (uint32_t)run->keep,
                                  bsw_device_stream(run->device, BSW_QUEUE_SCAN));
        BSW_TRY(bsw_device_launched(run->device, code, "cut", err));
        run->num_segments++;
    }
    BSW_TRY(bsw_device_download(run->device, BSW_QUEUE_SCAN, run->fetched, run->lists.counts,
                                (run->lists.num_queries + 1) * sizeof(uint32_t), err));
    return bsw_device_list_run_end_ahead(run, is_whole, err);
}

// ---- lists that queries chose ----

// With slots, some lists at a time where there are too many.
static enum bsw_status add_lists(struct list_batch *batch,
                                 const struct bsw_device_list_range *range,
                                 const struct bsw_device_list_cut *cut, struct bsw_error *err)
{
    struct bsw_device_list_place place = {0};
    size_t first_slot = batch->table.num_slots;
    int is_whole = 0;
    if (!bsw_device_list_table_add_slots(&batch->table, range)) {
        BSW_TRY(flush(batch, err));
        bsw_device_list_table_clear(&batch->table);
        first_slot = 0;
        if (!bsw_device_list_table_add_slots(&batch->table, range)) {
            // A list has no more queries than there are slots: one alone has room.
            struct bsw_device_list_range part = *range;
            part.num = range->num / 2;
            BSW_TRY(add_lists(batch, &part, cut, err));
            part.lists += part.num;
            part.num = range->num - part.num;
            return add_lists(batch, &part, cut, err);
        }
    }
    while (!is_whole) {
        BSW_TRY(bsw_device_list_table_add(&batch->table, range, first_slot, cut, &place, &is_whole,
                                          err));
        if (is_whole) break;
        BSW_TRY(flush(batch, err));
        bsw_device_list_table_clear_items(&batch->table);
    }
    return BSW_OK;
}

// Of lists [begin, end).
static enum bsw_status find_range(struct list_batch *batch, uint32_t begin, uint32_t end,
                                  struct bsw_device_list_range *range, struct bsw_error *err)
{
    struct bsw_buffer *memory = &batch->group.engine->lists_looked_at;
    const uint32_t *first = range->groups->first;
    BSW_TRY(
        bsw_buffer_reserve(memory, (range->groups->num_lists + (size_t)1) * sizeof *first, err));
    uint32_t *lists = (uint32_t *)(void *)memory->data;
    for (uint32_t l = begin; l < end; l++) {
        uint64_t num = first[l + 1] - first[l];
        if (num == 0) continue;
        lists[range->num++] = l;
        batch->num_pairs += num;
        batch->num_rows += num * bsw_list_num_rows(range->order, l);
    }
    range->lists = lists;
    return BSW_OK;
}

// How lists of queries that have limits or not yet are cut. Before there are limits no list may
// find more than has room.
static struct bsw_device_list_cut cut_of(const struct list_batch *batch,
                                         const struct bsw_device_list_range *range, int has_limits)
{
    size_t item = bsw_device_list_item_bundles(range, batch->room_bundles);
    while (batch->group.engine->plan.product && item < TABLE_ITEM &&
           2 * item <= batch->room_bundles)
        item *= 2;
    return (struct bsw_device_list_cut){item, has_limits ? NO_BUNDLES
                                                         : batch->room_bundles / item * item};
}

// The lists from number `from` to `to` of each query that are on the device.
static enum bsw_status add_step(struct list_batch *batch, const struct bsw_list_choice *choice,
                                size_t from, size_t to, struct bsw_error *err)
{
    struct bsw_list_groups *groups = &batch->group.engine->list_groups;
    struct bsw_device_list_range range = {.order = batch->order, .groups = groups};
    BSW_TRY(bsw_list_groups_make(choice, batch->order->num_lists, from, to, groups, err));
    BSW_TRY(find_range(batch, 0, batch->resident_lists, &range, err));
    const struct bsw_device_list_cut cut = cut_of(batch, &range, from > 0);
    return add_lists(batch, &range, &cut, err);
}

// What is scanned next: a block.
static void look_at(struct list_batch *batch, const struct bsw_device_list_block *block)
{
    batch->codes = block->codes;
    batch->codes.layout = batch->layout;
    batch->work.rows = block->rows;
    batch->bundle_lists = block->bundle_lists;
}

// What is on the device already.
static void look_at_resident(struct list_batch *batch)
{
    const struct bsw_device_shard *shard = batch->shard;
    batch->codes = shard->resident;
    batch->codes.layout = batch->layout;
    batch->work.rows = (const uint32_t *)(void *)shard->rows.data;
    batch->bundle_lists = (const uint32_t *)(void *)shard->lists.data;
}

// The lists that come in blocks, each once: all its queries, nearest list or not. A block is on its
// way while the one before is scanned, whose scan has been waited for when it is taken again.
static enum bsw_status scan_streamed(struct list_batch *batch, const struct bsw_list_choice *choice,
                                     struct bsw_error *err)
{
    struct bsw_device_engine *engine = batch->group.engine;
    struct bsw_device_list_range range = {.order = batch->order, .groups = &engine->list_groups};
    struct bsw_device_list_block blocks[2];
    struct bsw_device_list_cursor at = {0};
    BSW_TRY(flush(batch, err));
    BSW_TRY(bsw_list_groups_make(choice, batch->order->num_lists, 0, SIZE_MAX, &engine->list_groups,
                                 err));
    BSW_TRY(find_range(batch, batch->resident_lists, batch->order->num_lists, &range, err));
    const struct bsw_device_list_cut cut = cut_of(batch, &range, 0);
    BSW_TRY(bsw_device_list_block_next(engine, batch->shard, &range, &at, 0, &blocks[0], err));
    for (unsigned turn = 0; blocks[turn].range.num > 0; turn ^= 1) {
        BSW_TRY(bsw_device_follow(engine->device, BSW_QUEUE_SCAN, BSW_QUEUE_COPY, err));
        BSW_TRY(bsw_device_list_block_next(engine, batch->shard, &range, &at, turn ^ 1,
                                           &blocks[turn ^ 1], err));
        look_at(batch, &blocks[turn]);
        bsw_device_list_table_clear(&batch->table);
        BSW_TRY(add_lists(batch, &blocks[turn].range, &cut, err));
        BSW_TRY(flush(batch, err));
    }
    look_at_resident(batch);
    return BSW_OK;
}

static enum bsw_status scan_chosen(struct list_batch *batch, const struct bsw_list_choice *choice,
                                   struct bsw_error *err)
{
    static const size_t ends[] = {1, FEW_LISTS, SIZE_MAX};
    int is_whole = 1;
    for (size_t step = 0, from = 0; step < 3 && from < choice->most; from = ends[step++])
        BSW_TRY(add_step(batch, choice, from, ends[step], err));
    if (batch->resident_lists < batch->order->num_lists) return scan_streamed(batch, choice, err);
    if (batch->is_stepwise || batch->table.num_segments > MOST_AHEAD) return flush(batch, err);
    BSW_TRY(scan_ahead(batch, &is_whole, err));
    if (is_whole) return BSW_OK;
    uint64_t num_waits = batch->group.run.num_waits;
    bsw_device_list_run_begin(&batch->group.run);
    batch->group.run.num_overflows = 1;
    batch->group.run.num_waits = num_waits;
    BSW_TRY(bsw_device_group_send(&batch->group, batch->limits, err));
    return scan_segments(batch, err);
}

// ---- all lists for all queries ----

// Items of runs of bundles, for some queries each: those of piece p and run r are p * num_runs + r.
struct all_lists {
    struct list_batch *batch;
    size_t num_pieces, num_runs; // in the table
    size_t run_bundles;          // of a run at most
    size_t first_bundle;         // of the shard that is looked at
};

static enum bsw_status scan_runs(void *context, const struct bsw_device_part *part,
                                 const struct bsw_device_lists *lists, struct bsw_error *err)
{
    BSW_DEVICE_PHASE(SCAN);
    const struct all_lists *all = context;
    for (size_t p = 0; p < all->num_pieces; p++) {
        size_t first = p * all->num_runs;
        uint32_t tile = bsw_device_list_tile(all->batch->table.items[first].num_slots);
        BSW_TRY(
            launch_items(all->batch, first + part->first, first + part->last, tile, lists, err));
    }
    return BSW_OK;
}

// Where the run that begins with the bundle ends: of one list where tables are of lists.
static size_t end_of_run(const struct all_lists *all, size_t bundle)
{
    const struct bsw_list_order *order = all->batch->order;
    size_t end = bundle + all->run_bundles, most = all->batch->codes.num_bundles;
    if (all->batch->centroids) {
        size_t first = all->first_bundle;
        uint32_t list = bsw_list_of_place(order, (uint32_t)((first + bundle) * BSW_BUNDLE_ROWS));
        size_t own_end = order->first_bundles[list + 1];
        if (own_end > first + bundle && own_end < first + end) end = own_end - first;
    }
    return end < most ? end : most;
}

// Runs from bundle `first` on into the empty table, as many as have room; returns where they end.
static size_t add_runs(struct all_lists *all, size_t first)
{
    struct bsw_device_list_table *table = &all->batch->table;
    size_t widest = bsw_device_list_tile_slots(BSW_LIST_TILES - 1), end = first,
           most = table->most_items / all->num_pieces;
    for (all->num_runs = 0; all->num_runs < most && end < all->batch->codes.num_bundles;) {
        size_t next = end_of_run(all, end);
        table->items[all->num_runs++] = (struct bsw_device_list_item){
            .first_bundle = (uint32_t)end, .num_bundles = (uint32_t)(next - end)};
        end = next;
    }
    for (size_t p = 0; p < all->num_pieces; p++) {
        size_t slot = p * widest, slots = table->num_slots - slot;
        for (size_t r = 0; r < all->num_runs; r++) {
            struct bsw_device_list_item *item = &table->items[table->num_items++];
            *item = table->items[r];
            item->first_slot = (uint32_t)slot;
            item->num_slots = (uint32_t)(slots < widest ? slots : widest);
        }
    }
    return end;
}

// All bundles of what is looked at.
static enum bsw_status scan_bundles(struct all_lists *all, struct bsw_error *err)
{
    struct list_batch *batch = all->batch;
    for (size_t b = 0; b < batch->codes.num_bundles;) {
        bsw_device_list_table_clear_items(&batch->table);
        b = add_runs(all, b);
        BSW_TRY(send_tables(batch, err));
        BSW_TRY(bsw_device_list_run_scan(&batch->group.run, all->num_runs, scan_runs, all, err));
    }
    return BSW_OK;
}

// The next block of bundles from *next on, if there is one.
static enum bsw_status copy_next(struct list_batch *batch, size_t *next, unsigned place,
                                 struct bsw_device_list_block *out, struct bsw_error *err)
{
    struct bsw_device_engine *engine = batch->group.engine;
    size_t most = engine->plan.block_bundles, left = batch->shard->num_bundles - *next;
    size_t first = *next, num = left < most ? left : most;
    if (num == 0) return BSW_OK;
    *next += num;
    return bsw_device_list_block_run(engine, batch->shard, first, num, place, out, err);
}

// Bundles that are the host's: copied as scan_streamed does.
static enum bsw_status scan_all_blocks(struct all_lists *all, struct bsw_error *err)
{
    struct list_batch *batch = all->batch;
    struct bsw_device_list_block blocks[2];
    size_t end = batch->shard->num_bundles, next = batch->shard->resident.num_bundles;
    all->first_bundle = next;
    BSW_TRY(copy_next(batch, &next, 0, &blocks[0], err));
    for (unsigned turn = 0; all->first_bundle < end; turn ^= 1) {
        BSW_TRY(
            bsw_device_follow(batch->group.engine->device, BSW_QUEUE_SCAN, BSW_QUEUE_COPY, err));
        BSW_TRY(copy_next(batch, &next, turn ^ 1, &blocks[turn ^ 1], err));
        look_at(batch, &blocks[turn]);
        BSW_TRY(scan_bundles(all, err));
        all->first_bundle += batch->codes.num_bundles;
    }
    look_at_resident(batch);
    return BSW_OK;
}

static enum bsw_status scan_all(struct list_batch *batch, struct bsw_error *err)
{
    struct bsw_device_list_table *table = &batch->table;
    struct bsw_device_list_run *run = &batch->group.run;
    size_t num_queries = batch->group.num_queries, num_bundles = batch->shard->num_bundles;
    size_t widest = bsw_device_list_tile_slots(BSW_LIST_TILES - 1), run_bundles = 4;
    struct all_lists all = {.batch = batch, .num_pieces = (num_queries + widest - 1) / widest};
    for (size_t q = 0; q < num_queries; q++) table->queries[q] = (uint32_t)q;
    table->num_slots = num_queries;
    while (run_bundles < MOST_RUN && num_bundles / run_bundles > WANTED_RUNS) run_bundles *= 2;
    while (run_bundles > batch->room_bundles) run_bundles /= 2;
    all.run_bundles = run_bundles;
    run->seen = 1; // no sample is taken
    run->more_rows = (run_bundles - 1) * BSW_BUNDLE_ROWS;
    BSW_TRY(scan_bundles(&all, err));
    BSW_TRY(scan_all_blocks(&all, err));
    batch->num_pairs += num_queries * (uint64_t)batch->order->num_lists;
    batch->num_rows += num_queries * (uint64_t)batch->group.num_rows;
    return BSW_OK;
}

// ---- a batch ----

static void point_into_tables(struct list_batch *batch)
{
    struct bsw_device_engine *engine = batch->group.engine;
    const struct bsw_device_plan *plan = &engine->plan;
    struct bsw_device_tables_layout at;
    unsigned char *staging = engine->table_staging, *memory = engine->tables.data;
    bsw_device_tables_layout_make(plan->list_items, plan->list_slots, &at);
    batch->table = (struct bsw_device_list_table){
        .items = (struct bsw_device_list_item *)(void *)(staging + at.items),
        .queries = (uint32_t *)(void *)(staging + at.queries),
        .additions = (float *)(void *)(staging + at.additions),
        .most_items = plan->list_items,
        .most_slots = plan->list_slots};
    batch->work = (struct bsw_device_list_work){
        .items = (const struct bsw_device_list_item *)(void *)(memory + at.items),
        .queries = (const uint32_t *)(void *)(memory + at.queries),
        .additions = (const float *)(void *)(memory + at.additions)};
}

static void init_batch(struct bsw_device_engine *engine, const struct bsw_device_shard *shard,
                       const struct bsw_query_range *queries, uint32_t scan_dims, size_t keep,
                       struct list_batch *batch)
{
    size_t rows = (size_t)shard->host->shape.num_rows;
    *batch = (struct list_batch){.shard = shard,
                                 .order = &shard->host->order,
                                 .resident_lists = bsw_device_resident_lists(shard),
                                 .layout = engine->plan.layout,
                                 .group = {.engine = engine,
                                           .num_rows = rows,
                                           .is_matrix = !engine->plan.product,
                                           .batch = queries->batch,
                                           .run = {.device = engine->device,
                                                   .blocks = &engine->transfer,
                                                   .fetched = engine->list_counts,
                                                   .keep = keep < rows ? keep : rows}}};
    if (scan_dims > 0) bsw_code_layout_first(&engine->plan.layout, scan_dims, &batch->layout);
    batch->group.layout = &batch->layout;
    point_into_tables(batch);
    look_at_resident(batch);
    if (engine->plan.num_centroids > 0)
        batch->centroids = (const float *)(void *)(engine->book.data + engine->plan.book.centroids);
    // Where a list has room for every place nothing can overflow.
    size_t capacity = engine->plan.capacity, kept = batch->group.run.keep;
    batch->room_bundles = capacity >= shard->num_bundles * BSW_BUNDLE_ROWS
                              ? shard->num_bundles
                              : (capacity - kept) / BSW_BUNDLE_ROWS;
}

// Counts of hits have nothing added to them.
static int are_counts(const struct bsw_device_group *group)
{
    const struct bsw_selection *selection = group->batch->selection;
    return selection && bsw_selection_counts(&selection->settings);
}

// choice: of the group's queries, or NULL. items: on the host; not where candidates stay.
static enum bsw_status scan_group(struct list_batch *batch, const struct bsw_list_choice *choice,
                                  struct bsw_device_kept_span *kept, uint64_t *items,
                                  size_t *counts, struct bsw_error *err)
{
    struct bsw_device_engine *engine = batch->group.engine;
    struct bsw_device_list_run *run = &batch->group.run;
    bsw_device_list_table_clear(&batch->table);
    batch->is_stepwise = 0;
    batch->has_additions = choice && choice->additions && !are_counts(&batch->group);
    bsw_device_group_point(&batch->group);
    run->lists.is_unordered = 1;
    bsw_device_list_run_begin(run);
    BSW_TRY(bsw_device_group_send(&batch->group, batch->limits, err));
    enum bsw_status status = choice ? scan_chosen(batch, choice, err) : scan_all(batch, err);
    engine->counts.num_segments += run->num_segments;
    engine->counts.num_overflows += run->num_overflows;
    engine->counts.num_waits += run->num_waits;
    BSW_TRY(status);
    BSW_TRY(bsw_device_group_count_entries(&batch->group, err));
    for (size_t q = 0; q < batch->group.num_queries; q++) counts[q] = run->counts[q];
    BSW_TRY(bsw_device_list_run_sort(run, engine->queries.data + engine->plan.queries.sort, err));
    if (kept) return bsw_device_kept_add(kept, &run->lists, run->counts, err);
    return bsw_device_list_run_fetch(run, items, err);
}

static void count_work(const struct list_batch *batch, double started,
                       struct bsw_scan_workspace *workspace)
{
    const struct bsw_device_plan *plan = &batch->group.engine->plan;
    workspace->used = plan->product ? BSW_SCAN_TABLES : BSW_SCAN_MATRIX;
    workspace->scanned_bytes +=
        batch->scanned * bsw_device_bundle_bytes(&batch->layout, plan->has_affine, 0);
    workspace->num_pairs += batch->num_rows;
    workspace->scan_seconds += bsw_clock_seconds() - started;
}

enum bsw_status bsw_device_list_batch_scan(
    struct bsw_device_engine *engine, const struct bsw_device_shard *shard,
    const struct bsw_list_choice *choice, const struct bsw_query_range *queries, uint32_t scan_dims,
    const uint32_t *limits, size_t keep, struct bsw_scan_workspace *workspace,
    uint64_t *num_list_pairs, struct bsw_device_kept_span *kept, struct bsw_candidate_lists *out,
    struct bsw_error *err)
{
    double started = bsw_clock_seconds();
    size_t num_queries = queries->num_queries, most = engine->plan.group_queries;
    struct list_batch batch;
    enum bsw_status status = BSW_OK;
    init_batch(engine, shard, queries, scan_dims, keep, &batch);
    size_t stride = kept ? 0 : batch.group.run.keep; // of lists on the host
    BSW_TRY(bsw_candidate_lists_reserve(out, num_queries, stride, err));
    uint64_t *items = (uint64_t *)(void *)out->items.data;
    size_t *counts = (size_t *)(void *)out->counts.data;
    if (kept) kept->num_queries = 0;
    for (size_t done = 0; done < num_queries && status == BSW_OK; done += most) {
        size_t num = num_queries - done < most ? num_queries - done : most;
        struct bsw_list_choice own = {.num_queries = num};
        if (choice)
            own = (struct bsw_list_choice){
                num, choice->most, choice->lists + done * choice->most, choice->counts + done,
                choice->additions ? choice->additions + done * choice->most : NULL};
        batch.group.first_query = queries->first_query + done;
        batch.group.num_queries = num;
        batch.limits = limits ? limits + done : NULL;
        status = scan_group(&batch, choice ? &own : NULL, kept, items + done * stride,
                            counts + done, err);
    }
    bsw_device_list_table_deinit(&batch.table);
    *num_list_pairs += batch.num_pairs;
    if (status == BSW_OK) count_work(&batch, started, workspace);
    return status;
}
