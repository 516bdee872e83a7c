// SPDX-License-Identifier: Apache-2.0
// What a sweep measures, point by point, on rank 0.
//
// A point loses some of k true neighbours at three places. With L = k * oversample candidates:
//   ceiling   k-recall@L of the best L by code (threshold selection, no refinement)
//   selected  the same with the point's selection
//   recall    k-recall@k of the refined answer
// by ids unless told otherwise, and loss_code = 1 - ceiling, loss_selection = ceiling - selected,
// loss_refinement = selected - recall: they add up to 1 - recall. Threshold selection loses
// nothing of the rows it looks at; with lists, loss_selection is what the lists that a query does
// not look at hold, as the ceiling is that of all lists. Of the best L, histogram selection takes
// those within its extra distance. Queues and lists may even win a little, where a row that they
// miss makes room for a true neighbour.
#ifndef BITSWEEP_COORDINATOR_SWEEP_POINT_H
#define BITSWEEP_COORDINATOR_SWEEP_POINT_H

#include "coordinator/sweep/sweep_step.h"
#include "coordinator/truth/evaluation.h"

struct bsw_sweep_run {
    char folder[BSW_PATH_BYTES]; // absolute
    char truth[BSW_PATH_BYTES];
    struct bsw_sweep_team team;
    struct bsw_sweep_found found;
    struct bsw_evaluation judge;
    enum bsw_metric metric;
    uint64_t num_queries;
    uint32_t dims;
    int has_radii;                      // of indexes of product codes: some point wants them
    int has_recalls;                    // of indexes with lists: some point wants their tables
    struct bsw_calibration_entry entry; // of the point that is measured, if it asks for a recall
    // For a ground truth that was given: whether answers were compared with it, and how many rows
    // of theirs are nearer than its last.
    int is_truth_checked;
    uint64_t num_nearer;
    // Queries whose first answer is no other vector, as far as l2 and cosine tell: rows of the
    // corpus, whose first neighbour is found by any code.
    uint64_t num_own;
};
void bsw_sweep_run_deinit(struct bsw_sweep_run *run);

// What recalls count: "ids", "ids and ties".
const char *bsw_sweep_recall_counts(const struct bsw_sweep_run *run);

enum { BSW_SWEEP_NAME_BYTES = 160 };
void bsw_sweep_index_name(const struct bsw_sweep_point *point, char out[BSW_SWEEP_NAME_BYTES]);
// Also names the row in the journal.
void bsw_sweep_point_name(const struct bsw_sweep_point *point, char out[BSW_SWEEP_NAME_BYTES]);

// What a point that asks for a recall takes from its index's table, for bsw_sweep_measure, or why
// that cannot be; else "".
enum bsw_status bsw_sweep_find_entry(struct bsw_sweep_run *run, const struct bsw_sweep_point *point,
                                     char *reason, size_t capacity, struct bsw_error *err);

// What is made replaces what is there. *facts, *row: new references, set only on success.
enum bsw_status bsw_sweep_make_truth(struct bsw_sweep_run *run, uint64_t k, json_t **facts,
                                     struct bsw_error *err);
int bsw_sweep_has_index(const struct bsw_sweep_run *run, const struct bsw_sweep_point *point);
enum bsw_status bsw_sweep_make_index(struct bsw_sweep_run *run, const struct bsw_sweep_point *point,
                                     json_t **facts, struct bsw_error *err);
// rows: of points done before, by name; a ceiling that one of them has is taken from there. index:
// what bsw_sweep_make_index gave. Both borrowed.
enum bsw_status bsw_sweep_measure(struct bsw_sweep_run *run, const struct bsw_sweep_point *point,
                                  const json_t *index, json_t *rows, json_t **row,
                                  struct bsw_error *err);

// ---- recalls ------------------------------------------------------------------------------------

// Recall of answers in memory by a ground truth in a file, on rank 0.

// path: of the ground truth; the settings' base and queries are for ties. A ground truth of another
// number of queries, or with ids that base does not have, is BSW_ERROR_BAD_DATA.
// bsw_evaluation_deinit closes, also after an error.
enum bsw_status bsw_sweep_judge_open(struct bsw_evaluation *judge, const char *path,
                                     const struct bsw_sweep_settings *settings,
                                     uint64_t num_queries, enum bsw_metric metric,
                                     struct bsw_error *err);

// Whether each query of a ground truth has k neighbours, all different ones of the num_rows rows of
// `base`: else BSW_ERROR_BAD_DATA.
enum bsw_status bsw_sweep_judge_ids(const char *path, const char *base, uint64_t first_row,
                                    uint64_t num_rows, uint64_t k, struct bsw_error *err);

// Whether a ground truth, named `path`, can be one: rows of a refined answer that are nearer than
// its k-th neighbour and not among its first k must not be. Some there may be, *num_nearer, where
// it was not computed exactly; more than one place in a hundred of the queries that are looked at
// is BSW_ERROR_BAD_DATA.
enum bsw_status bsw_sweep_judge_check(struct bsw_evaluation *judge, const char *path,
                                      const struct bsw_sweep_settings *settings,
                                      enum bsw_metric metric, const struct bsw_results *answers,
                                      uint64_t k, uint64_t *num_nearer, struct bsw_error *err);

// k-recall@answers->k; 1 <= k <= neighbours of the truth. 0 .. 1.
enum bsw_status bsw_sweep_judge_recall(struct bsw_evaluation *judge,
                                       const struct bsw_results *answers, uint64_t k,
                                       double *recall, struct bsw_error *err);

#endif
