// SPDX-License-Identifier: Apache-2.0
// Product codes on a GPU, by tables in shared memory (kernels/table_scan/table_scan.h): of a whole
// shard, or of work items of lists (device_list_scan.h). The candidates of shard/host.
//
// A block makes the tables of some queries, 1, 2 or 4, for the list that its bundles are of, from
// the codebooks, and looks up its bundles' rows in them. Numbers of an entry lie side by side for
// these queries, so that one look-up serves all. Each number, largest number, power of two, sum and
// key is computed as shard/codecs/product_codes.h has it, to the bit.
//
// With a selection a table has the entries within a radius alone (shard/codecs/selective_table.h,
// after JUNO: Liu et al., ASPLOS 2024): each block looks at all entries of its tables as it makes
// them, by the formulas of kernels/entries_within/entries_within.h.
//
// A table that is larger than shared memory is made slice after slice of some parts, which are
// looked up before the next is made, for every 1024 rows again: any codebooks fit, but beyond
// shared memory (bsw_device_table_shape.is_whole 0) at the price of tables made over and over.
#ifndef BITSWEEP_KERNELS_DEVICE_TABLE_SCAN_H
#define BITSWEEP_KERNELS_DEVICE_TABLE_SCAN_H

#include "kernels/device_scan/device_list_scan.h"
#include "kernels/table_scan/table_formats.h"

BSW_C_BEGIN

#define BSW_DEVICE_TABLE_THREADS 256            // of a block
#define BSW_DEVICE_TABLE_QUERIES ((uint32_t)4)  // of a block at most
#define BSW_DEVICE_TABLE_BUNDLES ((uint32_t)32) // that a block looks up at a time
#define BSW_DEVICE_TABLE_ROOM    ((size_t)256)  // bytes of a block beside its tables

// Entries that count, for codebooks of two dimensions a part and tables of float32: an entry is a
// hit where its squared distance is at most the limit, or under ip its product at least the least
// that the limit allows. Device memory, borrowed. Numbers of a hit are those of the full table, or
// are_counts.
struct bsw_device_selection {
    const float *limits;  // [num_queries][parts]: squared, scaled radii; NULL: no selection
    const float *nothing; // [num_queries]: the sum of a row that hits nothing, which is not ranked
    uint64_t *counts;     // [2], added to: entries of tables made, and of them those within
    uint32_t are_counts;
    uint32_t has_bound;      // a miss has the limit, or that least product; else `miss`
    float inner, ring, miss; // a count within a quarter of the limit, within it, and beyond
};

// Device memory, floats, borrowed.
struct bsw_device_tables {
    uint32_t num_queries;
    uint32_t parts, part_dims, bits; // of the codebooks
    uint32_t is_l2;                  // else inner products, and tables are signed
    enum bsw_table_type type;
    uint32_t stride;        // from a query, or a centroid, to the next
    const float *entries;   // as struct bsw_product_book
    const float *norms;     // likewise
    const float *queries;   // [num_queries][stride]: q'
    const uint8_t *types;   // [num_queries]: those of another type are left out; NULL: all have it
    const float *centroids; // [lists][stride]: c', of l2 with residuals; NULL: c' is 0
    const uint32_t *lists;  // [num_bundles]: of each bundle, with centroids
    struct bsw_device_selection selection;
};

// What a block has.
struct bsw_device_table_shape {
    uint32_t queries;     // 1, 2 or 4
    uint32_t slice_parts; // that are in shared memory at a time
    int is_whole;         // all of them
    size_t shared_bytes;
};

// As many queries as leave room for two blocks on a multiprocessor, or one whose table has all; a
// part of it where it does not fit. most_bytes: of shared memory that a block may have, 48 KiB at
// least. num_queries: of the batch.
static inline struct bsw_device_table_shape bsw_device_table_shape_of(uint32_t parts, uint32_t bits,
                                                                      enum bsw_table_type type,
                                                                      uint32_t num_queries,
                                                                      size_t most_bytes)
{
    size_t part_bytes = bsw_table_number_bytes(type) << bits, all = parts * part_bytes,
           room = most_bytes - BSW_DEVICE_TABLE_ROOM, half = most_bytes / 2 - BSW_DEVICE_TABLE_ROOM;
    struct bsw_device_table_shape out = {BSW_DEVICE_TABLE_QUERIES, parts, 1, 0};
    while (out.queries > 1 && (out.queries * all > half || out.queries / 2 >= num_queries))
        out.queries /= 2;
    if (out.queries * all > room) {
        uint32_t step = 32 / bits; // of 4 bytes of codes
        out.slice_parts = (uint32_t)(half / part_bytes) / step * step;
        out.is_whole = 0;
    }
    out.shared_bytes = BSW_DEVICE_TABLE_ROOM + out.queries * out.slice_parts * part_bytes;
    return out;
}

struct bsw_device_multiprocessor {
    size_t shared_bytes;
    uint32_t threads;
};

// How many blocks of the shape a multiprocessor has room for at a time, by shared memory, of which
// CUDA keeps 1 KiB of each block's, and by threads. Registers may allow fewer, but two.
static inline uint32_t bsw_device_table_blocks_of(const struct bsw_device_table_shape *shape,
                                                  const struct bsw_device_multiprocessor *room)
{
    size_t by_memory = room->shared_bytes / (shape->shared_bytes + 1024),
           by_threads = room->threads / BSW_DEVICE_TABLE_THREADS;
    return (uint32_t)(by_memory < by_threads ? by_memory : by_threads);
}

// Appends every row of the part whose mask bit is 1 and whose score reaches its query's limit, as
// bsw_device_plane_scan does, without queues; with a selection not those with a key of -infinity or
// without a hit. The layout is that of codec pq: one segment of one bit. centroids: not looked at.
BSW_DEVICE_CALL int bsw_device_table_scan(const struct bsw_device_codes *codes,
                                          const struct bsw_device_part *part,
                                          const struct bsw_device_tables *tables,
                                          const struct bsw_device_lists *lists, bsw_stream stream);

// As bsw_device_list_scan; tile: of at least as many slots as items have. All bundles of an item
// are of one list where there are centroids.
BSW_DEVICE_CALL int bsw_device_table_list_scan(const struct bsw_device_codes *codes,
                                               const struct bsw_device_list_work *work,
                                               uint32_t tile,
                                               const struct bsw_device_tables *tables,
                                               const struct bsw_device_lists *lists,
                                               bsw_stream stream);

// How many blocks of the kernel that scans with such tables run at a time.
BSW_DEVICE_CALL int bsw_device_table_blocks(const struct bsw_device_tables *tables,
                                            uint32_t *blocks_of_a_multiprocessor);

BSW_C_END
#endif
