// SPDX-License-Identifier: Apache-2.0
// What `bitsweep-bench WHAT` can measure.
#ifndef BITSWEEP_BENCH_BENCH_WHAT_H
#define BITSWEEP_BENCH_BENCH_WHAT_H

#include "coordinator/job/command.h"

extern const struct bsw_command bsw_bench_cluster, bsw_bench_tune, bsw_bench_memory,
    bsw_bench_kernels;
// Where the build has GPU kernels, or the emulator's: BITSWEEP_BENCH_DEVICE.
extern const struct bsw_command bsw_bench_device;

#endif
