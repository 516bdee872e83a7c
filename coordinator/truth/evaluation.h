// SPDX-License-Identifier: Apache-2.0
// Recall of a result file (recall.h), by ids, and with ties where it is known which values tie:
// exact ones computed from the rows, or those that both files hold.
#ifndef BITSWEEP_COORDINATOR_EVALUATION_H
#define BITSWEEP_COORDINATOR_EVALUATION_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/base/status.h"
#include "common/codes/metric.h"
#include "common/files/result_file.h"
#include "common/rows/vectors.h"
#include "coordinator/job/sidecar.h"
#include "coordinator/truth/recall.h"
#include "kernels/refine/refine.h"

// ---- exact values of pairs ----------------------------------------------------------------------

// Exact values of pairs of a query and a row, read from their files one by one: what eval --base
// compares. The values by which neighbours are ordered (kernels/refine/refine.h), unrounded.

struct bsw_exact_pairs {
    bsw_vectors *base, *queries;
    enum bsw_metric metric;
    const struct bsw_refine_table *refine;
    void *raw;     // a row as it is stored
    double *query; // [dims]
    double query_norm;
};

// base: all its rows, as ids are of the whole file. Other dims in queries than in base are
// BSW_ERROR_BAD_DATA. *pairs is to be closed, also after an error.
enum bsw_status bsw_exact_pairs_open(struct bsw_exact_pairs *pairs, const char *base,
                                     const char *queries, struct bsw_row_range query_rows,
                                     enum bsw_metric metric, enum bsw_cpu_level level,
                                     struct bsw_error *err);
void bsw_exact_pairs_close(struct bsw_exact_pairs *pairs);

// Number `query` of the range is the one whose pairs are asked for next.
enum bsw_status bsw_exact_pairs_take_query(struct bsw_exact_pairs *pairs, uint64_t query,
                                           struct bsw_error *err);
// values[i] of row ids[i], NaN for an id below 0; ids are rows of base. Reads each row.
enum bsw_status bsw_exact_pairs_values(struct bsw_exact_pairs *pairs, const int64_t *ids,
                                       size_t count, double *values, struct bsw_error *err);

// The values of a query of the range that recall counts ties by: those of its ids, in `values`
// [recall->width], and those of its first and its last true neighbour.
enum bsw_status bsw_exact_pairs_judge(struct bsw_exact_pairs *pairs, uint64_t query,
                                      const struct bsw_recall *recall, double *values,
                                      struct bsw_recall_query *out, struct bsw_error *err);
// Whether all ids of a result, named `file`, are rows of base or none: else BSW_ERROR_BAD_DATA.
enum bsw_status bsw_exact_pairs_check(const struct bsw_exact_pairs *pairs, const char *file,
                                      const struct bsw_results *results, struct bsw_error *err);

// ---- recall -------------------------------------------------------------------------------------

// Names are borrowed.
struct bsw_evaluation_settings {
    const char *results, *groundtruth;
    const char *base, *queries; // both, to compute exact values, or neither
    const char *metric;         // NULL: what the companions of the files say
    uint64_t k;                 // true neighbours of a query; 0: all columns that both files have
    struct bsw_row_range query_rows;
    int ties;       // without base: count ties by the values of the files
    int force;      // files may say that rows, queries or metrics differ
    int is_partial; // queries of the result may have seen a part of the rows
    enum bsw_cpu_level level;
};

enum bsw_tie_values {
    BSW_TIES_NONE,    // by ids alone
    BSW_TIES_WRITTEN, // float32 values of the two files
    BSW_TIES_EXACT    // computed from the rows
};

struct bsw_evaluation {
    struct bsw_evaluation_settings settings;
    struct bsw_results results, truth;
    struct bsw_sidecar result_facts, truth_facts;
    enum bsw_metric metric;
    enum bsw_tie_values ties;
    struct bsw_exact_pairs pairs; // with BSW_TIES_EXACT
    double *values;               // of a query's returned ids
    struct bsw_recall recall;
};

// Counts what e->results, of which nothing else is looked at, have of the k true neighbours of
// each query. truth, ties and pairs are set; 1 <= k <= neighbours of the truth.
enum bsw_status bsw_evaluation_count(struct bsw_evaluation *e, uint64_t k, struct bsw_error *err);

// Reads the files and counts. bsw_evaluation_deinit frees, also after an error and {0}.
enum bsw_status bsw_evaluation_run(const struct bsw_evaluation_settings *settings,
                                   struct bsw_evaluation *evaluation, struct bsw_error *err);
void bsw_evaluation_deinit(struct bsw_evaluation *evaluation);

#endif
