// SPDX-License-Identifier: Apache-2.0
// Numbers of the scans on a GPU that differ from generation to generation: data, looked up by the
// device's compute capability at each launch. Results do not depend on them. How many blocks run at
// a time is not among them: the runtime knows (current_device.cuh).
//
// device_tuning.txt has the program's rows; a user's file (bsw_scan_tuning_read) changes them
// column by column. Compiled shapes (threads of a block, tiles, groups of queries) are the kernels'
// own, in their files; what is here chooses among them.
#ifndef BITSWEEP_KERNELS_DEVICE_TUNING_H
#define BITSWEEP_KERNELS_DEVICE_TUNING_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/status.h"

BSW_C_BEGIN

// Shapes of tiles of the mma kernel: for few, some and many queries.
#define BSW_MATRIX_TILES       3
#define BSW_MOST_CHOICES       8
#define BSW_LIST_TILES         4 // of work items of lists: few queries by dp4a, then those tiles
#define BSW_FEW_LIST_TILES     2 // the first of them, which documents in registers may take
#define BSW_TUNING_MAX_DEVICES 32

// hopper: wgmma, where device and layout have it (bsw_device_has_hopper_lists), else mma.
enum bsw_device_list_kernel { BSW_DEVICE_LISTS_MMA, BSW_DEVICE_LISTS_HOPPER };

// A kernel of scan_kernels.h, which takes up to so many queries; UINT32_MAX: none; any.
struct bsw_scan_choice {
    uint32_t number, most_queries;
};

// How blocks share a scan: as many steps a block as leave `waves` times the blocks that run at
// once, most_steps at most. A step is a bundle a warp (popcounts), four (bits) or a tile of
// documents a block.
struct bsw_device_division {
    uint32_t most_steps, waves; // >= 1
};

// What limits by rank are planned by (shard/device/device_levels.h).
struct bsw_level_costs {
    uint32_t level_ns;           // a level's launches by themselves
    uint32_t dense_hit_ps;       // an item of a sample that every row is in, for one query
    uint32_t sparse_hit_ps;      // any other item
    uint32_t row_fs, product_fs; // a row once, and for a query
};

struct bsw_device_tuning {
    int major, minor; // holds from this compute capability on, up to the next row's
    // A batch of as many queries takes the matrix scan, where it may choose; UINT32_MAX: never.
    uint32_t matrix_from_queries;
    // The first that fits takes a batch; last of all, unnamed, the one that fits any: popcounts,
    // mma. What a batch has beyond whole blocks may go to another (scan_kernels.h).
    struct bsw_scan_choice plane_scans[BSW_MOST_CHOICES], matrix_scans[BSW_MOST_CHOICES];
    uint32_t plane_group_bytes; // of query planes in shared memory, unless one query needs more
    struct bsw_device_division plane, matrix, hopper;
    // The largest batch that the mma kernel's tile i takes; rising, the last is UINT32_MAX.
    uint32_t tile_queries[BSW_MATRIX_TILES];
    // For work items of lists (device_list_scan.h). Of few queries, whether documents in registers
    // take them (few_scan.cuh). Hopper takes those of a tile that have so many
    // bundles or more, on average of a launch; UINT32_MAX: none.
    uint32_t few_lists[BSW_FEW_LIST_TILES];
    enum bsw_device_list_kernel list_kernel;
    uint32_t hopper_list_bundles[BSW_LIST_TILES];
    // Lists of queries and work items are made on the device (kernels/gpu_lists), where that goes.
    uint32_t has_gpu_lists;
    // Codes of so many padded dimensions are scanned progressively unasked; UINT32_MAX: none.
    uint32_t progressive_from_dims;
    uint32_t has_graphs; // launches of a batch are one graph unasked (shard/device/device_graph.h)
    // Candidate lists: as long, and as long together, as segments of a scan want them at most
    // (shard/device/device_plan.h). A sample gives the first limits where so many lists would not
    // hold all rows; it is at most this part of them (device_lists.h).
    uint32_t list_items, all_list_items, sample_lists, sample_part;
    uint32_t has_levels; // limits by rank, where a pass is queued ahead
    struct bsw_level_costs level_costs;
    uint32_t has_exact_screen; // ground truth of floats is screened first (kernels/gpu_screen)
    uint32_t list_pairs; // of row and centroid, from which on rows find their lists on the device;
                         // UINT32_MAX: never
};

// Rising by capability.
struct bsw_device_tunings {
    struct bsw_device_tuning rows[BSW_TUNING_MAX_DEVICES];
    size_t num;
};

// Changes the rows as the lines `device CAPABILITY NAME=VALUE...` of a text say, and passes over
// all others; several lines of a capability are as one. What lines leave out is as it is, of a new
// row as in the row that held for its capability. *tunings may have no rows: then the first
// capability needs all columns. Else BSW_ERROR_BAD_DATA, which names the line, and *tunings has
// part of the changes.
enum bsw_status bsw_device_tuning_parse(const char *name, const char *text,
                                        struct bsw_device_tunings *tunings, struct bsw_error *err);

// The lines of a row, with all columns and a '\0'; BSW_ERROR_TOO_LARGE where capacity is too small:
// BSW_DEVICE_TUNING_TEXT_BYTES do.
#define BSW_DEVICE_TUNING_TEXT_BYTES 2048
enum bsw_status bsw_device_tuning_format(const struct bsw_device_tuning *row, char *out,
                                         size_t capacity, struct bsw_error *err);

// The program's own rows. Thread-safe.
const struct bsw_device_tunings *bsw_device_tuning_built_in(void);

// The program's rows, changed by a user's text, for all calls that follow. Before other threads
// ask. After an error they are the program's.
enum bsw_status bsw_device_tuning_take(const char *name, const char *text, struct bsw_error *err);

// The last row not above the capability; for older devices the first. Thread-safe.
const struct bsw_device_tuning *bsw_device_tuning_find(int major, int minor);

// Whether a launch of work items, with so many bundles together, takes the Hopper kernel where
// there is one. tile < BSW_LIST_TILES, or nothing does.
int bsw_device_lists_take_hopper(const struct bsw_device_tuning *tuning, uint32_t num_items,
                                 uint64_t num_bundles, uint32_t tile);

// That of the calling thread's current device. Where the device does not answer, of the first row:
// the launch that follows will tell.
BSW_DEVICE_CALL const struct bsw_device_tuning *bsw_device_tuning_current(void);

BSW_C_END
#endif
