// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_list_batch.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/device/device_phase.h"
#include "kernels/gpu_select/gpu_select.h"
#include "shard/device/device_list_group.h"

#define FEW_LISTS  8 // of a query, which hold most of what it finds
#define NO_BUNDLES ((size_t)UINT32_MAX)
// Segments on their way at once (device_lists.c).
#define MOST_AHEAD 64
// Items have so many bundles at least where each makes tables first.
#define TABLE_ITEM ((size_t)32)

// ---- launches ----

static void count_bundles(struct bsw_device_list_group *batch, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++) batch->scanned += batch->table.items[i].num_bundles;
}

static int launch_tables(const struct bsw_device_list_group *batch,
                         const struct bsw_device_list_work *work, uint32_t tile,
                         const struct bsw_device_lists *lists)
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

enum bsw_status bsw_device_list_group_launch(struct bsw_device_list_group *batch, size_t first,
                                             size_t last, uint32_t tile,
                                             const struct bsw_device_lists *lists,
                                             struct bsw_error *err)
{
    bsw_device *device = batch->group.engine->device;
    struct bsw_device_list_work work = batch->work;
    if (first >= last) return BSW_OK;
    work.items += first;
    work.num_items = (uint32_t)(last - first);
    if (!batch->has_additions) work.additions = NULL;
    uint64_t before = batch->scanned;
    count_bundles(batch, first, last);
    work.num_bundles = batch->scanned - before;
    int code = batch->group.engine->plan.product
                   ? launch_tables(batch, &work, tile, lists)
                   : bsw_device_list_scan(&batch->codes, &work, tile, &batch->group.queries, lists,
                                          bsw_device_stream(device, BSW_QUEUE_SCAN));
    return bsw_device_launched(device, code, "scan", err);
}

// Scans items of the segment under way; items of a part count from its first.
static enum bsw_status scan_items(void *context, const struct bsw_device_part *part,
                                  const struct bsw_device_lists *lists, struct bsw_error *err)
{
    BSW_DEVICE_PHASE(SCAN);
    struct bsw_device_list_group *batch = context;
    const size_t *first = batch->segment->first;
    for (uint32_t t = 0; t < BSW_LIST_TILES; t++) {
        size_t from = first[0] + part->first, to = first[0] + part->last;
        BSW_TRY(bsw_device_list_group_launch(batch, from > first[t] ? from : first[t],
                                             to < first[t + 1] ? to : first[t + 1], t, lists, err));
    }
    return BSW_OK;
}

// ---- tables ----

enum bsw_status bsw_device_list_group_send_tables(struct bsw_device_list_group *batch,
                                                  struct bsw_error *err)
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
static enum bsw_status scan_segments(struct bsw_device_list_group *batch, struct bsw_error *err)
{
    for (size_t s = 0; s < batch->table.num_segments; s++) {
        batch->segment = bsw_device_list_segment_at(&batch->table, s);
        BSW_TRY(bsw_device_list_run_parts(&batch->group.run, items_of(batch->segment), scan_items,
                                          batch, err));
    }
    return BSW_OK;
}

// What is in the tables, to make room.
static enum bsw_status flush(struct bsw_device_list_group *batch, struct bsw_error *err)
{
    batch->is_stepwise = 1;
    if (batch->table.num_items == 0) return BSW_OK;
    BSW_TRY(bsw_device_list_group_send_tables(batch, err));
    return scan_segments(batch, err);
}

