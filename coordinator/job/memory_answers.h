// SPDX-License-Identifier: Apache-2.0
// Answers in memory: a sink of searches and of ground truths.
#ifndef BITSWEEP_COORDINATOR_MEMORY_ANSWERS_H
#define BITSWEEP_COORDINATOR_MEMORY_ANSWERS_H

#include "common/files/result_file.h"
#include "coordinator/job/answer_sink.h"

// answers: {0}, then for any number of jobs one after another, of which each replaces what it has;
// the caller's to deinit. It must stay where it is while the sink is used. Places without a
// neighbour have id -1.
struct bsw_answer_sink bsw_memory_sink(struct bsw_results *answers);

#endif
