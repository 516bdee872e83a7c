// SPDX-License-Identifier: Apache-2.0
// The exact nearest rows of all queries, while the rows of a source stream by once.
//
// Queries and their lists stay in memory, rows come in blocks: one is compared with all queries
// while a thread reads the next. Threads share a block's packing by bundles, then its comparison by
// tiles of queries (neighbour_tiles.h). Between two blocks the whole state is next_row,
// dropped_rows and the lists, so a stop costs a block at most. Neither block_rows nor the number of
// threads nor the cut of the source into ranges changes a bit of the lists.
#ifndef BITSWEEP_SHARD_NEIGHBOUR_SCAN_H
#define BITSWEEP_SHARD_NEIGHBOUR_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/base/status.h"
#include "common/codes/metric.h"
#include "common/rows/vectors.h"
#include "kernels/merge/merge.h"
#include "shard/exact/exact_best.h"
#include "shard/exact/neighbour_tiles.h"

// Rows that queries may find. read fills in bits of rows [first, first + count) of the base, from
// its first row on, first a multiple of 32: bit i is row first + i. Any thread calls it.
struct bsw_neighbour_filter {
    int is_each; // each query has its own; else all have that of query 0
    enum bsw_status (*read)(void *context, uint64_t query, uint64_t first, size_t count,
                            uint32_t *bits, struct bsw_error *err);
    void *context;
};

struct bsw_neighbour_needs {
    enum bsw_metric metric;
    enum bsw_cpu_level level;
    const bsw_vectors *base, *queries; // borrowed; of equal dims
    uint64_t first_row, num_rows;      // rows of base to go over: ids; fewer than 2^32
    // Rows that are no range, in its place: [num_rows] of base, [num_queries] of queries; or NULL.
    const uint64_t *row_ids, *query_ids;
    uint64_t num_queries;
    size_t keep;       // rows a query, >= 1
    size_t block_rows; // >= 1; see bsw_neighbour_block_rows
    int num_threads;
    int drop_bad_rows; // else a row with a fault is BSW_ERROR_BAD_DATA naming it
    const struct bsw_neighbour_filter *filter; // borrowed; NULL: all rows. Not with row_ids
    uint64_t filter_row;                       // of the filter's rows, which is first_row
    uint64_t most_bytes;                       // of memory to allocate; 0: no limit
};

// A block being read or waiting.
struct bsw_neighbour_block {
    unsigned char *raw;
    uint64_t first; // from first_row on
    size_t count;   // 0: none
    enum bsw_status status;
    struct bsw_error error;
};

typedef struct bsw_neighbour_scan {
    struct bsw_neighbour_needs needs;
    struct bsw_neighbour_tiles tiles;
    const struct bsw_merge_table *merge;
    size_t num_queries, capacity;
    uint64_t bytes; // allocated
    // The state. Rows of lists count from first_row.
    uint64_t next_row; // from first_row on; num_rows: done
    uint64_t dropped_rows;
    struct bsw_exact_best *lists; // [num_queries]
    uint64_t *scores;             // of the lists: [num_queries][capacity]
    uint32_t *rows;               // the same
    unsigned char *scratch;       // [threads][scratch bytes of a list]
    uint32_t *bits;               // with a filter: [threads][block's bundles]
    struct bsw_neighbour_block blocks[2];
} bsw_neighbour_scan;

// Rows of a block of about 1 MiB, a multiple of 32; no more than hold a range of num_rows. What is
// made of a block then stays in the caches while all queries go over it.
size_t bsw_neighbour_block_rows(size_t row_bytes, uint64_t num_rows);

// Allocates and reads the queries. More than most_bytes is BSW_ERROR_OUT_OF_MEMORY with both
// figures, before anything is allocated; a query with a fault BSW_ERROR_BAD_DATA. On failure
// nothing stays.
enum bsw_status bsw_neighbour_scan_open(const struct bsw_neighbour_needs *needs,
                                        bsw_neighbour_scan *scan, struct bsw_error *err);
void bsw_neighbour_scan_close(bsw_neighbour_scan *scan);

// The next block; nothing to do where all rows are done. The error is that of the first row with
// one, whatever the blocks.
enum bsw_status bsw_neighbour_scan_next(bsw_neighbour_scan *scan, struct bsw_error *err);

// Goes on where another scan was: scores, rows and count of lists[q] as they were then.
void bsw_neighbour_scan_restore(bsw_neighbour_scan *scan, uint64_t next_row, uint64_t dropped_rows);

// Sorts lists [first, first + count), for reading.
void bsw_neighbour_scan_finish(bsw_neighbour_scan *scan, size_t first, size_t count);

#endif
