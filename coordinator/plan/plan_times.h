// SPDX-License-Identifier: Apache-2.0
// Seconds of a batch for several numbers of ranks, of a planned index: which rates hold for it, and
// the cluster model with them.
#ifndef BITSWEEP_COORDINATOR_PLAN_TIMES_H
#define BITSWEEP_COORDINATOR_PLAN_TIMES_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cpu_level.h"
#include "coordinator/plan/cluster_model.h"
#include "coordinator/plan/model_rates.h"
#include "coordinator/plan/plan_index.h"

#define BSW_PLAN_MAX_RANKS 4096
#define BSW_PLAN_MAX_LINES 64

// What is asked for; texts borrowed.
struct bsw_plan_time_settings {
    const char *rates_path;       // NULL: none
    struct bsw_model_rates given; // in place of those of the file, where not 0
    const char *device;           // "cpu", "gpu", or a name of bsw_device_limits_of
    uint64_t threads;             // a rank; 0: as the rates were measured
    uint64_t cores;               // a host; 0: as measured, or one for each thread of its ranks
    uint64_t ranks_a_host;        // >= 1
    uint64_t memory_bytes;        // of a rank; 0: enough
    enum bsw_cpu_level level;
};

// What of a line's time cannot be told, and why.
enum bsw_plan_gap {
    BSW_PLAN_COMPLETE,
    BSW_PLAN_NO_SCAN,    // no rate of scans
    BSW_PLAN_NO_NETWORK, // several ranks, and alpha or beta is not known
    BSW_PLAN_NO_MEMORY   // the rank with most has more than memory_bytes
};

struct bsw_plan_line {
    uint64_t num_ranks, num_shards, num_replicas, most_rows, resident_bytes, batch;
    enum bsw_plan_gap gap;
    struct bsw_cluster_times times; // if complete
    double efficiency;              // queries/s a rank, over those of the first complete line
};

struct bsw_plan_times {
    struct bsw_model_rates rates; // for this code
    struct bsw_rates_scaling scaling;
    const struct bsw_device_limits *limits;
    uint64_t threads, cores, memory_bytes;
    struct bsw_plan_line lines[BSW_PLAN_MAX_LINES];
    size_t num_lines;
};

// "8", "1,2,8" or "1:1024", which doubles from the first up to the second; at most
// BSW_PLAN_MAX_LINES numbers of 1 to BSW_PLAN_MAX_RANKS. BSW_ERROR_USAGE for other text.
enum bsw_status bsw_plan_ranks_parse(const char *text, uint64_t *ranks, size_t *num_ranks,
                                     struct bsw_error *err);

// ranks [num_ranks], >= 1.
enum bsw_status bsw_plan_times_make(const struct bsw_plan_settings *index,
                                    const struct bsw_plan_time_settings *settings,
                                    const uint64_t *ranks, size_t num_ranks,
                                    struct bsw_plan_times *out, struct bsw_error *err);

#endif
