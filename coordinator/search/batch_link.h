// SPDX-License-Identifier: Apache-2.0
// The queries of a batch over a device link, from rank 0 to the devices of all ranks. Their header
// goes over the transport, as do survivors: their values are the host's.
//
// Everything is allocated when it is opened, for the largest batch that the settings allow: before
// shards are loaded, so that what is planned for them is what is left.
#ifndef BITSWEEP_COORDINATOR_BATCH_LINK_H
#define BITSWEEP_COORDINATOR_BATCH_LINK_H

#include "common/net/device_link.h"
#include "shard/shard_service.h"

struct bsw_batch_link {
    bsw_device_link *link; // NULL: there is none, and nothing else is set
    bsw_device *device;    // both borrowed
    bsw_transport *transport;
    // On the device and in host memory, twice: those of one batch are refined while the next are
    // here; `turn` is where those go that are spread next.
    struct bsw_device_buffer queries[2];
    unsigned char *h_queries[2];
    unsigned turn;
};

// Device memory that it will take on each rank.
size_t bsw_batch_link_bytes(const struct bsw_manifest *manifest,
                            const struct bsw_search_settings *settings);

// link NULL: *out is {0}.
enum bsw_status bsw_batch_link_open(bsw_device_link *link, bsw_device *device,
                                    bsw_transport *transport, const struct bsw_manifest *manifest,
                                    const struct bsw_search_settings *settings,
                                    struct bsw_batch_link *out, struct bsw_error *err);
void bsw_batch_link_close(struct bsw_batch_link *link);

// payload (rank 0, host memory) to queries[turn] on every device and, but for rank 0, to
// h_queries[turn]; the turn then changes. bytes: the same on all ranks, at most those of a batch.
// After an agreement that all ranks come here, none of whom scans.
enum bsw_status bsw_batch_link_spread(struct bsw_batch_link *link, const unsigned char *payload,
                                      size_t bytes, struct bsw_error *err);

#endif
