// SPDX-License-Identifier: Apache-2.0
// The fixed sample of a corpus that scales and frames are made from: all rows if there are at most
// 65,536, else one from each of 65,536 equal strata, chosen by an integer hash. It is streamed,
// never held; bad rows are skipped.
#ifndef BITSWEEP_SHARD_SAMPLE_H
#define BITSWEEP_SHARD_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "common/codes/metric.h"
#include "common/job/progress.h"
#include "common/rows/vectors.h"
#include "kernels/encode/encode.h"
#include "shard/lists/list_assignment.h"

#define BSW_SAMPLE_ROWS 65536
#define BSW_SAMPLE_TILE 128

struct bsw_sample {
    const bsw_vectors *vectors; // borrowed
    const struct bsw_encode_table *table;
    enum bsw_cpu_level level;
    enum bsw_metric metric;
    uint64_t num_rows;             // in the sample, bad ones included
    uint64_t next;                 // of the pass
    struct bsw_progress *progress; // of passes, borrowed; NULL unless the caller sets it
    // Of residuals, borrowed: rows come less their centroids, plus the mean, with factors 1. NULL
    // unless the caller sets them.
    const float *centroids, *mean;
    bsw_list_assigner *assigner; // of centroids
    unsigned char *numbers;
    float *rows;
};

enum bsw_status bsw_sample_create(const bsw_vectors *vectors, enum bsw_metric metric,
                                  enum bsw_cpu_level level, struct bsw_sample *out,
                                  struct bsw_error *err);
void bsw_sample_deinit(struct bsw_sample *sample);

// Starts a pass over the sample; label is for its progress, borrowed until the next pass.
void bsw_sample_rewind(struct bsw_sample *sample, const char *label);

// The next tile of good rows: *rows [*num_rows][dims] and factors [BSW_SAMPLE_TILE] as
// bsw_prepare_rows gives them, until the next call. *num_rows is 0 at the end only.
enum bsw_status bsw_sample_next(struct bsw_sample *sample, const float **rows, float *factors,
                                size_t *num_rows, struct bsw_error *err);

// BSW_ERROR_BAD_DATA: a pass found no good row.
enum bsw_status bsw_sample_fail_empty(const struct bsw_sample *sample, struct bsw_error *err);

#endif
