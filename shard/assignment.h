// SPDX-License-Identifier: Apache-2.0
// Which rank answers for which shard and which queries of a batch: a table, made by rank 0 and sent
// to all.
//
// Up to as many ranks as shards: each rank owns a run of consecutive shards and answers for all
// queries. More ranks: they form num_ranks / num_shards replicas of the index; replica i answers
// for slice i of each batch's queries. Ranks left over stay idle. Shards that cannot be loaded mean
// another table of the same form with a later epoch.
#ifndef BITSWEEP_SHARD_ASSIGNMENT_H
#define BITSWEEP_SHARD_ASSIGNMENT_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/memory.h"
#include "common/files/index_manifest.h"
#include "common/net/transport.h"
#include "shard/backend.h"

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

// The same for a table of rank 0's in place of the one that all have.
enum bsw_status bsw_assignment_share_next(bsw_transport *transport, struct bsw_assignment *table,
                                          struct bsw_error *err);

// The next epoch's, without the shards that failed: is_failed [num_slices][num_shards]. Where a
// rank has the shard for another slice it answers for this one, too; else nobody does.
void bsw_assignment_leave_out(struct bsw_assignment *table, const unsigned char *is_failed);

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

// Rows that can be found for a query of the slice: those of all shards that somebody answers for,
// without dropped and deleted ones.
uint64_t bsw_assignment_coverage(const struct bsw_assignment *table,
                                 const struct bsw_manifest *manifest, uint32_t slice);

// Spans: runs of consecutive shards of one rank that a device scans as if they were one shard, with
// one list a query. Rows of a span count from its first row on, so that its candidates are in the
// total order without a look at the shards: of equal scores the smaller row is the better one.
//
// The best `keep` of all rows are among the best `keep` of each span, as of each shard; limits that
// the first shards of a span have raised help the others. Shards are in spans of their own where
// rows count within their shard: rbeGIR's queues (shard_queue.h) give a row to a thread by its
// place; and each shard has lists of its own, if the index has some.

struct bsw_span {
    uint32_t first_shard, num_shards;
    uint64_t first_row, num_rows;
};

// What spans depend on; the same on all ranks, so all have the same spans.
struct bsw_span_rule {
    const struct bsw_manifest *manifest;
    const struct bsw_assignment *assignment;
    int is_shard; // each shard is a span
};

static inline struct bsw_span_rule bsw_span_rule_of(const struct bsw_manifest *manifest,
                                                    const struct bsw_assignment *assignment,
                                                    const struct bsw_search_settings *settings)
{
    return (struct bsw_span_rule){manifest, assignment,
                                  settings->queue.length > 0 || manifest->lists.count > 0};
}

// The span that begins with the shard: up to where another rank answers for the next shard, in any
// slice, or 32 bits would not count the rows. The next span begins behind its last shard.
struct bsw_span bsw_span_at(const struct bsw_span_rule *rule, uint32_t first_shard);
// Spans of the index; each is scanned once for each slice.
uint32_t bsw_num_spans(const struct bsw_span_rule *rule);
// Lists that a rank has for the queries of a slice, over all slices.
uint32_t bsw_num_rank_spans(const struct bsw_span_rule *rule, uint32_t rank);

#endif
