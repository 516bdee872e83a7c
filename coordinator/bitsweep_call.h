// SPDX-License-Identifier: Apache-2.0
// What calls of the public library share: how one begins and ends, settings of other versions, rows
// of the caller as sources.
#ifndef BITSWEEP_COORDINATOR_BITSWEEP_CALL_H
#define BITSWEEP_COORDINATOR_BITSWEEP_CALL_H

#include <locale.h>
#include <pthread.h>

#include "common/base/status.h"
#include "common/files/index_manifest.h"
#include "common/files/result_file.h"
#include "common/job/progress.h"
#include "common/net/transport.h"
#include "common/rows/vectors.h"
#include "coordinator/bitsweep.h"
#include "coordinator/job/allowed_rows.h"
#include "coordinator/job/option_table.h"

struct bitsweep_ranks {
    bsw_transport transport;
    pthread_mutex_t lock; // of calls that use it
    bitsweep_ranks *next; // of those that are open
    int generation;       // bsw_fork_generation
};

// From begin to end of a call. What it changes is of the calling thread alone and is put back: the
// number of OpenMP threads, the locale (numbers in texts have a point), the caller to be asked.
struct bsw_library_call {
    struct bsw_caller caller, *caller_before;
    int num_threads, threads_before;
    locale_t locale_before;
    bsw_transport *transport; // of the ranks, or own
    bsw_transport own;
    pthread_mutex_t *lock; // held; or NULL
    int is_cut_off;        // by a fork: nothing that others may have locked is to be touched
    struct bsw_error err;
};

struct bsw_library_call_needs {
    enum bsw_status status; // of what was done before, which err is of; BSW_OK: nothing is wrong
    int works;              // with threads, or on a device
    int threads;            // 0: those of OpenMP
    bitsweep_ranks *ranks;  // waited for; NULL: one rank
    bitsweep_progress progress;
    void *context;
    const struct bsw_error *err; // what call->err begins with; NULL: nothing
};

// For settings that have all of these members.
#define BSW_CALL_NEEDS(asked, the_status, the_err)                                              \
    (struct bsw_library_call_needs)                                                             \
    {                                                                                           \
        .status = the_status, .works = 1, .threads = (asked)->threads, .ranks = (asked)->ranks, \
        .progress = (asked)->progress, .context = (asked)->progress_context, .err = the_err     \
    }

// Returns needs->status, or why no call can be made, which call->err then says. The end is called
// in any case.
enum bsw_status bsw_library_call_begin(struct bsw_library_call *call,
                                       const struct bsw_library_call_needs *needs);
// Puts all back; returns the status and, where it is an error, tells what call->err says.
int bsw_library_call_end(struct bsw_library_call *call, enum bsw_status status,
                         struct bitsweep_error *error);

// Every call of several ranks begins with it, whatever has failed on one of them before: so all
// return the same, and none is waited for. status and call->err: of this rank. what, of all ranks
// the same in the same call: "encode". digest: of the settings that are to be alike.
enum bsw_status bsw_library_call_meet(struct bsw_library_call *call, enum bsw_status status,
                                      const char *what, uint64_t digest);

// Members of settings that are to be alike on all ranks, texts (or NULL) by what they say.
struct bsw_library_alike {
    const char *const *texts;
    size_t num_texts;
    const uint64_t *counts;
    size_t num_counts;
    const double *numbers;
    size_t num_numbers;
};
uint64_t bsw_library_digest(const struct bsw_library_alike *alike);

// For calls that need none of that.
int bsw_library_report(enum bsw_status status, const struct bsw_error *err,
                       struct bitsweep_error *error);

// Settings begin with their size. to: the defaults, to_bytes in all; from may be of an older
// library, or of a newer one if it asks for nothing that is not known here, or NULL. ranks_at:
// where a member `ranks` is, or 0. After an error it is taken all the same, if it is open: the
// other ranks are to hear of the error.
enum bsw_status bsw_library_take_settings(void *to, size_t to_bytes, size_t ranks_at,
                                          const void *from, struct bsw_error *err);
// What a struct begins as: as much of the defaults (NULL: 0) as the caller's has, its size, the
// rest 0.
void bsw_library_default(void *to, size_t size, const void *defaults, size_t known);
// A struct that is told: as much as the caller's has.
void bsw_library_tell(void *to, const void *from, size_t from_bytes);

// As many as the program takes: beyond, OpenMP may end the process.
enum bsw_status bsw_library_check_threads(int threads, struct bsw_error *err);

// Rows of the caller as a source: word names rows in memory. rows NULL: BSW_ERROR_USAGE. To be
// taken back in any case.
struct bsw_library_rows {
    struct bsw_memory_rows memory;
    const char *name; // of the source
    int is_empty;     // queries alone: there are none, and nothing was lent
};
enum bsw_status bsw_library_lend(const struct bitsweep_rows *rows, const char *name,
                                 struct bsw_library_rows *out, struct bsw_error *err);
// The same, but an array of no rows will do, whose shape alone is looked at.
enum bsw_status bsw_library_lend_queries(const struct bitsweep_rows *queries,
                                         struct bsw_library_rows *out, struct bsw_error *err);
void bsw_library_take_back(struct bsw_library_rows *rows);

// Where a caller wants answers: arrays [num_queries][k] of rank 0, borrowed.
enum bsw_status bsw_library_check_room(const struct bsw_results *answers, struct bsw_error *err);

// Rows that may be found: NULL is all, {0}.
enum bsw_status bsw_library_allow(const struct bitsweep_allow *allow,
                                  struct bsw_allowed_memory *out, struct bsw_error *err);

void bsw_library_describe(const struct bsw_manifest *manifest, struct bitsweep_index_info *out);

// ---- processes of a program ---------------------------------------------------------------------

// What a fork leaves of the library in the child: of all threads the one that forked.
//
// Between two calls that is enough, but for what the others held: a team of OpenMP threads would be
// waited for forever, so a child whose parent had one works on one thread; GPUs and MPI work in no
// child. While another thread is in a call, locks may be held by threads that are gone, and the
// child can make no call at all.

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
