// SPDX-License-Identifier: Apache-2.0
// What a sweep was for: for each k and each recall that is asked for, the point of fewest bytes and
// the fastest one that reach it, with the command lines that do the same.
#ifndef BITSWEEP_COORDINATOR_SWEEP_ANSWER_H
#define BITSWEEP_COORDINATOR_SWEEP_ANSWER_H

#include <jansson.h>
#include <stdio.h>

#include "coordinator/sweep/sweep_step.h"

enum { BSW_SWEEP_MAX_TARGETS = 8 };

struct bsw_sweep_targets {
    double recalls[BSW_SWEEP_MAX_TARGETS]; // above 0, at most 1
    size_t count;
};

// "0.9,0.95"; BSW_ERROR_USAGE.
enum bsw_status bsw_sweep_targets_parse(const char *text, struct bsw_sweep_targets *out,
                                        struct bsw_error *err);

// rows: an object, rows by name. A new reference: an array, each
//   {"k", "target", "best_recall", "fewest_bytes": ANSWER, "fastest": ANSWER}
// without the last two where no row reaches the target; ANSWER: {"point", "recall", "qps",
// "bytes_per_vector", "encode", "search"}, the last two command lines for a shell. Among equal rows
// the better in the other measure, then the better recall, then the first. NULL: no memory.
json_t *bsw_sweep_answers(const json_t *rows, const struct bsw_sweep_targets *targets,
                          const struct bsw_sweep_settings *settings, const char *metric);

// A space, and the text so that a shell reads it as one word.
void bsw_sweep_print_word(FILE *out, const char *text);

#endif
