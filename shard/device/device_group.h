// SPDX-License-Identifier: Apache-2.0
// A group of queries of a batch under way on a device: where its queries and lists lie in the
// engine's memory, and how they get there. What is scanned for them, device_shard_scan.c and
// device_list_batch.c know.
#ifndef BITSWEEP_SHARD_DEVICE_GROUP_H
#define BITSWEEP_SHARD_DEVICE_GROUP_H

#include "shard/device/device_shard.h"
#include "shard/device/device_stage.h"
#include "shard/device/device_tables.h"

struct bsw_device_group {
    struct bsw_device_engine *engine;
    const struct bsw_device_span *span;
    const struct bsw_code_layout *layout; // that components are of: the engine's, or its first
                                          // dimensions
    size_t num_bundles, num_rows;         // of the span
    int is_resident;                      // all of it
    const struct bsw_query_batch *batch;
    size_t first_query, num_queries; // in the batch
    int is_matrix, is_staged, has_queues;
    int is_sorted;       // the lists, or they will be: it is queued
    size_t first_staged; // place in the queries' memory from which on staging is uploaded
    struct bsw_device_stage stage;
    struct bsw_device_stage_run stage_run;
    uint64_t stopped; // pairs of row and query, by the first stage
    struct bsw_device_queries queries;
    struct bsw_device_table_run tables; // of product codes
    struct bsw_device_list_run run;
    uint64_t scanned; // bundles, with those that overflowed
};

// Sets the group's pointers into the memory of its engine.
void bsw_device_group_point(struct bsw_device_group *group);

// Queries, limits (NULL: none) and empty lists on their way to the device, on BSW_QUEUE_SCAN, and
// components where it is_matrix. Nothing of an earlier group is under way, and the staging memory
// is written again only after a segment has been waited for.
enum bsw_status bsw_device_group_send(struct bsw_device_group *group, const uint32_t *limits,
                                      struct bsw_error *err);
// The same in two steps: what changes from batch to batch, into staging memory that stays in place
// (and words that are on the device already, for which a copy is queued), then its upload and all
// else, which is the same for as many queries.
enum bsw_status bsw_device_group_stage(struct bsw_device_group *group, const uint32_t *limits,
                                       struct bsw_error *err);
enum bsw_status bsw_device_group_upload(const struct bsw_device_group *group,
                                        struct bsw_error *err);

// Once the group is scanned: adds what its tables' entries were to the batch's selection, if it has
// one, for which it waits.
enum bsw_status bsw_device_group_count_entries(const struct bsw_device_group *group,
                                               struct bsw_error *err);

#endif
