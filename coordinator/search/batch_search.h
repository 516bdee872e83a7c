// SPDX-License-Identifier: Apache-2.0
// The way of one batch through all ranks: codes out, candidates in, cuts out, survivors in.
// Point-to-point messages only; before a payload travels all ranks agree that every one of them has
// it. Where the devices of the ranks are linked, queries and survivors go over the link, and where
// these find the cuts, candidates too (batch_device_merge.h).
//
// A batch after another: rank 0 may say with a batch that it is followed. Then every rank
//
//   receives the next batch, and begins its scan, if that needs no host: a device has work
//   agrees on the candidates of this one, merges, cuts, refines, and sends its survivors
//   ends the scan of the next
//
// in place of all steps for one batch and then for the other. Each batch has its agreements and
// messages in the order that it has alone, so all ranks meet the same, whether or not one of them
// could begin. How beginning, or a check before it, went is told at the batch's own first
// agreement: a batch is answered even if the one after it fails. What ends the search while a scan
// is under way drops that. Where rank 0 has said that a batch is followed and has nothing, as the
// next cannot be read or somebody wants to stop, it sends a pause. Messages count batches that were
// sent, so their numbers never fall. The lists of the scan under way lie where scans have them,
// those that are merged where they stay: nothing is needed twice on a device.
#ifndef BITSWEEP_COORDINATOR_BATCH_SEARCH_H
#define BITSWEEP_COORDINATOR_BATCH_SEARCH_H

#include <stdint.h>

#include "common/net/transport.h"
#include "coordinator/search/batch_device_merge.h"
#include "coordinator/search/batch_filter.h"
#include "coordinator/search/batch_link.h"
#include "coordinator/search/batch_merge.h"
#include "coordinator/search/query_source.h"
#include "shard/shard_service.h"

// Wall time of rank 0 by phase, in seconds; every wait for other ranks is in the phase it happens
// in. encode, finish and write are batch_pipeline.h's.
struct bsw_search_times {
    double encode, broadcast, scan, merge, refine, finish, write;
    double overlapped; // the part of encode, finish and write that ran beside the other phases
};

// What travels for a batch, in this order; with histogram selection candidates and cuts twice, of a
// range search cuts, which rank 0 makes, and survivors alone.
enum bsw_exchange {
    BSW_EXCHANGE_QUERIES,
    BSW_EXCHANGE_CANDIDATES,
    BSW_EXCHANGE_CUTS,
    BSW_EXCHANGE_SURVIVORS,
    BSW_NUM_EXCHANGES
};
const char *bsw_exchange_name(enum bsw_exchange exchange);

// What an exchange cost rank 0, over all batches; a part of the phase that the exchange is in.
struct bsw_exchange_cost {
    double wait_seconds; // for other ranks to be ready: the agreement before
    double seconds;      // then, until all that comes to rank 0 is here, or all it sends is sent
    uint64_t bytes;      // of payloads, to all other ranks or from them
};

// A batch on its way through a rank, from its message on.
struct bsw_batch_work {
    struct bsw_query_batch queries;
    enum bsw_status status; // so far
    struct bsw_error error;
    int is_scanned;                 // or that has failed
    struct bsw_row_filter filter;   // of its queries, where each has a mask
    const struct bsw_buffer *range; // rank 0, of a range search: its cuts
};

// A batch on its way through rank 0; {0} then init. Its buffers are used again for later batches.
struct bsw_search_batch {
    uint64_t first; // query
    size_t count;
    int is_followed;             // to be set before pack
    struct bsw_buffer message;   // coded queries
    struct bsw_buffer values;    // struct bsw_value_terms [count]
    struct bsw_buffer masks;     // with masks a query: their message
    struct bsw_buffer order;     // uint32_t [count], likewise; .bytes 0: queries are as they are
    struct bsw_buffer range;     // of a range search: struct bsw_cut [count]
    struct bsw_buffer *payloads; // [num_ranks]: survivors
    struct bsw_batch_work work;
};

// When ranks check themselves between batches; rank 0 says so with a batch.
struct bsw_check_schedule {
    double seconds; // from one check to the next; 0: none
    double checked_at;
    // May be NULL. Before a round of checks of all ranks, with is_passed 0, and once all of them
    // have passed.
    void (*note)(void *context, int is_passed);
    void *context;
    uint64_t round; // checks until all codes were looked at, 1 or more; of no account without note
    uint64_t num_passed;
};

