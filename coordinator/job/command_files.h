// SPDX-License-Identifier: Apache-2.0
// What a command reads and what it writes: no file may be both. One that is read is refused as an
// output, --force or not, whatever name it goes by: the same path, a symbolic link, a hard link.
// Nor may OUT.json be an empty file, such as a shell makes for standard output.
#ifndef BITSWEEP_COORDINATOR_COMMAND_FILES_H
#define BITSWEEP_COORDINATOR_COMMAND_FILES_H

#include "common/base/status.h"
#include "common/codes/metric.h"
#include "common/files/index_manifest.h"
#include "common/rows/vectors.h"

#define BSW_MOST_FILES 8

struct bsw_command_files {
    // As options name them, NULL: none. synth: is no file; of FILE.hdf5:DATASET it is FILE.hdf5.
    const char *inputs[BSW_MOST_FILES];
    const char *outputs[BSW_MOST_FILES]; // NULL: none
    int is_result; // of each also OUT.json, .partial, .journal, .coverage.npy, .STATUS.json
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

// ---- the metric ---------------------------------------------------------------------------------

// Nobody's default, since a wrong one gives wrong neighbours without a word. --metric says it, or
// an HDF5 file, whose attribute `distance` ann-benchmarks writes.

// For --help.
#define BSW_METRIC_HELP "what is nearest; needed unless an HDF5 file says it (its 'distance')"

// given: --metric, what an index has, or NULL; base, queries: what is read, queries may be NULL.
// angular and cosine are cosine, euclidean and l2 are l2, dot and ip are ip. BSW_ERROR_USAGE where
// nothing says a metric, or two things say different ones, --metric among them; another word of a
// file counts as nothing said.
enum bsw_status bsw_metric_choose(const char *given, const bsw_vectors *base,
                                  const bsw_vectors *queries, enum bsw_metric *out,
                                  struct bsw_error *err);

#endif
