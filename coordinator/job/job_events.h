// SPDX-License-Identifier: Apache-2.0
// What a job (encode_index.h, truth.h) tells whoever runs it: so it prints nothing itself, and does
// not decide how the process ends. A command writes it down (run_status.h); others may leave it
// out.
#ifndef BITSWEEP_COORDINATOR_JOB_EVENTS_H
#define BITSWEEP_COORDINATOR_JOB_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/files/result_file.h"

// Any function may be NULL. One tenant: commands; without it, as in the library, nothing is told.
struct bsw_job_events {
    // Rank 0: the output at path is this job's from here on, which counts its work in `unit`. NULL
    // and "": the job failed and left nothing there, which cannot fail.
    enum bsw_status (*output)(const char *path, const char *unit, struct bsw_error *err);
    // Any rank and thread.
    void (*count)(uint64_t done, uint64_t total);
    // Rank 0, while a stop waits (bsw_stop_hold): the output is whole and has its name; what an
    // unfinished run would be resumed from goes next. An error fails the job.
    enum bsw_status (*complete)(struct bsw_error *err);
};

// The events of a command: how the run ended, then the outcome of the process
// (common/job/run_status.h, stop_signal.h).
extern const struct bsw_job_events bsw_command_events;

// events may be NULL.
enum bsw_status bsw_events_output(const struct bsw_job_events *events, const char *path,
                                  const char *unit, struct bsw_error *err);
void bsw_events_count(const struct bsw_job_events *events, uint64_t done, uint64_t total);
enum bsw_status bsw_events_complete(const struct bsw_job_events *events, struct bsw_error *err);

// ---- where answers go, a batch at a time --------------------------------------------------------

// Takes the answers of queries [first, first + count): ids and values are [count][k], best first,
// and borrowed during the call. Places without a neighbour have id -1. An error ends the job.
typedef enum bsw_status (*bsw_answers_fn)(void *context, uint64_t first, size_t count,
                                          const int64_t *ids, const float *values,
                                          struct bsw_error *err);

// The same of a range search: query first + i has places [lims[i], lims[i + 1]) of ids and values,
// best first; lims[0] is 0.
typedef enum bsw_status (*bsw_range_answers_fn)(void *context, uint64_t first, size_t count,
                                                const uint64_t *lims, const int64_t *ids,
                                                const float *values, struct bsw_error *err);

// On rank 0. One tenant: bsw_memory_sink; a file is not a sink.
struct bsw_answer_sink {
    void *context;
    bsw_answers_fn take;             // NULL: no sink
    bsw_range_answers_fn take_range; // in its place, of a range search
    // Once, before any answer: so many queries with k answers each. May be NULL.
    enum bsw_status (*begin)(void *context, uint64_t num_queries, uint64_t k,
                             struct bsw_error *err);
};

// A bsw_answers_fn whose context is a struct bsw_results with room for them.
enum bsw_status bsw_answers_keep(void *context, uint64_t first, size_t count, const int64_t *ids,
                                 const float *values, struct bsw_error *err);
// Answers in memory: a sink of searches and of ground truths that makes the room.
// answers: {0}, then for any number of jobs one after another, of which each replaces what it has;
// the caller's to deinit. It must stay where it is while the sink is used. Places without a
// neighbour have id -1.
struct bsw_answer_sink bsw_memory_sink(struct bsw_results *answers);

#endif
