// SPDX-License-Identifier: Apache-2.0
// The folder of a sweep: one sweep at a time is at work in it, and its files have names of their
// own.
#ifndef BITSWEEP_COORDINATOR_SWEEP_FOLDER_H
#define BITSWEEP_COORDINATOR_SWEEP_FOLDER_H

#include <jansson.h>

#include "common/base/file.h"
#include "common/job/journal.h"

// Makes the folder where it is missing, sets its absolute path, and takes its lock, which ends with
// *lock (bsw_file_close). Ranks of a sweep that was killed may still be about to end: they are
// waited for, for some seconds. A folder that another sweep has is BSW_ERROR_USAGE.
enum bsw_status bsw_sweep_folder_open(const char *path, char absolute[BSW_PATH_BYTES], int *lock,
                                      struct bsw_error *err);

// Whether a file there is the sweep's own (struct bsw_command_files).
int bsw_sweep_folder_makes(const char *name);
// What files that were being replaced left when a sweep was killed. Those of others stay.
enum bsw_status bsw_sweep_folder_clean(const char *folder, struct bsw_error *err);

// ---- the journal --------------------------------------------------------------------------------

// The record of a sweep, FOLDER/sweep.journal: an entry for the ground truth, each index and each
// point, {"kind": "index", "name": "saq-3", "facts": {...}}, durable before the next begins. The
// grid is no field of it: --resume with another grid adds points.

// {0} is closed.
struct bsw_sweep_journal {
    bsw_journal *journal;
    json_t *truths, *indexes, *rows; // objects by name: what it has, of earlier runs, too
};

// folder: absolute; name: as the user gave it. Without force or resume a folder that has a sweep is
// BSW_ERROR_USAGE, which says what may be done. To be closed also after an error.
enum bsw_status bsw_sweep_journal_open(struct bsw_sweep_journal *journal, const char *folder,
                                       const char *name, int force, int resume,
                                       const struct bsw_journal_fields *fields,
                                       struct bsw_error *err);
void bsw_sweep_journal_close(struct bsw_sweep_journal *journal);

// kind: "groundtruth", "index" or "point". Takes the reference to facts.
enum bsw_status bsw_sweep_journal_put(struct bsw_sweep_journal *journal, const char *kind,
                                      const char *name, json_t *facts, struct bsw_error *err);

#endif
