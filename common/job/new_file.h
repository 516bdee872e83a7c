// SPDX-License-Identifier: Apache-2.0
// A file on its way: written beside its final name, renamed when it is whole.
#ifndef BITSWEEP_COMMON_NEW_FILE_H
#define BITSWEEP_COMMON_NEW_FILE_H

#include "common/base/file.h"

struct bsw_new_file {
    char path[BSW_PATH_BYTES];      // behind symbolic links
    char temporary[BSW_PATH_BYTES]; // PATH.tmp.PID
    int fd;                         // -1 once finished
    int has_temporary;              // there is a file of that name, and it is ours
};

// Whether a file may get this name, or the one that symbolic links lead to from it: it is free or,
// with force, that of a regular file; else BSW_ERROR_USAGE.
enum bsw_status bsw_new_file_check(const char *path, int force, struct bsw_error *err);

// The final name must pass bsw_new_file_check. After an error nothing is left and deinit is
// allowed.
enum bsw_status bsw_new_file_create(const char *path, int force, struct bsw_new_file *out,
                                    struct bsw_error *err);

// fsync, rename to the final name, fsync of the folder.
enum bsw_status bsw_new_file_finish(struct bsw_new_file *file, struct bsw_error *err);

// Removes the temporary file if it was not finished.
void bsw_new_file_deinit(struct bsw_new_file *file);

#endif
