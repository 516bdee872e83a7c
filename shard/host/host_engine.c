// SPDX-License-Identifier: Apache-2.0
#include "shard/host/host_engine.h"

#include <omp.h>

#include "common/codes/metric.h"
#include "shard/host/list_tables.h"
#include "shard/host/shard_queue.h"
#include "shard/host/shard_tiles.h"

void bsw_host_scratch_deinit(struct bsw_host_scratch *scratch)
{
    struct bsw_buffer *buffers[] = {&scratch->components, &scratch->constants, &scratch->stage,
                                    &scratch->lists,      &scratch->items,     &scratch->limits,
                                    &scratch->threads,    &scratch->masks};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) bsw_buffer_deinit(buffers[i]);
    bsw_list_table_scratch_deinit(&scratch->tables);
    bsw_work_deinit(&scratch->work);
}

static size_t queue_items(const struct bsw_host_scan *scan)
{
    return scan->queue_length * BSW_QUEUE_THREADS;
}

// Parts of a thread's scratch for the work's runs; at NULL: counts the bytes alone. Those of slots
// come last: lists are raised and finished without.
static size_t divide_scratch(const struct bsw_host_scan *scan, unsigned char *at,
                             struct bsw_host_thread *out)
{
    size_t slots = scan->work ? scan->work->most_slots : 0, tile = BSW_TILE_ROWS;
    size_t most = queue_items(scan) > tile ? queue_items(scan) : tile;
    size_t merged = (scan->running.capacity + most) * sizeof(uint64_t);
    const struct bsw_memory_part parts[] = {
        {&out->room.merged, merged},
        {&out->room.scratch, merged},
        {&out->found, tile * sizeof(uint64_t)},
        {&out->dots, tile * sizeof(int32_t)},
        {&out->places, tile * sizeof(uint32_t)},
        {&out->bytes, bsw_matrix_tile_bytes(scan->padded_dims, scan->way.matrix_bundles)},
        {&out->components, scan->work && !scan->work->is_in_order ? slots * scan->padded_dims : 0},
        {&out->constants, slots * sizeof(int32_t)},
        {&out->scales, slots * sizeof(float)},
        {&out->slacks, slots * sizeof(float)},
        {&out->outputs, slots * sizeof(struct bsw_matrix_output)},
        {&out->slots, slots * bsw_host_slot_items(scan) * sizeof(uint64_t)},
        {&out->queues, slots * queue_items(scan) * sizeof(uint64_t)}};
    return bsw_divide_memory(parts, sizeof parts / sizeof parts[0], at);
}

static struct bsw_host_thread thread_of(const struct bsw_host_scan *scan)
{
    struct bsw_host_thread thread = {0};
    size_t bytes = divide_scratch(scan, NULL, &thread);
    divide_scratch(scan, scan->scratch->threads.data + (size_t)omp_get_thread_num() * bytes,
                   &thread);
    return thread;
}

// The shard's masks of rows with the one of those that may be found.
static enum bsw_status join_masks(struct bsw_host_scan *scan, struct bsw_error *err)
{
    const uint32_t *masks = scan->shard.mask->bundles;
    size_t num = scan->shard.num_bundles;
    BSW_TRY(bsw_buffer_reserve(&scan->scratch->masks, num * sizeof *masks + 1, err));
    uint32_t *both = (uint32_t *)(void *)scan->scratch->masks.data;
    for (size_t b = 0; b < num; b++) both[b] = scan->shard.arrays.masks[b] & masks[b];
    scan->shard.arrays.masks = both;
    return BSW_OK;
}

enum bsw_status bsw_host_scan_open(const struct bsw_resident_shard *shard,
                                   const struct bsw_query_range *queries,
                                   const struct bsw_host_way *way,
                                   struct bsw_scan_workspace *workspace,
                                   struct bsw_host_scratch *scratch, struct bsw_host_scan *out,
                                   struct bsw_error *err)
{
    *out = (struct bsw_host_scan){.shard = *shard,
                                  .queries = queries,
                                  .workspace = workspace,
                                  .scratch = scratch,
                                  .family =
                                      shard->shape.has_tables ? &bsw_host_tables : &bsw_host_codes,
                                  .way = *way,
                                  .queue_length = (size_t)workspace->queue.length,
                                  .padded_dims = shard->shape.layout.padded_dims};
    if (shard->mask) BSW_TRY(join_masks(out, err));
    return out->family->open(out, err);
}

enum bsw_status bsw_host_scan_begin(struct bsw_host_scan *scan, size_t keep, const uint32_t *limits,
                                    struct bsw_error *err)
{
    const struct bsw_scan_workspace *workspace = scan->workspace;
    scan->running = (struct bsw_running_lists){.keep = keep,
                                               .is_shared = workspace->num_threads > 1,
                                               .select = workspace->select,
                                               .merge = workspace->merge,
                                               .rows = scan->shard.order.rows};
    return bsw_running_lists_begin(&scan->running, scan->queries->num_queries, limits,
                                   &scan->scratch->lists, &scan->scratch->items, err);
}

// ---- what is found ----

static uint64_t *queue_of(const struct bsw_host_scan *scan, const struct bsw_host_thread *thread,
                          size_t i)
{
    return thread->queues + i * queue_items(scan);
}

