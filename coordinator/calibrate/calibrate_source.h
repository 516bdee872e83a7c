// SPDX-License-Identifier: Apache-2.0
// An index of rows that a program had in memory names no file. It keeps a copy of them; here the
// copy is lent under their name (common/rows/memory_rows.h), as long as a calibration lasts.
#ifndef BITSWEEP_COORDINATOR_CALIBRATE_SOURCE_H
#define BITSWEEP_COORDINATOR_CALIBRATE_SOURCE_H

#include "common/files/index_manifest.h"
#include "common/rows/memory_rows.h"

struct bsw_calibrate_source {
    struct bsw_memory_rows memory;
    unsigned char *numbers; // [first_row + num_rows][row bytes]; owned; NULL: nothing is lent
};

// Takes memory for all rows. Nothing is done where the rows are those of a file, or where the
// caller lends the rows that were encoded; others of that name are hidden meanwhile. A copy that
// has not the digest of the rows is BSW_ERROR_BAD_DATA. manifest is borrowed until take_back, which
// accepts {0} and belongs to the same thread.
enum bsw_status bsw_calibrate_source_lend(const struct bsw_manifest *manifest, const char *index,
                                          struct bsw_calibrate_source *out, struct bsw_error *err);
void bsw_calibrate_source_take_back(struct bsw_calibrate_source *source);

#endif
