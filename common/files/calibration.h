// SPDX-License-Identifier: Apache-2.0
// The calibration of a manifest as its message in the file; for index_manifest.c.
#ifndef BITSWEEP_COMMON_CALIBRATION_H
#define BITSWEEP_COMMON_CALIBRATION_H

#include "bitsweep.pb-c.h"
#include "common/files/index_manifest.h"

// {0} is a valid empty one. The message points into it.
struct bsw_calibration_message {
    Bsw__Calibration message;
    Bsw__CalibrationEntry *entries;
    Bsw__CalibrationEntry **pointers;
};

enum bsw_status bsw_calibration_fill(const struct bsw_calibration *calibration,
                                     struct bsw_calibration_message *out, struct bsw_error *err);
void bsw_calibration_message_deinit(struct bsw_calibration_message *message);

// Checks a message, NULL for none, of an index with so many lists and codes of this layout;
// may_have_ratio: its metric has distances. What cannot be is BSW_ERROR_BAD_DATA, naming the file.
// bsw_calibration_deinit frees, also after an error.
enum bsw_status bsw_calibration_take(const char *name, const Bsw__Calibration *message,
                                     uint32_t num_lists, int may_have_ratio,
                                     const struct bsw_code_layout *layout,
                                     struct bsw_calibration *out, struct bsw_error *err);

#endif
