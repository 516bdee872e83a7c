// SPDX-License-Identifier: Apache-2.0
// How many true neighbours are among the first candidates of each query.
#ifndef BITSWEEP_COORDINATOR_CALIBRATE_COUNT_H
#define BITSWEEP_COORDINATOR_CALIBRATE_COUNT_H

#include <stdint.h>

#include "common/base/status.h"
#include "common/files/result_file.h"

// Candidates that get exact values, times k, in ascending order.
#define BSW_CALIBRATE_OVERSAMPLES 6
extern const uint32_t bsw_calibrate_oversamples[BSW_CALIBRATE_OVERSAMPLES];

struct bsw_calibrate_lists {
    const struct bsw_results *truth;      // at least k + num_skipped a query, and one more with own
    const struct bsw_results *candidates; // the best by key, in order; ids below 0: no candidate
    const uint64_t *own;                  // [num_queries]: rows that queries are, or NULL
    uint64_t k, num_skipped;
};

// What is found of the k true neighbours of every query: how many of them are among its first k *
// oversample candidates, for every oversample. Its own row, and the nearest num_skipped besides,
// are neither neighbours nor candidates.
enum bsw_status bsw_calibrate_count(const struct bsw_calibrate_lists *lists,
                                    uint64_t found[BSW_CALIBRATE_OVERSAMPLES],
                                    struct bsw_error *err);

#endif
