// SPDX-License-Identifier: Apache-2.0
// What a fork leaves of the library in the child: of all threads the one that forked.
//
// Between two calls that is enough, but for what the others held: a team of OpenMP threads would be
// waited for forever, so a child whose parent had one works on one thread; GPUs and MPI work in no
// child. While another thread is in a call, locks may be held by threads that are gone, and the
// child can make no call at all.
#ifndef BITSWEEP_COORDINATOR_BITSWEEP_FORK_H
#define BITSWEEP_COORDINATOR_BITSWEEP_FORK_H

#include "common/base/status.h"

// Around every call; num_threads of it, 0: it starts none and asks no device.
void bsw_fork_enter(int num_threads);
void bsw_fork_leave(void);

// How often this process and those that it came of were forked since the library is in use: what
// was opened with another number is the parent's.
int bsw_fork_generation(void);
// Whether the parent had a team of threads.
int bsw_fork_is_alone(void);

// BSW_ERROR_USAGE where no call can be made. Before any lock is taken.
enum bsw_status bsw_fork_check(struct bsw_error *err);
// BSW_ERROR_USAGE for ranks or an index on a device of the parent; what: "the ranks were opened".
enum bsw_status bsw_fork_check_own(int generation, const char *what, struct bsw_error *err);

// asked: "auto", "cpu" and so on, NULL: auto. The device of a call in *out, borrowed from asked or
// constant: in a child of a process that had made calls that is the CPU. BSW_ERROR_USAGE for a word
// that is no device, and for a GPU in such a child.
enum bsw_status bsw_fork_choose_device(const char *asked, const char **out, struct bsw_error *err);

#endif
