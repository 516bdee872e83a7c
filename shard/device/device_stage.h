// SPDX-License-Identifier: Apache-2.0
// When a device scans progressively: arithmetic alone, on what the launches before have told.
//
// The first launch of a group of queries is a full scan, for there are no limits yet. A staged one
// tells how many pairs of row and query went on. Where that costs more than the full scan would,
// the next launch is a full one; and a part much longer than all that went well since then is tried
// on its beginning first. Neither changes a candidate.
#ifndef BITSWEEP_SHARD_DEVICE_STAGE_H
#define BITSWEEP_SHARD_DEVICE_STAGE_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/device_scan/device_scan.h"

// What a group of queries has learnt of the stage. {.is_always, .words, .stage_words} then zeros.
struct bsw_device_stage_run {
    int is_always; // after the first launch: also where it does not pay
    uint32_t words, stage_words;
    size_t num_launches;
    unsigned resting;       // launches that are to be full ones
    uint64_t tried;         // bundles of staged launches since one did not pay
    uint64_t pending_pairs; // of the staged launch whose count is on its way
    uint64_t seen;          // survivors counted up to the launch before
    uint64_t part_stopped;  // pairs of the part under way
    uint64_t num_overflows; // of the lists when it began
    uint64_t stopped;       // pairs, of parts that did not overflow
};

// What a launch over a part is to be. BEGINNING: *beginning staged, the rest as is then said.
enum bsw_device_stage_step { BSW_STAGE_FULL, BSW_STAGE_STAGED, BSW_STAGE_BEGINNING };
enum bsw_device_stage_step bsw_device_stage_next(struct bsw_device_stage_run *run,
                                                 const struct bsw_device_part *part,
                                                 struct bsw_device_part *beginning);

// Before the part, or what is left of it, is scanned staged.
void bsw_device_stage_launched(struct bsw_device_stage_run *run, const struct bsw_device_part *part,
                               size_t num_queries);
// After that has ended, or nothing if none was under way: survivors since the group began.
void bsw_device_stage_settle(struct bsw_device_stage_run *run, uint64_t survivors);
// After a part, and before the first: num_overflows are those that the lists have had so far.
void bsw_device_stage_end_part(struct bsw_device_stage_run *run, uint64_t num_overflows);

// Whether a staged scan of so many words costs less than the full one when that share of all pairs
// goes on.
int bsw_device_stage_pays(uint32_t words, uint32_t stage_words, double share);

#endif
