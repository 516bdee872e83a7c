// SPDX-License-Identifier: Apache-2.0
// What a result of a range search has of the true rows within.
//
// Recall is the share of the true rows that were found, precision the share of the rows found that
// are true, both over all queries together. The average precision of a query is the mean, over its
// true rows, of the precision of what stands up to and with that row in the result, and 0 for a row
// that is not there; of all queries that have true rows it is the mean. Where values are exact, all
// that is found is true, and then it is the mean recall.
#ifndef BITSWEEP_COORDINATOR_RANGE_EVALUATION_H
#define BITSWEEP_COORDINATOR_RANGE_EVALUATION_H

#include "coordinator/truth/evaluation.h"

struct bsw_range_evaluation {
    uint64_t num_queries, num_judged; // with true rows
    uint64_t num_true, num_found;     // rows of all queries
    uint64_t num_common;              // true ones that were found
    double average_precision;
};

// Whether either file's FILE.json says that it is of a range search.
enum bsw_status bsw_range_evaluation_fits(const struct bsw_evaluation_settings *settings, int *fits,
                                          struct bsw_error *err);
// Reads both files, of which the ground truth may be another program's, without FILE.json.
enum bsw_status bsw_range_evaluation_run(const struct bsw_evaluation_settings *settings,
                                         struct bsw_range_evaluation *out, struct bsw_error *err);

static inline double bsw_range_share(uint64_t part, uint64_t all)
{
    return all > 0 ? (double)part / (double)all : 1;
}

#endif
