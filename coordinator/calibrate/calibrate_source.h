// SPDX-License-Identifier: Apache-2.0
// The rows of an index that a calibration opens: those that it was made of, or the index's copy of
// them, which is lent under a name (common/rows/memory_rows.h) as long as the calibration lasts.
// Rows that a program had in memory have no file; a file may be gone.
#ifndef BITSWEEP_COORDINATOR_CALIBRATE_SOURCE_H
#define BITSWEEP_COORDINATOR_CALIBRATE_SOURCE_H

#include "common/files/index_manifest.h"
#include "common/rows/memory_rows.h"

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
