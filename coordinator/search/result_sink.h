// SPDX-License-Identifier: Apache-2.0
// Answers of a search in a result file with its FILE.json: the sink of the command. A search of one
// pass leaves what a later run can go on with (result_journal.h), and STATUS.json counts its
// queries.
#ifndef BITSWEEP_COORDINATOR_RESULT_SINK_H
#define BITSWEEP_COORDINATOR_RESULT_SINK_H

#include "coordinator/search/result_journal.h"
#include "coordinator/search/search.h"

// All but the last are set, the same on all ranks; that is {0}. Texts are borrowed.
struct bsw_result_sink {
    const char *path;                 // of the result
    int is_forced, is_resumed;        // --force, --resume
    int is_journaled;                 // what is timed, in several passes, is not cut into runs
    struct bsw_result_journal result; // rank 0
};

// sink must stay where it is until it is closed.
struct bsw_search_sink bsw_result_sink(struct bsw_result_sink *sink);
// All ranks. status: how the search ended. What a run may go on with stays, all else that is not
// finished goes.
void bsw_result_sink_close(struct bsw_result_sink *sink, enum bsw_status status);

#endif
