// SPDX-License-Identifier: Apache-2.0
// Keeps of a shard's refined survivors those that can be in an answer: where all ranks together
// have no more survivors than are to be ordered by exact value, each shard's best k hold the best k
// of all.
#ifndef BITSWEEP_SHARD_SURVIVOR_TRIM_H
#define BITSWEEP_SHARD_SURVIVOR_TRIM_H

#include <stddef.h>

#include "common/codes/metric.h"
#include "shard/host/shard_scan.h"

// survivors: as bsw_shard_refine lists them, counts[q] of query q; both become those of the best k
// of each query by exact value, then row, in ascending row order as before. Of workspace level's
// merge, num_threads and scratch are used.
enum bsw_status bsw_survivors_trim(enum bsw_metric metric, size_t k, size_t num_queries,
                                   size_t *counts, struct bsw_survivor *survivors,
                                   struct bsw_scan_workspace *workspace, struct bsw_error *err);

#endif
