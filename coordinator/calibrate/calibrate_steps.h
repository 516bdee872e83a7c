// SPDX-License-Identifier: Apache-2.0
// What the searches of a calibration look at, from few lists to all.
//
// So many lists for ip. For other metrics so large a ratio that half of some queries reach so many
// lists with it: queries whose lists lie close together look at more of them.
//
// Where the first dimensions hold most of the energy, candidates by these alone cost less, and more
// of them are refined. So every step is measured with the segments' ends from a third of the
// dimensions on, too. Not with codes of residuals: what a code leaves out is of all dimensions.
#ifndef BITSWEEP_COORDINATOR_CALIBRATE_STEPS_H
#define BITSWEEP_COORDINATOR_CALIBRATE_STEPS_H

#include "common/base/cpu_level.h"
#include "common/files/index_manifest.h"
#include "shard/lists/coarse_search.h"

#define BSW_CALIBRATE_MOST_STEPS 32
#define BSW_CALIBRATE_MOST_DIMS  2

struct bsw_calibrate_steps {
    uint32_t num_steps;
    struct bsw_probe_settings steps[BSW_CALIBRATE_MOST_STEPS]; // the last: {0}, all lists
    uint32_t num_scan_dims;
    uint32_t scan_dims[BSW_CALIBRATE_MOST_DIMS]; // ascending; besides all dimensions
};

// queries: a file, of as many dimensions as the rows; is_copy [queries]: those that are passed
// over, or NULL.
enum bsw_status bsw_calibrate_steps_make(const struct bsw_manifest *manifest, const char *queries,
                                         const unsigned char *is_copy, enum bsw_cpu_level level,
                                         int num_threads, struct bsw_calibrate_steps *out,
                                         struct bsw_error *err);

#endif
