// SPDX-License-Identifier: Apache-2.0
// Which rows of a shard a batch looks at: work items, each a run of bundles, the queries that look
// at it, and what is added to their keys; and a row mask. An exhaustive search is one item, all
// bundles for all queries, and nothing added.
//
// An item is scanned as a shard of its own: queues (shard_queue.h) begin anew with its first
// bundle. A query's answer is the best `keep` in the total order of what its items found, keys with
// their additions; limits rise from item to item, so put first what is near. The same bytes on
// every back end, whatever the order of the items.
//
// Additions (kernels/select/key_shift.h) go to the finished key and are then rounded once: float
// keys x + g in float32, as lists of residuals want it; integer keys x + g within int32. Scores,
// limits and ties are those of the sums.
#ifndef BITSWEEP_SHARD_PROBE_H
#define BITSWEEP_SHARD_PROBE_H

#include <stddef.h>
#include <stdint.h>

#include "shard/backend.h"

struct bsw_work_item {
    size_t first_bundle, num_bundles; // runs that one query looks at do not overlap
    const uint32_t *queries; // [num_queries]: places among the range's queries, each once; NULL:
                             // all of them, in order
    size_t num_queries;      // with queries NULL: not read
    const union bsw_addition *additions; // [queries of the item], finite; NULL: nothing is added
};

// {0}: an exhaustive search. All borrowed.
struct bsw_probe {
    const struct bsw_work_item *items; // NULL: one item, everything
    size_t num_items;
    const uint32_t *masks; // [bundles of the shard]: bit r, row r of the bundle takes part; NULL:
                           // all rows do. Rows that were dropped stay out in any case.
};

// As `scan` of the back end. additions of the range's batch must be NULL: they are the items'. A
// back end that was opened without has_masks or has_additions (struct bsw_search_settings) may
// refuse them, as do a device's queues additions: BSW_ERROR_USAGE.
enum bsw_status bsw_probe_scan(const struct bsw_backend *backend, void *state,
                               const struct bsw_backend_shard *shard, const struct bsw_probe *probe,
                               const struct bsw_query_range *queries, const uint32_t *limits,
                               size_t keep, struct bsw_scan_workspace *workspace,
                               struct bsw_candidate_lists *out, struct bsw_error *err);

#endif
