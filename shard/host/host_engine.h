// SPDX-License-Identifier: Apache-2.0
// The engine of CPU cores: work items (shard/scan/work.h) over a resident shard.
//
// Threads take run after run. A run is scanned tile by tile, each for all slots of the run: a
// tile's codes stay in the second cache meanwhile, its integers in the first. How, is the family's:
// planes and bytes (host_codes.c) or tables (host_tables.c). What reaches the limit of its query
// goes to one running list a query, which all threads share, or first to the queues of rbeGIR
// (shard_queue.h). Limits rise while it goes on. Answers depend on none of this.
#ifndef BITSWEEP_SHARD_HOST_ENGINE_H
#define BITSWEEP_SHARD_HOST_ENGINE_H

#include <string.h>

#include "kernels/matrix_scan/matrix_scan.h"
#include "kernels/tuning/scan_tuning.h"
#include "shard/host/list_bounds.h"
#include "shard/host/running_lists.h"
#include "shard/host/scan_stage.h"
#include "shard/host/shard_scan.h"
#include "shard/host/tile_ahead.h"
#include "shard/scan/work.h"

#define BSW_HOST_MOST_SLOTS 2048 // of a run

struct bsw_host_scan;
struct bsw_host_thread;

// Codes of one kind: planes and bytes, or places in a codebook.
struct bsw_host_family {
    // Queries of the scan as runs want them.
    enum bsw_status (*open)(struct bsw_host_scan *scan, struct bsw_error *err);
    void (*scan_run)(const struct bsw_host_scan *scan, struct bsw_host_thread *thread);
};
extern const struct bsw_host_family bsw_host_codes, bsw_host_tables;

// How a shard is scanned, as the makers of work know it (shard_scan.c, list_scan.c).
struct bsw_host_way {
    size_t matrix_bundles, plane_bundles; // of a tile; the second by tables as well
    uint32_t matrix_from; // slots of a run from which on a tile is unpacked for all of them
    uint32_t stage_dims;  // of a progressive scan; 0: none
    int is_staged_always; // also where it does not pay
    size_t bounded_from;  // bundles of a run from which on tables have bounds
    struct bsw_scan_tuning tuning;
};

// A batch's queries, or some of them, under way.
struct bsw_host_scan {
    struct bsw_resident_shard shard; // of the dimensions and rows that are looked at
    const struct bsw_query_range *queries;
    struct bsw_scan_workspace *workspace;
    struct bsw_host_scratch *scratch;
    const struct bsw_host_family *family;
    struct bsw_host_way way;
    struct bsw_running_lists running;
    const struct bsw_work *work;
    size_t queue_length; // 0: no queues
    uint32_t padded_dims;
    // Codes: components [num_queries][padded_dims]; scales NULL for whole keys.
    const int8_t *components;
    const int32_t *constants;
    const float *scales;
    struct bsw_scan_stage stage;
    // Tables.
    struct bsw_list_tables tables;
    struct bsw_list_bounds bounds;
    int has_bounds;
    // Counted over all works: pairs of row and slot, bundles of runs.
    uint64_t num_pairs, num_bundles;
};

struct bsw_host_thread {
    struct bsw_run run; // under way
    // Arrays of its slots, side by side.
    int8_t *components;
    int32_t *constants;
    float *scales, *slacks;
    struct bsw_matrix_output *outputs;
    size_t ready_first, ready_slots; // slots that outputs are ready for
    uint64_t *slots;                 // [slots][bsw_host_slot_items]
    uint64_t *queues;                // [slots][queue items]
    uint64_t *found;                 // of one slot in a tile
    uint8_t *bytes;                  // of a tile
    int32_t *dots;
    uint32_t *places;
    struct bsw_running_room room;
    struct bsw_tile_ahead ahead; // of the next run
    unsigned resting;            // tiles until the next try of a stage
    uint64_t num_stopped, num_pairs, num_bundles;
};

// Queries of the range to be scanned for, in the rows that shard->mask has; all is borrowed.
enum bsw_status bsw_host_scan_open(const struct bsw_resident_shard *shard,
                                   const struct bsw_query_range *queries,
                                   const struct bsw_host_way *way,
                                   struct bsw_scan_workspace *workspace,
                                   struct bsw_host_scratch *scratch, struct bsw_host_scan *out,
                                   struct bsw_error *err);
// Empty lists of the best `keep`, with limits [num_queries], or NULL.
enum bsw_status bsw_host_scan_begin(struct bsw_host_scan *scan, size_t keep, const uint32_t *limits,
                                    struct bsw_error *err);
// Adds what the work finds.
enum bsw_status bsw_host_scan_run(struct bsw_host_scan *scan, const struct bsw_work *work,
                                  struct bsw_error *err);
// Limits by what was found; limits [num_queries], or NULL, takes them: 0 where lists are not full.
void bsw_host_scan_raise(const struct bsw_host_scan *scan, uint32_t *limits);
// The best of queries, or of all, in order: of query q to items + q * stride, and counts[q].
void bsw_host_scan_finish(const struct bsw_host_scan *scan, const uint32_t *queries, size_t num,
                          uint64_t *items, size_t stride, size_t *counts);

// ---- for families ----

// Candidates of a slot lie so far apart that those of all do not share cache sets.
static inline size_t bsw_host_slot_items(const struct bsw_host_scan *scan)
{
    return scan->way.matrix_bundles * BSW_BUNDLE_ROWS + BSW_ALIGNMENT_BYTES / sizeof(uint64_t);
}

static inline uint32_t bsw_host_query(const struct bsw_host_scan *scan,
                                      const struct bsw_host_thread *thread, size_t i)
{
    return scan->work->queries[thread->run.first_slot + i];
}

static inline float bsw_host_addition(const struct bsw_host_scan *scan,
                                      const struct bsw_host_thread *thread, size_t i)
{
    return scan->work->additions ? scan->work->additions[thread->run.first_slot + i] : 0.0f;
}

// Queues want every key.
static inline uint32_t bsw_host_limit(const struct bsw_host_scan *scan, size_t query)
{
    return scan->queue_length > 0 ? 0 : bsw_running_limit(&scan->running, query);
}

// What slot i of the run found in a tile: keys as they are to be.
void bsw_host_found(const struct bsw_host_scan *scan, const struct bsw_host_thread *thread,
                    size_t i, const uint64_t *found, size_t num);

// The next tile of the run, from its bundle *at on, `step` bundles at most; returns how many, 0
// where the run ends. With a mask it begins at a bundle that has rows, *at then, and ends before
// `gap` bundles or more that have none.
static inline size_t bsw_host_tile(const struct bsw_host_scan *scan,
                                   const struct bsw_host_thread *thread, size_t *at, size_t step,
                                   size_t gap)
{
    const uint32_t *masks = scan->shard.arrays.masks + thread->run.first_bundle;
    size_t end = thread->run.num_bundles, last;
    if (!scan->shard.mask) return end - *at < step ? end - *at : step;
    while (*at < end && masks[*at] == 0) ++*at;
    if (end - *at > step) end = *at + step;
    last = *at;
    for (size_t b = *at; b < end && b - last < gap; b++)
        if (masks[b] != 0) last = b + 1;
    return last - *at;
}

#endif
