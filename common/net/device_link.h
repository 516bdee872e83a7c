// SPDX-License-Identifier: Apache-2.0
// A device link joins the devices of all ranks: bytes go from device memory to device memory over
// NCCL, beside the transport, which tells sizes and failures.
//
// Opening is collective over the transport; so are broadcast, exchange and wait, once all ranks
// have agreed that each of them comes there. Nothing here blocks in NCCL or CUDA: one loop polls
// NCCL, the queue, the transport and a deadline (the transport's patience). The first failure of a
// link is its last: it raises an alarm over the transport (bsw_transport_raise), which ends the
// job, and the device is given up, as a transfer may hang on it for ever.
//
// Statuses: BSW_ERROR_IO for a failure of NCCL, a device or a deadline; another rank's alarm has
// its own. The thread of the transport uses a link.
#ifndef BITSWEEP_COMMON_DEVICE_LINK_H
#define BITSWEEP_COMMON_DEVICE_LINK_H

#include <stddef.h>

#include "common/base/status.h"
#include "common/device/device.h"
#include "common/net/nccl_library.h"
#include "common/net/transport.h"

typedef struct bsw_device_link bsw_device_link;

// What --link says. AUTO: over NCCL where there are several ranks, each has a device of its own and
// all have the same NCCL of 2.19 or later, which starts within 30 s or half the time that messages
// are waited for; else none. NCCL: BSW_ERROR_USAGE where
// that cannot be. Ranks that share a device need AUTO's opposite, NCCL, and a library of 2.30 or
// later.
enum bsw_link_choice { BSW_LINK_AUTO, BSW_LINK_MPI, BSW_LINK_NCCL };

#define BSW_LINK_NOTE_BYTES 320

// Joins the ranks; device is this rank's, borrowed, or NULL. *out is NULL where the transport alone
// is used. note, the same on all ranks: the version that is used, or why there is no link. All
// ranks return alike, unless the transport is broken on return. The first transfers are made, so
// that NCCL has allocated what it needs on the device.
enum bsw_status bsw_device_link_open(bsw_transport *transport, bsw_device *device,
                                     enum bsw_link_choice choice, bsw_device_link **out,
                                     char note[BSW_LINK_NOTE_BYTES], struct bsw_error *err);
// Accepts NULL inside. Ends within seconds whatever NCCL does.
void bsw_device_link_close(bsw_device_link **link);

// Both queue on BSW_QUEUE_LINK, behind what is there, and return when NCCL has taken it; `what` is
// for error texts, as in "queries to all ranks".

// bytes of device memory, the same number on all ranks, from rank 0 to all.
enum bsw_status bsw_device_link_broadcast(bsw_device_link *link, void *data, size_t bytes,
                                          const char *what, struct bsw_error *err);

// One way between this rank and another: device memory of this rank, which is sent or written.
struct bsw_device_transfer {
    int rank; // the other
    void *data;
    size_t bytes; // 0: nothing is sent
};
// All at once. What a rank sends to another, that one receives in the same order, of the same
// sizes, in its exchange.
struct bsw_device_exchange {
    const struct bsw_device_transfer *sends, *receives;
    size_t num_sends, num_receives;
};
enum bsw_status bsw_device_link_exchange(bsw_device_link *link,
                                         const struct bsw_device_exchange *exchange,
                                         const char *what, struct bsw_error *err);

// Until BSW_QUEUE_LINK is empty.
enum bsw_status bsw_device_link_wait(bsw_device_link *link, const char *what,
                                     struct bsw_error *err);

// Whether the devices of all ranks can be linked, found out by all ranks together: device_link.c's
// first step.

// What a rank tells of itself; all of it travels.
struct bsw_link_facts {
    int32_t has_device;
    int32_t version;   // of NCCL; 0: none
    int32_t is_usable; // it can be used
    int32_t padding;
    char host[64]; // tells hosts apart
    char id[BSW_DEVICE_ID_BYTES];
    char label[40];    // "cuda:0"
    char problem[256]; // why it is not usable
};

// What rank 0 makes of all that; all of it travels.
struct bsw_link_verdict {
    int32_t is_linked;
    int32_t is_shared; // ranks share devices
    int32_t status;    // not ok: the note is the error of all ranks
    int32_t padding;
    struct bsw_nccl_unique_id id;
    char note[BSW_LINK_NOTE_BYTES];
};

// facts [num_ranks] to a verdict without id. Nothing but arithmetic.
void bsw_link_judge(const struct bsw_link_facts *facts, int num_ranks, enum bsw_link_choice choice,
                    struct bsw_link_verdict *out);

// Collective: loads NCCL, exchanges facts, judges. Where the verdict is a link, *library is loaded
// and its environment is set.
enum bsw_status bsw_link_choose(bsw_transport *transport, const bsw_device *device,
                                enum bsw_link_choice choice, struct bsw_nccl_library *library,
                                struct bsw_link_verdict *out, struct bsw_error *err);

#endif
