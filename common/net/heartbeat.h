// SPDX-License-Identifier: Apache-2.0
// Heartbeats: whether the other ranks are still there, whatever their main threads are at.
//
// A thread of its own on every rank, over TCP beside the transport. Rank 0 has a connection with
// each other rank, and both sides send a byte every second, or four a limit, if that is below 4 s.
// What a thread notices of the other side:
//   silence   nothing has come for the limit: a process that is stopped, a host or a network that
//             is gone. Time in which this process did not run itself does not count, so a job that
//             is paused as a whole goes on;
//   a break   the connection ended without goodbye: the process died;
//   an end    the other side ends the job, says why, and whether it has printed that.
// It then calls `alarm` once and ends. A main thread that hangs goes on beating: the transport's
// deadlines find it.
#ifndef BITSWEEP_COMMON_HEARTBEAT_H
#define BITSWEEP_COMMON_HEARTBEAT_H

#include "common/base/status.h"
#include "common/job/stop_signal.h"
#include "common/net/heartbeat_socket.h"

typedef struct bsw_heartbeat bsw_heartbeat;

struct bsw_heartbeat_options {
    int rank, num_ranks;  // num_ranks > 1
    double limit_seconds; // > 0, the same on all ranks
    // From the thread, with no lock held.
    void (*alarm)(void *context, const struct bsw_stop_cause *cause);
    void *context;
};

// Rank 0: listens, says where, and accepts the others in its thread. Here and below options are
// copied, their context borrowed; *out is set on success and ends with bsw_heartbeat_close. A
// system that refuses, an address that does not answer: BSW_ERROR_IO.
enum bsw_status bsw_heartbeat_listen(const struct bsw_heartbeat_options *options,
                                     struct bsw_heartbeat_place *place, bsw_heartbeat **out,
                                     struct bsw_error *err);
// Another rank: returns when rank 0 has taken it in.
enum bsw_status bsw_heartbeat_join(const struct bsw_heartbeat_options *options,
                                   const struct bsw_heartbeat_place *place, bsw_heartbeat **out,
                                   struct bsw_error *err);

// Any thread: a look at what has come by now. Whether there is a cause to end; *cause says which.
int bsw_heartbeat_find(bsw_heartbeat *heartbeat, struct bsw_stop_cause *cause);

// Any thread: this process ends. error NULL: in good order, as with close. Else all who are still
// connected end too, for this reason; those whom this rank has found lost learn that they are.
void bsw_heartbeat_tell(bsw_heartbeat *heartbeat, const struct bsw_error *error, int is_said);
// Another rank than 0, after tell: returns when rank 0 has closed, or after so many milliseconds.
void bsw_heartbeat_await_close(bsw_heartbeat *heartbeat, int milliseconds);

// Says goodbye to those who have not been told another end; no alarm comes from here on. Accepts
// NULL inside.
void bsw_heartbeat_close(bsw_heartbeat **heartbeat);

#endif
