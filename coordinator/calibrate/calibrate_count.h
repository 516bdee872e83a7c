// SPDX-License-Identifier: Apache-2.0
// How many true neighbours are among the first candidates of each query.
//
// A query that is a row has its own row, and copies of it, left out: rows of the value that its own
// row has. Neighbours are those of the best values: what is as near as the last of them is one,
// too, as far as the truth has it.
#ifndef BITSWEEP_COORDINATOR_CALIBRATE_COUNT_H
#define BITSWEEP_COORDINATOR_CALIBRATE_COUNT_H

#include <stdint.h>

#include "common/base/status.h"
#include "common/files/result_file.h"

// Candidates that get exact values, times k, in ascending order.
#define BSW_CALIBRATE_OVERSAMPLES 6
extern const uint32_t bsw_calibrate_oversamples[BSW_CALIBRATE_OVERSAMPLES];

struct bsw_calibrate_lists {
    const struct bsw_results *truth;      // nearest first
    const struct bsw_results *candidates; // the best by key, in order; NULL: nothing is found
    const uint64_t *own;                  // [num_queries]: rows that queries are, or NULL
    const unsigned char *is_copy;         // [num_queries]: of a query before, or NULL
    uint64_t k, num_skipped;
    int own_is_nearest; // to a query that is a row nothing is nearer (not so by ip)
    int has_all;        // the truth has all rows
    int keeps_copies;   // copies of a query's own row are neighbours like others
};

// Queries that count: those whose truth has k neighbours, or all there are. Others are rows of more
// copies than the truth has places.
struct bsw_calibrate_found {
    uint64_t num_queries, num_sought;
    uint64_t num_found[BSW_CALIBRATE_OVERSAMPLES];
};

// What is found of the k true neighbours of every query: how many of them are among its first k *
// oversample candidates, for every oversample. Its own row, its copies, and the nearest num_skipped
// besides are neither neighbours nor candidates. all: of all queries; different: of those that are
// no copies.
enum bsw_status bsw_calibrate_count(const struct bsw_calibrate_lists *lists,
                                    struct bsw_calibrate_found *all,
                                    struct bsw_calibrate_found *different, struct bsw_error *err);

#endif
