// SPDX-License-Identifier: Apache-2.0
// Where answers go, a batch at a time: a file, the memory of a caller (memory_answers.h).
#ifndef BITSWEEP_COORDINATOR_ANSWER_SINK_H
#define BITSWEEP_COORDINATOR_ANSWER_SINK_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/files/result_file.h"

// Takes the answers of queries [first, first + count): ids and values are [count][k], best first,
// and borrowed during the call. Places without a neighbour have id -1. An error ends the job.
typedef enum bsw_status (*bsw_answers_fn)(void *context, uint64_t first, size_t count,
                                          const int64_t *ids, const float *values,
                                          struct bsw_error *err);

// On rank 0. One tenant: bsw_memory_sink; a file is not a sink.
struct bsw_answer_sink {
    void *context;
    bsw_answers_fn take; // NULL: no sink
    // Once, before any answer: so many queries with k answers each. May be NULL.
    enum bsw_status (*begin)(void *context, uint64_t num_queries, uint64_t k,
                             struct bsw_error *err);
};

// Answers in memory: a sink of searches and of ground truths.

// answers: {0}, then for any number of jobs one after another, of which each replaces what it has;
// the caller's to deinit. It must stay where it is while the sink is used. Places without a
// neighbour have id -1.
struct bsw_answer_sink bsw_memory_sink(struct bsw_results *answers);

#endif
