// SPDX-License-Identifier: Apache-2.0
// What a command reads and what it writes: no file may be both. One that is read is refused as an
// output, --force or not, whatever name it goes by: the same path, a symbolic link, a hard link.
// Nor may OUT.json be an empty file, such as a shell makes for standard output.
#ifndef BITSWEEP_COORDINATOR_COMMAND_FILES_H
#define BITSWEEP_COORDINATOR_COMMAND_FILES_H

#include "common/base/status.h"
#include "common/files/index_manifest.h"

#define BSW_MOST_FILES 8

struct bsw_command_files {
    // As options name them, NULL: none. synth: is no file; of FILE.hdf5:DATASET it is FILE.hdf5.
    const char *inputs[BSW_MOST_FILES];
    const char *outputs[BSW_MOST_FILES]; // NULL: none
    int is_result; // of each also OUT.json, OUT.partial, OUT.journal and OUT.STATUS.json
    int is_split;  // of each also OUT.neighbors.ibin and OUT.distances.fbin
    // An index that is read: its files, told by their names, and the file that its raw rows are in.
    // NULL: none.
    const char *index;
    const struct bsw_manifest *manifest;
    int (*is_of_index)(const char *name);
    // A folder that is written to, with FOLDER.json, and which names there are this command's.
    // NULL: none.
    const char *folder;
    int (*is_made)(const char *name);
};

// On the rank that writes, before anything is written, removed or renamed. An output that is an
// input, or two outputs that are the same file: BSW_ERROR_USAGE. Inputs that do not exist pass.
enum bsw_status bsw_command_files_check(const struct bsw_command_files *files,
                                        struct bsw_error *err);

#endif