void bsw_host_found(const struct bsw_host_scan *scan, const struct bsw_host_thread *thread,
                    size_t i, const uint64_t *found, size_t num)
{
    if (scan->queue_length > 0)
        scan->workspace->select->queue_insert(found, num, scan->queue_length,
                                              queue_of(scan, thread, i));
    else
        bsw_running_lists_add(&scan->running, bsw_host_query(scan, thread, i), found, num,
                              thread->room);
}

// What the threads of a block kept for a slot, to its query's list.
static void take_queue(const struct bsw_host_scan *scan, const struct bsw_host_thread *thread,
                       size_t i)
{
    uint64_t *items = queue_of(scan, thread, i);
    size_t query = bsw_host_query(scan, thread, i), count = 0;
    uint32_t limit = bsw_running_limit(&scan->running, query);
    for (size_t j = 0; j < queue_items(scan); j++) {
        items[count] = items[j];
        count += items[j] != 0 && bsw_candidate_score(items[j]) >= limit;
    }
    if (count > 0) bsw_running_lists_add(&scan->running, query, items, count, thread->room);
}

// ---- runs ----

// Runs that are short and lie anywhere are foreseen by no prefetcher.
static void look_ahead(const struct bsw_host_scan *scan, struct bsw_host_thread *thread, size_t r)
{
    const struct bsw_work *work = scan->work;
    const struct bsw_run *now = &work->runs[r], *next = now + 1;
    if (!work->is_scattered || r + 1 == work->num_runs || next->first_bundle == now->first_bundle)
        return;
    thread->ahead = bsw_tile_ahead_of(&scan->shard, next->first_bundle, next->num_bundles);
}

// Places of a list's last bundle may have no row.
static uint64_t num_rows(const struct bsw_host_scan *scan, const struct bsw_run *run)
{
    const uint32_t *rows = scan->shard.order.rows;
    const struct bsw_row_mask *mask = scan->shard.mask;
    if (mask) return bsw_row_mask_count(mask, run->first_bundle, run->num_bundles);
    size_t first = (size_t)run->first_bundle * BSW_BUNDLE_ROWS,
           last = first + (size_t)run->num_bundles * BSW_BUNDLE_ROWS;
    if (!rows && last > scan->shard.shape.num_rows) last = (size_t)scan->shard.shape.num_rows;
    while (rows && last > first && rows[last - 1] == BSW_NO_ROW) last--;
    return last - first;
}

static void scan_run(const struct bsw_host_scan *scan, struct bsw_host_thread *thread, size_t r)
{
    size_t at = 0;
    thread->run = scan->work->runs[r];
    if (bsw_host_tile(scan, thread, &at, 1, 1) == 0) return; // the mask has none of its rows
    look_ahead(scan, thread, r);
    if (scan->queue_length > 0)
        memset(thread->queues, 0, thread->run.num_slots * queue_items(scan) * sizeof(uint64_t));
    scan->family->scan_run(scan, thread);
    for (size_t i = 0; i < thread->run.num_slots && scan->queue_length > 0; i++)
        take_queue(scan, thread, i);
    bsw_tile_ahead_ask(&thread->ahead, SIZE_MAX); // what nobody asked for
    thread->num_pairs += thread->run.num_slots * num_rows(scan, &thread->run);
    thread->num_bundles += thread->run.num_bundles;
}

enum bsw_status bsw_host_scan_run(struct bsw_host_scan *scan, const struct bsw_work *work,
                                  struct bsw_error *err)
{
    struct bsw_host_thread any;
    size_t num_threads = (size_t)scan->workspace->num_threads;
    uint64_t stopped = 0, pairs = 0, bundles = 0;
    scan->work = work;
    BSW_TRY(bsw_buffer_reserve(&scan->scratch->threads,
                               num_threads * divide_scratch(scan, NULL, &any), err));
    int chunk = work->is_scattered ? 4 : 1;
#pragma omp parallel num_threads(scan->workspace->num_threads) reduction(+ : stopped, pairs, bundles)
    {
        struct bsw_host_thread thread = thread_of(scan);
#pragma omp for schedule(dynamic, chunk)
        for (size_t r = 0; r < work->num_runs; r++) scan_run(scan, &thread, r);
        stopped += thread.num_stopped;
        pairs += thread.num_pairs;
        bundles += thread.num_bundles;
    }
    scan->workspace->num_stopped += stopped;
    scan->num_pairs += pairs;
    scan->num_bundles += bundles;
    return BSW_OK;
}

// ---- lists ----

void bsw_host_scan_raise(const struct bsw_host_scan *scan, uint32_t *limits)
{
    size_t num = scan->queries->num_queries;
#pragma omp parallel num_threads(scan->workspace->num_threads)
    {
        struct bsw_host_thread thread = thread_of(scan);
#pragma omp for schedule(static)
        for (size_t q = 0; q < num; q++) {
            bsw_running_lists_raise(&scan->running, q, thread.room);
            if (limits) limits[q] = bsw_running_limit(&scan->running, q);
        }
    }
}

void bsw_host_scan_finish(const struct bsw_host_scan *scan, const uint32_t *queries, size_t num,
                          uint64_t *items, size_t stride, size_t *counts)
{
#pragma omp parallel num_threads(scan->workspace->num_threads)
    {
        struct bsw_host_thread thread = thread_of(scan);
#pragma omp for schedule(dynamic, 8)
        for (size_t i = 0; i < num; i++) {
            size_t q = queries ? queries[i] : i;
            counts[q] =
                bsw_running_lists_finish(&scan->running, q, items + q * stride, thread.room);
        }
    }
}
