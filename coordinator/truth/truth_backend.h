// SPDX-License-Identifier: Apache-2.0
// Where a rank's rows meet the queries of groundtruth: a table with two tenants, CPU cores
// (shard/exact/neighbour_scan.h) and a GPU (shard/exact/device_neighbours.h). Both find the same
// lists.
#ifndef BITSWEEP_COORDINATOR_TRUTH_BACKEND_H
#define BITSWEEP_COORDINATOR_TRUTH_BACKEND_H

#include <stdint.h>

#include "common/device/device.h"
#include "coordinator/truth/truth.h"
#include "coordinator/truth/truth_journal.h"
#include "coordinator/truth/truth_merge.h"
#include "shard/exact/neighbour_scan.h"

// What a run goes through with; all borrowed.
struct bsw_truth_pass {
    struct bsw_truth_merge *merge;
    struct bsw_truth_journal *journal;         // open, or {0}: there is none
    uint64_t num_rows;                         // of all ranks
    const struct bsw_truth_settings *settings; // its progress and events
};

struct bsw_truth_backend {
    // device: borrowed, NULL on CPUs. On error nothing is left. close accepts NULL.
    enum bsw_status (*open)(const struct bsw_neighbour_needs *needs, bsw_device *device,
                            void **state, struct bsw_error *err);
    void (*close)(void *state);
    // The scan whose lists a journal keeps between two blocks. Device: NULL, its lists are in
    // device memory until a group of queries is done.
    bsw_neighbour_scan *(*scan)(void *state);
    // Rows that progress counts, of num_rows of all ranks.
    uint64_t (*total)(const void *state, uint64_t num_rows);
    // All queries, merged group by group; called by all ranks, which agree on every error.
    enum bsw_status (*run)(void *state, const struct bsw_truth_pass *pass, struct bsw_error *err);
    // Sets num_dropped_rows and what was screened, of this rank, is_integer and on a CPU
    // memory_bytes.
    void (*tell)(const void *state, struct bsw_truth_stats *out);
};

extern const struct bsw_truth_backend bsw_truth_host, bsw_truth_device;

#endif
