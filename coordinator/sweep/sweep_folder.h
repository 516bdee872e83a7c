// SPDX-License-Identifier: Apache-2.0
// The folder of a sweep: one sweep at a time is at work in it, and its files have names of their
// own.
#ifndef BITSWEEP_COORDINATOR_SWEEP_FOLDER_H
#define BITSWEEP_COORDINATOR_SWEEP_FOLDER_H

#include "common/base/file.h"

// Makes the folder where it is missing, sets its absolute path, and takes its lock, which ends with
// *lock (bsw_file_close). Ranks of a sweep that was killed may still be about to end: they are
// waited for, for some seconds. A folder that another sweep has is BSW_ERROR_USAGE.
enum bsw_status bsw_sweep_folder_open(const char *path, char absolute[BSW_PATH_BYTES], int *lock,
                                      struct bsw_error *err);

// Whether a file there is the sweep's own (struct bsw_command_files).
int bsw_sweep_folder_makes(const char *name);
// What files that were being replaced left when a sweep was killed. Those of others stay.
enum bsw_status bsw_sweep_folder_clean(const char *folder, struct bsw_error *err);

#endif
