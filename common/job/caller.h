// SPDX-License-Identifier: Apache-2.0
// Who called a job in a program that is not ours, told of its progress and asked whether to go on:
// what signals are to a command (stop_signal.h).
//
// A caller belongs to the thread that set it. Jobs note progress and look for stops in the thread
// that called them, so that several run at once, each with its own caller. In all other threads,
// and where none is set, the functions do nothing.
#ifndef BITSWEEP_COMMON_CALLER_H
#define BITSWEEP_COMMON_CALLER_H

#include <stdint.h>

#include "common/base/c_linkage.h"

BSW_C_BEGIN

struct bsw_caller {
    // Not 0: end the job. Asked at once, then about 20 times a second while there is something to
    // ask with, and when done reaches total.
    int (*ask)(void *context, const char *label, uint64_t done, uint64_t total);
    void *context;
    // {0} at the start.
    const char *label;
    uint64_t done, total;
    double asked; // when; 0: not yet
    int is_stopped;
};

// Sets the caller of this thread from here on, borrowed; NULL: none. Returns the one before.
struct bsw_caller *bsw_caller_set(struct bsw_caller *caller);

void bsw_caller_note(const char *label, uint64_t done, uint64_t total);
// Polls the callback; returns 1 from the moment it asked to stop.
int bsw_caller_is_stopping(void);

BSW_C_END
#endif
