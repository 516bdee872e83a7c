// SPDX-License-Identifier: Apache-2.0
// Candidates that stay in device memory from the scan to the cut, for a merge on devices: the
// sorted lists of a rank's spans (assignment.h). Only what a cut leaves comes to the host.
//
// A span's lists lie one behind the other without gaps, so that those of consecutive queries can
// be sent as one piece.
#ifndef BITSWEEP_SHARD_DEVICE_KEPT_H
#define BITSWEEP_SHARD_DEVICE_KEPT_H

#include <stddef.h>
#include <stdint.h>

#include "common/device/device_blocks.h"
#include "kernels/device_merge/device_merge.h"
#include "shard/host/shard_scan.h"

struct bsw_device_kept_needs {
    const struct bsw_shard_shape *shapes; // of the rank's shards; borrowed by open, as spans
    const struct bsw_shard_range *spans;  // [num_spans]
    size_t num_spans;
    size_t max_queries, keep; // of a batch, of a list
};

struct bsw_device_kept;

// Lists of one span.
struct bsw_device_kept_span {
    const struct bsw_device_kept *kept;
    uint64_t *items;              // device: its lists
    uint64_t *d_offsets, *d_from; // device: [max_queries]
    uint32_t *d_counts;           // device: [max_queries]
    uint64_t *offsets;            // host: [max_queries + 1] of the lists that are there
    uint64_t *from;               // host: [max_queries]
    uint32_t *counts;             // host: [max_queries]
    size_t num_queries;           // that have lists
    uint64_t first_row;           // id of the span's first row
};

struct bsw_device_kept {
    bsw_device *device;                 // borrowed; NULL: nothing is kept
    struct bsw_device_kept_span *spans; // [num_spans]
    struct bsw_device_buffer memory;
    unsigned char *staging; // host: tables that are copied
    // For one take at a time.
    struct bsw_cut *cuts, *d_cuts;     // [max_queries], host and device
    uint32_t *survivors, *d_survivors; // [max_queries]
    uint64_t *packed;                  // device
    size_t packed_items;
};

// Device memory that it takes.
size_t bsw_device_kept_bytes(const struct bsw_device_kept_needs *needs);

enum bsw_status bsw_device_kept_open(bsw_device *device, const struct bsw_device_kept_needs *needs,
                                     struct bsw_device_kept *out, struct bsw_error *err);
// Accepts {0}.
void bsw_device_kept_close(struct bsw_device_kept *kept);

// Sorted lists of the queries behind those that the span has, on BSW_QUEUE_SCAN, which
// BSW_QUEUE_LINK then follows: all else, of merges too, is there, so that the next scan may begin
// before. counts [lists->num_queries], host memory. What an add before has queued for this span is
// either of the same batch or has been waited for.
enum bsw_status bsw_device_kept_add(struct bsw_device_kept_span *span,
                                    const struct bsw_device_lists *lists, const uint32_t *counts,
                                    struct bsw_error *err);

// Takes from each list what is within its query's cut, in the order of lists, to host memory; the
// lists on the device stay. cuts [num_queries of the span].
enum bsw_status bsw_device_kept_take(struct bsw_device_kept_span *span,
                                     struct bsw_device_blocks *blocks, const struct bsw_cut *cuts,
                                     struct bsw_candidate_lists *out, struct bsw_error *err);

#endif
