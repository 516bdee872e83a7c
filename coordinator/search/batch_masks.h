// SPDX-License-Identifier: Apache-2.0
// What a batch on its way (batch_search.h) has of a filter (batch_filter.h): masks of its queries,
// where each has one.
#ifndef BITSWEEP_COORDINATOR_BATCH_MASKS_H
#define BITSWEEP_COORDINATOR_BATCH_MASKS_H

#include "coordinator/search/batch_search.h"

// Rank 0: masks of the batch's queries, and the order that puts the same together.
enum bsw_status bsw_batch_masks_pack(struct bsw_batch_search *search,
                                     struct bsw_search_batch *batch, struct bsw_error *err);
// To all ranks; work->queries, or its status, are set. An error is the status of the batch.
void bsw_batch_masks_spread(struct bsw_batch_search *search, struct bsw_buffer *masks,
                            struct bsw_batch_work *work);

#endif
