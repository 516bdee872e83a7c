// SPDX-License-Identifier: Apache-2.0
// A ground truth once more as the two files that cuvs-bench takes: OUT.neighbors.ibin (uint32
// queries, uint32 k, int32 ids [queries][k]) and OUT.distances.fbin (the same with float32 values).
#ifndef BITSWEEP_COORDINATOR_TRUTH_SPLIT_H
#define BITSWEEP_COORDINATOR_TRUTH_SPLIT_H

#include <stdint.h>

#include "common/base/status.h"

// Before anything is computed: BSW_ERROR_USAGE where one of the files may not be written
// (bsw_new_file_check) or names are too long.
enum bsw_status bsw_truth_split_check(const char *path, int force, struct bsw_error *err);

// From the finished file at `path`, in big-ann's layout with int32 ids. Each file is written under
// a temporary name and renamed when it is durable.
enum bsw_status bsw_truth_split_write(const char *path, uint64_t num_queries, uint64_t k,
                                      struct bsw_error *err);

#endif
