// SPDX-License-Identifier: Apache-2.0
// What scans on CPU cores keep from batch to batch. {0} is a valid empty one.
#ifndef BITSWEEP_SHARD_HOST_SCRATCH_H
#define BITSWEEP_SHARD_HOST_SCRATCH_H

#include "shard/scan/work.h"

// Product codes (list_tables.h, list_bounds.h).
struct bsw_list_table_scratch {
    struct bsw_buffer centroids, list_terms; // of all lists, once they are made
    const float *made_of;                    // the lists' centroids
    struct bsw_buffer queries, multipliers;  // of all queries: terms, or tables
    struct bsw_buffer threads;
    // Queries, threads, terms of all rows of shards that are known.
    struct bsw_buffer bounds, bound_scales, bound_threads, row_terms, term_shards;
    size_t most_bytes; // in place of BSW_LIST_TABLE_BYTES; 0: that
};

struct bsw_host_scratch {
    struct bsw_buffer components, constants, stage; // of all queries
    struct bsw_buffer lists, items, limits;         // of all queries
    struct bsw_buffer threads, masks;
    struct bsw_list_table_scratch tables;
    struct bsw_work work;
};
void bsw_host_scratch_deinit(struct bsw_host_scratch *scratch);

#endif
