// SPDX-License-Identifier: Apache-2.0
// A rank's shards on its device, and one batch of queries over some of them: the same lists as
// bsw_shard_scan gives for a shard that holds the rows of all.
//
// Codes lie in device memory as far as device_plan.h has room for them, the others stay in host
// memory and come block by block, the next one copied while the current one is scanned. Bundles are
// scanned in segments, for all queries of a group (device_lists.h), so the device waits for the
// host a few times a batch.
#ifndef BITSWEEP_SHARD_DEVICE_SHARD_H
#define BITSWEEP_SHARD_DEVICE_SHARD_H

#include <stddef.h>
#include <stdint.h>

#include "common/device/device_blocks.h"
#include "kernels/gpu_lists/gpu_lists.h"
#include "shard/device/device_kept.h"
#include "shard/device/device_lists.h"
#include "shard/device/device_plan.h"
#include "shard/device/device_refine.h"
#include "shard/host/shard_scan.h"
#include "shard/scan/work.h"

// What all shards of a rank share. Everything is allocated when it is opened, nothing for a batch.
struct bsw_device_engine {
    bsw_device *device; // borrowed
    struct bsw_device_plan plan;
    struct bsw_device_buffer queries, blocks[2], tables, gpu_lists, book;
    unsigned char *staging;       // host: what is uploaded for a group, as in plan.queries
    unsigned char *table_staging; // host: work items on their way, as in tables
    uint32_t *list_counts;        // host: of group_queries, as downloaded
    uint64_t *answers;            // host: [group_queries][keep], likewise; NULL: too many
    uint64_t *survivors;          // host: one number, as downloaded; NULL without a stage
    struct bsw_device_list_totals *list_totals; // host: likewise; NULL: items are the host's
    uint64_t *entry_counts;            // host: two, likewise; NULL without a selection of entries
    unsigned char *readback;           // host: device_readback.h
    struct bsw_device_blocks transfer; // codes and lists on their way
    int is_checked;         // device_self_check.h, with the first shard that is on the device
    uint64_t launches_seen; // by the counts; none before the last shard was loaded
    struct bsw_scan_counts counts;                                // since it was opened
    struct bsw_list_groups list_groups;                           // scratch
    struct bsw_buffer lists_looked_at;                            // likewise
    struct bsw_buffer block_numbers, block_runs, block_orders[2]; // device_list_blocks.h
    struct bsw_device_graphs *graphs; // device_graph.h; owned, NULL: none are wanted
    struct bsw_device_group *begun;   // bsw_device_scan_begin's; owned
};

enum bsw_status bsw_device_engine_open(bsw_device *device, const struct bsw_device_needs *needs,
                                       struct bsw_device_engine *out, struct bsw_error *err);
void bsw_device_engine_close(struct bsw_device_engine *engine);

struct bsw_device_mask;

struct bsw_device_shard {
    const struct bsw_resident_shard *host; // borrowed
    struct bsw_device_buffer memory;
    struct bsw_device_buffer rows;    // uint32_t of each place, with lists
    struct bsw_device_buffer lists;   // uint32_t of each bundle, for tables of lists
    struct bsw_device_codes resident; // bundles [0, resident.num_bundles)
    struct bsw_device_mask *mask;     // device_mask.h; owned, NULL: scans find all rows
    size_t num_bundles;
    struct bsw_device_list_shape shape; // on the device, where the engine's plan has gpu_lists
    uint64_t *longest;                  // then: bundles of the n longest lists; owned
    struct bsw_device_pinned
        pinned[BSW_MAX_SEGMENTS + 4]; // arrays of host whose copies go at full speed
    size_t num_pinned;
    int is_pinned; // all arrays that blocks are copied from
};

// Where the arrays lie that are on a device; the others are NULL.
struct bsw_code_arrays bsw_device_code_arrays(const struct bsw_device_codes *codes);

// Shard `index` of the needs. The engine's first is checked against the CPU. Codes that are all on
// the device are freed in host memory; the rest of the shard stays as it is.
enum bsw_status bsw_device_shard_load(struct bsw_device_engine *engine, size_t index,
                                      struct bsw_resident_shard *host, struct bsw_device_shard *out,
                                      struct bsw_error *err);
