// SPDX-License-Identifier: Apache-2.0
// Centroids from sums, and what is done about lists that are empty or too long.
//
// An empty list takes half of the longest one: it becomes a centroid a small step beside that
// one's, in a seeded direction, and the next rounds drive them apart. So do, where asked, the
// shortest lists with those of more than 4 times the mean: of so skewed data the average query
// would look at far more rows than a list's share. What lists cannot cut is left: copies of one
// row.
#ifndef BITSWEEP_SHARD_LIST_SPLITS_H
#define BITSWEEP_SHARD_LIST_SPLITS_H

#include <stdint.h>

#include "common/base/status.h"
#include "shard/lists/list_sums.h"

struct bsw_list_splits {
    enum bsw_metric metric;
    struct bsw_list_scales scales; // borrowed
    uint64_t seed;                 // another one every round
    int is_balanced;               // lists that are too long are split, too
};

// Means of all lists that have rows to centroids [num_lists][dims], of unit length under cosine
// (where a sum is 0 the old one stays), then splits. Returns how many centroids were moved to split
// a list, in *num_moved.
enum bsw_status bsw_list_splits_update(const struct bsw_list_splits *splits,
                                       const struct bsw_list_totals *totals, float *centroids,
                                       size_t *num_moved, struct bsw_error *err);

#endif
