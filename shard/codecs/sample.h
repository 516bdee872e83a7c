// SPDX-License-Identifier: Apache-2.0
// The fixed sample of a corpus that scales and frames are made from: all rows if there are at most
// 65,536, else one from each of 65,536 equal strata, chosen by an integer hash. It is streamed,
// never held; bad rows are skipped.
//
// A few rows that lie far from all others (a wrong unit, a placeholder) would move means, axes and
// ends until nothing is left of the others: bsw_sample_leave_out finds them, and passes skip them,
// too. They are coded all the same, as well as the frame of the others allows.
#ifndef BITSWEEP_SHARD_SAMPLE_H
#define BITSWEEP_SHARD_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/memory.h"
#include "common/codes/metric.h"
#include "common/job/progress.h"
#include "common/rows/vectors.h"
#include "kernels/encode/prepare_rows.h"
#include "shard/lists/list_assignment.h"

#define BSW_SAMPLE_ROWS 65536
#define BSW_SAMPLE_TILE 128

// Rows are left out whose distance from the middle, the median of each dimension, is more than so
// many times what nine in ten of those that are not at the middle itself have.
#define BSW_SAMPLE_FAR          8.0

#define BSW_SAMPLE_LEAST_SQUARE 1e-37

struct bsw_sample_far {
    uint64_t num_rows;   // that lie far out
    int is_kept;         // and are not left out: bsw_sample_keep_many
    uint64_t row;        // the farthest of them
    double ratio;        // of its distance to that of nine in ten
    uint64_t num_copies; // rows of the sample at the middle itself
    uint64_t num_good;   // all but bad ones
};

struct bsw_sample {
    const bsw_vectors *vectors; // borrowed
    const struct bsw_encode_table *table;
    enum bsw_cpu_level level;
    enum bsw_metric metric;
    uint64_t num_rows;             // in the sample, bad ones included
    uint64_t next;                 // of the pass
    struct bsw_progress *progress; // of passes, borrowed; NULL unless the caller sets it
    // With residuals, borrowed: rows come less their centroids, plus the mean, with factors 1. NULL
    // unless the caller sets them.
    const float *centroids, *mean;
    bsw_list_assigner *assigner; // of centroids
    float *middle;               // [dims], once bsw_sample_leave_out was called; owned
    float *low, *high;           // [dims]: below and above are a hundredth each; in `middle`
    double most_square;          // squared distance from there of rows that are not left out
    struct bsw_sample_far far;
    enum bsw_row_fault fault; // of the first bad row that was met, whose id follows
    uint64_t bad_row;
    unsigned char *numbers;
    float *rows;
};

enum bsw_status bsw_sample_create(const bsw_vectors *vectors, enum bsw_metric metric,
                                  enum bsw_cpu_level level, struct bsw_sample *out,
                                  struct bsw_error *err);
void bsw_sample_deinit(struct bsw_sample *sample);

// From now on passes skip rows that lie far out. Before centroids are set. BSW_ERROR_BAD_DATA where
// nine in ten rows lie within BSW_SAMPLE_LEAST_SQUARE of the middle, so that squares of what tells
// them apart leave float32.
enum bsw_status bsw_sample_leave_out(struct bsw_sample *sample, struct bsw_error *err);

// Takes that back where rows that lie far out are no few: more than one in 200, and more than
// three.
void bsw_sample_keep_many(struct bsw_sample *sample);

// Starts a pass over the sample; label is for its progress, borrowed until the next pass.
void bsw_sample_rewind(struct bsw_sample *sample, const char *label);

// The next tile of good rows: *rows [*num_rows][dims] and factors [BSW_SAMPLE_TILE] as
// bsw_prepare_rows gives them, until the next call. *num_rows is 0 at the end only.
enum bsw_status bsw_sample_next(struct bsw_sample *sample, const float **rows, float *factors,
                                size_t *num_rows, struct bsw_error *err);

// BSW_ERROR_BAD_DATA: a pass found no good row.
enum bsw_status bsw_sample_fail_empty(const struct bsw_sample *sample, struct bsw_error *err);

// Orthonormal axes for codes: principal ones of a sample, and random ones. LAPACK in float64: bits
// depend on the machine.

// Eigenvectors of a covariance [dims][dims], symmetric, overwritten: axes [dims][dims], a row each,
// in order of falling energy; energies [dims].
enum bsw_status bsw_principal_axes(uint32_t dims, double *covariance, double *energies,
                                   double *axes, struct bsw_error *err);

// A random orthogonal matrix [dims][dims]: Q of the QR factorisation of hashed Gaussians.
enum bsw_status bsw_random_rotation(uint64_t seed, uint32_t dims, double *matrix,
                                    struct bsw_error *err);

#endif