void bsw_device_shard_unload(struct bsw_device_engine *engine, struct bsw_device_shard *shard);

// Where codes of so many bundles lie in `memory`.
void bsw_device_codes_point(const struct bsw_device_plan *plan, size_t num_bundles,
                            const struct bsw_device_buffer *memory, struct bsw_device_codes *out);

// Bundles [first, first + num_bundles) of the host's codes on their way to bundle `to` of codes, on
// BSW_QUEUE_COPY. is_pinned: what they are copied from stays in place.
enum bsw_status bsw_device_copy_run(struct bsw_device_engine *engine,
                                    const struct bsw_device_shard *shard, size_t first,
                                    size_t num_bundles, size_t to, int is_pinned,
                                    const struct bsw_device_codes *codes, struct bsw_error *err);

// The same to the beginning of `memory`; *out: where they lie then.
enum bsw_status bsw_device_copy_codes(struct bsw_device_engine *engine,
                                      const struct bsw_device_shard *shard, size_t first,
                                      size_t num_bundles, const struct bsw_device_buffer *memory,
                                      int is_pinned, struct bsw_device_codes *out,
                                      struct bsw_error *err);

// Shards that follow each other in the index, as if they were one whose row 0 is the first's: a
// span (assignment.h). With queues it is one shard.
struct bsw_device_span {
    const struct bsw_device_shard *const *shards; // [num_shards], borrowed
    size_t num_shards;                            // >= 1
};

// What is scanned of a span: the codes of all its rows, in segments (device_whole.c), or work items
// of lists (device_items.c), for a span of one shard with lists.
struct bsw_device_maker;
struct bsw_device_coarse;
extern const struct bsw_device_maker bsw_device_whole, bsw_device_items;

// A scan; all that it points to is borrowed until it has ended.
struct bsw_device_task {
    const struct bsw_device_maker *maker;
    struct bsw_device_span span;
    struct bsw_query_range queries;
    const struct bsw_list_choice *choice; // of items; NULL: all queries look at all lists
    struct bsw_device_coarse *coarse;     // which makes a choice that was put off, or NULL
    uint32_t scan_dims;                   // of items: as struct bsw_probe_settings has them
    const struct bsw_row_mask *masks;     // [num_shards]: rows that may be found; NULL: all
    const uint32_t *limits;               // [queries]; NULL: none
    size_t keep;
    // Only its `scan` and `queue` are read, which is that of the needs or {0}, and its figures
    // are added to. Both progressive kinds are the progressive matrix scan, from the second segment
    // on, on a Hopper GPU whose kernel has room for the stage, else the full one; AUTO is too where
    // the tuning says so, as long as that pays (device_stage.h).
    struct bsw_scan_workspace *workspace;
    // Where the lists stay on the device, those before are gone and `out` has the counts alone;
    // NULL: they come to `out`.
    struct bsw_device_kept_span *kept;
    int is_continued; // lists that stay are added to those before
    // Where they may be refined behind the scan, as all that is found survives; NULL: they may not.
    // `out` has the counts alone where that was done (bsw_device_scan_end).
    struct bsw_device_refiner *refiner;
    const struct bsw_device_raw_shard *rows;
};

// The candidates of bsw_shard_scan, or of bsw_list_scan, of which num_list_pairs is that. The host
// waits once for each group of queries where all codes are on the device and it decides nothing
// between segments, whatever the number of shards; the launches of whole shards are then one graph
// from the second group of a shape on (device_graph.h).
enum bsw_status bsw_device_scan(struct bsw_device_engine *engine,
                                const struct bsw_device_task *task, struct bsw_candidate_lists *out,
                                uint64_t *num_list_pairs, struct bsw_error *err);

// The same in two steps: begin queues as much as goes without waiting, if the queries are one
// group, and end does the rest. In between the engine scans nothing else; work on other queues is
// free to go on. end also after an error of begin; out NULL: the lists are of no use.
enum bsw_status bsw_device_scan_begin(struct bsw_device_engine *engine,
                                      const struct bsw_device_task *task, struct bsw_error *err);
enum bsw_status bsw_device_scan_end(struct bsw_device_engine *engine,
                                    struct bsw_candidate_lists *out, uint64_t *num_list_pairs,
                                    struct bsw_refined_lists *refined, struct bsw_error *err);

#endif
