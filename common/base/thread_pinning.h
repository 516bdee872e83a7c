// SPDX-License-Identifier: Apache-2.0
// Threads bound to cores: each OpenMP thread of a rank to one of its own.
//
// The order of the CPUs a process may use: one hardware thread of every core first, in hwloc's
// logical order (neighbours share caches and memory), then the cores' second hardware threads, and
// so on. A container's or a scheduler's part of the machine is all that is looked at.
#ifndef BITSWEEP_COMMON_THREAD_PINNING_H
#define BITSWEEP_COMMON_THREAD_PINNING_H

#include <stddef.h>

#include "common/base/c_linkage.h"
#include "common/base/status.h"

BSW_C_BEGIN

#define BSW_PINNING_WORDS 128 // of unsigned long: 8192 CPUs

// {0}: nothing is pinned.
struct bsw_thread_pinning {
    int is_on;
    unsigned long allowed[BSW_PINNING_WORDS]; // CPUs of the process before, as the kernel numbers
};

// Binds OpenMP thread t of the teams that the calling thread starts, itself being t = 0, to CPU
// (local_rank * num_threads + t) of that order. local_rank is this rank's place among the
// num_local_ranks that may use the same CPUs. Teams must keep num_threads threads from there on: a
// thread that is started later runs where the one that started it does. Fewer CPUs than
// num_local_ranks * num_threads are BSW_ERROR_USAGE with both numbers; the binding is then as
// before.
enum bsw_status bsw_threads_pin(int local_rank, int num_local_ranks, int num_threads,
                                struct bsw_thread_pinning *out, struct bsw_error *err);

// Lets the calling thread, started by a pinned one, run on all CPUs of the process again. A system
// that refuses leaves it where it is.
void bsw_thread_unpin(const struct bsw_thread_pinning *pinning);

// Number of CPUs that the calling thread may use, or might before it was pinned; >= 1. NULL: never
// pinned.
int bsw_num_usable_cpus(const struct bsw_thread_pinning *pinning);

BSW_C_END
#endif
