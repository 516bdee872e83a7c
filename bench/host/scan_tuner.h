// SPDX-License-Identifier: Apache-2.0
// Measures what scans are tuned by (kernels/scan_tuning.h) on made-up codes in memory, on the
// calling thread.
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
#include "kernels/scan_tuning.h"

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

#endif
