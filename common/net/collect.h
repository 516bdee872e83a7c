// SPDX-License-Identifier: Apache-2.0
// Every rank's payload to rank 0, and a record of rank 0 to all.
//
// All ranks call it with the same message. They should have agreed before that each has what it
// sends (bsw_transport_agree): one that does not send leaves rank 0 waiting. Other ranks send and
// return. Rank 0 receives from ranks 1, 2, ... in this order and stops at the first error, which it
// tells the others at the next agreement.
#ifndef BITSWEEP_COMMON_COLLECT_H
#define BITSWEEP_COMMON_COLLECT_H

#include "common/net/transport.h"

// Rank 0's view of another rank's payload, which is the function's until it returns.
typedef enum bsw_status bsw_collect_take(void *context, int rank, const struct bsw_buffer *payload,
                                         struct bsw_error *err);
enum bsw_status bsw_collect(bsw_transport *transport, const struct bsw_message *message,
                            const void *own, size_t bytes, bsw_collect_take *take, void *context,
                            struct bsw_error *err);

// Records of the same size from all: on rank 0 to all[rank * bytes], its own too. Elsewhere all is
// not used. Another size is BSW_ERROR_PEER, naming the rank.
enum bsw_status bsw_collect_records(bsw_transport *transport, const struct bsw_message *message,
                                    const void *own, size_t bytes, void *all,
                                    struct bsw_error *err);

// On rank 0 to payloads[rank] of ranks 1 and more, whose storage is used again. Elsewhere payloads
// is not used.
enum bsw_status bsw_collect_buffers(bsw_transport *transport, const struct bsw_message *message,
                                    const struct bsw_buffer *own, struct bsw_buffer *payloads,
                                    struct bsw_error *err);

// Rank 0's record of `bytes` into data of all. Another size is BSW_ERROR_PEER.
enum bsw_status bsw_share_record(bsw_transport *transport, const struct bsw_message *message,
                                 void *data, size_t bytes, struct bsw_error *err);

#endif