struct bsw_batch_search {
    struct bsw_transport *transport;
    const struct bsw_manifest *manifest; // the service's
    struct bsw_shard_service *service;
    struct bsw_query_source *queries; // rank 0
    struct bsw_batch_link *link;      // borrowed; NULL: the transport alone. To be set after init
    struct bsw_batch_device_merge *device_merge; // likewise; NULL: cuts are found on the host
    // Rank 0: limits and cuts of one batch may be found while the answers of another are.
    struct bsw_batch_merge merge, finish;
    struct bsw_buffer message, own;
    struct bsw_buffer messages[2];   // other ranks: of a batch and the one that follows
    struct bsw_buffer masks[2];      // likewise
    struct bsw_batch_filter *filter; // borrowed; NULL: none. To be set after init
    struct bsw_buffer *payloads;     // rank 0: [num_ranks]
    struct bsw_buffer limits, cuts;
    // Rank 0, may be NULL: called before the first agreement on a batch. Its error concerns an
    // earlier batch and goes before any of this one.
    enum bsw_status (*settle)(void *context, struct bsw_error *err);
    void *settle_context;
    struct bsw_check_schedule checks; // rank 0; to be set after init
    float reach;          // rank 0, of a range search: estimates within it are candidates
    uint64_t most_within; // likewise: candidates of a query
    uint64_t num_batches; // sent or received, with pauses
    int others_know;      // of the error that ended the search
    struct bsw_search_times times;
    struct bsw_exchange_cost exchanges[BSW_NUM_EXCHANGES];
};

enum bsw_status bsw_batch_search_init(struct bsw_batch_search *search,
                                      struct bsw_transport *transport,
                                      struct bsw_shard_service *service,
                                      struct bsw_query_source *queries, struct bsw_error *err);
void bsw_batch_search_deinit(struct bsw_batch_search *search);

enum bsw_status bsw_search_batch_init(const struct bsw_batch_search *search,
                                      struct bsw_search_batch *batch, struct bsw_error *err);
void bsw_search_batch_deinit(const struct bsw_batch_search *search, struct bsw_search_batch *batch);

// Rank 0, a batch in five steps. pack reads and codes queries [first, first + count); begin sends
// it to all ranks and begins its scan, as far as that goes without waiting; scan_begun ends that;
// complete takes what was scanned through all ranks; finish turns what came back into ids and
// values [count][k]. Between begin and scan_begun of a batch comes complete of the one that it
// follows; nothing follows after pause. After an error of complete what was begun is dropped.
//
// At any time one thread may be in begin to complete, the one that opened the transport, and one
// other in pack or finish of another batch. num_threads are OpenMP's.
enum bsw_status bsw_batch_search_pack(struct bsw_batch_search *search, uint64_t first, size_t count,
                                      int num_threads, struct bsw_search_batch *batch,
                                      struct bsw_error *err);
enum bsw_status bsw_batch_search_begin(struct bsw_batch_search *search,
                                       struct bsw_search_batch *batch, struct bsw_error *err);
void bsw_batch_search_scan_begun(struct bsw_batch_search *search, struct bsw_search_batch *batch);
enum bsw_status bsw_batch_search_complete(struct bsw_batch_search *search,
                                          struct bsw_search_batch *batch, struct bsw_error *err);
enum bsw_status bsw_batch_search_pause(struct bsw_batch_search *search, struct bsw_error *err);
enum bsw_status bsw_batch_search_finish(struct bsw_batch_search *search,
                                        const struct bsw_search_batch *batch, int num_threads,
                                        int64_t *ids, float *values, struct bsw_error *err);
// The same of a range search.
enum bsw_status bsw_batch_search_finish_range(struct bsw_batch_search *search,
                                              const struct bsw_search_batch *batch, int num_threads,
                                              struct bsw_range_answers *out, struct bsw_error *err);
// Rank 0: tells the others that there is no more (status ok), or why not.
enum bsw_status bsw_batch_search_end(struct bsw_batch_search *search, enum bsw_status status,
                                     struct bsw_error *err);
// Other ranks: serves batches until the end.
enum bsw_status bsw_batch_search_serve(struct bsw_batch_search *search, struct bsw_error *err);

// Rank 0: payloads that other ranks have sent.
uint64_t bsw_batch_search_received_bytes(const struct bsw_batch_search *search);

#endif
