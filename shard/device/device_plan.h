// SPDX-License-Identifier: Apache-2.0
// How a rank's shards and batches share the memory of its device: arithmetic alone, done before
// anything is loaded.
//
// First the lists and queries of a batch, or of as many of its queries as a quarter of the memory
// holds; then, if they fit, all codes. If not, two blocks for codes on their way from host memory,
// and in what is left as many codes as it takes, shard after shard; the others come block by block
// for every batch.
//
// The length of lists, and what it is at most (device_tuning.h). A segment of a scan may be about
// capacity / keep times as long as all that was seen before it (device_lists.h), and each ends with
// a cut and a wait of 20 to 50 us: with lists of 2^16, keep 1000 and 10^9 rows there are three.
// Still longer lists gain little: a cut is one block's work, 0.11 ms for 2^16 items on an H200,
// and grows with them. Many queries share 2^25 items: every segment appends and cuts nearly that
// many, some ms of the 200 that 1000 queries take, and waits no longer matter. All of it only
// within an eighth of the memory, and while the codes fit beside; 3 * keep + 1024 are always there.
// None is longer than a span.
//
// An index with lists has the row of each place beside its codes; fewer queries are taken at a time
// if all codes then fit, as blocks cost more where queries look at a part of them. A block has
// lists that queries look at (device_list_blocks.h). Beside all that lie tables of work items
// (device_list_scan.h), for a batch or a part of one. Where the device makes these itself there is
// room for as many as there may be, and sizes of lists beside it, unless codes would come in blocks
// then.
//
// With queues (device_row_queues.h) a list has room for what it keeps and what some blocks' queues
// keep, one block's at least, and slots for these lie beside it.
#ifndef BITSWEEP_SHARD_DEVICE_PLAN_H
#define BITSWEEP_SHARD_DEVICE_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cpu_level.h"
#include "kernels/device_scan/device_scan.h"
#include "shard/backend.h"
#include "shard/host/shard_queue.h"

// What a rank will ask of its device. All shards have the same layout.
struct bsw_device_needs {
    const struct bsw_shard_shape *shapes; // [num_shards], borrowed by bsw_device_plan_make
    size_t num_shards;                    // 0: nothing to scan
    const struct bsw_shard_range *spans;  // [num_spans], borrowed likewise; NULL: of one shard each
    size_t num_spans;
    uint32_t query_bits;
    size_t max_queries;  // of a batch, >= 1
    size_t keep;         // >= 1
    size_t capacity;     // of a list; 0: chosen. At least keep + 32, and with queues
                         // keep + BSW_QUEUE_THREADS * queue.length
    uint32_t stage_dims; // padded, of a progressive scan's first stage; 0: none is wanted
    struct bsw_queue_options queue; // {0}: none
    int has_masks;                  // of rows that may be found come with scans (device_mask.h)
    uint32_t probe; // lists that a query looks at, of shapes that have some; 0: all, nothing added
    // Set for shapes that are scanned by tables, else NULL; centroids: those of all lists, where
    // tables of l2 want them, borrowed while the engine is opened. level: what computes with them.
    const struct bsw_product_codes *product; // outlives the engine
    const float *centroids;
    uint32_t num_centroids;
    enum bsw_cpu_level level;
    struct bsw_selection_settings selection; // of entries of these tables
    enum bsw_search_graphs graphs;           // device_graph.h
    // The device's, there for as long as the plan; NULL, where it is not known: the first row.
    const struct bsw_device_tuning *tuning;
};

// Where the floats of product codes lie (device_tables.h).
struct bsw_device_book_layout {
    size_t entries, norms, centroids, bytes;
};

// Where the arrays of so many bundles, or of so many queries, lie in one piece of memory; offsets
// in bytes.
struct bsw_device_codes_layout {
    size_t planes[BSW_MAX_SEGMENTS], scales, biases, tails, offsets, masks, bytes;
};
struct bsw_device_queries_layout {
    size_t words, scales, limits, counts, raised, survivors, types;
    size_t entry_limits, nothing, entry_counts; // of a selection of entries
    size_t upload_bytes;                        // of all before: they travel together
    size_t components, constants, stage_constants, reaches, items, sort, slots;
    size_t bytes;
};

// What keys are made of beside the codes of a row.
enum bsw_device_keys {
    BSW_DEVICE_KEYS_INTEGER, // nothing
    BSW_DEVICE_KEYS_FLOAT,   // a scale and a bias
    BSW_DEVICE_KEYS_WHOLE    // an offset: codes are bytes (kernels/gpu_bytes)
};

// Where lies what a device needs to make work items itself (device_gpu_items.h).
struct bsw_device_gpu_lists_layout {
    size_t next_slots, num_items, totals;
    size_t shapes, shape_rows, shape_bytes; // of shard 0; rows: in a shape; from one to the next
    size_t bytes;                           // 0: it does not
};

struct bsw_device_plan {
    struct bsw_code_layout layout;
    enum bsw_device_keys keys;
    int has_affine;      // keys are of FLOAT
    uint32_t stage_dims; // 0: no tails
    uint32_t query_bits;
    size_t query_words;
    size_t keep;                    // of a span at most
    struct bsw_queue_options queue; // no more than the largest span can use
    size_t most_queue_blocks;       // of a span
    size_t capacity;                // of a list
    size_t queue_blocks;            // with room at a time; 0: no queues
    size_t group_queries;           // at a time
    struct bsw_device_queries_layout queries;
    size_t code_bytes; // of all shards on the device, with the rows of their places
    int has_lists;
    size_t list_slots, list_items; // of the tables of work items; 0 without lists
    size_t list_bytes;             // of the tables
    struct bsw_device_gpu_lists_layout gpu_lists;
    const struct bsw_product_codes *product; // borrowed; NULL: no tables
    uint32_t num_centroids;
    struct bsw_selection_settings selection;
    struct bsw_device_book_layout book; // bytes 0 without
    size_t mask_bytes;                  // of all shards, taken with the first mask
    size_t *resident_bundles;           // [num_shards], of each shard from its first on; owned
    size_t block_bundles;               // of a block; 0: every shard is resident
    size_t block_bytes;
    size_t streamed_bytes; // of codes that come in blocks, for every group of queries
};

void bsw_device_codes_layout_make(const struct bsw_code_layout *layout, enum bsw_device_keys keys,
                                  int has_tails, size_t num_bundles,
                                  struct bsw_device_codes_layout *out);
// What the rows of the places of so many bundles take, with lists.
size_t bsw_device_places_bytes(size_t num_bundles);
// What the lists of so many bundles take, with centroids.
size_t bsw_device_bundle_lists_bytes(size_t num_bundles);
// Bytes that a scan of one bundle reads.
size_t bsw_device_bundle_bytes(const struct bsw_code_layout *layout, enum bsw_device_keys keys,
                               int has_tails);

// Where the tables of work items lie in theirs.
struct bsw_device_tables_layout {
    size_t items, queries, additions, bytes;
};
void bsw_device_tables_layout_make(size_t num_items, size_t num_slots,
                                   struct bsw_device_tables_layout *out);

// Bytes of device memory that an engine with this plan and its shards allocate.
size_t bsw_device_plan_bytes(const struct bsw_device_plan *plan);

// BSW_ERROR_OUT_OF_MEMORY with what is needed at least if free_bytes do not even hold one query's
// list and two bundles.
enum bsw_status bsw_device_plan_make(const struct bsw_device_needs *needs, size_t free_bytes,
                                     struct bsw_device_plan *out, struct bsw_error *err);
void bsw_device_plan_deinit(struct bsw_device_plan *plan);

#endif
