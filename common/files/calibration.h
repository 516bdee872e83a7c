// SPDX-License-Identifier: Apache-2.0
// What searches that look at some of an index's lists find: a table that was measured once, when
// the index was made (coordinator/calibrate), and is kept in its manifest. A search that is asked
// for a recall takes its settings from there (coordinator/search/search_settings.h).
#ifndef BITSWEEP_COMMON_CALIBRATION_H
#define BITSWEEP_COMMON_CALIBRATION_H

#include <stdint.h>

#include "common/base/c_linkage.h"

BSW_C_BEGIN

#define BSW_MAX_CALIBRATION_ENTRIES 1024

struct bsw_calibration_entry {
    uint32_t probe;      // lists a query at most: 1 .. number of lists
    double ratio;        // as struct bsw_probe_settings has it; 0: none
    double oversample;   // candidates that get exact values, times k: 1 .. 10000
    double recall;       // k-recall@k: 0 .. 1
    double rows_a_query; // looked at, with places that no row has
    uint32_t scan_dims;  // padded dimensions that keys are made of, the first ones; 0: all
};

enum bsw_calibration_source { BSW_CALIBRATED_BY_ROWS, BSW_CALIBRATED_BY_QUERIES };
const char *bsw_calibration_source_name(enum bsw_calibration_source source); // "rows", "queries"

// Entries by ascending recall, none twice: each finds more than all before it.
struct bsw_calibration {
    uint32_t k;           // that recall is of; 1 .. 10000
    uint64_t num_queries; // that it was measured with
    enum bsw_calibration_source source;
    uint32_t padded_dims; // of a whole code; the manifest's, not written here
    uint32_t num_entries; // 0: no table
    struct bsw_calibration_entry *entries;
};

void bsw_calibration_deinit(struct bsw_calibration *calibration); // accepts {0}

BSW_C_END
#endif
