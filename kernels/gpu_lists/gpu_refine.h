// SPDX-License-Identifier: Apache-2.0
// Lists of candidates that are refined where they lie: the last step of a search of which nothing
// else decides what survives.
//
// Launchers as in device_scan.h.
#ifndef BITSWEEP_KERNELS_GPU_REFINE_H
#define BITSWEEP_KERNELS_GPU_REFINE_H

#include "kernels/device_exact/device_exact.h"
#include "kernels/gpu_select/gpu_select.h"

BSW_C_BEGIN

// As struct bsw_survivor of shard/host/shard_scan.h.
struct bsw_device_survivor {
    double value;
    uint32_t score, row; // of the candidate
};

// From each list's first min(counts, keep) candidates, whose rows are places in the raw rows, the
// best `take` by exact value, then the smaller row, in ascending order of rows: those of query q at
// out + q * take, as many as there are. queries [num_queries][dims], as given. A row beyond
// num_rows has some value. One kernel. take <= keep <= BSW_MOST_LAST_KEEP, capacity.
BSW_DEVICE_CALL int
bsw_device_refine_lists(enum bsw_metric metric, const struct bsw_device_raw_rows *rows,
                        const float *queries, const struct bsw_device_lists *lists, uint32_t keep,
                        uint32_t take, struct bsw_device_survivor *out, bsw_stream stream);

BSW_C_END
#endif
