// SPDX-License-Identifier: Apache-2.0
// Refinement on a rank's device: the values that bsw_shard_refine gives, for the survivors of a
// unit.
//
// Raw rows of a shard lie in device memory where there is room for all of them after everything
// else; every row has then been checked against the shard's digests while it was copied. Rows of
// other shards are gathered by the host for every batch, each bundle checked when it is first used,
// and sent along. Survivors go in groups through two halves of fixed buffers, so that the host
// gathers one group while the device has the other.
//
// Where nothing but the scan decides what survives, and all rows are on the device, its lists are
// refined behind their last step without the host (kernels/device_exact, bsw_device_refine_lists):
// only the best of each by exact value come back.
#ifndef BITSWEEP_SHARD_DEVICE_REFINE_H
#define BITSWEEP_SHARD_DEVICE_REFINE_H

#include <stddef.h>
#include <stdint.h>

#include "common/device/device.h"
#include "kernels/device_exact/device_exact.h"
#include "shard/host/shard_scan.h"

struct bsw_device_refine_needs {
    enum bsw_metric metric;
    enum bsw_vector_type type; // of raw rows
    uint32_t dims;
    size_t max_queries, keep; // most queries of a batch, most survivors of one
    size_t take;              // survivors of a list that is refined ahead; 0: none is
    int num_threads;          // that gather
};

struct bsw_device_refiner {
    bsw_device *device; // borrowed; NULL: values are the CPU's
    struct bsw_device_refine_needs needs;
    size_t row_bytes, half_bytes, group_queries;
    struct bsw_device_buffer memory; // two halves, and what is ahead
    unsigned char *staging;          // host: the same; of what is ahead survivors twice
    size_t ahead_vectors, ahead_survivors, ahead_bytes; // places in both; ahead_bytes 0: none
    unsigned turn;                                      // whose survivors come next
    size_t raw_bytes;                                   // of rows on the device
    size_t promised_bytes;                              // of memory that others will take
    // Since it was opened: of rows sent, and waits of the host for values.
    uint64_t gathered_bytes, num_waits;
};

// What it takes of a device with so much free memory; 0: too little to refine anything there.
size_t bsw_device_refiner_bytes(const struct bsw_device_refine_needs *needs, size_t free_bytes);
// Whether all raw rows of a shard, so many bytes, are kept on a device with so much left.
int bsw_device_raw_rows_fit(size_t bytes, size_t free_bytes);

// Takes at most an eighth of the memory that is free, which is what gathering wants; on a device
// where that does not hold one query and one row out->device stays NULL, and nothing is refined
// there.
enum bsw_status bsw_device_refiner_open(bsw_device *device,
                                        const struct bsw_device_refine_needs *needs,
                                        struct bsw_device_refiner *out, struct bsw_error *err);
void bsw_device_refiner_close(struct bsw_device_refiner *refiner);

struct bsw_device_raw_shard {
    const struct bsw_resident_shard *host; // borrowed
    struct bsw_device_buffer memory;       // all rows, or none
};

// Called once everything else that a search needs has its memory. A row that is not the one the
// index was made from is BSW_ERROR_BAD_DATA.
enum bsw_status bsw_device_raw_shard_load(struct bsw_device_refiner *refiner,
                                          const struct bsw_resident_shard *host,
                                          struct bsw_device_raw_shard *out, struct bsw_error *err);
void bsw_device_raw_shard_unload(struct bsw_device_refiner *refiner,
                                 struct bsw_device_raw_shard *shard);

// survivors: as bsw_shard_refine lists them without refinement, counts[q] of query first_query + q;
// their values are filled in. Of workspace only `refine` is read, and refine_seconds added to.
enum bsw_status bsw_device_refiner_run(struct bsw_device_refiner *refiner,
                                       const struct bsw_device_raw_shard *shard,
                                       const struct bsw_query_batch *batch, size_t first_query,
                                       size_t num_queries, const size_t *counts,
                                       struct bsw_scan_workspace *workspace,
                                       struct bsw_survivor *survivors, struct bsw_error *err);

// Whether lists of so many queries, of which `keep` are kept, can be refined ahead.
int bsw_device_refiner_goes_ahead(const struct bsw_device_refiner *refiner,
                                  const struct bsw_device_raw_shard *shard, size_t num_queries,
                                  size_t keep);
// Queues it on BSW_QUEUE_SCAN, where the lists' last step is; what was queued before has been
// waited for. *out is there once that queue has been waited for, until lists are refined ahead for
// the second time from now.
enum bsw_status bsw_device_refiner_ahead(struct bsw_device_refiner *refiner,
                                         const struct bsw_device_raw_shard *shard,
                                         const struct bsw_query_batch *batch, size_t first_query,
                                         const struct bsw_device_lists *lists, size_t keep,
                                         struct bsw_refined_lists *out, struct bsw_error *err);

#endif
