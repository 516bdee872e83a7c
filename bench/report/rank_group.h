// SPDX-License-Identifier: Apache-2.0
// The first ranks of a job as a job of their own, while the others wait: so that one job can
// measure 1, 2, 4, ... ranks, on the hosts and with the connections it has.
//
// All ranks: begin, then the members their work, then end. A rank that waits looks for a message
// several thousand times a second, as all waiting ranks do: on a host with fewer cores than ranks
// that costs the members some of their time.
#ifndef BITSWEEP_BENCH_RANK_GROUP_H
#define BITSWEEP_BENCH_RANK_GROUP_H

#include "common/net/transport.h"

struct bsw_rank_group {
    bsw_transport *whole; // borrowed; not to be used between begin and end
    bsw_transport ranks;  // the members' own; what it says of ranks on this host is of all ranks
    // Number of the last message, alike on all ranks outside and on all members inside. Numbers on
    // a transport never fall: who sends messages counts on from here, and leaves the last one here.
    uint64_t batch;
    uint64_t first_batch;
};

// num_ranks: 1 .. those of the whole.
void bsw_rank_group_begin(struct bsw_rank_group *group, int num_ranks);
static inline int bsw_rank_group_is_member(const struct bsw_rank_group *group)
{
    return group->whole->rank < group->ranks.num_ranks;
}

// The status of an error that ranks have agreed on and are to agree on once more with others: ok on
// all but the rank that it comes from, so that it keeps its rank. A broken transport's stays.
enum bsw_status bsw_own_status(const bsw_transport *transport, enum bsw_status status,
                               const struct bsw_error *err);

// status, err: how a member's work went, on which members have agreed; ignored of others. All ranks
// return the same.
enum bsw_status bsw_rank_group_end(struct bsw_rank_group *group, enum bsw_status status,
                                   struct bsw_error *err);

#endif
