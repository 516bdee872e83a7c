// SPDX-License-Identifier: Apache-2.0
// Progress of long work on stderr: a bar with rate and time left on a terminal, a plain line every
// ten seconds elsewhere. A caller of the thread, below, is told, too, whether it is shown or
// not.
#ifndef BITSWEEP_COMMON_PROGRESS_H
#define BITSWEEP_COMMON_PROGRESS_H

#include <stdint.h>

#include "common/base/c_linkage.h"

struct bsw_progress {
    const char *label; // "encode"
    const char *unit;  // "rows"
    uint64_t total;
    int is_shown; // 0: nothing is
    int is_terminal;
    int is_line_open;           // something stands on the terminal's line
    double started, last_shown; // 0: not begun yet
};

// In every other call progress may be NULL: nothing is shown.

// is_shown: rank 0 and not --quiet. A bar appears only for work of more than a second.
void bsw_progress_init(struct bsw_progress *progress, const char *label, const char *unit,
                       uint64_t total, int is_shown);
// For the next piece of work; is_shown stays.
void bsw_progress_begin(struct bsw_progress *progress, const char *label, const char *unit,
                        uint64_t total);
void bsw_progress_update(struct bsw_progress *progress, uint64_t done);
void bsw_progress_finish(struct bsw_progress *progress); // clears the bar

// Shows a text at once, for long work that has no steps to count; on a terminal until the next bar.
void bsw_progress_note(struct bsw_progress *progress, const char *text);

// ---- callers ------------------------------------------------------------------------------------

// Who called a job in a program that is not ours, told of its progress and asked whether to go on:
// what signals are to a command (stop_signal.h).
//
// A caller belongs to the thread that set it. Jobs note progress and look for stops in the thread
// that called them, so that several run at once, each with its own caller. In all other threads,
// and where none is set, the functions do nothing.

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
