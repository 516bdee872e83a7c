// SPDX-License-Identifier: Apache-2.0
// What of a span's lists (assignment.h) is one shard's.
#ifndef BITSWEEP_SHARD_LIST_PICK_H
#define BITSWEEP_SHARD_LIST_PICK_H

#include "shard/host/shard_scan.h"

// Takes from every list the rows [first_row, first_row + num_rows), counted from first_row on, in
// the order of the list.
enum bsw_status bsw_candidate_lists_pick(const struct bsw_candidate_lists *lists,
                                         uint32_t first_row, uint64_t num_rows,
                                         struct bsw_candidate_lists *out, struct bsw_error *err);

#endif
