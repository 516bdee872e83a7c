// SPDX-License-Identifier: Apache-2.0
// groundtruth: exact nearest neighbours. Every rank streams its range of rows once past all queries
// (shard/exact/neighbour_scan.h; on a GPU device_neighbours.h); its best a query go to rank 0,
// which merges them in the total order.
//
// The library under the command: it takes settings, prints nothing, installs no signal handlers.
// Where the process watches for signals (common/job/stop_signal.h), a stop leaves what there is to
// be resumed.
#ifndef BITSWEEP_COORDINATOR_TRUTH_H
#define BITSWEEP_COORDINATOR_TRUTH_H

#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/codes/metric.h"
#include "common/job/progress.h"
#include "common/net/transport.h"
#include "common/rows/vectors.h"
#include "coordinator/job/allowed_rows.h"
#include "coordinator/job/device_choice.h"
#include "coordinator/job/job_events.h"

#define BSW_TRUTH_MAX_K          1000000
#define BSW_TRUTH_MAX_BLOCK_ROWS (1 << 24)

// The same on all ranks but for progress, sink and level. Texts are borrowed. What is 0 or NULL is
// left to the defaults of the command.
struct bsw_truth_settings {
    const char *base, *queries;            // files, or synth:...
    struct bsw_row_range rows, query_rows; // of them; {0}: all
    const char *tags, *query_tags; // of rows and queries, in place of it: .spmat, both or neither
    struct bsw_allowed_memory allow_rows; // likewise; the same on all ranks
    const char *allow;                    // of rows to find (allowed_rows.h); NULL: all
    const char *out;                      // file to write; NULL: none
    struct bsw_answer_sink sink;          // rank 0: gets the answers, too
    const char *metric;                   // NULL: as base or queries say
    uint64_t k;
    int drop_bad_rows, exclude_self;
    int split;                       // with out: its two files for cuvs-bench, too
    int force, resume;               // with out: as --force and --resume
    struct bsw_device_choice device; // "auto" and NULL: the CPU
    uint64_t block_rows;             // read at once; 0: about 1 MB
    int num_threads;                 // 0: those of OpenMP
    enum bsw_cpu_level level;
    struct bsw_progress *progress;       // rank 0, borrowed; NULL: nothing is shown
    const struct bsw_job_events *events; // borrowed, or NULL
};

// Numbers of all ranks on rank 0; on the others only what they know.
struct bsw_truth_stats {
    uint64_t num_rows, num_queries, num_resumed_rows, num_dropped_rows;
    uint32_t dims;
    enum bsw_metric metric;
    int is_integer; // exact in int32, else in float64
    // Pairs of row and query that a GPU screened (kernels/gpu_screen), those of them that got an
    // exact value, and scans that gave all their pairs one, as too many survived.
    uint64_t num_screened, num_survivors, num_screen_overflows;
    const char *device;    // kind, "cpu" without one
    uint64_t block_rows;   // of this rank
    uint64_t memory_bytes; // of a CPU: queries, lists and blocks
    double seconds;
};

// Called by all ranks; ends with an agreement, so all return the same. Settings that make no sense
// are BSW_ERROR_USAGE in one line that names the option. After a failure there is no file, unless
// there is something to resume.
enum bsw_status bsw_truth_run(const struct bsw_truth_settings *settings,
                              struct bsw_transport *transport, struct bsw_truth_stats *stats,
                              struct bsw_error *err);

#endif
