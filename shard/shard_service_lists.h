// SPDX-License-Identifier: Apache-2.0
// What a rank's side of a search does with shards that have lists: which of them the queries of a
// batch look at, and the scan of these.
#ifndef BITSWEEP_SHARD_SHARD_SERVICE_LISTS_H
#define BITSWEEP_SHARD_SHARD_SERVICE_LISTS_H

#include "shard/shard_service.h"

// Whether candidates stay on devices that merge them.
static inline int bsw_service_is_kept(const struct bsw_shard_service *service)
{
    return service->settings.merge_place != BSW_MERGE_ON_HOST;
}

// Span s, which is one unit then, of the service's batch.
enum bsw_status bsw_service_scan_lists(struct bsw_shard_service *service, uint32_t s,
                                       const struct bsw_scan_round *round, struct bsw_error *err);

// The same of span 0, begun as far as that goes without waiting (the back end's begin_lists); its
// candidates stay. Other spans are scanned when it is over.
enum bsw_status bsw_service_begin_lists(struct bsw_shard_service *service, struct bsw_error *err);

#endif
