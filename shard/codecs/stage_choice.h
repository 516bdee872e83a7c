// SPDX-License-Identifier: Apache-2.0
// Where the first stage of a progressive scan ends: the share of rows that would go on is counted
// on the sample, and the end that costs least, by the tables of `bitsweep bench tune`, is taken.
#ifndef BITSWEEP_SHARD_STAGE_CHOICE_H
#define BITSWEEP_SHARD_STAGE_CHOICE_H

#include "common/files/index_manifest.h"
#include "kernels/scan_tuning.h"
#include "shard/codecs/sample.h"

// Sets manifest->stage_dims, given mean, rotation, layout and metric: a multiple of 32 where a
// stage saves at least a twentieth of the scan, else all dims. Up to 32 rows of the sample serve as
// queries against up to 8,192 others, the best of which stand for the limit: looser than that of a
// larger corpus. The answer depends on the sample alone, not on CPU level or threads.
enum bsw_status bsw_choose_stage(struct bsw_sample *sample, struct bsw_manifest *manifest,
                                 struct bsw_error *err);

// What a scan costs with a stage of `dims`, in dimensions, when a share of half bundles goes on.
double bsw_stage_cost(const struct bsw_scan_tuning *tuning, uint32_t dims, uint32_t padded_dims,
                      double share);

#endif
