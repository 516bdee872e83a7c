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

#include <stddef.h>

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

// Files that are mapped into memory, and how the process ends where one becomes shorter meanwhile.
//
// Raw rows for refinement alone are mapped (shard/host/raw_rows.c). pread would say by itself that
// a file has ended, as it does for all others, but for single rows it costs a system call each: in
// memory 0.75 us for 128 bytes, against 0.05 us from a mapping, at 50 rows a query. So our programs
// have a handler for SIGBUS, which the kernel sends to a thread that reads a page of a mapping
// behind the end of its file. All that the handler does is to find the file among those noted here,
// wake a thread that was made for this, and put the faulting thread to sleep. That thread ends the
// process as bsw_stop_for does: one line, STATUS.json, exit code 65, and
// the other ranks with it; 74 where the file is as long as before, so that it could not be read.
// SIGBUS of any other address is left to whoever handled it before.
//
// The page in which a file ends now reads as zeros behind that end, without a signal: hence
// bsw_mapped_files_check, between the last read of a batch and its answer.

// Called by main: from the next file on, with the handler. A program of others that calls our
// library ends as it likes.
void bsw_mapped_files_watch(void);

// `bytes` of the file in fd, from its beginning on, are mapped at `map`; path is copied, for
// messages. The first call in a watched program starts the thread and sets the handler, which must
// come after those of libraries (MPI). From any thread.
enum bsw_status bsw_mapped_file_note(const void *map, size_t bytes, int fd, const char *path,
                                     struct bsw_error *err);
// Before it is unmapped. One that is not noted is ok.
void bsw_mapped_file_forget(const void *map);

// BSW_ERROR_BAD_DATA if one of the files is shorter than its mapping. A file that has another name
// by now, or none, passes. One stat for all mappings of a file that follow each other.
enum bsw_status bsw_mapped_files_check(struct bsw_error *err);

#endif
