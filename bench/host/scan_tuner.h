// SPDX-License-Identifier: Apache-2.0
// Measures what scans are tuned by (kernels/tuning/scan_tuning.h) on made-up codes in memory, on
// the calling thread.
//
// Nothing that is scanned is ever selected, so the figures are those of the scan alone; each is the
// median of several repetitions of the thread's own time, which take turns so that a disturbance
// hits all that is compared.
#ifndef BITSWEEP_BENCH_SCAN_TUNER_H
#define BITSWEEP_BENCH_SCAN_TUNER_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/base/status.h"
#include "coordinator/job/facts.h"
#include "kernels/device_scan/device_tuning.h"
#include "kernels/tuning/scan_tuning.h"

#define BSW_TUNER_MAX_LIST 8

struct bsw_scan_tuner_options {
    enum bsw_cpu_level level;
    double seconds;                    // spent on one measured point, about; > 0
    uint32_t dims[BSW_TUNER_MAX_LIST]; // multiples of 32, to BSW_MAX_DIMS
    uint32_t bits[BSW_TUNER_MAX_LIST]; // 1 .. BSW_MAX_CODE_BITS
    size_t num_dims, num_bits;         // >= 1
};

struct bsw_scan_tuner_row {
    struct bsw_scan_tuning tuning; // matrix_from_queries UINT32_MAX: in no batch that was measured
    // Nanoseconds for 16 rows and a query. Both families in the largest batch compared, unpacking
    // included; and the matrix scan alone, in a tile of tile_kib.
    double plane_ns, matrix_ns, full_ns;
};

// Called after each combination of dims and bits, bits changing fastest.
typedef void (*bsw_scan_tuner_fn)(void *context, const struct bsw_scan_tuner_row *row);

// Takes 24 points for each combination and 13 for each dims. A row that was selected although none
// may be is BSW_ERROR_SELF_CHECK.
enum bsw_status bsw_scan_tuner_run(const struct bsw_scan_tuner_options *options,
                                   bsw_scan_tuner_fn emit, void *context, struct bsw_error *err);

// What `bench tune --device` measures of a GPU: kernels and whole passes that stand against each
// other, and what a row of kernels/device_scan/device_tuning.txt makes of them. Columns that
// nothing here measures stay as they are in the row that holds for the device.

// bench/device has these, which a build without devices lacks: then their addresses are NULL.
#define BSW_TUNER_CALL __attribute__((weak))

struct bsw_device_tuner_options {
    int ordinal;
    uint64_t rows, repeat;    // of the corpus; measurements of each point, whose median counts
    double seconds;           // after these no further measurement of a point
    enum bsw_cpu_level level; // of the CPU beside it
    int num_threads;
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
