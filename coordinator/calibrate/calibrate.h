// SPDX-License-Identifier: Apache-2.0
// The table of recalls of an index with lists: which share of the true neighbours a search finds
// that looks at so many lists and refines so many candidates. Searches that are asked for a recall
// are settled by it (coordinator/search/search_settings.h).
//
// Queries are rows of the corpus, each left out of its own answer, or a file of the user's. Rows
// lie closer to their neighbours than queries do that are no rows; so of a row the nearest k are
// left out, too, and the k behind them are to be found. Of a row with copies one is drawn, and the
// others are left out of its answer, like itself: where most of a corpus is one row, searches for
// that one find all in a list, whatever others find. A recall of the user's queries is the lesser
// of two, of all of them and of the different ones.
//
// Exact neighbours come from a ground truth; then searches without refinement look at more and more
// lists, and give each query's best candidates by key, in order: what refinement of the first k * x
// of them finds is the share of true neighbours among these. So one search tells all oversamples.
//
// The table holds no times and is a function of the index and the queries: not of ranks, threads or
// levels. It goes into the manifest, which is replaced atomically; until then the index is as it
// was.
#ifndef BITSWEEP_COORDINATOR_CALIBRATE_H
#define BITSWEEP_COORDINATOR_CALIBRATE_H

#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/base/thread_pinning.h"
#include "common/job/progress.h"
#include "common/net/transport.h"
#include "coordinator/job/facts.h"

#define BSW_CALIBRATE_MOST_ROWS 1000000

// The same on all ranks but for progress and level. Texts are borrowed.
struct bsw_calibrate_settings {
    const char *index;   // folder
    uint64_t num_rows;   // to draw as queries, at most; 0: 1000, or a tenth of the index's rows
    const char *queries; // a file in their place; NULL: none
    int is_forced;       // also in place of a table that a file of queries has made
    int is_needed;       // too few rows for a table are BSW_ERROR_USAGE
    int num_threads;
    enum bsw_cpu_level level;
    const struct bsw_thread_pinning *pinning; // of the caller's threads; NULL: none
    struct bsw_progress *progress;            // rank 0, borrowed; NULL: nothing is shown
};

// What rank 0 measured.
struct bsw_calibrate_stats {
    uint64_t num_queries, k; // that count
    uint64_t num_different;  // of the rows that were drawn, or of the user's queries
    uint64_t num_wanted;     // rows to draw: more than num_different where no more differ
    uint32_t num_searches, num_entries; // 0 entries: too few rows for a table
    double least_recall, best_recall;   // of the entries
    double truth_seconds, seconds;
};

// How many rows of so many are drawn where num_rows does not say it.
uint64_t bsw_calibrate_usual_rows(uint64_t num_rows);

// Called by all ranks; ends with an agreement, so all return the same. BSW_ERROR_USAGE: the index
// has no lists, or fewer rows than num_rows; both queries and num_rows are given; or without force
// its table is of a file of queries.
enum bsw_status bsw_calibrate_run(const struct bsw_calibrate_settings *settings,
                                  struct bsw_transport *transport,
                                  struct bsw_calibrate_stats *stats, struct bsw_error *err);

// ---- what it tells ------------------------------------------------------------------------------

// What a calibration has to say, for the commands that make one.

// An object of the facts that are open; a line of text where there is a table.
void bsw_calibrate_facts(struct bsw_facts *facts, const struct bsw_calibrate_stats *stats);

#endif
