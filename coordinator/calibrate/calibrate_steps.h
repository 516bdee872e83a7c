// SPDX-License-Identifier: Apache-2.0
// What the searches of a calibration look at, from few lists to all.
//
// So many lists for ip. For other metrics so large a ratio that half of some queries reach so many
// lists with it: queries whose lists lie close together look at more of them.
//
// Where the first dimensions hold most of the energy, candidates by these alone cost less, and more
// of them are refined. So every step is measured with the segments' ends from a third of the
// dimensions on, too. Not with codes of residuals: what a code leaves out is of all dimensions.
#ifndef BITSWEEP_COORDINATOR_CALIBRATE_STEPS_H
#define BITSWEEP_COORDINATOR_CALIBRATE_STEPS_H

#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/base/status.h"
#include "common/files/index_manifest.h"
#include "common/files/result_file.h"
#include "shard/lists/coarse_search.h"

#define BSW_CALIBRATE_MOST_STEPS 32
#define BSW_CALIBRATE_MOST_DIMS  2

struct bsw_calibrate_steps {
    uint32_t num_steps;
    struct bsw_probe_settings steps[BSW_CALIBRATE_MOST_STEPS]; // the last: {0}, all lists
    uint32_t num_scan_dims;
    uint32_t scan_dims[BSW_CALIBRATE_MOST_DIMS]; // ascending; besides all dimensions
};

// queries: a file, of as many dimensions as the rows; is_copy [queries]: those that are passed
// over, or NULL.
enum bsw_status bsw_calibrate_steps_make(const struct bsw_manifest *manifest, const char *queries,
                                         const unsigned char *is_copy, enum bsw_cpu_level level,
                                         int num_threads, struct bsw_calibrate_steps *out,
                                         struct bsw_error *err);

// How many true neighbours are among the first candidates of each query.
//
// A query that is a row has its own row, and copies of it, left out: rows of the value that its own
// row has. Neighbours are those of the best values: what is as near as the last of them is one,
// too, as far as the truth has it.

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
