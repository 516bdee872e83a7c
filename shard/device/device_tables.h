// SPDX-License-Identifier: Apache-2.0
// Product codes on a device: codebooks, which all shards share, and the centroids that tables of l2
// with residuals want; each block of the kernel makes its queries' tables of them
// (kernels/device_scan/device_table_scan.h).
#ifndef BITSWEEP_SHARD_DEVICE_TABLES_H
#define BITSWEEP_SHARD_DEVICE_TABLES_H

#include "kernels/device_scan/device_table_scan.h"
#include "shard/device/device_shard.h"

// Codebooks and centroids into engine->book. Nothing where the plan has no product codes.
enum bsw_status bsw_device_book_load(struct bsw_device_engine *engine,
                                     const struct bsw_device_needs *needs, struct bsw_error *err);

// The list of each bundle of a shard, where the plan has centroids; `lists` is freed by the caller.
enum bsw_status bsw_device_bundle_lists_load(struct bsw_device_engine *engine,
                                             const struct bsw_resident_shard *host,
                                             size_t num_bundles, struct bsw_device_buffer *lists,
                                             struct bsw_error *err);

// Tables of queries under way, and which types there are among them.
struct bsw_device_table_run {
    struct bsw_device_tables tables; // `type`: of each launch
    unsigned types;                  // bit t: type t
};

// memory: what the plan lays out for queries, on the device. Types, a byte for each query, and what
// a selection has are there where the tables point to them.
struct bsw_device_table_run bsw_device_table_run_of(const struct bsw_device_engine *engine,
                                                    const struct bsw_query_batch *batch,
                                                    size_t first_query, size_t num_queries,
                                                    unsigned char *memory);

// What the batch's selection of entries says of some queries, into what is uploaded for them.
void bsw_device_selection_stage(const struct bsw_query_batch *batch, size_t first_query,
                                size_t num_queries, const struct bsw_device_plan *plan,
                                unsigned char *staging);

// The next type of a run from `type` on, BSW_NUM_TABLE_TYPES after the last.
static inline int bsw_device_next_type(const struct bsw_device_table_run *run, int type)
{
    while (type < BSW_NUM_TABLE_TYPES && !(run->types >> type & 1)) type++;
    return type;
}

#endif
