// SPDX-License-Identifier: Apache-2.0
// Answers of a running search on their way from the pipeline to the sink, counted; and what decides
// which rows a range search answers with.
#ifndef BITSWEEP_COORDINATOR_SEARCH_ANSWERS_H
#define BITSWEEP_COORDINATOR_SEARCH_ANSWERS_H

#include "coordinator/search/search.h"

// Those of a pipeline (batch_pipeline.h); context: the search.
enum bsw_status bsw_search_put(void *context, uint64_t first, size_t count, const int64_t *ids,
                               const float *values, struct bsw_error *err);
enum bsw_status bsw_search_put_range(void *context, uint64_t first, size_t count,
                                     const uint64_t *lims, const int64_t *ids, const float *values,
                                     struct bsw_error *err);

// Before the batches of a run, whose request may have another value than that of the run before.
void bsw_search_range_begin(struct bsw_search *search);

#endif
