// SPDX-License-Identifier: Apache-2.0
// bench tune --device: the row of a GPU, measured (device_tuner.h) and written into a file of
// tuning.
#ifndef BITSWEEP_BENCH_DEVICE_TUNE_H
#define BITSWEEP_BENCH_DEVICE_TUNE_H

#include "bench/host/device_tuner.h"
#include "coordinator/job/command.h"

struct bsw_device_tune_options {
    const struct bsw_common_options *common;
    const char *device, *write; // "cuda:0"; a file, or NULL: the row goes to stdout
    uint64_t rows;
    double seconds;
    int is_forced; // a row of the same capability in the file is replaced
};

// Called on rank 0 alone. BSW_ERROR_USAGE: no such device, or a row that is not to be replaced.
enum bsw_status bsw_device_tune(const struct bsw_device_tune_options *options,
                                struct bsw_error *err);

#endif
