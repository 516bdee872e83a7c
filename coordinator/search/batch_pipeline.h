// SPDX-License-Identifier: Apache-2.0
// All batches of a search through all ranks, on rank 0; the other ranks serve.
//
// The next batch is sent, and its scan begun as far as a rank's back end can, before the one before
// is merged and refined (batch_search.h). With a core to spare one background thread finishes the
// batch before and codes the batch after while the ranks scan, so that no rank waits for rank 0.
// Without one that thread would only slow the scan of rank 0, for which all wait: then these steps
// take all threads of rank 0, before its scan. Either way the answers are the same, and so is the
// error: the one of the lowest batch that has one. Two batches are in memory. The thread calls
// nothing of the transport.
#ifndef BITSWEEP_COORDINATOR_BATCH_PIPELINE_H
#define BITSWEEP_COORDINATOR_BATCH_PIPELINE_H

#include <pthread.h>

#include "common/base/process.h"
#include "coordinator/job/job_events.h"
#include "coordinator/search/batch_search.h"

// Queries [first, first + count).
struct bsw_query_part {
    uint64_t first, count;
};
// What of all queries is to be searched.
struct bsw_search_parts {
    const struct bsw_query_part *parts; // in order and without overlap; NULL: all
    size_t num_parts;
    uint64_t num_done; // queries that are in none of them
};

// One tenant: the search.
struct bsw_pipeline_options {
    size_t batch;                             // queries, >= 1
    int num_threads;                          // of a step that runs alone
    int is_overlapped;                        // a background thread
    const struct bsw_thread_pinning *pinning; // which that thread leaves
    bsw_answers_fn put;             // batches come in order, possibly from the background thread
    bsw_range_answers_fn put_range; // of a range search in its place
    void *context;
    struct bsw_search_parts parts; // borrowed
};

enum bsw_pipeline_state { BSW_PIPELINE_IDLE, BSW_PIPELINE_QUEUED, BSW_PIPELINE_DONE };

// What the background thread can do to a batch, and how it went.
struct bsw_pipeline_step {
    enum bsw_pipeline_state state;
    struct bsw_search_batch *batch;
    struct bsw_query_part part; // of pack
    enum bsw_status status;
    struct bsw_error error;
    struct bsw_search_times times;
};

struct bsw_batch_pipeline {
    struct bsw_batch_search *search;
    struct bsw_pipeline_options options;
    struct bsw_query_part whole;        // the only part where none are given
    struct bsw_search_batch batches[2]; // the one that is scanned, and the one before and after
    int64_t *ids;                       // [batch][k]
    float *values;
    struct bsw_range_answers range;        // of a range search
    struct bsw_pipeline_step finish, pack; // in this order, if both are queued
    pthread_t thread;
    pthread_mutex_t lock; // of states and is_ending
    pthread_cond_t changed;
    int has_thread, is_ending;
};

// The pipeline must stay where it is until deinit, and search and pinning as long.
enum bsw_status bsw_batch_pipeline_init(struct bsw_batch_pipeline *pipeline,
                                        struct bsw_batch_search *search,
                                        const struct bsw_pipeline_options *options,
                                        struct bsw_error *err);
// Accepts {0}; before bsw_batch_search_deinit.
void bsw_batch_pipeline_deinit(struct bsw_batch_pipeline *pipeline);

// One pass over all parts. On return nothing runs in the background. Asked to stop
// (common/job/stop_signal.h) it finishes the batch that is scanned and returns BSW_ERROR_STOPPED.
// After an error bsw_batch_search_end tells the other ranks.
enum bsw_status bsw_batch_pipeline_run(struct bsw_batch_pipeline *pipeline, struct bsw_error *err);

#endif
