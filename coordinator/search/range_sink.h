// SPDX-License-Identifier: Apache-2.0
// Answers of a range search to a file (common/files/range_file.h) with its FILE.json. Nobody knows
// how long it will be, so there is no FILE.partial to go on with: a run that ends early leaves
// nothing.
#ifndef BITSWEEP_COORDINATOR_RANGE_SINK_H
#define BITSWEEP_COORDINATOR_RANGE_SINK_H

#include "common/files/range_file.h"
#include "coordinator/search/search.h"

// path and is_forced are set, the same on all ranks; the rest is {0}.
struct bsw_range_sink {
    const char *path;
    int is_forced;
    bsw_range_writer *writer; // rank 0
};

// sink must stay where it is until it is closed.
struct bsw_search_sink bsw_range_sink(struct bsw_range_sink *sink);
// All ranks. status: how the search ended.
void bsw_range_sink_close(struct bsw_range_sink *sink, enum bsw_status status);

#endif
