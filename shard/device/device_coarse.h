// SPDX-License-Identifier: Apache-2.0
// The coarse step of a search by lists on a device: centroids lie there as codes of
// BSW_COARSE_CODE_BITS, and the best lists of a batch are the candidates of a matrix scan of them.
// The keys of shard/lists/coarse_search.h, bit for bit.
//
// A query is not asked for more than BSW_DEVICE_COARSE_KEPT lists: those of a ratio are hardly ever
// more, and lists of candidates stay short. It is a help that a search can do without: where it
// would take more than an eighth of the memory there is none.
//
// It is done on BSW_QUEUE_LINK, after what is there, and the host waits for that once for 1,024
// queries, again only where a list of candidates was too short; never for the scan's queue. Where
// choices stay (kernels/gpu_lists) it waits for nothing: the device chooses, and who takes the
// choice there follows that queue.
#ifndef BITSWEEP_SHARD_DEVICE_COARSE_H
#define BITSWEEP_SHARD_DEVICE_COARSE_H

#include <stddef.h>
#include <stdint.h>

#include "common/device/device_blocks.h"
#include "kernels/gpu_lists/gpu_lists.h"
#include "shard/lists/coarse_search.h"

#define BSW_DEVICE_COARSE_KEPT 512

struct bsw_device_coarse_needs {
    uint32_t num_lists;
    size_t dims, max_queries; // of a batch, >= 1
    uint32_t probe;           // lists that a query looks at; 0: nothing of this is wanted
    int stays;                // choices are to stay on the device, where there is room for it
    int has_additions;        // they have some
    size_t most_group;        // queries at a time then, at most; 0: all, as memory allows
};

// Bytes of device memory that it will take where free_bytes are free; 0: there is none.
size_t bsw_device_coarse_bytes(const struct bsw_device_coarse_needs *needs, size_t free_bytes);

struct bsw_device_coarse {
    bsw_device *device;         // borrowed; NULL: there is none
    size_t most_kept, capacity; // of a query's list
    size_t group_queries;       // at a time
    size_t num_groups;          // that have memory of their own for what is uploaded
    size_t padded_dims;
    int stays;
    int is_loaded; // centroids are there
    struct bsw_device_buffer memory;
    struct bsw_device_codes codes;
    struct {
        size_t components, constants, scales, limits, counts; // in memory
        size_t norms, residuals;                              // where choices stay
        size_t upload, upload_bytes;                          // all of these, of a group
        size_t items;
        size_t lists, list_counts, additions, step_queries, flags, centred;
    } at;
    unsigned char *staging; // host: what is uploaded
    uint32_t *fetched;      // host: counts
    struct bsw_device_blocks blocks;
    uint64_t num_found; // queries, since it was opened
    struct bsw_device_choice choice;
    uint64_t placed;  // number of the choice that is there; 0: none
    uint64_t refused; // of one that was of no use; likewise
};

// *out is {0} where bsw_device_coarse_bytes says so.
enum bsw_status bsw_device_coarse_open(bsw_device *device,
                                       const struct bsw_device_coarse_needs *needs,
                                       size_t free_bytes, struct bsw_device_coarse *out,
                                       struct bsw_error *err);
void bsw_device_coarse_close(struct bsw_device_coarse *coarse); // accepts {0}

// Centroids are loaded, if they were not, and the search is offloaded to this. Without one nothing
// is done. The search has as many lists and dimensions as the needs.
enum bsw_status bsw_device_coarse_take(struct bsw_device_coarse *coarse,
                                       struct bsw_coarse_search *search, struct bsw_error *err);

// Steps of bsw_device_choice: the nearest list, a few that hold most of what a query finds, others.
#define BSW_FEW_LISTS 8

// Whether a choice that was put off can be made here.
int bsw_device_coarse_can_place(const struct bsw_device_coarse *coarse,
                                const struct bsw_list_choice *choice);
// Queues on BSW_QUEUE_LINK that it is made, unless it is there already: until the next one is. What
// was uploaded for the one before has been waited for.
enum bsw_status bsw_device_coarse_place(struct bsw_device_coarse *coarse,
                                        const struct bsw_list_choice *choice,
                                        struct bsw_error *err);

#endif
