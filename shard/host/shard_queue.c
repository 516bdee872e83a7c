// SPDX-License-Identifier: Apache-2.0
#include "shard/host/shard_queue.h"

#include <omp.h>
#include <string.h>

#include "common/codes/result_order.h"
#include "shard/host/scan_group.h"
#include "shard/host/shard_tiles.h"

// A thread's memory: the candidates of a tile and the queues of as many queries as fit.
#define CHUNK_BYTES ((size_t)512 << 10)

void bsw_queue_scratch_deinit(struct bsw_queue_scratch *scratch)
{
    bsw_buffer_deinit(&scratch->lists);
    bsw_buffer_deinit(&scratch->items);
    bsw_buffer_deinit(&scratch->queues);
}

size_t bsw_queue_classes(uint64_t num_rows, uint64_t items, struct bsw_thread_class classes[3])
{
    uint64_t block_rows = items * BSW_QUEUE_THREADS, left = num_rows % block_rows;
    uint64_t whole = left / BSW_QUEUE_THREADS, more = left % BSW_QUEUE_THREADS;
    const struct bsw_thread_class all[3] = {{num_rows / block_rows * BSW_QUEUE_THREADS, items},
                                            {more, whole + 1},
                                            {BSW_QUEUE_THREADS - more, whole}};
    size_t count = 0;
    for (size_t c = 0; c < 3; c++) {
        if (all[c].num_threads > 0 && all[c].num_items > 0) classes[count++] = all[c];
    }
    return count;
}

// ---- what a thread does at a time: a chunk of queries over one block ----

static size_t tile_bundles(const struct bsw_scan_group *group)
{
    return group->is_matrix ? bsw_matrix_step(group) : bsw_planes_step(group);
}

static size_t queue_bytes(const struct bsw_scan_group *group)
{
    size_t length = (size_t)group->workspace->queue.length;
    return length * BSW_QUEUE_THREADS * sizeof(uint64_t);
}

static size_t chunk_queries(const struct bsw_scan_group *group)
{
    size_t bytes = tile_bundles(group) * BSW_BUNDLE_ROWS * sizeof(uint64_t) + queue_bytes(group);
    size_t fit = CHUNK_BYTES / bytes;
    return fit < 1 ? 1 : fit < group->num_queries ? fit : group->num_queries;
}

enum bsw_status bsw_queue_plan(const struct bsw_scan_group *group, struct bsw_error *err)
{
    struct bsw_queue_scratch *scratch = &group->workspace->queue_scratch;
    size_t lists = (size_t)group->workspace->num_threads * chunk_queries(group);
    size_t tile_bytes = tile_bundles(group) * BSW_BUNDLE_ROWS * sizeof(uint64_t);
    BSW_TRY(bsw_buffer_reserve(&scratch->lists, lists * sizeof(struct bsw_running_best), err));
    BSW_TRY(bsw_buffer_reserve(&scratch->items, lists * tile_bytes, err));
    return bsw_buffer_reserve(&scratch->queues, lists * queue_bytes(group), err);
}

// The group as one thread sees it: some queries, arrays of its own, lists that take whole tiles.
static struct bsw_scan_group part_of(const struct bsw_scan_group *group, size_t thread,
                                     size_t first, size_t num)
{
    struct bsw_scan_group part = *group;
    size_t chunk = chunk_queries(group), dims = group->shard->shape.layout.padded_dims;
    part.first_query += first;
    part.num_queries = num;
    part.capacity = part.keep = tile_bundles(group) * BSW_BUNDLE_ROWS;
    part.lists = (struct bsw_running_best *)(void *)group->workspace->queue_scratch.lists.data +
                 thread * chunk;
    part.scratch = NULL; // lists are never cut
    part.stopped += thread;
    if (!group->is_matrix) {
        part.dots += thread * BSW_TILE_ROWS;
        part.places += thread * BSW_TILE_ROWS;
        return part;
    }
    part.outputs += thread * group->num_queries;
    part.slacks += thread * group->num_queries;
    part.tiles += thread * group->tile_bytes;
    part.matrix.num_queries = num;
    part.matrix.components += first * dims;
    part.matrix.constants += first;
    if (part.matrix.scales) part.matrix.scales += first;
    return part;
}

