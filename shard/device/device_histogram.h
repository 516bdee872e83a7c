// SPDX-License-Identifier: Apache-2.0
// Histograms of integer distances from a scan on a device, for XFBQ Algorithm 1.
//
// No bins on the device: the K-th distance is that of the K-th best row, so the best K of a shard
// say all that its histogram may be asked. The scan has found them with a limit, which a bin for
// every distance, some thousands a query, could not be as fast as.
#ifndef BITSWEEP_SHARD_DEVICE_HISTOGRAM_H
#define BITSWEEP_SHARD_DEVICE_HISTOGRAM_H

#include "shard/device/device_shard.h"

// As bsw_shard_histogram, except that no empty bin comes last, and that the last one counts no more
// rows than make k in all. That
// changes no K-th distance of any number of shards: where this shard's bins end they have reached k
// without the others', and all bins before are whole. k at most the `keep` of the engine's needs.
// lists: scratch.
enum bsw_status bsw_device_shard_histogram(struct bsw_device_engine *engine,
                                           const struct bsw_device_shard *shard,
                                           const struct bsw_query_batch *batch, size_t first_query,
                                           size_t num_queries, uint64_t k,
                                           struct bsw_scan_workspace *workspace,
                                           struct bsw_candidate_lists *lists, bsw_histogram_fn emit,
                                           void *context, struct bsw_error *err);

#endif
