// SPDX-License-Identifier: Apache-2.0
// What `bench tune --device` measures of a GPU: kernels and whole passes that stand against each
// other, and what a row of kernels/device_scan/device_tuning.txt makes of them. Columns that
// nothing here measures stay as they are in the row that holds for the device.
#ifndef BITSWEEP_BENCH_DEVICE_TUNER_H
#define BITSWEEP_BENCH_DEVICE_TUNER_H

#include <stdint.h>

#include "coordinator/job/facts.h"
#include "kernels/device_scan/device_tuning.h"

// bench/device has these, which a build without devices lacks: then their addresses are NULL.
#define BSW_TUNER_CALL __attribute__((weak))

struct bsw_device_tuner_options {
    int ordinal;
    uint64_t rows, repeat; // of the corpus; measurements of each point, whose median counts
    double seconds;        // after these no further measurement of a point
};

struct bsw_device_tuner;
BSW_TUNER_CALL enum bsw_status bsw_device_tuner_open(const struct bsw_device_tuner_options *options,
                                                     struct bsw_device_tuner **out,
                                                     struct bsw_error *err);
BSW_TUNER_CALL void bsw_device_tuner_close(struct bsw_device_tuner **tuner);

// "NVIDIA H200"
BSW_TUNER_CALL const char *bsw_device_tuner_name(const struct bsw_device_tuner *tuner);
// The row has the device's own capability; before the run as searches have it.
BSW_TUNER_CALL const struct bsw_device_tuning *
bsw_device_tuner_row(const struct bsw_device_tuner *tuner);

// Measures, and tells each point: a list `points` of *facts. Searches of this process have the row
// from then on.
BSW_TUNER_CALL enum bsw_status bsw_device_tuner_run(struct bsw_device_tuner *tuner,
                                                    struct bsw_facts *facts, struct bsw_error *err);

#endif
