// groundtruth on a GPU: queries in groups that memory holds, the rank's rows streamed through the
// device once for each group (shard/device_neighbours.h).
#ifndef BITSWEEP_COORDINATOR_TRUTH_DEVICE_H
#define BITSWEEP_COORDINATOR_TRUTH_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "common/device.h"
#include "common/progress.h"
#include "coordinator/truth_merge.h"
#include "kernels/refine/refine.h"
#include "shard/device_neighbours.h"
#include "shard/neighbour_scan.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bsw_truth_device {
    struct bsw_neighbour_needs needs;
    const struct bsw_refine_table *refine;
    const struct bsw_select_table *select;
    const struct bsw_merge_table *merge;
    int is_integer;
    size_t dims, group_queries;
    double *doubles, *norms; // queries of a group, as kernels/exact takes them
    int16_t *integers;
    uint64_t *scores; // [group_queries][keep]
    uint32_t *rows;   // the same
    uint32_t *counts;
    void *scratch;                // of a list
    struct bsw_exact_best *lists; // of a group, sorted
    struct bsw_device_neighbours neighbours;
    struct bsw_progress *progress; // borrowed
    uint64_t progress_base, dropped_rows;
};

// device is borrowed. block_rows and most_bytes of the needs are not used.
enum bsw_status bsw_truth_device_open(const struct bsw_neighbour_needs *needs, bsw_device *device,
                                      struct bsw_truth_device *out, struct bsw_error *err);
void bsw_truth_device_close(struct bsw_truth_device *job);

// All queries, merged group by group; called by all ranks, which agree on every error. progress
// counts this rank's rows, those of every group.
enum bsw_status bsw_truth_device_run(struct bsw_truth_device *job, struct bsw_truth_merge *merge,
                                     struct bsw_progress *progress, struct bsw_error *err);
uint64_t bsw_truth_device_num_groups(const struct bsw_truth_device *job);

#ifdef __cplusplus
}
#endif
#endif
