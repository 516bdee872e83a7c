// The way of one batch through all ranks: codes out, candidates in, cuts out, survivors in.
// Point-to-point messages only; before a payload travels all ranks agree that every one of them has
// it.
#ifndef BITSWEEP_COORDINATOR_BATCH_SEARCH_H
#define BITSWEEP_COORDINATOR_BATCH_SEARCH_H

#include <stdint.h>

#include "common/transport.h"
#include "coordinator/batch_merge.h"
#include "coordinator/query_source.h"
#include "shard/shard_service.h"

// Wall time of rank 0 by phase, in seconds; every wait for other ranks is in the phase it happens
// in.
struct bsw_search_times {
    double encode, broadcast, histogram, scan, merge, refine, finish;
};

struct bsw_batch_search {
    struct bsw_transport *transport;
    const struct bsw_manifest *manifest;
    struct bsw_shard_service *service;
    struct bsw_query_source *queries; // rank 0
    struct bsw_batch_merge merge;     // rank 0
    struct bsw_buffer message, own;
    struct bsw_buffer *payloads; // rank 0: [num_ranks]
    struct bsw_buffer limits, cuts;
    uint64_t num_batches;
    int others_know;         // of the error that ended the search
    uint64_t bytes_received; // rank 0: payloads of other ranks
    struct bsw_search_times times;
};

enum bsw_status bsw_batch_search_init(struct bsw_batch_search *search,
                                      struct bsw_transport *transport,
                                      const struct bsw_manifest *manifest,
                                      struct bsw_shard_service *service,
                                      struct bsw_query_source *queries, struct bsw_error *err);
void bsw_batch_search_deinit(struct bsw_batch_search *search);

// Rank 0: answers queries [first, first + count) into ids and values [count][k].
enum bsw_status bsw_batch_search_run(struct bsw_batch_search *search, uint64_t first, size_t count,
                                     int64_t *ids, float *values, struct bsw_error *err);
// Rank 0: tells the others that there is no more (status ok), or why not.
enum bsw_status bsw_batch_search_end(struct bsw_batch_search *search, enum bsw_status status,
                                     struct bsw_error *err);
// Other ranks: serves batches until the end.
enum bsw_status bsw_batch_search_serve(struct bsw_batch_search *search, struct bsw_error *err);

#endif
