// SPDX-License-Identifier: Apache-2.0
// This rank's part of the sample that lists are trained on: one row from each of equal strata of
// the corpus, chosen by an integer hash, or all rows; bad ones are left out. Parts of ranks are
// consecutive, so that all together, in the order of ranks, are the same rows for any number.
#ifndef BITSWEEP_SHARD_TRAINING_SAMPLE_H
#define BITSWEEP_SHARD_TRAINING_SAMPLE_H

#include "common/base/cpu_level.h"
#include "common/job/progress.h"
#include "shard/lists/list_sums.h"

struct bsw_training_sample {
    unsigned char *raw;
    float *factors; // NULL but for cosine
    size_t num_rows;
    float *largest; // [dims]: components by magnitude, times their factors; 0 without rows
};

struct bsw_training_sample_needs {
    const bsw_vectors *vectors; // borrowed
    enum bsw_metric metric;
    enum bsw_cpu_level level;
    uint64_t seed;
    uint64_t num_rows; // of all ranks, bad ones included; no more than the source has
    int rank, num_ranks;
    struct bsw_progress *progress; // of rows, or NULL
};

// The caller closes, after an error too. A stop that was asked for is BSW_ERROR_STOPPED.
enum bsw_status bsw_training_sample_open(const struct bsw_training_sample_needs *needs,
                                         struct bsw_training_sample *out, struct bsw_error *err);
void bsw_training_sample_close(struct bsw_training_sample *sample);

#endif
