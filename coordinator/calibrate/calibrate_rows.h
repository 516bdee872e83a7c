// SPDX-License-Identifier: Apache-2.0
// The rows of a corpus that are its queries, in a file of vectors that is there as long as it is
// needed: one of each of so many equal strata, chosen by an integer hash. In place of bad ones, and
// of copies of those that are drawn, others come, as long as there are some among 256 rows a
// stratum: of a corpus of 99 % copies these have enough.
#ifndef BITSWEEP_COORDINATOR_CALIBRATE_ROWS_H
#define BITSWEEP_COORDINATOR_CALIBRATE_ROWS_H

#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/base/file.h"
#include "common/files/index_manifest.h"

struct bsw_calibrate_rows {
    char path[BSW_PATH_BYTES]; // "" until it was made
    uint64_t *ids;             // [num_rows]: of the source; owned
    uint64_t num_rows;         // 0: no good row was drawn, and there is no file
    uint64_t num_wanted;       // more than num_rows: no others were found
};

// The name of the file, the same on all ranks. encode removes files of such names that a killed run
// left.
enum bsw_status bsw_calibrate_rows_path(const struct bsw_manifest *manifest, const char *index,
                                        char out[BSW_PATH_BYTES], struct bsw_error *err);

// Rank 0: writes at most `most` rows of source, which has those of the index. A stop removes the
// file. deinit removes and frees, also after an error; it accepts {0}.
enum bsw_status bsw_calibrate_rows_make(const struct bsw_manifest *manifest, const char *index,
                                        const char *source, uint64_t most, enum bsw_cpu_level level,
                                        struct bsw_calibrate_rows *out, struct bsw_error *err);
void bsw_calibrate_rows_deinit(struct bsw_calibrate_rows *rows);

#endif