// All segments with their cuts, without the host, but that no more than MOST_AHEAD of them are on
// their way.
static enum bsw_status queue_ahead(struct bsw_device_list_group *batch, struct bsw_error *err)
{
    struct bsw_device_list_run *run = &batch->group.run;
    batch->is_ahead = 1;
    BSW_TRY(bsw_device_list_group_send_tables(batch, err));
    for (size_t s = 0; s < batch->table.num_segments; s++) {
        batch->segment = bsw_device_list_segment_at(&batch->table, s);
        const struct bsw_device_part all = {0, (uint32_t)items_of(batch->segment), 1};
        if (s % MOST_AHEAD == MOST_AHEAD - 1) {
            run->num_waits++;
            BSW_TRY(bsw_device_wait(run->device, BSW_QUEUE_SCAN, "scan", err));
        }
        BSW_TRY(scan_items(batch, &all, &run->lists, err));
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
static enum bsw_status end_ahead(struct bsw_device_list_group *batch, struct bsw_error *err)
{
    struct bsw_device_list_run *run = &batch->group.run;
    int is_whole;
    if (!batch->is_ahead) return flush(batch, err);
    batch->is_ahead = 0;
    batch->is_stepwise = 1;
    BSW_TRY(bsw_device_list_run_end_ahead(run, &is_whole, err));
    if (is_whole) return BSW_OK;
    uint64_t num_waits = run->num_waits;
    bsw_device_list_run_begin(run);
    run->num_overflows = 1;
    run->num_waits = num_waits;
    BSW_TRY(bsw_device_group_send(&batch->group, batch->limits, err));
    return scan_segments(batch, err);
}

// ---- lists that queries chose ----

// With slots, some lists at a time where there are too many.
static enum bsw_status add_lists(struct bsw_device_list_group *batch,
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

// Finds the range of lists [begin, end).
static enum bsw_status find_range(struct bsw_device_list_group *batch, uint32_t begin, uint32_t end,
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
static struct bsw_device_list_cut cut_of(const struct bsw_device_list_group *batch,
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
static enum bsw_status add_step(struct bsw_device_list_group *batch,
                                const struct bsw_list_choice *choice, size_t from, size_t to,
                                struct bsw_error *err)
{
    struct bsw_list_groups *groups = &batch->group.engine->list_groups;
    struct bsw_device_list_range range = {.order = batch->order, .groups = groups};
    BSW_TRY(bsw_list_groups_make(choice, batch->order->num_lists, from, to, groups, err));
    BSW_TRY(find_range(batch, 0, batch->resident_lists, &range, err));
    const struct bsw_device_list_cut cut = cut_of(batch, &range, from > 0);
    return add_lists(batch, &range, &cut, err);
}

// What is scanned next: a block.
void bsw_device_list_group_look_at(struct bsw_device_list_group *batch,
                                   const struct bsw_device_list_block *block)
{
    batch->codes = block->codes;
    batch->codes.layout = batch->layout;
    batch->work.rows = block->rows;
    batch->bundle_lists = block->bundle_lists;
}

// What is on the device already.
void bsw_device_list_group_look_at_resident(struct bsw_device_list_group *batch)
{
    const struct bsw_device_shard *shard = batch->shard;
    batch->codes = shard->resident;
    batch->codes.layout = batch->layout;
    batch->work.rows = (const uint32_t *)(void *)shard->rows.data;
    batch->bundle_lists = (const uint32_t *)(void *)shard->lists.data;
}

// The lists that come in blocks, each once: all its queries, nearest list or not. A block is on its
// way while the one before is scanned, or what is on the device; that scan has been waited for when
// the block is taken again.
static enum bsw_status scan_streamed(struct bsw_device_list_group *batch,
                                     const struct bsw_list_choice *choice, struct bsw_error *err)
{
    struct bsw_device_engine *engine = batch->group.engine;
    struct bsw_device_list_range range = {.order = batch->order, .groups = &engine->list_groups};
    struct bsw_device_list_block blocks[2];
    struct bsw_device_list_cursor at = {0};
    BSW_TRY(bsw_list_groups_make(choice, batch->order->num_lists, 0, SIZE_MAX, &engine->list_groups,
                                 err));
    BSW_TRY(find_range(batch, batch->resident_lists, batch->order->num_lists, &range, err));
    const struct bsw_device_list_cut cut = cut_of(batch, &range, 0);
    BSW_TRY(bsw_device_list_block_next(engine, batch->shard, &range, &at, 0, &blocks[0], err));
    BSW_TRY(end_ahead(batch, err));
    for (unsigned turn = 0; blocks[turn].range.num > 0; turn ^= 1) {
        BSW_TRY(bsw_device_follow(engine->device, BSW_QUEUE_SCAN, BSW_QUEUE_COPY, err));
        BSW_TRY(bsw_device_list_block_next(engine, batch->shard, &range, &at, turn ^ 1,
                                           &blocks[turn ^ 1], err));
        bsw_device_list_group_look_at(batch, &blocks[turn]);
        bsw_device_list_table_clear(&batch->table);
        BSW_TRY(add_lists(batch, &blocks[turn].range, &cut, err));
        BSW_TRY(flush(batch, err));
    }
    bsw_device_list_group_look_at_resident(batch);
    return BSW_OK;
}

// As far as goes without waiting, if the tables hold all of them: the lists that are on the device.
static enum bsw_status begin_chosen(struct bsw_device_list_group *batch,
                                    const struct bsw_list_choice *choice, struct bsw_error *err)
{
    static const size_t ends[] = {1, FEW_LISTS, SIZE_MAX};
    for (size_t step = 0, from = 0; step < 3 && from < choice->most; from = ends[step++])
        BSW_TRY(add_step(batch, choice, from, ends[step], err));
    return batch->is_stepwise ? BSW_OK : queue_ahead(batch, err);
}

static enum bsw_status end_chosen(struct bsw_device_list_group *batch,
                                  const struct bsw_list_choice *choice, struct bsw_error *err)
{
    int is_whole = batch->resident_lists == batch->order->num_lists;
    return is_whole ? end_ahead(batch, err) : scan_streamed(batch, choice, err);
}

// ---- a batch ----

static void point_into_tables(struct bsw_device_list_group *batch)
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
                       struct bsw_device_list_group *batch)
{
    size_t rows = (size_t)shard->host->shape.num_rows;
    *batch = (struct bsw_device_list_group){.shard = shard,
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
    bsw_device_list_group_look_at_resident(batch);
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

// choice: of the group's queries, or NULL: then nothing is queued yet.
static enum bsw_status begin_group(struct bsw_device_list_group *batch,
                                   const struct bsw_list_choice *choice, struct bsw_error *err)
{
    bsw_device_list_table_clear(&batch->table);
    batch->is_stepwise = batch->is_ahead = 0;
    batch->has_additions = choice && choice->additions && !are_counts(&batch->group);
    bsw_device_group_point(&batch->group);
    batch->group.run.lists.is_unordered = 1;
    bsw_device_list_run_begin(&batch->group.run);
    BSW_TRY(bsw_device_group_send(&batch->group, batch->limits, err));
    return choice ? begin_chosen(batch, choice, err) : BSW_OK;
}

// The rest, after begin_group. items: on the host; not where candidates stay.
static enum bsw_status end_group(struct bsw_device_list_group *batch,
                                 const struct bsw_list_choice *choice,
                                 struct bsw_device_kept_span *kept, uint64_t *items, size_t *counts,
                                 struct bsw_error *err)
{
    struct bsw_device_engine *engine = batch->group.engine;
    struct bsw_device_list_run *run = &batch->group.run;
    enum bsw_status status =
        choice ? end_chosen(batch, choice, err) : bsw_device_list_group_scan_all(batch, err);
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

static void count_work(const struct bsw_device_list_group *batch, double started,
                       struct bsw_scan_workspace *workspace)
{
    const struct bsw_device_plan *plan = &batch->group.engine->plan;
    workspace->used = plan->product ? BSW_SCAN_TABLES : BSW_SCAN_MATRIX;
    workspace->scanned_bytes +=
        batch->scanned * bsw_device_bundle_bytes(&batch->layout, plan->keys, 0);
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
    struct bsw_device_list_group batch;
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
        status = begin_group(&batch, choice ? &own : NULL, err);
        if (status == BSW_OK)
            status = end_group(&batch, choice ? &own : NULL, kept, items + done * stride,
                               counts + done, err);
    }
    bsw_device_list_table_deinit(&batch.table);
    *num_list_pairs += batch.num_pairs;
    if (status == BSW_OK) count_work(&batch, started, workspace);
    return status;
}

// ---- in two steps ----

// A scan that was begun: what its group points to, and when.
struct bsw_device_list_begun {
    struct bsw_device_list_group batch;
    struct bsw_query_batch queries;
    struct bsw_list_choice choice;
    uint64_t *num_list_pairs;
    double started;
};

enum bsw_status
bsw_device_list_batch_begin(struct bsw_device_engine *engine, const struct bsw_device_shard *shard,
                            const struct bsw_list_choice *choice,
                            const struct bsw_query_range *queries, uint32_t scan_dims, size_t keep,
                            uint64_t *num_list_pairs, int *is_begun, struct bsw_error *err)
{
    struct bsw_device_list_begun *begun = engine->list_begun;
    *is_begun = 0;
    if (!choice || queries->num_queries == 0 || queries->num_queries > engine->plan.group_queries)
        return BSW_OK;
    if (!begun) BSW_TRY(bsw_allocate_zero(&engine->list_begun, 1, sizeof *begun, "a scan", err));
    begun = engine->list_begun;
    begun->started = bsw_clock_seconds();
    begun->queries = *queries->batch;
    begun->choice = *choice;
    begun->num_list_pairs = num_list_pairs;
    const struct bsw_query_range own = {&begun->queries, queries->first_query,
                                        queries->num_queries};
    init_batch(engine, shard, &own, scan_dims, keep, &begun->batch);
    begun->batch.group.first_query = queries->first_query;
    begun->batch.group.num_queries = queries->num_queries;
    *is_begun = 1;
    return begin_group(&begun->batch, &begun->choice, err);
}

enum bsw_status bsw_device_list_batch_end(struct bsw_device_engine *engine,
                                          struct bsw_device_kept_span *kept,
                                          struct bsw_scan_workspace *workspace,
                                          struct bsw_candidate_lists *out, struct bsw_error *err)
{
    struct bsw_device_list_begun *begun = engine->list_begun;
    struct bsw_device_list_group *batch = &begun->batch;
    enum bsw_status status;
    if (out) {
        status = bsw_candidate_lists_reserve(out, batch->group.num_queries, 0, err);
        if (status != BSW_OK) bsw_device_wait(engine->device, BSW_QUEUE_SCAN, "scan", NULL);
        kept->num_queries = 0;
        if (status == BSW_OK)
            status = end_group(batch, &begun->choice, kept, NULL,
                               (size_t *)(void *)out->counts.data, err);
    } else {
        status = bsw_device_wait(engine->device, BSW_QUEUE_SCAN, "scan", err);
    }
    bsw_device_list_table_deinit(&batch->table);
    *begun->num_list_pairs += batch->num_pairs;
    if (out && status == BSW_OK) count_work(batch, begun->started, workspace);
    return status;
}
