// SPDX-License-Identifier: Apache-2.0
// An open index of the library, for the files that implement bitsweep.h.
#ifndef BITSWEEP_COORDINATOR_BITSWEEP_INDEX_H
#define BITSWEEP_COORDINATOR_BITSWEEP_INDEX_H

#include <pthread.h>

#include "coordinator/bitsweep_call.h"
#include "coordinator/search/search.h"

struct bitsweep_index {
    struct bitsweep_open_settings settings;
    char *folder, *device, *base; // owned; base may be NULL
    pthread_mutex_t lock;
    bsw_transport own, *transport;
    int num_threads, generation; // bsw_fork_generation
    struct bitsweep_index_info info;
    struct bsw_search search;
    struct bsw_search_request request; // of search, padding included
    int is_open;
    struct bitsweep_search_stats stats;
};

// What it is, and that all ranks see the same one.
enum bsw_status bsw_library_index_look(bitsweep_index *index, bsw_transport *transport,
                                       struct bsw_error *err);
// In a child what the parent has loaded is loaded again, for the threads that there are; what it
// has on a device is not to be had.
enum bsw_status bsw_library_index_adopt(bitsweep_index *index, struct bsw_error *err);

// A call with an index, after those of other threads. In a child that can make no call, or none
// with the ranks of the index, the call has a transport of its own, so that an error is no other
// rank's.
enum bsw_status bsw_library_index_begin(bitsweep_index *index, struct bsw_library_call *call,
                                        const struct bsw_library_call_needs *needs);
int bsw_library_index_end(bitsweep_index *index, struct bsw_library_call *call,
                          enum bsw_status status, struct bitsweep_error *error);

#endif
