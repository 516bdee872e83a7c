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
#include "common/rows/vectors.h"

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

// ---- the rows of an index -----------------------------------------------------------------------

// The rows of an index that a calibration opens: those that it was made of, or the index's copy of
// them, which is lent under a name (common/rows/vectors.h) as long as the calibration lasts.
// Rows that a program had in memory have no file; a file may be gone.

struct bsw_calibrate_source {
    char name[BSW_PATH_BYTES]; // to open the rows by
    struct bsw_memory_rows memory;
    unsigned char *numbers; // [first_row + num_rows][row bytes]; owned; NULL: nothing is lent
};

// Whether the index has a copy of its rows and their file is gone, or is of another type or shape.
// Ranks are to do what rank 0 finds: where they open different sources they refuse each other's.
int bsw_calibrate_source_is_gone(const struct bsw_manifest *manifest, const char *index);

// Lends the copy where is_gone, or where the rows were in memory, unless the caller lends those
// that were encoded; others of that name are hidden meanwhile. That takes memory for all rows. A
// copy that has not the digest of the rows is BSW_ERROR_BAD_DATA. manifest is borrowed until
// take_back, which accepts {0} and belongs to the same thread.
enum bsw_status bsw_calibrate_source_lend(const struct bsw_manifest *manifest, const char *index,
                                          int is_gone, struct bsw_calibrate_source *out,
                                          struct bsw_error *err);
void bsw_calibrate_source_take_back(struct bsw_calibrate_source *source);

#endif
