// SPDX-License-Identifier: Apache-2.0
// A batch over a shard with lists on a device: the candidates of bsw_list_scan
// (shard/host/list_scan.h), by work items (kernels/device_scan/device_list_scan.h).
//
// First every query's nearest list, which gives it a limit that few rows of its other lists reach;
// then the next few, then all others. What each step looks at is grouped by list, and a list cut
// into items of some bundles and of up to 256 of its queries, which the kernel has a tile for.
// Between steps `cut` raises limits on the device.
//
// The tables of all steps go to the device at once, and the host waits once, if they fit and no
// candidate list overflows, which is only looked at in the end. Else it goes step by step: items
// whose candidates had no room are scanned again, half of them at a time. A list of candidates has
// room for what one item finds, so that half of the items is one item in the end, which fits. A
// nearest list that is longer than that room is taken in parts, with a cut after each.
//
// Without a choice every query looks at all lists, whose bundles are then one run.
#ifndef BITSWEEP_SHARD_DEVICE_LIST_BATCH_H
#define BITSWEEP_SHARD_DEVICE_LIST_BATCH_H

#include "shard/device/device_shard.h"

// Lists whose codes are not on the device come in blocks (device_list_blocks.h), each once for a
// group of queries, after those that are there.
//
// Arguments and counts as bsw_list_scan's. num_list_pairs: of query and list, added to. kept: as
// bsw_device_span_scan's.
enum bsw_status bsw_device_list_batch_scan(
    struct bsw_device_engine *engine, const struct bsw_device_shard *shard,
    const struct bsw_list_choice *choice, const struct bsw_query_range *queries, uint32_t scan_dims,
    const uint32_t *limits, size_t keep, struct bsw_scan_workspace *workspace,
    uint64_t *num_list_pairs, struct bsw_device_kept_span *kept, struct bsw_candidate_lists *out,
    struct bsw_error *err);

// The same without limits, candidates to stay, in two steps: begin makes the tables and queues the
// lists that are on the device, and waits only where the tables are too short for them; end waits,
// and takes those that come in blocks. In between the engine scans nothing else, and what choice,
// the queries' batch and num_list_pairs point to stays; work on other queues is free to go on.
// *is_begun 0: not of these queries at once or not without a choice; then there is no end. Also
// after an error of begin where it is 1. out NULL: the candidates are of no use.
enum bsw_status
bsw_device_list_batch_begin(struct bsw_device_engine *engine, const struct bsw_device_shard *shard,
                            const struct bsw_list_choice *choice,
                            const struct bsw_query_range *queries, uint32_t scan_dims, size_t keep,
                            uint64_t *num_list_pairs, int *is_begun, struct bsw_error *err);
enum bsw_status bsw_device_list_batch_end(struct bsw_device_engine *engine,
                                          struct bsw_device_kept_span *kept,
                                          struct bsw_scan_workspace *workspace,
                                          struct bsw_candidate_lists *out, struct bsw_error *err);

#endif
