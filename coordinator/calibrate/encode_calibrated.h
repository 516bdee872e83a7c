// SPDX-License-Identifier: Apache-2.0
// An index and, where it has lists, the table of recalls that its searches are settled by.
#ifndef BITSWEEP_COORDINATOR_ENCODE_CALIBRATED_H
#define BITSWEEP_COORDINATOR_ENCODE_CALIBRATED_H

#include "coordinator/calibrate/calibrate.h"
#include "coordinator/encode/encode_index.h"

// calibration NULL: no table. Else queries, rows, threads and pinning are said; index, level and
// progress become those of encode. Called by all ranks; ends with an agreement. After an error with
// *is_made the index is there without its table, and resume makes that alone.
enum bsw_status bsw_encode_calibrated(const struct bsw_encode_settings *settings,
                                      const struct bsw_calibrate_settings *calibration,
                                      struct bsw_transport *transport,
                                      struct bsw_encode_stats *stats,
                                      struct bsw_calibrate_stats *calibrated, int *is_made,
                                      struct bsw_error *err);

#endif
