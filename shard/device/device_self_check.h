// SPDX-License-Identifier: Apache-2.0
// Device against CPU, before the first batch: the leading rows of a shard, scanned on both, must
// give the same candidates. A device, driver or build that computes otherwise ends the search
// before anybody reads what it says.
#ifndef BITSWEEP_SHARD_DEVICE_SELF_CHECK_H
#define BITSWEEP_SHARD_DEVICE_SELF_CHECK_H

#include "shard/device/device_shard.h"

// Rows that are scanned at most, and queries, which are random: enough for every shape of tile.
// With queues twice as many rows.
#define BSW_SELF_CHECK_ROWS    256
#define BSW_SELF_CHECK_QUERIES 70

// The shard has just been loaded, with its codes still on the host. Every kind of scan that a
// search may choose. BSW_ERROR_SELF_CHECK names the device and the scan. Without resident bundles
// nothing is checked. The engine's counts stay as they were.
enum bsw_status bsw_device_self_check(struct bsw_device_engine *engine,
                                      const struct bsw_device_shard *shard, struct bsw_error *err);

#endif
