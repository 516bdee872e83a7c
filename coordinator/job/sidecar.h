// SPDX-License-Identifier: Apache-2.0
// The facts in FILE.json beside a result or ground-truth file: what its numbers mean. "run" there
// says how the run that made it ended (common/job/run_status.h).
#ifndef BITSWEEP_COORDINATOR_SIDECAR_H
#define BITSWEEP_COORDINATOR_SIDECAR_H

#include <jansson.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/files/range_file.h"
#include "common/files/result_file.h"
#include "coordinator/job/allowed_rows.h"
#include "shard/host/shard_queue.h"

struct bsw_sidecar {
    const char *metric; // when read: one of bsw_metric_name, or NULL
    const char *refine; // "exact", "none"; when read NULL if unknown
    const char *codec;  // written only
    uint64_t k, candidates, rows, first_row;
    uint32_t dims;
    double bits;      // 0: none
    json_t *settings; // written only, of a search, borrowed: search_options.h; or NULL
    // Read only. How candidates were chosen: "threshold", "histogram", "queue", or NULL if unknown;
    // queue belongs to the last.
    const char *select;
    struct bsw_queue_options queue;
    int has_ids;          // answers are ids that rows have beside their numbers
    int is_self_excluded; // row i is not in the answer of query i
    // The queries' digest (same_input.h), 0 if unknown, and the number of the first one in its
    // file, when read only with has_first_query.
    uint64_t queries_digest, first_query;
    int has_first_query;
    int has_within; // read only: the rows are those within a value, not the best k
    double within;  // that value
    // The least share of the rows that a query could find; 0 or 1: all of them. Read: 1 unless
    // FILE.json says less.
    double coverage;
    struct bsw_allowed_facts allow; // which rows might be found; when read the digest alone
};

// Writes the facts to FILE.json atomically, without "run", then finishes the result: a result
// without its facts would be taken for estimates of an unknown metric. If the result cannot be
// finished, FILE.json goes too, unless an older result stands there.
enum bsw_status bsw_sidecar_finish(bsw_result_writer *writer, const char *file,
                                   const struct bsw_sidecar *facts, struct bsw_error *err);
// The same of a range search.
enum bsw_status bsw_sidecar_finish_range(bsw_range_writer *writer, const char *file,
                                         const struct bsw_sidecar *facts, struct bsw_error *err);

// Gives `to` the facts of `from` without "run", or none if that has none. first_query: of `from`
// the first one that `to` has; with is_part its number is changed to that, and the digest left out.
// Facts that stand there are replaced or removed with force alone, else BSW_ERROR_USAGE.
enum bsw_status bsw_sidecar_copy(const char *from, const char *to, int is_part,
                                 uint64_t first_query, int force, struct bsw_error *err);

// Metric, refine, rows, selection and what is known of the queries from FILE.json. What is missing,
// be it the file, is left NULL or 0 (rows 0: self-exclusion is not known either), what is no JSON
// object is BSW_ERROR_BAD_DATA.
enum bsw_status bsw_sidecar_read(const char *file, struct bsw_sidecar *facts,
                                 struct bsw_error *err);

// Whether a result can be judged by a ground truth: the same metric, rows, queries, both in ids or
// in numbers of rows, and self excluded from both or neither, as far as both files say. Else
// BSW_ERROR_USAGE in one line, ending with `hint`.
enum bsw_status bsw_sidecar_compare(const char *name, const struct bsw_sidecar *facts,
                                    const char *other_name, const struct bsw_sidecar *other,
                                    const char *hint, struct bsw_error *err);

#endif
