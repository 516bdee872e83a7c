// SPDX-License-Identifier: Apache-2.0
// The exact nearest rows of queries, on a device, while rows stream by.
//
// Lists and queries stay on the device from the first block of rows to the last, and a list's limit
// carries over from block to block (device_lists.h). Of rows there are two blocks on the device and
// two in host memory: one block is scanned while the next is copied and the one after that is read.
// What a row's norm says about it is known before it is scanned. Where the device's tuning says so
// (exact_screen), pairs of floats are screened before they get exact values (device_screen.h).
#ifndef BITSWEEP_SHARD_DEVICE_NEIGHBOURS_H
#define BITSWEEP_SHARD_DEVICE_NEIGHBOURS_H

#include <stddef.h>
#include <stdint.h>

#include "common/device/device.h"
#include "kernels/device_exact/device_exact.h"
#include "shard/device/device_lists.h"
#include "shard/exact/device_screen.h"

struct bsw_device_neighbours_needs {
    enum bsw_metric metric;
    enum bsw_vector_type type, query_type; // of rows, queries; integers of one type are quicker
    uint32_t dims;
    uint32_t num_rows;        // in all
    size_t max_queries, keep; // >= 1
    int num_threads;          // that read rows, all but the first
    int rows_stay;            // what the source has is the same in every call: if there is room,
                              // it is read once
};

// Where rows come from. They are numbered from 0.
struct bsw_device_row_source {
    void *context;
    // Rows [first, first + count) of the needs' type to `to`, dense. Called by several threads at
    // once.
    enum bsw_status (*read)(void *context, size_t first, size_t count, void *to,
                            struct bsw_error *err);
    // Looks at the squared norms of these rows: bit r % 32 of masks[r / 32] (0 before) is to be 1
    // if row first + r may be found. first is a multiple of 32; ascending, and from 0 on again for
    // every group of queries.
    enum bsw_status (*judge)(void *context, size_t first, size_t count, const double *norms,
                             uint32_t *masks, struct bsw_error *err);
};

// Queries as their source has them, [num_queries][dims] of the needs' type, without faults, and
// their squared norms as refine has them.
struct bsw_device_query_rows {
    const void *raw;
    const double *norms;
};

// Offsets in bytes into one piece of memory, as in device_plan.h.
struct bsw_device_neighbours_layout {
    size_t limits, counts, norms, raw; // of queries
    size_t upload_bytes;               // of those before, and of the screen's counts
    size_t numbers, packed, terms, scores, rows, bytes;
};
struct bsw_device_row_block_layout {
    size_t raw, masks, norms, packed, terms, bytes;
};

// A block in host memory.
struct bsw_device_row_slot {
    unsigned char *raw; // [block_rows][row_bytes]
    double *norms;      // [block_rows], as downloaded
    uint32_t *masks;    // [block_rows / 32]
    size_t first, count;
    struct bsw_first_failure failure; // of reading it
};

struct bsw_device_neighbours {
    bsw_device *device; // borrowed
    struct bsw_device_neighbours_needs needs;
    int is_integer;   // rows and queries are, and device_exact.h has int32 sums for them
    int are_all_here; // rows, in block 0
    size_t row_bytes, query_bytes, capacity, group_queries, block_rows;
    struct bsw_device_neighbours_layout at;
    struct bsw_device_row_block_layout block_at;
    struct bsw_device_buffer queries, blocks[2];
    unsigned char *staging;            // host: what is uploaded for a group of queries
    uint32_t *fetched;                 // host: [group_queries]
    struct bsw_device_blocks transfer; // lists on their way
    struct bsw_device_row_slot slots[2];
    struct bsw_device_screen screen;
    uint64_t num_overflows;
};

// BSW_ERROR_OUT_OF_MEMORY with what is needed at least where the device does not hold one query's
// list and two blocks of 32 rows.
enum bsw_status bsw_device_neighbours_open(bsw_device *device,
                                           const struct bsw_device_neighbours_needs *needs,
                                           struct bsw_device_neighbours *out,
                                           struct bsw_error *err);
void bsw_device_neighbours_close(struct bsw_device_neighbours *neighbours);

// The best counts[q] rows of every query, in any order, at scores and rows + q * needs.keep, which
// is no more than there are rows since it was opened; num_queries is at most max_queries. Reads all
// rows once for each group of queries that fits. The first error in the order of rows is returned.
enum bsw_status bsw_device_neighbours_find(struct bsw_device_neighbours *neighbours,
                                           const struct bsw_device_query_rows *queries,
                                           size_t num_queries,
                                           const struct bsw_device_row_source *source,
                                           uint64_t *scores, uint32_t *rows, uint32_t *counts,
                                           struct bsw_error *err);

#endif
