// SPDX-License-Identifier: Apache-2.0
// Without a choice: items are runs of bundles, whatever their lists, for all queries of a group.
#include "common/device/device_phase.h"
#include "shard/device/device_list_group.h"

// All lists are cut into runs of so many bundles that there are some thousand.
#define WANTED_RUNS 4096
#define MOST_RUN    ((size_t)128)

// Items of runs of bundles, for some queries each: those of piece p and run r are p * num_runs + r.
struct all_lists {
    struct bsw_device_list_group *batch;
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
        BSW_TRY(bsw_device_list_group_launch(all->batch, first + part->first, first + part->last,
                                             tile, lists, err));
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
    struct bsw_device_list_group *batch = all->batch;
    for (size_t b = 0; b < batch->codes.num_bundles;) {
        bsw_device_list_table_clear_items(&batch->table);
        b = add_runs(all, b);
        BSW_TRY(bsw_device_list_group_send_tables(batch, err));
        BSW_TRY(bsw_device_list_run_scan(&batch->group.run, all->num_runs, scan_runs, all, err));
    }
    return BSW_OK;
}

// The next block of bundles from *next on, if there is one.
static enum bsw_status copy_next(struct bsw_device_list_group *batch, size_t *next, unsigned place,
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
    struct bsw_device_list_group *batch = all->batch;
    struct bsw_device_list_block blocks[2];
    size_t end = batch->shard->num_bundles, next = batch->shard->resident.num_bundles;
    all->first_bundle = next;
    BSW_TRY(copy_next(batch, &next, 0, &blocks[0], err));
    for (unsigned turn = 0; all->first_bundle < end; turn ^= 1) {
        BSW_TRY(
            bsw_device_follow(batch->group.engine->device, BSW_QUEUE_SCAN, BSW_QUEUE_COPY, err));
        BSW_TRY(copy_next(batch, &next, turn ^ 1, &blocks[turn ^ 1], err));
        bsw_device_list_group_look_at(batch, &blocks[turn]);
        BSW_TRY(scan_bundles(all, err));
        all->first_bundle += batch->codes.num_bundles;
    }
    bsw_device_list_group_look_at_resident(batch);
    return BSW_OK;
}

enum bsw_status bsw_device_list_group_scan_all(struct bsw_device_list_group *batch,
                                               struct bsw_error *err)
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