// A tile's rows into the queues of every query of the part.
static void scan_tile(const struct bsw_scan_group *part, size_t bundle, size_t num_bundles,
                      uint64_t *items, uint64_t *queues)
{
    const struct bsw_scan_workspace *workspace = part->workspace;
    const struct bsw_scan_run run = {bundle, bundle + num_bundles, num_bundles, num_bundles};
    size_t length = (size_t)workspace->queue.length;
    for (size_t q = 0; q < part->num_queries; q++)
        bsw_running_best_init(&part->lists[q], items + q * part->capacity, part->capacity,
                              part->keep);
    if (part->is_matrix)
        bsw_scan_matrix(part, 0, run);
    else
        bsw_scan_planes(part, 0, run);
    for (size_t q = 0; q < part->num_queries; q++)
        workspace->select->queue_insert(part->lists[q].items, part->lists[q].count, length,
                                        queues + q * length * BSW_QUEUE_THREADS);
}

// What a block's threads kept for a query, to the list of the CPU's thread. Blocks ascend, so
// that the list may be cut between them.
static void take_queues(const struct bsw_scan_group *group, struct bsw_running_best *list,
                        const uint64_t *queues, uint64_t *scratch)
{
    size_t num = (size_t)group->workspace->queue.length * BSW_QUEUE_THREADS;
    if (list->count + num > list->capacity)
        bsw_running_best_cut(list, group->workspace->select, scratch);
    if (list->is_full) return;
    for (size_t i = 0; i < num; i++) {
        list->items[list->count] = queues[i];
        list->count += queues[i] != 0 && bsw_candidate_score(queues[i]) >= list->limit;
    }
}

static void scan_block(const struct bsw_scan_group *group, size_t thread, size_t block,
                       size_t first_query, size_t num_queries)
{
    const struct bsw_queue_scratch *scratch = &group->workspace->queue_scratch;
    struct bsw_scan_group part = part_of(group, thread, first_query, num_queries);
    size_t chunk = chunk_queries(group), step = tile_bundles(group);
    size_t length = queue_bytes(group) / sizeof(uint64_t);
    uint64_t *items = (uint64_t *)(void *)scratch->items.data + thread * chunk * part.capacity;
    uint64_t *queues = (uint64_t *)(void *)scratch->queues.data + thread * chunk * length;
    struct bsw_running_best *lists = group->lists + thread * group->num_queries + first_query;
    size_t block_bundles =
        (size_t)group->workspace->queue.items * BSW_QUEUE_THREADS / BSW_BUNDLE_ROWS;
    size_t bundle = block * block_bundles, last = bundle + block_bundles;
    if (last > group->shard->num_bundles) last = group->shard->num_bundles;
    memset(queues, 0, num_queries * length * sizeof *queues);
    for (; bundle < last; bundle += step)
        scan_tile(&part, bundle, last - bundle < step ? last - bundle : step, items, queues);
    for (size_t q = 0; q < num_queries; q++)
        take_queues(group, &lists[q], queues + q * length,
                    group->scratch + thread * 4 * group->capacity);
}

void bsw_queue_scan(const struct bsw_scan_group *group)
{
    size_t block_bundles =
        (size_t)group->workspace->queue.items * BSW_QUEUE_THREADS / BSW_BUNDLE_ROWS;
    size_t num_blocks = (group->shard->num_bundles + block_bundles - 1) / block_bundles;
    size_t chunk = chunk_queries(group), next = 0;
    size_t num_chunks = (group->num_queries + chunk - 1) / chunk;
#pragma omp parallel num_threads(group->workspace->num_threads)
    for (;;) {
        size_t work;
#pragma omp atomic capture
        work = next++;
        if (work >= num_blocks * num_chunks) break;
        size_t first = work % num_chunks * chunk, left = group->num_queries - first;
        scan_block(group, (size_t)omp_get_thread_num(), work / num_chunks, first,
                   left < chunk ? left : chunk);
    }
}
