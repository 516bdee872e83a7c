// SPDX-License-Identifier: Apache-2.0
// The scan of a shard with lists: every list with the queries that look at it.
//
// First each query's nearest lists, which give it a limit that few rows of its other lists reach;
// then all others. A list's codes are unpacked once, for all of its queries, which lie side by
// side; a few queries go over the planes. Threads take list after list. What passes is few rows a
// list and query, and goes to one running list a query, which all threads share.
//
// The answer is the best `keep` rows, in the total order, of all lists that a query looks at: not a
// function of threads or of the order of lists. Rows are those of the shard, not places.
#ifndef BITSWEEP_SHARD_LIST_SCAN_H
#define BITSWEEP_SHARD_LIST_SCAN_H

#include "shard/host/list_tables.h"
#include "shard/host/shard_scan.h"
#include "shard/lists/coarse_search.h"
#include "shard/lists/list_groups.h"

// choice: of the range's queries; NULL: all look at all lists. scan_dims: padded dimensions that
// keys are made of, as struct bsw_probe_settings has them. limits as bsw_shard_scan's. groups:
// scratch. num_list_pairs, of query and list, is added to. Counts scan_seconds of workspace, and
// scanned_bytes: codes of a list once for each step and each 2048 queries that look at it.
enum bsw_status bsw_list_scan(const struct bsw_resident_shard *shard,
                              const struct bsw_list_choice *choice,
                              const struct bsw_query_range *queries, uint32_t scan_dims,
                              const uint32_t *limits, size_t keep, struct bsw_list_groups *groups,
                              struct bsw_scan_workspace *workspace, uint64_t *num_list_pairs,
                              struct bsw_candidate_lists *out, struct bsw_error *err);

#endif
