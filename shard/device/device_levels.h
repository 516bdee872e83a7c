// SPDX-License-Identifier: Apache-2.0
// How a pass over all rows finds its limits: by levels, each a sample of every n-th bundle, scanned
// with the limit of the level before, whose rank-th best bundle gives the next limit
// (kernels/gpu_select/gpu_select.h); then all bundles, in one go. Arithmetic alone.
//
// A rank is the smallest that chance hardly ever leaves among the best `keep`: of these a sample of
// s of N rows has some keep * s / N, and the rank or more of them once in 10^7 queries (Poisson's
// tail). Which levels: those that cost least by the figures of struct bsw_level_costs
// (device_tuning.h).
#ifndef BITSWEEP_SHARD_DEVICE_LEVELS_H
#define BITSWEEP_SHARD_DEVICE_LEVELS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/device_scan/device_tuning.h"

#define BSW_MOST_LEVELS 2

struct bsw_device_level {
    size_t bundles; // of the sample
    uint32_t rank;
};

struct bsw_device_levels {
    size_t num; // 0: none: these rows are to be scanned without
    struct bsw_device_level level[BSW_MOST_LEVELS];
    double hits; // that a query is expected to have, but for those of the first level
};

struct bsw_level_needs {
    size_t num_bundles, keep, num_queries, capacity; // of a list
};

// The rank for a sample of so many of all bundles; at most keep, which is sure.
uint32_t bsw_level_rank(size_t bundles, size_t num_bundles, size_t keep);

void bsw_device_levels_plan(const struct bsw_level_needs *needs,
                            const struct bsw_level_costs *costs, struct bsw_device_levels *out);

#endif
