// SPDX-License-Identifier: Apache-2.0
// The bulk of a batch over a device link: queries from rank 0 to the devices of all ranks,
// survivors from all devices to that of rank 0. Headers and sizes go over the transport.
//
// Everything is allocated when it is opened, for the largest batch that the settings allow: before
// shards are loaded, so that what is planned for them is what is left.
#ifndef BITSWEEP_COORDINATOR_BATCH_LINK_H
#define BITSWEEP_COORDINATOR_BATCH_LINK_H

#include "common/base/memory.h"
#include "common/net/device_link.h"
#include "shard/shard_service.h"

struct bsw_batch_link {
    bsw_device_link *link; // NULL: there is none, and nothing else is set
    bsw_device *device;    // both borrowed
    bsw_transport *transport;
    struct bsw_device_buffer queries;
    struct bsw_device_buffer survivors; // this rank's; on rank 0 those of all others
    // Host memory for both. Of queries twice: those of one batch are refined while the next are
    // here; `turn` is where those go that are spread next.
    unsigned char *h_queries[2], *h_survivors;
    unsigned turn;
    struct bsw_device_transfer *receives; // rank 0: [num_ranks], none of its own
};

// Device memory that a rank's will take.
size_t bsw_batch_link_bytes(const struct bsw_manifest *manifest,
                            const struct bsw_search_settings *settings,
                            const struct bsw_assignment *assignment, int rank);

// link NULL: *out is {0}.
enum bsw_status bsw_batch_link_open(bsw_device_link *link, bsw_device *device,
                                    bsw_transport *transport, const struct bsw_manifest *manifest,
                                    const struct bsw_search_settings *settings,
                                    const struct bsw_assignment *assignment,
                                    struct bsw_batch_link *out, struct bsw_error *err);
void bsw_batch_link_close(struct bsw_batch_link *link);

// payload (rank 0, host memory) to `queries` on every device and, but for rank 0, to
// h_queries[turn]; the turn then changes. bytes: the same on all ranks, at most those of `queries`.
// After an agreement that all ranks come here, none of whom scans.
enum bsw_status bsw_batch_link_spread(struct bsw_batch_link *link, const unsigned char *payload,
                                      size_t bytes, struct bsw_error *err);

// own of each rank but 0 to payloads [num_ranks] on rank 0; payloads[0] stays as it is. message is
// that of the sizes. After an agreement that all ranks come here.
enum bsw_status bsw_batch_link_gather(struct bsw_batch_link *link,
                                      const struct bsw_message *message,
                                      const struct bsw_buffer *own, struct bsw_buffer *payloads,
                                      struct bsw_error *err);

#endif
