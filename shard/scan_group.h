// A group of queries on its way through one shard: what shard_scan.c shares with the two families.
#ifndef BITSWEEP_SHARD_SCAN_GROUP_H
#define BITSWEEP_SHARD_SCAN_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/scan_tuning.h"
#include "kernels/select/select_quick.h"
#include "shard/running_best.h"
#include "shard/scan_stage.h"
#include "shard/shard_scan.h"

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
