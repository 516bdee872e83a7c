// SPDX-License-Identifier: Apache-2.0
// Cuts found on devices, from candidates that never come to a host: in rank 0's (gather, as rbeGIR
// has it), or in the devices of all ranks, each for an equal part of the queries (exchange).
//
// Only the counts of lists go over the transport. Then, for a group of queries at a time, lists go
// over the link to the device that merges them, a segmented radix sort orders them, and the cuts
// come to the host: of rank 0, or of all ranks.
//
// Everything is allocated when it is opened: before shards are loaded, so that what is planned for
// them is what is left.
#ifndef BITSWEEP_COORDINATOR_BATCH_DEVICE_MERGE_H
#define BITSWEEP_COORDINATOR_BATCH_DEVICE_MERGE_H

#include "common/net/device_link.h"
#include "kernels/device_merge/device_merge.h"
#include "shard/shard_service.h"

struct bsw_device_merge_needs {
    struct bsw_span_rule rule; // each span's lists are one of what is merged
    uint64_t keep;
    size_t batch;
    enum bsw_merge_place place;
};

// What a merge takes of the device of a rank, and how many queries it has at a time.
struct bsw_device_merge_plan {
    size_t group_queries; // 0: not one query fits
    size_t share_queries; // of a group, the most that a rank merges
    size_t list_items;    // of one query in all spans, at most
    size_t received, key_items, key_counts, sort, offsets, counts, first_rows, cuts, bytes;
};

struct bsw_batch_device_merge {
    struct bsw_device_merge_needs needs; // place BSW_MERGE_ON_HOST: nothing else is set
    bsw_device_link *link;               // NULL: one rank. Borrowed, as the two below
    bsw_device *device;
    bsw_transport *transport;
    struct bsw_device_merge_plan plan;
    struct bsw_span *spans; // [num_spans]
    uint32_t num_spans;
    struct bsw_device_buffer memory;
    unsigned char *staging; // host: offsets, counts, first rows and cuts, as in memory
    struct bsw_buffer transfers;
    struct bsw_buffer counts; // uint32_t [num_spans][num_queries]: of all lists of the batch
    uint64_t received_bytes;  // from other ranks since it was opened
};

// For a rank, where free_bytes of every device are free.
void bsw_device_merge_plan_make(const struct bsw_device_merge_needs *needs, uint32_t rank,
                                size_t free_bytes, struct bsw_device_merge_plan *out);

// All ranks call it; free_bytes: the same on all, the least of all devices. *out is made for
// needs->place, which must fit.
enum bsw_status bsw_batch_device_merge_open(const struct bsw_device_merge_needs *needs,
                                            bsw_device_link *link, bsw_device *device,
                                            bsw_transport *transport, size_t free_bytes,
                                            struct bsw_batch_device_merge *out,
                                            struct bsw_error *err);
// Accepts {0}.
void bsw_batch_device_merge_close(struct bsw_batch_device_merge *merge);

// Rank 0: the counts of all lists from the payloads of all ranks [num_ranks] (shard_service.h), of
// a batch of num_queries queries. What does not fit together is BSW_ERROR_PEER.
enum bsw_status bsw_batch_device_merge_counts(struct bsw_batch_device_merge *merge,
                                              const struct bsw_buffer *payloads, size_t num_queries,
                                              struct bsw_error *err);
// Other ranks, once they have merge->counts from rank 0: whether they make sense.
enum bsw_status bsw_batch_device_merge_check(const struct bsw_batch_device_merge *merge,
                                             size_t num_queries, struct bsw_error *err);

// All ranks call it once all have agreed that they come here, with the counts: exchange: all ranks;
// gather: rank 0. keep: of each query, at most that of the needs. cuts [num_queries]: filled in by
// exchange on all ranks, by gather on rank 0.
enum bsw_status bsw_batch_device_merge_run(struct bsw_batch_device_merge *merge,
                                           const struct bsw_shard_service *service,
                                           size_t num_queries, uint64_t keep, struct bsw_cut *cuts,
                                           struct bsw_error *err);

#endif
