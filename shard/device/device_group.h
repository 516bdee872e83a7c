// SPDX-License-Identifier: Apache-2.0
// A group of queries of a batch under way on a device: where its queries and lists lie in the
// engine's memory, how they get there (device_group.c), and from one group to the next
// (device_engine.c). What is scanned for them, their maker knows.
#ifndef BITSWEEP_SHARD_DEVICE_GROUP_H
#define BITSWEEP_SHARD_DEVICE_GROUP_H

#include "shard/device/device_list_blocks.h"
#include "shard/device/device_shard.h"
#include "shard/device/device_stage.h"
#include "shard/device/device_tables.h"

struct bsw_device_group;

// Makes what is scanned for a group.
struct bsw_device_maker {
    // How, once for all groups of a batch.
    enum bsw_scan_kind (*choose)(struct bsw_device_group *group, size_t num_queries);
    // As far as goes without the host, queries and limits first; the group and its run are set to
    // begin.
    enum bsw_status (*begin)(struct bsw_device_group *group, struct bsw_error *err);
    // The rest: all scans are over, and run.counts those of the lists. Also after an error of its
    // own the run's figures are right.
    enum bsw_status (*end)(struct bsw_device_group *group, struct bsw_error *err);
};

// Lists of a shard as device_items.c scans them.
struct bsw_device_item_run {
    const struct bsw_list_order *order;
    uint32_t resident_lists;          // on the device as a whole, the first; others come in blocks
    struct bsw_list_choice choice;    // of the group; num_queries 0: all lists
    struct bsw_code_layout layout;    // of the dimensions that keys are made of
    struct bsw_device_codes codes;    // under way: of the shard, or of a block
    struct bsw_device_list_work work; // all of the tables
    struct bsw_device_list_table table;
    const float *centroids; // c' of all lists, on the device; NULL: tables are of queries alone
    const uint32_t *bundle_lists; // likewise, the list of each bundle
    size_t room_bundles;          // of one query that are sure to have room in its list
    size_t seen_bundles;          // of all lists, by all queries
    int has_additions;
    int is_on_device;                              // the device makes the items
    int is_stepwise;                               // what lists hold by now the host has seen
    int is_ahead;                                  // segments are queued that nobody waited for
    const struct bsw_device_list_segment *segment; // under way
};

struct bsw_device_group {
    struct bsw_device_engine *engine;
    struct bsw_device_task task;
    const struct bsw_device_span *span;   // the task's
    const struct bsw_code_layout *layout; // that components are of: the engine's, or its first
                                          // dimensions
    size_t num_bundles, num_rows;         // of the span
    uint64_t num_masked;                  // of these rows, those that may be found
    int is_resident;                      // all of it
    const struct bsw_query_batch *batch;
    size_t first_query, num_queries; // in the batch
    int is_matrix, is_staged, has_queues;
    enum bsw_scan_kind kind; // what all of it is
    int is_open, is_begun;   // device_engine.c: a scan that was begun, and its only group was
    int is_sorted;           // the lists, or they will be: it is queued
    size_t first_staged;     // place in the queries' memory from which on staging is uploaded
    struct bsw_device_stage stage;
    struct bsw_device_stage_run stage_run;
    struct bsw_refined_lists refined; // the lists, or they will be
    uint64_t stopped;                 // pairs of row and query, by the first stage
    struct bsw_device_queries queries;
    struct bsw_device_table_run tables; // of product codes
    struct bsw_device_list_run run;
    struct bsw_device_item_run items;
    const uint32_t *limits;                 // of the group; NULL: none
    uint64_t scanned;                       // bundles, with those that overflowed
    uint64_t num_row_pairs, num_list_pairs; // of query and row, or list, looked at
    double started;
};

// Sets the group's pointers into the memory of its engine.
void bsw_device_group_point(struct bsw_device_group *group);

// Queries, limits and empty lists on their way to the device, on BSW_QUEUE_SCAN, and components
// where it is_matrix. Nothing of an earlier group is under way, and the staging memory is written
// again only after a segment has been waited for.
enum bsw_status bsw_device_group_send(struct bsw_device_group *group, struct bsw_error *err);
// The same in two steps: what changes from batch to batch, into staging memory that stays in place
// (and words that are on the device already, for which a copy is queued), then its upload and all
// else, which is the same for as many queries.
enum bsw_status bsw_device_group_stage(struct bsw_device_group *group, struct bsw_error *err);
enum bsw_status bsw_device_group_upload(const struct bsw_device_group *group,
                                        struct bsw_error *err);

// After what was queued without the host was of no use: from the beginning, limits included.
enum bsw_status bsw_device_group_begin_again(struct bsw_device_group *group, struct bsw_error *err);

// Queues that the lists are brought into the total order, unless they were.
enum bsw_status bsw_device_group_sort(struct bsw_device_group *group, struct bsw_error *err);

// Once the group is scanned: adds what its tables' entries were to the batch's selection, if it has
// one, for which it waits.
enum bsw_status bsw_device_group_count_entries(const struct bsw_device_group *group,
                                               struct bsw_error *err);

#endif
