// SPDX-License-Identifier: Apache-2.0
// Which rank answers for which shard and which queries of a batch: a table, made by rank 0 and sent
// to all.
//
// Up to as many ranks as shards: each rank owns a run of consecutive shards and answers for all
// queries. More ranks: they form num_ranks / num_shards replicas of the index; replica i answers
// for slice i of each batch's queries. Ranks left over stay idle. A rank that is lost will mean
// another table of the same form with a later epoch.
#ifndef BITSWEEP_SHARD_ASSIGNMENT_H
#define BITSWEEP_SHARD_ASSIGNMENT_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/memory.h"
#include "common/files/index_manifest.h"
#include "common/net/transport.h"

#define BSW_NO_RANK UINT32_MAX // nobody answers for that shard and slice

struct bsw_assignment {
    uint64_t epoch; // 1, 2, ...: of two tables of a job the later one holds
    uint32_t num_ranks;
    uint32_t num_shards;
    uint32_t num_slices; // replicas
    uint32_t *ranks;     // [num_slices][num_shards]; owned
};

// The table of epoch 1. To be freed by bsw_assignment_deinit, which accepts {0}.
enum bsw_status bsw_assignment_make(uint32_t num_ranks, uint32_t num_shards,
                                    struct bsw_assignment *out, struct bsw_error *err);
void bsw_assignment_deinit(struct bsw_assignment *table);

// All ranks call it, with the same number of shards: rank 0 makes the table, the others check what
// they are sent. All return alike, unless the transport is broken on return.
enum bsw_status bsw_assignment_share(bsw_transport *transport, uint32_t num_shards,
                                     struct bsw_assignment *out, struct bsw_error *err);

// As it travels. A table that is not whole, not for so many ranks and shards, or names a rank that
// there is not: BSW_ERROR_PEER.
enum bsw_status bsw_assignment_pack(const struct bsw_assignment *table, struct bsw_buffer *out,
                                    struct bsw_error *err);
enum bsw_status bsw_assignment_parse(const void *bytes, size_t num_bytes, uint32_t num_ranks,
                                     uint32_t num_shards, struct bsw_assignment *out,
                                     struct bsw_error *err);

static inline uint32_t bsw_assignment_rank(const struct bsw_assignment *table, uint32_t slice,
                                           uint32_t shard)
{
    return table->ranks[(size_t)slice * table->num_shards + shard];
}

// Queries [first, last) of a batch that a slice has.
static inline void bsw_assignment_queries(const struct bsw_assignment *table, uint32_t slice,
                                          size_t num_queries, size_t *first, size_t *last)
{
    *first = num_queries * slice / table->num_slices;
    *last = num_queries * (slice + 1) / table->num_slices;
}

// Shards and slices that a rank answers for.
uint32_t bsw_assignment_num_units(const struct bsw_assignment *table, uint32_t rank);

// Rows that are looked at for a query of the slice: those of all shards that somebody answers for.
uint64_t bsw_assignment_coverage(const struct bsw_assignment *table,
                                 const struct bsw_manifest *manifest, uint32_t slice);

#endif
