// Answers in memory: a sink of searches and of ground truths.
#ifndef BITSWEEP_COORDINATOR_MEMORY_ANSWERS_H
#define BITSWEEP_COORDINATOR_MEMORY_ANSWERS_H

#include "coordinator/job/answer_sink.h"

// {0}, then for any number of jobs one after another. Places without a neighbour have id -1.
struct bsw_memory_answers {
    uint64_t num_queries, k;
    int64_t *ids;  // [num_queries][k]
    float *values; // the same
};

// answers must stay where it is while the sink is used; a job that begins replaces what it has.
struct bsw_answer_sink bsw_memory_sink(struct bsw_memory_answers *answers);
void bsw_memory_answers_deinit(struct bsw_memory_answers *answers);

#endif
