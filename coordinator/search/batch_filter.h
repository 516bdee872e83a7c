// SPDX-License-Identifier: Apache-2.0
// The way of a filter to all ranks: rank 0 has what the user gives
// (coordinator/job/allowed_rows.h), and how many rows of each list queries may find, where they
// look at some lists.
//
// One mask of all queries is sent once a run. Masks a query are sent with their batch, whose
// queries are put in another order: those with the same mask follow each other and are scanned
// together.
//
// Message, uint32 each: groups, words of a mask, lists (0: no counts), 0; then first queries of the
// groups and their end [groups + 1], masks [groups][words], rows of lists [lists], rows of lists
// that a group may find [groups][lists]. Little-endian.
#ifndef BITSWEEP_COORDINATOR_BATCH_FILTER_H
#define BITSWEEP_COORDINATOR_BATCH_FILTER_H

#include "common/net/transport.h"
#include "coordinator/job/allowed_rows.h"
#include "shard/lists/row_filter.h"
#include "shard/shard_service.h"

enum bsw_filter_kind { BSW_FILTER_NONE, BSW_FILTER_ONE, BSW_FILTER_EACH };

// {0} is a valid closed one.
struct bsw_batch_filter {
    enum bsw_filter_kind kind; // of this run
    const struct bsw_manifest *manifest;
    struct bsw_allowed_rows *allowed; // rank 0, borrowed
    uint32_t *list_of_row;            // rank 0, where lists are counted; stays from run to run
    struct bsw_buffer list_rows;      // uint32_t [lists], likewise
    int has_lists;
    struct bsw_buffer message;     // of the one mask
    struct bsw_row_filter one;     // in it
    struct bsw_buffer mask, order; // rank 0: scratch
};

// All ranks, once shards are loaded; all return alike. folder: of the index, for its lists.
enum bsw_status bsw_batch_filter_begin(struct bsw_batch_filter *filter, bsw_transport *transport,
                                       const struct bsw_shard_service *service,
                                       struct bsw_allowed_rows *allowed, const char *folder,
                                       struct bsw_error *err);
void bsw_batch_filter_close(struct bsw_batch_filter *filter);

// Queries of a batch at most, so that their masks and lists have room.
size_t bsw_batch_filter_most(const struct bsw_batch_filter *filter, size_t batch);

// Rank 0, with masks a query: those of queries [first, first + count) into a message, and the order
// that the batch is to have them in [count].
enum bsw_status bsw_batch_filter_pack(struct bsw_batch_filter *filter, uint64_t first, size_t count,
                                      uint32_t *order, struct bsw_buffer *message,
                                      struct bsw_error *err);

// Points into a message, for num_queries. One that does not parse is BSW_ERROR_PEER.
enum bsw_status bsw_batch_filter_parse(const struct bsw_batch_filter *filter,
                                       const struct bsw_buffer *message, size_t num_queries,
                                       struct bsw_row_filter *out, struct bsw_error *err);

#endif
