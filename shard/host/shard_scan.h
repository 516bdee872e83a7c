// SPDX-License-Identifier: Apache-2.0
// One batch of queries over one resident shard: scan, selection, refinement.
//
// The shard is pieces for the engine (host_engine.h), all queries of a group over each: codes are
// read from memory once a group and 2048 queries.
//
// A sample of bundles, scanned first, gives every query a limit to start from, so that even for
// large k few rows pass. A query for which it was too high (its list does not fill) is scanned
// again without. A progressive scan looks at all rows' first dimensions and goes on with those
// whose bound reaches the limit (scan_stage.h). Neither changes a byte of the answer.
#ifndef BITSWEEP_SHARD_SHARD_SCAN_H
#define BITSWEEP_SHARD_SHARD_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/cpu_level.h"
#include "kernels/matrix_scan/matrix_scan.h"
#include "kernels/merge/merge.h"
#include "kernels/plane_scan/plane_scan.h"
#include "kernels/refine/refine.h"
#include "kernels/select/select.h"
#include "kernels/table_scan/table_scan.h"
#include "shard/backend.h"
#include "shard/host/host_scratch.h"
#include "shard/host/resident_shard.h"
#include "shard/host/shard_queue.h"

BSW_C_BEGIN

// Scratch of a rank, kept from batch to batch; {0} then bsw_scan_workspace_init.
struct bsw_scan_workspace {
    enum bsw_cpu_level level;
    enum bsw_scan_kind scan;        // AUTO unless set after init
    enum bsw_scan_kind used;        // in the last scan
    struct bsw_queue_options queue; // {0} unless set after init
    const struct bsw_plane_scan_table *plane_scan;
    const struct bsw_matrix_scan_table *matrix_scan;
    const struct bsw_select_table *select;
    const struct bsw_merge_table *merge;
    const struct bsw_refine_table *refine;
    const struct bsw_table_scan_table *table_scan;
    int num_threads;
    size_t budget_bytes;                                 // for candidate buffers of all threads
    struct bsw_buffer counts, scratch, offsets, queries; // of refinement
    struct bsw_host_scratch host;                        // of scans
    double scan_seconds, refine_seconds;
    uint64_t scanned_bytes;
    uint64_t num_pairs, num_stopped; // of row and query; by the first stage
    uint64_t num_rescanned;          // queries whose first limit was too high
};

#define BSW_SCAN_BUDGET_BYTES ((size_t)256 << 20)

void bsw_scan_workspace_init(struct bsw_scan_workspace *workspace, enum bsw_cpu_level level,
                             int num_threads);
void bsw_scan_workspace_deinit(struct bsw_scan_workspace *workspace);

// The best `keep` rows of the shard for queries [first_query, first_query + num_queries), among
// those whose score is at least limits[q] (NULL: all).
enum bsw_status bsw_shard_scan(const struct bsw_resident_shard *shard,
                               const struct bsw_query_batch *batch, size_t first_query,
                               size_t num_queries, const uint32_t *limits, size_t keep,
                               struct bsw_scan_workspace *workspace,
                               struct bsw_candidate_lists *out, struct bsw_error *err);

// One survivor with its exact value, as it travels.
struct bsw_survivor {
    double value;   // exact, or 0 without refinement
    uint32_t score; // of the key
    uint32_t row;   // in the shard
};

// Survivors of query q: the first counts[q] items of its list, refined with raw rows (or not), in
// ascending row order, written one query after another. out has room for their sum.
enum bsw_status bsw_shard_refine(const struct bsw_resident_shard *shard,
                                 const struct bsw_manifest *manifest,
                                 const struct bsw_query_batch *batch, size_t first_query,
                                 const struct bsw_candidate_lists *lists, const size_t *counts,
                                 int exact, struct bsw_scan_workspace *workspace,
                                 struct bsw_survivor *out, struct bsw_error *err);

BSW_C_END
#endif
