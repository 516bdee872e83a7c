// SPDX-License-Identifier: Apache-2.0
// Sums of rows by list, in whole numbers: they are the same in any order of addition, so for any
// number of ranks and threads.
//
// A number is multiplied by a power of two, for components one for each dimension, with which the
// largest is near 2^50 and all rows together are below 2^62, and rounded: of 2^20 rows 42 bits of
// the largest component are left, where a centroid has 24.
#ifndef BITSWEEP_SHARD_LIST_SUMS_H
#define BITSWEEP_SHARD_LIST_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/base/status.h"
#include "common/codes/metric.h"
#include "common/rows/vectors.h"

// Rows of one rank, all good ones.
struct bsw_list_rows {
    const unsigned char *raw; // [num_rows] rows, dense
    const float *factors;     // [num_rows]: of unit length under cosine; NULL: 1
    size_t num_rows;          // fewer than 2^32
};

// One multiplier a dimension, and that of distances.
struct bsw_list_scales {
    double *components; // [dims], powers of two
    double distance;
};

// What all ranks' rows add up to, as one array of whole numbers [num_words].
struct bsw_list_totals {
    int64_t *words;
    size_t num_words;
    size_t num_lists, dims;
};
static inline int64_t *bsw_totals_changes(const struct bsw_list_totals *totals)
{
    return totals->words; // rows that have another list than before
}
static inline int64_t *bsw_totals_counts(const struct bsw_list_totals *totals)
{
    return totals->words + 1; // [num_lists] rows
}
static inline int64_t *bsw_totals_distances(const struct bsw_list_totals *totals)
{
    return totals->words + 1 + totals->num_lists; // [num_lists], times the scale of distances
}
static inline int64_t *bsw_totals_sums(const struct bsw_list_totals *totals)
{
    return totals->words + 1 + 2 * totals->num_lists; // [num_lists][dims], times theirs
}

// The multiplier for num_rows numbers of up to `largest`.
double bsw_list_scale(double largest, uint64_t num_rows);

enum bsw_status bsw_list_totals_open(size_t num_lists, size_t dims, struct bsw_list_totals *out,
                                     struct bsw_error *err);
void bsw_list_totals_close(struct bsw_list_totals *totals);

struct bsw_list_sums {
    enum bsw_metric metric;
    enum bsw_vector_type type;
    enum bsw_cpu_level level;
    int num_threads;
    struct bsw_list_scales scales; // borrowed
    uint32_t *order;               // [num_rows]: rows by list
    size_t *firsts;                // [num_lists + 1]
    float *rows;                   // [num_threads][dims]
};

enum bsw_status bsw_list_sums_open(size_t num_rows, size_t num_lists, size_t dims,
                                   struct bsw_list_sums *sums, struct bsw_error *err);
void bsw_list_sums_close(struct bsw_list_sums *sums);

// Counts, distances and sums of rows whose list is below num_lists; others are left out. keys
// [num_rows] as bsw_list_assigner_assign gives them; NULL: distances are 0. changes stay as they
// are.
void bsw_list_sums_add(struct bsw_list_sums *sums, const struct bsw_list_rows *rows,
                       const uint32_t *lists, const double *keys,
                       const struct bsw_list_totals *totals);

#endif
