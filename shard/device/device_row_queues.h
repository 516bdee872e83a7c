// SPDX-License-Identifier: Apache-2.0
// rbeGIR's selection on a device (shard_queue.h says what it gives): the same candidates as on the
// CPU.
//
// Rounds of whole blocks, as many as have room (device_plan.h): scans put every row that reaches
// its query's limit into its thread's queue, at the end of the round the queues are appended to the
// lists, and `cut` raises the limits; rows below them could no longer be among those kept. Queues
// stay in device memory until their round ends, so codes may come in blocks of any length. First
// rounds are short, for they have no limits yet; after that few rows pass, as with thresholds.
// Lists always have room for a round, and the host waits once for all codes that it was given.
#ifndef BITSWEEP_SHARD_DEVICE_ROW_QUEUES_H
#define BITSWEEP_SHARD_DEVICE_ROW_QUEUES_H

#include "shard/device/device_lists.h"

// After bsw_device_list_run_begin; run->lists has queues, run->keep plus one round has room in the
// lists.
enum bsw_status bsw_device_row_queues_begin(struct bsw_device_list_run *run, struct bsw_error *err);

// The next num_bundles of a shard of shard_bundles, which `scan` knows as 0 .. num_bundles - 1.
// When it returns all scans are over; with the shard's last bundle the counts are on the host. Then
// bsw_device_list_run_fetch.
enum bsw_status bsw_device_row_queues_scan(struct bsw_device_list_run *run, size_t num_bundles,
                                           size_t shard_bundles, bsw_device_scan_fn scan,
                                           void *context, struct bsw_error *err);

#endif
