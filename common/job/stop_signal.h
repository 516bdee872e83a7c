// SPDX-License-Identifier: Apache-2.0
// Stopping by signal. SIGTERM and SIGINT end the process within a second with exit code 75: what is
// finished is saved, temporary files go, STATUS.json says so. SIGUSR1 asks a command that can to
// finish the piece of work it is at and end by itself, with BSW_ERROR_STOPPED; any other command
// takes it as SIGTERM.
//
// A thread of its own waits for the signals; no handler runs in the middle of anything. What it
// does it does with a lock held that bsw_stop_hold takes, too. Where another thread learns that the
// run cannot go on (common/net/heartbeat.h), it ends the process the same way with bsw_stop_for.
#ifndef BITSWEEP_COMMON_STOP_SIGNAL_H
#define BITSWEEP_COMMON_STOP_SIGNAL_H

#include "common/base/status.h"

// Called by main before any thread and before MPI: all later threads leave the signals to this one.
enum bsw_status bsw_stop_watch(struct bsw_error *err);
// Rank 0 is the one that says why on stderr and writes STATUS.json.
void bsw_stop_set_rank(int rank);
// By what the launcher says before bsw_stop_set_rank; alone, it is.
int bsw_stop_is_rank0(void);
// As it was set; -1 before.
int bsw_stop_rank(void);

// From here on this rank can be drained, and a stop first calls save(context) from another thread,
// and waits for it up to 0.7 s. save may be NULL: a rank that has nothing of its own to save.
void bsw_stop_begin(void (*save)(void *context), void *context);
// On return save does not run and will not, unless the process is about to end.
void bsw_stop_end(void);

// SIGUSR1 has come, or the thread's caller wants it (progress.h): begin nothing new. Any thread.
int bsw_stop_is_asked(void);
// "; --resume goes on" between bsw_stop_begin and bsw_stop_end, else "": the end of a message.
const char *bsw_stop_hint(void);
// BSW_ERROR_STOPPED.
enum bsw_status bsw_stop_fail(struct bsw_error *err);

// Between the two a stop waits: for what must be done whole, such as giving an output its name.
void bsw_stop_hold(void);
void bsw_stop_release(void);

// The run has its outcome: a stop no longer changes it, only ends the process with this exit code
// if it is not gone by itself within a second.
void bsw_stop_conclude(int exit_code);

// A run of one rank that failed: does not return where a signal is being obeyed, whose end has
// begun to take its files away, which may be the failure.
void bsw_stop_yield(void);

// Why a process ends where no signal asked for it.
struct bsw_stop_cause {
    struct bsw_error error; // rank: to be printed before the message; -1: none
    int is_said;            // it has been printed elsewhere
    int is_expelled;        // the others go on, or have ended, without this rank: it writes nothing
    int is_rank0s;          // several ranks may have met it: rank 0 prints it where it can be told
    double pause_seconds;   // before it is printed; a signal cuts it short, and is silent
};
// Any thread: ends the process with this cause and its exit code, as a signal does; once the run
// has its outcome, with that. Does not return.
void bsw_stop_for(const struct bsw_stop_cause *cause) __attribute__((noreturn));

// Who knows of the other ranks. All calls come with the lock held. One tenant: the heartbeat, which
// is in common/net, a room that this one may not include.
struct bsw_stop_observer {
    // Whether there is a cause by now. It is asked before a signal is obeyed, which mpirun may have
    // sent because of it, and by bsw_stop_hold, which does not return if there is one.
    int (*find)(void *context, struct bsw_stop_cause *cause);
    // This process ends, for an error, or (NULL) with the outcome it had.
    void (*tell)(void *context, const struct bsw_error *error, int is_said);
    void *context;
};
// Copied; NULL: none from here on.
void bsw_stop_set_observer(const struct bsw_stop_observer *observer);

#endif
