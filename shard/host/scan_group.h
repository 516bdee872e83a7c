// SPDX-License-Identifier: Apache-2.0
// A group of queries on its way through one shard: what shard_scan.c shares with the two families.
#ifndef BITSWEEP_SHARD_SCAN_GROUP_H
#define BITSWEEP_SHARD_SCAN_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include "common/codes/result_order.h"
#include "kernels/scan_tuning.h"
#include "kernels/select/select_quick.h"
#include "shard/host/running_best.h"
#include "shard/host/scan_stage.h"
#include "shard/host/shard_scan.h"

// Bundles a thread goes over: from `first` on, `step` at a time, tiles `advance` apart (more than
// step: a sample).
struct bsw_scan_run {
    size_t first, last, step, advance;
};

struct bsw_scan_group {
    const struct bsw_resident_shard *shard;
    const struct bsw_query_batch *batch;
    struct bsw_scan_workspace *workspace;
    struct bsw_scan_tuning tuning;
    size_t first_query, num_queries; // in the batch
    size_t keep, capacity;
    struct bsw_running_best *lists; // [threads][num_queries]
    uint64_t *scratch;              // [threads][4 * capacity]
    int is_matrix, is_staged;
    int is_staged_always; // also where it does not pay
    struct bsw_scan_stage stage;
    uint64_t *stopped; // [threads]: pairs of row and query that the first stage stopped

    int32_t *dots;    // [threads][BSW_TILE_ROWS]; planes alone
    uint32_t *places; // [threads][BSW_TILE_ROWS]; planes alone

    float *sums; // [threads][BSW_TILE_ROWS]; of tables alone

    // matrix alone
    struct bsw_matrix_queries matrix;  // of the group
    struct bsw_matrix_output *outputs; // [threads][num_queries]
    float *slacks;                     // [threads][num_queries]
    uint8_t *tiles;                    // [threads][tile_bytes]
    size_t tile_bytes;
};

// A thread's run, rows ascending, into its own lists.
void bsw_scan_planes(const struct bsw_scan_group *group, size_t thread, struct bsw_scan_run run);
void bsw_scan_matrix(const struct bsw_scan_group *group, size_t thread, struct bsw_scan_run run);

// The same by tables (scan_tables.c), which are planned with the group and made for its queries.
enum bsw_status bsw_scan_tables_plan(struct bsw_scan_group *group, struct bsw_error *err);
void bsw_scan_tables_make(const struct bsw_scan_group *group);
void bsw_scan_tables(const struct bsw_scan_group *group, size_t thread, struct bsw_scan_run run);
size_t bsw_scan_tables_bytes(const struct bsw_query_batch *batch); // of a query, all that is kept
size_t bsw_group_table_bytes(const struct bsw_query_batch *batch); // its table, with its hits
// Bits of entries within a radius, behind the numbers; NULL without.
uint32_t *bsw_group_table_hits(const struct bsw_query_batch *batch, const void *table);
// Candidates, by places, that are to be ranked (bsw_selective_keep); returns how many.
size_t bsw_shard_keep_hits(const struct bsw_resident_shard *shard,
                           const struct bsw_query_batch *batch, const uint32_t *hits,
                           uint64_t *items, size_t count);

// Bundles of a tile.
size_t bsw_planes_step(const struct bsw_scan_group *group);
size_t bsw_matrix_step(const struct bsw_scan_group *group);

// Whether the first stage is worth while, tile after tile: where too much goes on, some tiles are
// scanned in full before the next try.
#define BSW_STAGE_REST_TILES 16
static inline int bsw_stage_is_due(const struct bsw_scan_group *group, unsigned *resting)
{
    if (!group->is_staged) return 0;
    if (*resting == 0) return 1;
    (*resting)--;
    return 0;
}

#endif
